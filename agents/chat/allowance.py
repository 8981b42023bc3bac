"""How much one client may ask of us: frames a second, sockets at once, exchanges a minute."""

import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import redis
from django.conf import settings

MAX_SOCKETS = 5
FORGOTTEN_AFTER = 60  # seconds without a sign of life; a crashed process's sockets end so
SIGN_OF_LIFE = 20  # seconds
EXCHANGES_PER_MINUTE = 120
LOOKS_PER_MINUTE = 20
MINUTE = 60

logger = logging.getLogger(__name__)


class TooFastError(Exception):
    """More than a client may ask in this time; nothing was done."""


@dataclass
class Rate:
    """A bucket of `burst` that fills by `per_second`."""

    per_second: float
    burst: float
    clock: Callable[[], float] = time.monotonic
    _left: float = field(init=False)
    _at: float = field(init=False)

    def __post_init__(self) -> None:
        self._left, self._at = self.burst, self.clock()

    def take(self, amount: float = 1) -> bool:
        """Take this much, if there is so much left."""
        now = self.clock()
        self._left = min(self.burst, self._left + (now - self._at) * self.per_second)
        self._at = now
        if self._left < amount:
            return False
        self._left -= amount
        return True


class Place:
    """One of the few sockets that a customer may have, counted in Redis over all processes.

    With Redis away nobody is counted and everybody may come in: the count shields us from a flood,
    the chat itself does not rest on it.
    """

    def __init__(self, customer_id: int) -> None:
        self._key = f"countersign:sockets:{customer_id}"
        self._name = uuid.uuid4().hex
        self._signed_at = 0.0

    def take(self) -> bool:
        """False when the customer has as many sockets as are allowed."""
        now = time.time()
        self._signed_at = now
        try:
            pipe = _client(settings.REDIS_URL).pipeline()
            pipe.zremrangebyscore(self._key, "-inf", now - FORGOTTEN_AFTER)
            pipe.zadd(self._key, {self._name: now})
            pipe.expire(self._key, 2 * FORGOTTEN_AFTER)
            pipe.zcard(self._key)
            count = int(pipe.execute()[-1])
        except redis.RedisError as exc:
            logger.warning("Sockets are not counted: %s", type(exc).__name__)
            return True
        if count > MAX_SOCKETS:
            self.leave()
            return False
        return True

    def keep(self) -> None:
        """Say now and then that this socket is still there."""
        if time.time() - self._signed_at >= SIGN_OF_LIFE:
            self._signed_at = time.time()
            self._tell(lambda client: client.zadd(self._key, {self._name: self._signed_at}))

    def leave(self) -> None:
        self._tell(lambda client: client.zrem(self._key, self._name))

    def _tell(self, say: Callable[[redis.Redis], object]) -> None:
        try:
            say(_client(settings.REDIS_URL))
        except redis.RedisError as exc:
            logger.warning("Sockets are not counted: %s", type(exc).__name__)


def count_exchange(customer_id: int) -> None:
    """Count one exchange of a customer; raises TooFastError when it is one too many this minute.

    With Redis away nothing is counted.
    """
    _count("exchanges", customer_id, EXCHANGES_PER_MINUTE)


def count_look(customer_id: int) -> None:
    """Count one look at a customer's orders, as `count_exchange` does."""
    _count("looks", customer_id, LOOKS_PER_MINUTE)


def _count(what: str, customer_id: int, most: int) -> None:
    key = f"countersign:{what}:{customer_id}:{int(time.time() // MINUTE)}"
    try:
        pipe = _client(settings.REDIS_URL).pipeline(transaction=False)
        pipe.incr(key)
        pipe.expire(key, 2 * MINUTE)
        count = int(pipe.execute()[0])
    except redis.RedisError as exc:
        logger.warning("No %s are counted: %s", what, type(exc).__name__)
        return
    if count > most:
        raise TooFastError


@cache
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=0.5, socket_connect_timeout=0.5)
