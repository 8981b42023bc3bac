"""A task's events as they come, over SSE. Following a task never works on it.

The rows are read when the doorbell rings, and every two seconds in any case: with Redis away a
follower is late, and misses nothing. Between two looks no database connection is held.
"""

import asyncio
import contextlib
import json
import logging
import re
import threading
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.conf import settings
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from typing_extensions import override

from agents import events
from agents.api import problems
from agents.api.authentication import Principal
from agents.api.base import let_go_of_connection
from agents.api.problems import ProblemError
from agents.models import ENDED, Task
from tools.outages import AWAY

HEARTBEAT_SECONDS = 15.0
POLL_SECONDS = 2.0
RETRY_MS = 2000
START_SECONDS = 30.0
EVENT_ID = r"[0-9]{1,9}\.[0-9]{1,9}"

logger = logging.getLogger(__name__)

# An event's name and data, for one of the two names of the resource.
Naming = Callable[[events.Event], tuple[str, dict[str, Any]]]


def wants_stream(request: HttpRequest) -> bool:
    """Does the client ask for events instead of a document?"""
    accepted = request.headers.get("Accept", "").lower().split(",")
    return any(part.split(";")[0].strip() == "text/event-stream" for part in accepted)


def position_in(request: HttpRequest) -> str:
    """The event id after which to go on: the Last-Event-ID header, or `after` in the query.

    Raises ProblemError (400) when either is given and is no event id.
    """
    given = [request.headers.get("Last-Event-ID", ""), request.GET.get("after", "")]
    if any(each and re.fullmatch(EVENT_ID, each) is None for each in given):
        raise ProblemError(problems.BAD_EVENT_ID)
    return given[0] or given[1]


def respond(
    principal: Principal, task: Task, *, after: str, naming: Naming, status: int = 200
) -> HttpResponseBase:
    """The task's events after an id, until it is done.

    204 when the task is done and nothing is left to tell: that ends an EventSource. Raises
    ProblemError (429) when the principal has too many streams open already.
    """
    if task.status in ENDED and after and not events.list_events(task, after=after):
        return HttpResponse(status=204)
    slot = SLOTS.take(principal.key)
    let_go_of_connection()
    follower = _Follower(principal=principal, task_id=task.pk, position=after, naming=naming)
    return _StreamResponse(follower, slot, status=status)


class Slots:
    """How many streams each principal has open in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: dict[str, dict[object, float]] = {}

    def take(self, key: str) -> "Slot":
        """One more. Raises ProblemError (429) when there are enough."""
        now = time.monotonic()
        slot = Slot(self, key)
        with self._lock:
            # A client may be gone before its answer starts; nobody gives that slot back.
            mine = {s: due for s, due in self._taken.get(key, {}).items() if due > now}
            if len(mine) >= settings.API_STREAMS_PER_PRINCIPAL:
                raise ProblemError(
                    problems.TOO_MANY_STREAMS, headers={"Retry-After": str(int(HEARTBEAT_SECONDS))}
                )
            mine[slot] = now + START_SECONDS
            self._taken[key] = mine
        return slot

    def keep(self, slot: "Slot") -> None:
        with self._lock:
            if slot in self._taken.get(slot.key, {}):
                self._taken[slot.key][slot] = float("inf")

    def give_back(self, slot: "Slot") -> None:
        with self._lock:
            mine = self._taken.get(slot.key, {})
            mine.pop(slot, None)
            if not mine:
                self._taken.pop(slot.key, None)


class Slot:
    """One open stream of a principal. Giving it back twice is giving it back once."""

    def __init__(self, slots: Slots, key: str) -> None:
        self._slots = slots
        self.key = key

    def keep(self) -> None:
        """The stream has started and gives its slot back itself."""
        self._slots.keep(self)

    def give_back(self) -> None:
        self._slots.give_back(self)


SLOTS = Slots()


async def _nothing() -> AsyncGenerator[bytes, None]:
    """What makes Django treat a response as an asynchronous stream."""
    if False:
        yield b""  # type: ignore[unreachable]


class _StreamResponse(StreamingHttpResponse):
    """Gives its slot back, and ends the following, however it ends."""

    def __init__(self, follower: "_Follower", slot: Slot, *, status: int) -> None:
        self._follower = follower
        self._slot = slot
        super().__init__(
            _nothing(),
            status=status,
            content_type="text/event-stream; charset=utf-8",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    @override
    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        """Django's own way leaves the innermost generator open until somebody collects it."""
        self._slot.keep()
        try:
            async with contextlib.aclosing(self._follower.chunks()) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            self._slot.give_back()

    @override
    def close(self) -> None:
        self._slot.give_back()
        super().close()


@dataclass(frozen=True)
class _Look:
    """What one look at the rows found."""

    found: list[events.Event] = field(default_factory=list)
    is_over: bool = False


@dataclass
class _Follower:
    """One client that follows one task. `position` is the id of the last event it was sent."""

    principal: Principal
    task_id: int
    position: str
    naming: Naming

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield f"retry: {RETRY_MS}\n\n".encode()
        # Listen before the first look, so that nothing happens in between unheard.
        doorbell = _Doorbell(events.task_group(self.task_id))
        async with doorbell.listening():
            told_at = checked_at = time.monotonic()
            while True:
                look = await sync_to_async(self._look, thread_sensitive=False)()
                for event in look.found:
                    self.position = event.id
                    told_at = time.monotonic()
                    yield self._frame(event)
                if look.is_over:
                    return
                draft = doorbell.take_draft()
                if draft is not None and _is_current(draft, self.position):
                    told_at = time.monotonic()
                    yield _draft_frame(draft)
                now = time.monotonic()
                if now - told_at >= HEARTBEAT_SECONDS:
                    told_at = now
                    yield b": still here\n\n"
                if now - checked_at >= HEARTBEAT_SECONDS:
                    checked_at = now
                    if not await sync_to_async(self._is_welcome, thread_sensitive=False)():
                        return
                await doorbell.wait(POLL_SECONDS)

    def _look(self) -> _Look:
        """One look; nothing new when the database is away, so that the follower looks again."""
        try:
            task = Task.objects.get(pk=self.task_id)
            found = events.list_events(task, after=self.position)
            return _Look(found=found, is_over=task.status in ENDED)
        except AWAY as exc:
            logger.warning("task %s could not be looked at: %s", self.task_id, type(exc).__name__)
            return _Look()
        finally:
            let_go_of_connection()

    def _is_welcome(self) -> bool:
        try:
            return self.principal.is_still_welcome()
        except AWAY:
            return True
        finally:
            let_go_of_connection()

    def _frame(self, event: events.Event) -> bytes:
        name, data = self.naming(event)
        text = json.dumps(data, separators=(",", ":"))
        return f"id: {event.id}\nevent: {name}\ndata: {text}\n\n".encode()


class _Doorbell:
    """Waits for news of a group, or for a while. Without Redis it is only the while."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._layer: Any = get_channel_layer()
        self._rung = asyncio.Event()
        self._draft: dict[str, Any] | None = None

    def take_draft(self) -> dict[str, Any] | None:
        """The last that was heard of a reply being written, once."""
        draft, self._draft = self._draft, None
        return draft

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncGenerator[None, None]:
        """Hear each ring until the end of the block; from its beginning, if Redis is there."""
        ready = asyncio.Event()
        listener = asyncio.create_task(self._listen(ready))
        try:
            # Not `wait_for`: in Python 3.11 it can swallow the cancellation of whoever hangs up.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await ready.wait()
            yield
        finally:
            while not listener.done():
                listener.cancel()
                # Again, if whatever it waited for has swallowed the cancellation.
                await asyncio.wait([listener], timeout=1.0)

    async def wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        self._rung.clear()

    async def _listen(self, ready: asyncio.Event) -> None:
        """Join the group and note each ring, for as long as Redis lets us."""
        me = asyncio.current_task()
        # Asked each time: channels_redis can answer a cancellation with an error of its own.
        while me is not None and not me.cancelling():
            try:
                channel = await self._layer.new_channel()
                await self._layer.group_add(self._group, channel)
                try:
                    ready.set()
                    while not me.cancelling():
                        heard = await self._layer.receive(channel)
                        if heard.get("type") == events.DRAFT:
                            self._draft = heard
                        self._rung.set()
                finally:
                    await self._layer.group_discard(self._group, channel)
            except Exception as exc:  # noqa: BLE001 - without it the follower is late, not wrong
                if me.cancelling():
                    return
                logger.warning("No doorbell for %s: %s", self._group, type(exc).__name__)
                ready.set()
                await asyncio.sleep(POLL_SECONDS)


def _is_current(draft: dict[str, Any], position: str) -> bool:
    """Is the step of a draft still under way, for a follower that was told up to a position?"""
    return (int(draft["step"]), events.FINISHED) > events.parse_id(position)


def _draft_frame(draft: dict[str, Any]) -> bytes:
    """Without an id: it is not told again, and nobody goes on after it."""
    data = {name: draft[name] for name in ("task", "step", "text")}
    text = json.dumps(data, separators=(",", ":"))
    return f"event: reply.delta\ndata: {text}\n\n".encode()


def task_naming(event: events.Event) -> tuple[str, dict[str, Any]]:
    """The names of /v1/tasks: as the step log has them."""
    return event.type, event.data


def run_naming(event: events.Event) -> tuple[str, dict[str, Any]]:
    """The names of /v1/runs: step.started, tool.called, approval.needed, done and a few besides."""
    if event.type == "step.finished" and event.data.get("kind") == "tool":
        return "tool.called", event.data
    if event.type == "task.done":
        return "done", event.data
    return event.type, event.data
