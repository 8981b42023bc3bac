"""The numbers of the dashboard: what became of tasks over time, and how things stand now.

Everything is counted from the rows of one shop, or of all, in the calendar of the page's time zone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    Aggregate,
    Avg,
    Count,
    DurationField,
    ExpressionWrapper,
    F,
    Q,
    QuerySet,
    Sum,
)
from django.db.models.functions import TruncDay, TruncHour
from django.utils import timezone
from typing_extensions import override

from accounts.models import Role, User
from agents.console.charts import Chart, Series
from agents.lag import ready_lag
from agents.models import (
    ENDED,
    LIVE,
    DayBudget,
    Outcome,
    Step,
    StepKind,
    StepStatus,
    Task,
    TaskStatus,
)
from approvals.models import Approval
from tools import registry

MILLION = 1_000_000
ENDS = (
    ("answered", Q(outcome=Outcome.ANSWERED)),
    ("done", Q(outcome=Outcome.DONE)),
    ("refused", Q(outcome=Outcome.REFUSED)),
    ("handed off", Q(status=TaskStatus.HANDED_OFF)),
    ("cancelled", Q(status=TaskStatus.CANCELLED)),
    ("failed", Q(status=TaskStatus.FAILED)),
)


class Percentile(Aggregate):
    """The value below which a share of the rows lies."""

    function = "percentile_cont"
    template = "%(function)s(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = DurationField()

    @override
    def __init__(self, expression: Any, *, share: float) -> None:
        super().__init__(expression, share=share)


@dataclass(frozen=True)
class Span:
    """A stretch of time in equal pieces that end with the one that is now."""

    key: str
    name: str
    hours: int
    pieces: int

    @property
    def is_hourly(self) -> bool:
        return self.hours == 1

    def starts(self, now: datetime) -> list[datetime]:
        """Where each piece begins, in the page's zone; a day is a day of the calendar."""
        local = timezone.localtime(now).replace(minute=0, second=0, microsecond=0)
        if self.is_hourly:
            return [local - timedelta(hours=n) for n in reversed(range(self.pieces))]
        today = local.replace(hour=0)
        return [today - timedelta(days=n) for n in reversed(range(self.pieces))]


SPANS = {
    "day": Span("day", "24 hours", 1, 24),
    "week": Span("week", "7 days", 24, 7),
    "month": Span("month", "30 days", 24, 30),
}


@dataclass(frozen=True)
class ToolRow:
    """How one tool's calls ended: how many, how many with an error or refusal, and the commonest."""

    tool: str
    calls: int
    faults: int
    commonest: str

    @property
    def share(self) -> int:
        """Faults in percent of the calls."""
        return round(100 * self.faults / self.calls)


@dataclass(frozen=True)
class Now:
    """How things stand this minute. Costs in millionths of a dollar; None without a budget row."""

    live: int
    lag: float
    tokens_left: int | None
    tokens_max: int
    cost_left: int | None
    cost_max: int


class Numbers:
    """One person's numbers over one span."""

    def __init__(self, user: User, span: Span, *, now: datetime) -> None:
        self._shop_id = user.shop_id
        self._span = span
        self._now = now
        self._starts = span.starts(now)

    def charts(self) -> list[Chart]:
        ended = self._ended()
        return [
            self._chart(
                "ends", "Tasks by how they ended", [(name, ended[name]) for name, _ in ENDS]
            ),
            self._chart(
                "time",
                "Time from a request to its end",
                [("half within", ended["p50"]), ("nine of ten within", ended["p90"])],
                unit="s",
                is_lines=True,
            ),
            self._chart(
                "escalated",
                "Escalated to people",
                [("handed off", ended["handed off"]), ("asked of staff", self._asked())],
            ),
            self._chart(
                "duplicates",
                "Duplicates prevented",
                [("proposals that were there already", self._duplicates())],
            ),
            self._chart(
                "tokens",
                "Tokens for each resolved task",
                [("tokens", ended["tokens"])],
                is_lines=True,
            ),
            self._chart(
                "cost",
                "Cost of each resolved task",
                [("US dollars", ended["cost"])],
                unit="$",
                is_lines=True,
            ),
        ]

    def tools(self) -> list[ToolRow]:
        """The tools by how many of their calls did not end well; names that the model made up as one."""
        counted: dict[str, dict[str, int]] = {}
        rows = self._tool_steps().values_list("tool", "error").annotate(count=Count("pk"))
        for tool, error, count in rows.order_by():
            name = tool if tool in registry.TOOLS else "no such tool"
            errors = counted.setdefault(name, {})
            errors[error] = errors.get(error, 0) + count
        found = [_tool_row(name, errors) for name, errors in counted.items()]
        return sorted(found, key=lambda row: (-row.faults, row.tool))

    def now(self) -> Now:
        budgets = DayBudget.objects.filter(customer=None, day=timezone.localdate(self._now))
        sums = self._mine(budgets).aggregate(
            tokens=Sum(F("max_tokens") - F("tokens_spent") - F("tokens_reserved")),
            tokens_max=Sum("max_tokens", default=0),
            cost=Sum(F("max_cost") - F("cost_spent") - F("cost_reserved")),
            cost_max=Sum("max_cost", default=0),
        )
        return Now(
            live=self._mine(Task.objects.filter(status__in=LIVE)).count(),
            lag=ready_lag(shop_id=self._shop_id),
            tokens_left=sums["tokens"],
            tokens_max=sums["tokens_max"],
            cost_left=sums["cost"],
            cost_max=sums["cost_max"],
        )

    def _ended(self) -> dict[str, list[float | None]]:
        took = ExpressionWrapper(F("finished_at") - F("created_at"), output_field=DurationField())
        tasks = self._mine(Task.objects.filter(status__in=ENDED))
        resolved = Q(status=TaskStatus.SUCCEEDED)
        rows = self._by_time(
            tasks,
            "finished_at",
            p50=Percentile(took, share=0.5),
            p90=Percentile(took, share=0.9),
            tokens=Avg("tokens_spent", filter=resolved),
            cost=Avg("cost_spent", filter=resolved),
            **{name.replace(" ", "_"): Count("pk", filter=test) for name, test in ENDS},
        )
        found = {name: _column(rows, name.replace(" ", "_")) for name, _ in ENDS}
        for name in ("p50", "p90"):
            found[name] = [row[name].total_seconds() if row else None for row in rows]
        found["tokens"] = _column(rows, "tokens")
        found["cost"] = [None if v is None else v / MILLION for v in _column(rows, "cost")]
        return found

    def _asked(self) -> list[float | None]:
        asked = Approval.objects.filter(role=Role.STAFF)
        rows = self._by_time(self._mine(asked, "operation__"), "asked_at", count=Count("pk"))
        return _column(rows, "count")

    def _duplicates(self) -> list[float | None]:
        steps = self._tool_steps().filter(operation__isnull=True, result__operation__isnull=False)
        return _column(self._by_time(steps, "finished_at", count=Count("pk")), "count")

    def _tool_steps(self) -> QuerySet[Step]:
        steps = Step.objects.filter(
            kind=StepKind.TOOL, status=StepStatus.FINISHED, finished_at__gte=self._starts[0]
        )
        return self._mine(steps, "task__")

    def _mine(self, rows: QuerySet[Any], path: str = "") -> QuerySet[Any]:
        return rows if self._shop_id is None else rows.filter(**{f"{path}shop_id": self._shop_id})

    def _by_time(
        self, rows: QuerySet[Any], column: str, **counts: Any
    ) -> list[dict[str, Any] | None]:
        """One row for each piece of the span; None for a piece in which there was nothing."""
        cut = TruncHour if self._span.is_hourly else TruncDay
        zone = timezone.get_current_timezone()
        found = (
            rows.filter(**{f"{column}__gte": self._starts[0]})
            .annotate(piece=cut(column, tzinfo=zone))
            .order_by()
            .values("piece")
            .annotate(**counts)
        )
        by_piece = {row["piece"]: row for row in found}
        return [by_piece.get(start) for start in self._starts]

    def _chart(
        self,
        key: str,
        title: str,
        series: Sequence[tuple[str, list[float | None]]],
        *,
        unit: str = "",
        is_lines: bool = False,
    ) -> Chart:
        form = "%H:%M" if self._span.is_hourly else "%d %b"
        return Chart(
            key=key,
            title=title,
            names=[start.strftime(form) for start in self._starts],
            series=[Series(name, values) for name, values in series],
            unit=unit,
            is_lines=is_lines,
        )


def _column(rows: Sequence[dict[str, Any] | None], name: str) -> list[float | None]:
    """A column of numbers, None where there is no row or no number."""
    return [
        None if row is None or row[name] is None else round(float(row[name]), 6) for row in rows
    ]


def _tool_row(name: str, errors: dict[str, int]) -> ToolRow:
    faults = {error: count for error, count in errors.items() if error}
    commonest = max(faults, key=lambda error: (faults[error], error), default="")
    return ToolRow(name, sum(errors.values()), sum(faults.values()), commonest)
