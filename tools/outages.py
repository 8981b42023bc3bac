"""What the database refuses just now, and may do in a moment."""

import random
import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, InternalError, OperationalError, connection

P = ParamSpec("P")
R = TypeVar("R")

# Away, full, out of connections, or there to be read only: PostgreSQL calls a write in a read-only
# transaction an internal error (25006).
AWAY = (OperationalError, InterfaceError, InternalError)
COLLISIONS = frozenset({"40001", "40P01"})  # serialization failure, deadlock
TRIES = 4
LONGEST_PAUSE = 0.05  # seconds, times the number of the try


def again_on_collision(work: Callable[P, R]) -> Callable[P, R]:
    """Run a whole transaction again when it has collided with another one, up to three times.

    For work that is one transaction and nothing else: never around a call to the outside, and with
    nothing in memory that a rollback would have to undo. Inside a transaction of the caller's it
    changes nothing, since that one has to begin again as a whole.
    """

    @wraps(work)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        for number in range(1, TRIES):
            try:
                return work(*args, **kwargs)
            except OperationalError as exc:
                if connection.in_atomic_block or not is_collision(exc):
                    raise
                time.sleep(random.uniform(0, LONGEST_PAUSE * number))  # noqa: S311 - no secret
        return work(*args, **kwargs)

    return run


def is_collision(exc: OperationalError) -> bool:
    """Did two transactions get in each other's way, so that this one may simply begin again?"""
    return getattr(exc.__cause__, "sqlstate", None) in COLLISIONS
