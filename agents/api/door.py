"""Before any other work on a request: a crowd of requests with one credential waits outside.

A refusal that first looks up who is asking costs a thread, a connection and most of what an answer
costs, and each request at work takes its part of the processor from the others. So here, before
either, each credential has its even pace (the limits for a minute, with a quarter of them at once) and
a few places at a time. What is counted is this process's own; the minute itself is `throttle`'s.
"""

import hashlib
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware

from agents.api import problems
from agents.api.authentication import SAFE_METHODS
from agents.api.problems import ProblemError
from agents.chat.allowance import MINUTE, Rate

REMEMBERED = 10_000  # credentials; those not seen for longest are forgotten first
BURST = 4  # this part of a minute's requests may come at once

Key = tuple[bytes, bool]


@sync_and_async_middleware
def door(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Middleware for /v1/: 429 for a credential that comes too fast or has too much at work here."""
    if iscoroutinefunction(get_response):

        async def enter_async(request: HttpRequest) -> Any:
            key = _key_of(request)
            refusal = _enter(key, request)
            if refusal is not None:
                return refusal
            try:
                return await get_response(request)
            finally:
                _leave(key)

        return enter_async

    def enter(request: HttpRequest) -> Any:
        key = _key_of(request)
        refusal = _enter(key, request)
        if refusal is not None:
            return refusal
        try:
            return get_response(request)
        finally:
            _leave(key)

    return enter


def forget_everybody() -> None:
    """As after a start."""
    with _lock:
        _pace.clear()


_lock = threading.Lock()
_at_work: Counter[bytes] = Counter()
_pace: OrderedDict[Key, Rate] = OrderedDict()


def _key_of(request: HttpRequest) -> Key | None:
    """The credential, digested, and whether it writes; None for doors and people of other kinds."""
    credential = request.META.get("HTTP_AUTHORIZATION", "")
    if not credential or not request.path_info.startswith("/v1/"):
        return None
    return hashlib.sha256(credential.encode()).digest(), request.method not in SAFE_METHODS


def _enter(key: Key | None, request: HttpRequest) -> HttpResponse | None:
    """Take a place for this request, or the answer that refuses it."""
    if key is None:
        return None
    credential, _ = key
    with _lock:
        wait = _wait_of(key)
        if wait == 0:
            if _at_work[credential] < settings.API_REQUESTS_AT_ONCE:
                _at_work[credential] += 1
                return None
            wait = 1.0
    refusal = ProblemError(
        problems.TOO_MANY_REQUESTS,
        "Requests of this kind come too fast, or too many at a time.",
        headers={"Retry-After": str(max(1, round(wait)))},
    )
    return problems.respond(refusal, request)


def _wait_of(key: Key) -> float:
    """Count one request; the seconds until the next would be let in, 0 when this one is."""
    _, is_write = key
    limit = settings.API_WRITES_PER_MINUTE if is_write else settings.API_READS_PER_MINUTE
    a_second = limit / MINUTE
    rate = _pace.get(key) or Rate(per_second=a_second, burst=max(1.0, limit / BURST), clock=_now)
    _pace[key] = rate
    _pace.move_to_end(key)
    if len(_pace) > REMEMBERED:
        _pace.popitem(last=False)
    return 0.0 if rate.take() else 1 / a_second


def _now() -> float:
    return time.monotonic()


def _leave(key: Key | None) -> None:
    if key is None:
        return
    credential, _ = key
    with _lock:
        _at_work[credential] -= 1
        if _at_work[credential] <= 0:
            del _at_work[credential]
