"""Where a step lies in its task's time, in percent: what a small waterfall is drawn from."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from django.db.models import Max

from agents.models import Step, Task
from approvals.models import Approval

# So that what took a blink can still be seen.
THINNEST = 0.6


@dataclass(frozen=True)
class Stretch:
    """A part of the line: where it begins and how long it is, both in percent."""

    start: float
    length: float


@dataclass(frozen=True)
class Bar:
    """A step's time, and the parts of it in which it waited for a person."""

    whole: Stretch
    waits: Sequence[Stretch]


@dataclass(frozen=True)
class Timeline:
    """A task's time from its start to its end, or to the newest thing that is known of it."""

    begin: datetime
    end: datetime

    @property
    def length(self) -> timedelta:
        return self.end - self.begin

    @classmethod
    def of(cls, task: Task) -> Self:
        newest = task.steps.aggregate(
            planned=Max("planned_at"), started=Max("started_at"), finished=Max("finished_at")
        )
        known = [task.finished_at, *newest.values(), task.created_at]
        return cls(task.created_at, max(moment for moment in known if moment is not None))

    def bar(self, step: Step, approvals: Sequence[Approval]) -> Bar | None:
        """None for a step that has not begun."""
        if step.started_at is None:
            return None
        end = step.finished_at or self.end
        waits = [
            self._stretch(asked.asked_at, min(asked.decided_at or end, end))
            for asked in approvals
            if asked.asked_at < end
        ]
        return Bar(self._stretch(step.started_at, end), waits)

    def _stretch(self, begin: datetime, end: datetime) -> Stretch:
        whole = (self.end - self.begin).total_seconds()
        if whole <= 0:
            return Stretch(0, 100)
        start = min((begin - self.begin).total_seconds() / whole * 100, 100 - THINNEST)
        length = (end - begin).total_seconds() / whole * 100
        return Stretch(round(max(start, 0), 2), round(min(max(length, THINNEST), 100), 2))
