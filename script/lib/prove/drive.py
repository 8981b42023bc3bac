"""The people: customers who ask and answer, staff who countersign.

Each request is followed to its end over the API. A look at the rows says when it is worth asking
the API again; what the API then shows is kept, since that is what a customer would have seen.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from script.lib.prove.doors import NoAnswerError, Staff
from script.lib.prove.evidence import Shown
from script.lib.prove.instance import Instance
from script.lib.prove.plan import Request

LOOK_EVERY = 0.25  # seconds between two looks at the rows
ASK_EVERY = 8.0  # seconds after which the API is asked though nothing seems to have changed

_BOARD = """
    SELECT t.id, t.steps_planned, t.status || ':' || COALESCE(o.state, '') || ':'
        || COALESCE((SELECT string_agg(a.role || a.status, ',' ORDER BY a.id)
                     FROM approvals_approval a WHERE a.operation_id = o.id), '')
    FROM agents_task t LEFT JOIN tools_operation o ON o.id = t.operation_id
    WHERE t.id = ANY(%s)
"""


@dataclass
class Followed:
    """One request under way, or ended."""

    request: Request
    task_id: int = 0
    status: str = "not asked yet"
    submitted_at: float = 0.0
    accepted_at: float = 0.0
    ended_at: float = 0.0
    problem: str = ""
    first: Staff | None = None  # who answered as the first of staff


@dataclass
class Crowd:
    """Everybody who wants something."""

    instance: Instance
    followed: list[Followed] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    decisions: dict[str, int] = field(default_factory=dict)
    # Of each task how many steps it has planned, and what its customer could see of it.
    _marks: dict[int, tuple[int, str]] = field(default_factory=dict)
    _answers: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def accepted(self) -> set[int]:
        return {item.task_id for item in self.followed if item.task_id}

    @property
    def ended(self) -> int:
        return sum(1 for item in self.followed if item.ended_at)

    def slowest(self, count: int = 20) -> list[dict[str, Any]]:
        """The requests that took longest from their asking to their end, in seconds."""
        took = sorted(
            (item for item in self.followed if item.ended_at),
            key=lambda item: item.submitted_at - item.ended_at,
        )
        return [
            {
                "kind": item.request.kind,
                "task": item.task_id,
                "seconds": round(item.ended_at - item.submitted_at, 1),
                "accepted_after": round(item.accepted_at - item.submitted_at, 1),
                "status": item.status,
            }
            for item in took[:count]
        ]

    def seen(self) -> object:
        """How far everything is. It differs from the last time when something has moved."""
        return self.ended, dict(self._marks)

    async def watch(self) -> None:
        """Look at the rows of all tasks under way, until cancelled."""
        while True:
            open_ids = [
                item.task_id for item in self.followed if item.task_id and not item.ended_at
            ]
            if open_ids:
                with suppress(Exception):  # the database may be away for longer than we ask
                    rows = await asyncio.to_thread(self.instance.read, _BOARD, open_ids)
                    self._marks |= {task_id: (steps, told) for task_id, steps, told in rows}
            await asyncio.sleep(LOOK_EVERY)

    async def follow(self, request: Request) -> Followed:
        """Ask, answer what is asked back, and look until the task has ended."""
        item = Followed(request)
        self.followed.append(item)
        try:
            item.submitted_at = time.time()
            item.task_id = await self.instance.customers.submit(request.customer, request.message)
            item.accepted_at = time.time()
            await self._accompany(item)
        except NoAnswerError as exc:
            item.problem = str(exc)
        return item

    async def finish(self, seconds: float) -> None:
        """Let the answers that are under way be given, for so long."""
        if self._answers:
            _, late = await asyncio.wait(self._answers, timeout=seconds)
            for answer in late:
                answer.cancel()

    async def _accompany(self, item: Followed) -> None:
        answered: set[str] = set()
        mark, asked_at = "", 0.0
        while True:
            _, newest = self._marks.get(item.task_id, (0, ""))
            if newest == mark and time.monotonic() - asked_at < ASK_EVERY:
                await asyncio.sleep(0.1)
                continue
            mark, asked_at = newest, time.monotonic()
            task = await self.look(item)
            if task["finished_at"] is not None:
                item.ended_at = time.time()
                return
            action = task["action"]
            if action is not None and action["approval"] not in answered:
                answered.add(action["approval"])
                self._in_background(self._answer(item, action))

    async def look(self, item: Followed) -> dict[str, Any]:
        """The task as its customer sees it now, kept as what they were shown."""
        task = await self.instance.customers.look(item.request.customer, item.task_id)
        now = datetime.now(UTC)
        item.status = task["status"]
        self.shown += (
            Shown(
                at=now,
                key=operation["idempotency_key"],
                state=operation["state"],
                reference=operation["reference"],
            )
            for operation in task["operations"]
        )
        return task

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        answer = asyncio.create_task(work)
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)

    async def _answer(self, item: Followed, action: dict[str, Any]) -> None:
        await asyncio.sleep(item.request.pause)
        try:
            if action["role"] == "customer":
                await self._customer_answers(item, action)
            else:
                await self._staff_answer(item, action)
        except NoAnswerError as exc:
            item.problem = str(exc)

    async def _customer_answers(self, item: Followed, action: dict[str, Any]) -> None:
        customers, request = self.instance.customers, item.request
        if request.customer_says == "cancelled":
            self._count("cancel", await customers.cancel(request.customer, item.task_id))
            return
        says = "no" if request.customer_says == "no" else "yes"
        status = await customers.decide(request.customer, item.task_id, action, says)
        self._count(f"customer {says}", status)
        if request.customer_says == "taken_back":
            status = await customers.decide(request.customer, item.task_id, action, "no")
            self._count("customer takes back", status)

    async def _staff_answer(self, item: Followed, action: dict[str, Any]) -> None:
        request, team = item.request, self.instance.team
        if action["role"] == "second_staff":
            await self._second_answers(item, action)
            return
        leaves, has_double = request.first_leaves, request.first_again == "double"
        item.first = team.next_first(leaves=leaves, has_double=has_double)
        await self._says(item, action, item.first, request.staff_says)

    async def _second_answers(self, item: Followed, action: dict[str, Any]) -> None:
        """Somebody else answers; before that the first may try once more, or lose the right."""
        request, team = item.request, self.instance.team
        if item.first in team.approvers and request.first_again == "self":
            status = await item.first.decide_on_page(action, "yes")
            self._count("first of staff again", status)
        if item.first is team.approvers[0] and request.first_again == "double":
            status = await team.double.decide(item.task_id, action, "yes")
            self._count("first of staff by a second account", status)
        if item.first is not None and team.is_leaving(item.first):
            await asyncio.to_thread(self.instance.end_right, item.first)
            self._count("right of the first ended")
        await self._says(item, action, team.other_than(item.first), request.second_says, "second ")

    async def _says(
        self, item: Followed, action: dict[str, Any], person: Staff, says: str, which: str = ""
    ) -> None:
        if item.request.staff_in_console:
            status = await person.decide_on_page(action, says)
        else:
            status = await person.decide(item.task_id, action, says)
        self._count(f"{which}staff {says}", status)

    def _count(self, what: str, status: int | None = None) -> None:
        name = what if status is None else f"{what}: {status}"
        self.decisions[name] = self.decisions.get(name, 0) + 1


async def run_all(crowd: Crowd, requests: AsyncIterator[Request], *, at_once: int) -> None:
    """Follow all requests to their ends, so many at a time, in their order."""
    turn = asyncio.Lock()

    async def next_one() -> Request | None:
        async with turn:
            return await anext(requests, None)

    async def one_after_another() -> None:
        while (request := await next_one()) is not None:
            await crowd.follow(request)

    await asyncio.gather(*(one_after_another() for _ in range(at_once)))
