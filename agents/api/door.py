"""Before any other work on a request: a crowd of requests with one credential waits outside.

A refusal that first looks up who is asking costs a thread, a connection and most of what an answer
costs, and each request at work takes its part of the processor from the others. So here, on the
event loop and before Django hears of it, each credential has its even pace (the limits for a
minute, with a twelfth of them at once) and a few places at a time. What is counted is this
process's own; the minute itself is `throttle`'s.
"""

import asyncio
import hashlib
import time
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from prometheus_client import Counter

from agents.api import problems
from agents.api.authentication import SAFE_METHODS
from agents.api.problems import ProblemError
from agents.chat.allowance import MINUTE, Rate

REMEMBERED = 10_000  # credentials; those not seen for longest are forgotten first
BURST = 12  # this part of a minute's requests may come at once
GUARDED = "/v1/"

REFUSALS = Counter(
    "countersign_requests_refused_at_the_door_total",
    "Requests of the API answered 429 by this process before anything was looked up",
)

Key = tuple[bytes, bool]
# An ASGI application and what it is called with; each event is a dictionary.
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass
class _Guest:
    """A credential with requests inside: how many, and whose turn to write it is."""

    here: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Door:
    """An ASGI application around another: what goes to /v1/ with a credential has to get past it.

    It runs on one event loop, so nothing here is ever done by two at a time.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self._guests: dict[bytes, _Guest] = {}
        self._pace: OrderedDict[Key, Rate] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer 429 when its credential has too much at work."""
        key = _key_of(scope)
        if key is None:
            await self._application(scope, receive, send)
            return
        wait = self._wait_of(key)
        if wait:
            await _refuse(scope, send, wait)
        else:
            await self._let_in(key, scope, receive, send)

    async def _let_in(self, key: Key, scope: Scope, receive: Receive, send: Send) -> None:
        """Hold a place until the answer begins, as a stream may go on for hours.

        Writes of one credential take turns, which they would do at the customer's row anyway: so
        a crowd of them has one thread and one connection, and the others of it wait out here.
        """
        credential, is_write = key
        guest = self._guests.setdefault(credential, _Guest())
        with ExitStack() as held:
            guest.here += 1
            held.callback(self._leave, credential)
            if is_write:
                await guest.turn.acquire()
                held.callback(guest.turn.release)

            async def tell(event: Any) -> None:
                held.close()
                await send(event)

            await self._application(scope, receive, tell)

    def _leave(self, credential: bytes) -> None:
        self._guests[credential].here -= 1
        if not self._guests[credential].here:
            del self._guests[credential]

    def _wait_of(self, key: Key) -> float:
        """Count one request; the seconds until the next would be let in, 0 when this one is."""
        credential, is_write = key
        limit = settings.API_WRITES_PER_MINUTE if is_write else settings.API_READS_PER_MINUTE
        a_second = limit / MINUTE
        rate = self._pace.get(key) or Rate(
            per_second=a_second, burst=max(1.0, limit / BURST), clock=_now
        )
        self._pace[key] = rate
        self._pace.move_to_end(key)
        if len(self._pace) > REMEMBERED:
            self._pace.popitem(last=False)
        if not rate.take():
            return 1 / a_second
        guest = self._guests.get(credential)
        return 0.0 if guest is None or guest.here < settings.API_REQUESTS_AT_ONCE else 1.0


def _key_of(scope: Scope) -> Key | None:
    """The credential, digested, and whether it writes; None for doors and people of other kinds."""
    if scope["type"] != "http" or not scope["path"].startswith(GUARDED):
        return None
    for name, value in scope["headers"]:
        if name == b"authorization":
            return hashlib.sha256(value).digest(), scope["method"] not in SAFE_METHODS
    return None


async def _refuse(scope: Scope, send: Send, wait: float) -> None:
    REFUSALS.inc()
    name = uuid.uuid4().hex
    refusal = ProblemError(
        problems.TOO_MANY_REQUESTS,
        "Requests of this kind come too fast, or too many at a time.",
        headers={"Retry-After": str(max(1, round(wait)))},
    )
    headers, body = problems.written(refusal, scope["path"], name)
    await send(
        {
            "type": "http.response.start",
            "status": refusal.kind.status,
            "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
            "trailers": False,
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _now() -> float:
    return time.monotonic()
