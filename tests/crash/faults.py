"""What goes wrong at a point, once: a death, a fault, an overlong sleep, a lost acknowledgement."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from agents import services
from tests.crash.points import at_every_point
from tests.crash.world import Case, InjectedError, Killed, pass_time
from tools.trigger import Point

# How long a sleeper inside a transaction waits for another worker to run into its locks.
LOCKED_OUT = 0.15


class Fault(Enum):
    """What strikes the process that comes to the point."""

    KILLED = "is killed there"
    KILLED_BEFORE_COMMIT = "is killed before its next commit"
    KILLED_AFTER_COMMIT = "is killed right after its next commit"
    RAISED = "meets an exception there"
    OVERSLEPT = "sleeps past its lease there"


class CommitFault(Enum):
    """What becomes of a COMMIT of which the process only hears that the connection is gone."""

    NEVER_ARRIVED = "never arrived"
    TOOK_EFFECT = "took effect"


@dataclass
class Strike:
    """Strikes whoever comes to `point` for the `hit`-th time in this case, and nobody after."""

    case: Case
    point: Point
    fault: Fault
    hit: int
    others: list[threading.Thread] = field(default_factory=list)
    is_spent: bool = False
    _seen: int = 0
    _doomed: int = 0

    def at_point(self, point: Point) -> None:
        if self.is_spent:
            return
        if self.fault is Fault.OVERSLEPT and not connection.in_atomic_block and self.case.task_id:
            # A sleeper inside a transaction holds the row itself: its lease has to be over before.
            pass_time(self.case.task_id)
        if point is not self.point:
            return
        self._seen += 1
        if self._seen < self.hit:
            return
        self.is_spent = True
        match self.fault:
            case Fault.KILLED:
                raise Killed
            case Fault.RAISED:
                raise InjectedError(point.name)
            case Fault.OVERSLEPT:
                self._oversleep()
            case _:
                self._doomed = threading.get_ident()

    def around_commit(self, commit: Callable[[], None]) -> None:
        if self._doomed != threading.get_ident():
            commit()
            return
        self._doomed = 0
        raw: Any = connection.connection
        if self.fault is Fault.KILLED_AFTER_COMMIT:
            commit()
        raw.rollback()  # as the server does when the process is gone
        raise Killed

    def _oversleep(self) -> None:
        self.case.world.clock.sleep(settings.LEASE_SECONDS + 1)
        other = threading.Thread(target=self._take_over)
        self.others.append(other)
        other.start()
        other.join(LOCKED_OUT if connection.in_atomic_block else 20)

    def _take_over(self) -> None:
        """Another worker, to which the lease of the first one is over."""
        try:
            if self.case.task_id:
                pass_time(self.case.task_id)
                for _ in range(3):
                    services.advance(task_ids=[self.case.task_id])
        finally:
            connection.close()


@dataclass
class CommitStrike:
    """Strikes the `hit`-th COMMIT: the connection is gone, and nobody says whether it took effect."""

    fault: CommitFault
    hit: int
    seen: int = 0

    def around_commit(self, commit: Callable[[], None]) -> None:
        self.seen += 1
        if self.seen != self.hit:
            commit()
            return
        if self.fault is CommitFault.TOOK_EFFECT:
            commit()
        raw: Any = connection.connection
        raw.close()
        raise OperationalError("the connection was lost")


@contextmanager
def struck(strike: Strike) -> Iterator[Strike]:
    """Let a strike wait for its moment until the block ends, and everybody has gone home."""
    with at_every_point(strike.at_point), around_commits(strike.around_commit):
        yield strike
        for other in strike.others:
            other.join(20)
            assert not other.is_alive()


@contextmanager
def around_commits(watch: Callable[[Callable[[], None]], None]) -> Iterator[None]:
    """Let `watch` do every COMMIT of this process, or not, until the block ends."""
    original: Any = BaseDatabaseWrapper._commit  # type: ignore[attr-defined]

    def commit(self: BaseDatabaseWrapper) -> None:
        watch(lambda: original(self))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseDatabaseWrapper, "_commit", commit)
        yield
