"""Requests of one principal: how many a minute, counted in Redis, and how many at a time, here.

It shields the web processes; what a customer may start is limited by the rows themselves. With
Redis away nobody is counted by the minute.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import redis
from django.conf import settings

from agents.api import problems
from agents.api.problems import ProblemError

MINUTE = 60

logger = logging.getLogger(__name__)


def count_request(principal_key: str, *, is_write: bool) -> None:
    """Count one request; 429 with Retry-After when it is one too many in this minute."""
    limit = settings.API_WRITES_PER_MINUTE if is_write else settings.API_READS_PER_MINUTE
    now = time.time()
    window = int(now // MINUTE)
    kind = "write" if is_write else "read"
    count = _increment(f"countersign:rate:{principal_key}:{kind}:{window}")
    if count > limit:
        wait = max(1, int((window + 1) * MINUTE - now) + 1)
        raise ProblemError(
            problems.TOO_MANY_REQUESTS,
            f"At most {limit} requests of this kind a minute.",
            headers={"Retry-After": str(wait)},
        )


@contextmanager
def one_of_few(principal_key: str) -> Iterator[None]:
    """Hold one of the principal's places in this process, so that a crowd of requests by one
    does not hold every database connection that others need. 429 when none is free.
    """
    with _lock:
        if _at_work[principal_key] >= settings.API_REQUESTS_AT_ONCE:
            raise ProblemError(
                problems.TOO_MANY_REQUESTS,
                f"At most {settings.API_REQUESTS_AT_ONCE} requests at a time.",
                headers={"Retry-After": "1"},
            )
        _at_work[principal_key] += 1
    try:
        yield
    finally:
        with _lock:
            _at_work[principal_key] -= 1
            if not _at_work[principal_key]:
                del _at_work[principal_key]


_lock = threading.Lock()
_at_work: Counter[str] = Counter()


def _increment(key: str) -> int:
    try:
        pipe = _client(settings.REDIS_URL).pipeline(transaction=False)
        pipe.incr(key)
        pipe.expire(key, 2 * MINUTE)
        return int(pipe.execute()[0])
    except redis.RedisError as exc:
        logger.warning("Requests are not counted: %s", type(exc).__name__)
        return 0


@cache
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=0.5, socket_connect_timeout=0.5)
