"""Following a task over SSE: nothing lost, nothing told twice, nothing held while it is quiet."""

import asyncio
import json
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import Customer, User
from agents import events
from agents.api import stream
from agents.api.problems import ProblemError
from agents.models import StepStatus, Task
from tests.api.asgi import ask, in_database
from tests.api.clients import Api, end, wait_for_yes
from tests.factories import say_yes
from tools.models import Operation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

ALL = ["1.1", "1.5", "2.1", "2.2", "2.3", "2.4", "2.5", "2.9"]
TYPES = [
    *("step.started", "step.finished", "step.started", "approval.needed", "approval.needed"),
    *("operation.checking", "step.finished", "task.done"),
]


class Story:
    """One task's whole life, a part at a time."""

    def __init__(self, ada: Api, dana: User) -> None:
        self.dana = dana
        self.task = ada.ask()
        self.path = f"/v1/tasks/{self.task.pk}/events"
        self.parts = [
            (self._start, 1),
            (self._propose, 3),
            (self._customer_agrees, 1),
            (self._send_and_lose_sight, 1),
            (self._end, 2),
        ]

    def tell_all(self) -> None:
        for part, _ in self.parts:
            part()

    def ring(self) -> None:
        events.ring(self.task.pk, self.task.ticket_id)

    def _start(self) -> None:
        self.task.steps.update(status=StepStatus.STARTED, started_at=timezone.now())

    def _propose(self) -> None:
        self.task.steps.update(
            status=StepStatus.FINISHED, result={"text": ""}, finished_at=timezone.now()
        )
        self.approval = wait_for_yes(self.task, price=40_000)

    def _customer_agrees(self) -> None:
        say_yes(self.approval.operation)

    def _send_and_lose_sight(self) -> None:
        say_yes(self.approval.operation, self.dana)
        Operation.objects.update(state="sending", first_sent_at=timezone.now())
        Operation.objects.update(state="unknown")

    def _end(self) -> None:
        Operation.objects.update(state="succeeded", reference="re_1", finished_at=timezone.now())
        end(Task.objects.get(pk=self.task.pk))


@pytest.fixture
def story(ada: Api, dana: User) -> Story:
    return Story(ada, dana)


@pytest.fixture
def only_the_doorbell(monkeypatch):
    """Between two rings nobody looks, so what comes has come by the doorbell."""
    monkeypatch.setattr(stream, "POLL_SECONDS", 60.0)


@pytest.fixture
def quick_looks(monkeypatch):
    monkeypatch.setattr(stream, "POLL_SECONDS", 0.05)


def ids(found: list[dict[str, Any]]) -> list[str]:
    return [event["id"] for event in found]


async def test_a_finished_task_is_told_whole_and_the_stream_ends(ada: Api, story: Story):
    await in_database(story.tell_all)

    async with ask(story.path, ada.headers) as answer:
        found = await answer.events()

    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.retry == "retry: 2000"
    # The question about a state that is over is not asked any more.
    assert ids(found) == [each for each in ALL if each != "2.4"]
    assert found[-1]["data"]["status"] == "succeeded"
    assert found[-2]["data"]["receipt"]["reference"] == "re_1"


async def test_events_come_as_they_happen(ada: Api, story: Story, only_the_doorbell):
    found = []

    async with ask(story.path, ada.headers) as answer:
        await answer.nothing()
        for part, count in story.parts:
            await in_database(part)
            await in_database(story.ring)
            found += [await answer.event() for _ in range(count)]
        assert await answer.event() is None

    assert [(event["id"], event["event"]) for event in found if event] == list(
        zip(ALL, TYPES, strict=True)
    )


async def test_a_reply_is_seen_being_written_and_is_no_place_to_go_on_from(
    ada: Api, story: Story, only_the_doorbell
):
    def draft(step: int, text: str) -> None:
        events.tell_draft(story.task, step, text)

    async with ask(story.path, ada.headers) as answer:
        await answer.nothing()
        await in_database(story.parts[0][0])
        await in_database(story.ring)
        started = await answer.event()
        await in_database(draft, 1, "I looked.")
        delta = await answer.event()
        await in_database(story.parts[1][0])
        await in_database(story.ring)
        rest = [await answer.event() for _ in range(3)]
        # Its step has ended by now, so this comes too late to be shown.
        await in_database(draft, 1, "I looked. Twice.")
        for part, _ in story.parts[2:]:
            await in_database(part)
        await in_database(story.ring)
        rest += await answer.events()

    assert started is not None
    assert delta is not None
    assert (started["id"], delta["event"]) == ("1.1", "reply.delta")
    assert delta["data"] == {"task": story.task.pk, "step": 1, "text": "I looked."}
    assert "id" not in delta
    assert "reply.delta" not in {event["event"] for event in rest if event}


async def test_hanging_up_after_every_event_loses_none_and_doubles_none(
    ada: Api, story: Story, quick_looks
):
    found: list[dict[str, Any]] = []

    for part, count in story.parts:
        await in_database(part)
        for _ in range(count):
            last = {"Last-Event-ID": found[-1]["id"]} if found else {}
            async with ask(story.path, ada.headers | last) as answer:
                event = await answer.event()
            assert event is not None
            found.append(event)

    assert ids(found) == ALL


async def test_going_on_after_any_event_brings_exactly_the_rest(ada: Api, story: Story):
    await in_database(story.tell_all)

    for n, position in enumerate(ALL):
        async with ask(story.path, ada.headers, query=f"after={position}") as answer:
            found = await answer.events()
        rest = [each for each in ALL[n + 1 :] if each != "2.4"]
        assert (ids(found), answer.status) == (rest, 200 if rest else 204)


async def test_without_redis_events_come_later_and_all_the_same(
    ada: Api, story: Story, quick_looks, settings
):
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.core.RedisChannelLayer",
            "CONFIG": {"hosts": ["redis://127.0.0.1:9/0"]},
        }
    }
    found = []

    async with ask(story.path, ada.headers) as answer:
        for part, count in story.parts:
            await in_database(part)
            found += [await answer.event() for _ in range(count)]
        assert await answer.event() is None

    assert [event["id"] for event in found if event] == ALL


async def test_a_task_that_rests_sends_signs_of_life(ada: Api, story: Story, monkeypatch):
    monkeypatch.setattr(stream, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.05)

    async with ask(story.path, ada.headers) as answer:
        await asyncio.sleep(0.5)
        await in_database(story.tell_all)
        await answer.events()

    assert 2 <= len(answer.comments) <= 12


async def test_who_is_blocked_hears_nothing_more(ada: Api, story: Story, monkeypatch):
    monkeypatch.setattr(stream, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.05)

    async with ask(story.path, ada.headers) as answer:
        await answer.nothing()
        await in_database(lambda: Customer.objects.update(status="blocked"))
        assert await answer.event() is None


async def test_staff_who_lose_the_console_hear_nothing_more(staff: Api, story: Story, monkeypatch):
    monkeypatch.setattr(stream, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.05)
    cookie = "; ".join(f"{name}={morsel.value}" for name, morsel in staff.client.cookies.items())

    async with ask(story.path, {"Cookie": cookie}) as answer:
        assert answer.status == 200
        await answer.nothing()
        await in_database(lambda: User.objects.update(is_active=False))
        assert await answer.event() is None


async def test_a_quiet_stream_holds_no_database_connection(ada: Api, story: Story, monkeypatch):
    monkeypatch.setattr(stream, "POLL_SECONDS", 60.0)

    def in_use() -> int:
        pool = connection.pool  # type: ignore[attr-defined]
        assert pool is not None
        stats = pool.get_stats()
        return int(stats["pool_size"] - stats["pool_available"])

    before = in_use()
    async with ask(story.path, ada.headers) as answer, ask(story.path, ada.headers) as other:
        async with asyncio.timeout(10):
            while in_use() > before:
                await asyncio.sleep(0.01)
        await answer.nothing()
        await other.nothing()
        assert in_use() == before


async def test_one_principal_has_so_many_streams_and_no_more(
    ada: Api, bob: Api, story: Story, settings, quick_looks
):
    settings.API_STREAMS_PER_PRINCIPAL = 2
    other = await in_database(lambda: bob.ask().pk)

    async with ask(story.path, ada.headers):
        async with ask(story.path, ada.headers):
            async with ask(story.path, ada.headers) as refused:
                document = await refused.whole()
            async with ask(f"/v1/tasks/{other}/events", bob.headers) as his:
                assert his.status == 200
        async with ask(story.path, ada.headers) as again:
            assert again.status == 200

    assert (refused.status, document["type"].split("#")[1]) == (429, "too-many-streams")
    assert int(refused.headers["retry-after"]) > 0
    assert not stream.SLOTS._taken


async def test_a_stream_that_never_begins_does_not_keep_its_place(settings, monkeypatch):
    settings.API_STREAMS_PER_PRINCIPAL = 1
    slots = stream.Slots()
    monkeypatch.setattr(stream, "START_SECONDS", 0.0)

    slots.take("customer:1")
    slots.take("customer:1").keep()

    with pytest.raises(ProblemError):
        slots.take("customer:1")


async def test_runs_are_followed_in_their_own_words(ada: Api, story: Story):
    await in_database(story.tell_all)

    async with ask(story.path.replace("tasks", "runs"), ada.headers) as answer:
        found = await answer.events()

    assert [(event["id"], event["event"]) for event in found] == [
        ("1.1", "step.started"),
        ("1.5", "step.finished"),
        ("2.1", "step.started"),
        ("2.2", "approval.needed"),
        ("2.3", "approval.needed"),
        ("2.5", "tool.called"),
        ("2.9", "done"),
    ]


async def _start(api: Api, headers: dict[str, str], path: str = "/v1/tasks") -> dict[str, Any]:
    body = {"message": "Hi"} if path == "/v1/tasks" else {"goal": "Hi", "ticket": "new"}
    return {
        "path": path,
        "headers": api.headers | {"Idempotency-Key": '"one"'} | headers,
        "method": "POST",
        "body": json.dumps(body).encode(),
    }


async def test_a_message_can_be_answered_with_the_tasks_events(ada: Api, quick_looks):
    request = await _start(ada, {"Accept": "application/json;q=0.5, text/event-stream"})

    async with ask(**request) as answer:
        await answer.nothing()
        task = await in_database(Task.objects.get)
        await in_database(end, task)
        found = await answer.events()

    assert answer.status == 201
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["location"] == f"/v1/tasks/{task.pk}"
    assert ids(found) == ["1.1", "1.5", "1.9"]

    async with ask(**request) as again:
        assert ids(await again.events()) == ids(found)
    assert again.headers["idempotency-replayed"] == "true"
    assert await in_database(Task.objects.count) == 1


async def test_whoever_hangs_up_leaves_nobody_listening(ada: Api, story: Story, quick_looks):
    for pause in (0, 0, 0, 0.01, 0.05, 0.2):
        async with ask(story.path, ada.headers):
            await asyncio.sleep(pause)

        coroutines = [repr(task.get_coro()) for task in asyncio.all_tasks()]
        assert not any("_Doorbell._listen" in each for each in coroutines)


async def test_hanging_up_does_not_stop_the_work(ada: Api, quick_looks):
    request = await _start(ada, {"Accept": "text/event-stream"}, "/v1/runs")

    async with ask(**request):
        pass

    task = await in_database(Task.objects.get)
    assert (task.status, task.cancel_requested_at) == ("queued", None)


async def test_a_body_without_a_length_is_refused_once_it_is_too_large(ada: Api):
    body = json.dumps({"message": "x" * 70_000}).encode()
    headers = ada.headers | {"Idempotency-Key": '"one"'}

    async with ask("/v1/tasks", headers, method="POST", body=body, is_chunked=True) as answer:
        document = await answer.whole()

    assert (answer.status, document["type"].split("#")[1]) == (413, "body-too-large")
    assert await in_database(Task.objects.count) == 0


async def test_a_body_without_a_length_is_read_all_the_same(ada: Api):
    headers = ada.headers | {"Idempotency-Key": '"one"'}
    body = b'{"message": "Hi"}'

    async with ask("/v1/tasks", headers, method="POST", body=body, is_chunked=True) as answer:
        document = await answer.whole()

    assert (answer.status, document["status"]) == (201, "queued")
