"""The door of the API: who may come in, before Django hears of it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.api import door
from agents.api.door import REFUSALS, Door

pytestmark = pytest.mark.asyncio


@dataclass
class Inside:
    """An application behind the door: notes who comes in, and answers when it is told to."""

    entered: list[str] = field(default_factory=list)
    at_work: int = 0
    most_at_work: int = 0
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    has_ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.entered.append(f"{scope['method']} {scope['path']}")
        self.at_work += 1
        self.most_at_work = max(self.most_at_work, self.at_work)
        await self.goes_on.wait()
        self.at_work -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"].endswith("/events"):
            await self.has_ended.wait()
        await send({"type": "http.response.body", "body": b"in"})


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


async def ask(
    at: Door, credential: str = "Bearer one", *, method: str = "POST", path: str = "/v1/tasks"
) -> Answer:
    """One request, as a server would hand it over."""
    events: list[Any] = []

    async def send(event: Any) -> None:
        events.append(event)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    headers = [(b"host", b"shop.example")]
    if credential:
        headers.append((b"authorization", credential.encode()))
    scope: Any = {"type": "http", "method": method, "path": path, "headers": headers}
    await at(scope, receive, send)
    start, *bodies = events
    return Answer(
        status=start["status"],
        headers={name.decode(): value.decode() for name, value in start["headers"]},
        body=b"".join(event["body"] for event in bodies),
    )


@asynccontextmanager
async def held_up(inside: Inside, *asking: Any) -> AsyncIterator[list[asyncio.Task[Answer]]]:
    """These requests are under way, and everybody inside goes on only afterwards."""
    tasks = [asyncio.create_task(one) for one in asking]
    await rest()
    yield tasks
    inside.goes_on.set()
    inside.has_ended.set()
    await asyncio.gather(*tasks)


async def rest() -> None:
    """Until nobody has anything to do but wait."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def inside() -> Inside:
    return Inside()


@pytest.fixture
def at(inside: Inside) -> Door:
    return Door(inside)


async def test_whoever_comes_too_fast_is_answered_before_anything_is_looked_up(
    at: Door, inside: Inside, settings
):
    settings.API_WRITES_PER_MINUTE = 24  # two at once, then one in two and a half seconds
    inside.goes_on.set()
    before = REFUSALS._value.get()

    answers = [await ask(at) for _ in range(7)]

    assert [answer.status for answer in answers] == [200] * 2 + [429] * 5
    assert inside.entered == ["POST /v1/tasks"] * 2
    assert REFUSALS._value.get() - before == 5
    refused = answers[-1]
    problem = json.loads(refused.body)
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert int(refused.headers["Content-Length"]) == len(refused.body)
    assert refused.headers["Retry-After"] == "2"
    assert refused.headers["Cache-Control"] == "no-store"
    assert problem["type"].endswith("#too-many-requests")
    assert (problem["status"], problem["instance"]) == (429, "/v1/tasks")
    assert problem["request_id"] == refused.headers["X-Request-ID"] != ""


async def test_others_and_reading_have_a_pace_of_their_own(at: Door, inside: Inside, settings):
    settings.API_WRITES_PER_MINUTE = 12
    inside.goes_on.set()
    assert [(await ask(at)).status for _ in range(2)] == [200, 429]

    assert (await ask(at, "Bearer two")).status == 200
    assert (await ask(at, method="GET")).status == 200


async def test_whoever_has_waited_is_let_in_again(at: Door, inside: Inside, settings, monkeypatch):
    settings.API_WRITES_PER_MINUTE = 12
    inside.goes_on.set()
    await ask(at)
    wait = int((await ask(at)).headers["Retry-After"])
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + wait + 1)

    assert (await ask(at)).status == 200


async def test_a_crowd_with_one_credential_has_a_few_places(at: Door, inside: Inside, settings):
    settings.API_REQUESTS_AT_ONCE = 3
    async with held_up(inside, *(ask(at, method="GET") for _ in range(5))) as crowd:
        refused = [task.result() for task in crowd if task.done()]

        assert [answer.status for answer in refused] == [429, 429]
        assert refused[0].headers["Retry-After"] == "1"
        assert inside.at_work == 3
        async with held_up(inside, ask(at, "Bearer two", method="GET")):
            assert inside.at_work == 4

    assert (await ask(at, method="GET")).status == 200


async def test_writes_with_one_credential_take_turns_and_those_of_others_do_not(
    at: Door, inside: Inside, settings
):
    settings.API_REQUESTS_AT_ONCE = 4
    mine = [ask(at, path=f"/v1/tasks/{n}/messages") for n in range(3)]
    async with held_up(inside, *mine, ask(at, method="GET"), ask(at, "Bearer two")) as crowd:
        assert inside.entered == ["POST /v1/tasks/0/messages", "GET /v1/tasks", "POST /v1/tasks"]
        assert not any(task.done() for task in crowd)

    assert [task.result().status for task in crowd] == [200] * 5
    assert inside.entered[3:] == ["POST /v1/tasks/1/messages", "POST /v1/tasks/2/messages"]


async def test_whoever_leaves_while_waiting_holds_up_nobody(at: Door, inside: Inside):
    async with held_up(inside, ask(at)):
        waiting = asyncio.create_task(ask(at, path="/v1/forms"))
        await rest()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    assert inside.entered == ["POST /v1/tasks"]
    assert (await ask(at)).status == 200
    assert at._guests == {}


async def test_a_place_is_held_until_the_answer_begins_and_not_for_a_whole_stream(
    at: Door, inside: Inside, settings
):
    settings.API_REQUESTS_AT_ONCE = 1
    inside.goes_on.set()
    async with held_up(inside, ask(at, method="GET", path="/v1/tasks/7/events")) as following:
        assert not following[0].done()
        assert (await ask(at)).status == 200

    assert following[0].result().body == b"in"


async def test_a_fault_inside_gives_the_place_and_the_turn_back(settings):
    settings.API_REQUESTS_AT_ONCE = 1

    async def broken(*_: Any) -> None:
        raise ZeroDivisionError

    at = Door(broken)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await ask(at)
    assert at._guests == {}


@pytest.mark.parametrize(
    ("credential", "path"), [("", "/v1/tasks"), ("Bearer one", "/console/"), ("", "/healthz/live")]
)
async def test_doors_and_people_of_other_kinds_are_not_counted(
    at: Door, inside: Inside, settings, credential: str, path: str
):
    settings.API_WRITES_PER_MINUTE = settings.API_READS_PER_MINUTE = 1
    inside.goes_on.set()

    statuses = {(await ask(at, credential, path=path)).status for _ in range(5)}

    assert statuses == {200}


async def test_only_so_many_credentials_are_remembered(at: Door, inside: Inside, monkeypatch):
    monkeypatch.setattr(door, "REMEMBERED", 3)
    inside.goes_on.set()
    for n in range(10):
        await ask(at, f"Bearer {n}")

    assert len(at._pace) == 3
