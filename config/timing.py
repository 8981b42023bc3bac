"""What /metrics tells of the tools: how their calls ended, and how long calls and tasks took.

A histogram counts from the rows, like everything here, so each web process tells the same.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.db.models import Count, DurationField, ExpressionWrapper, F, Q, QuerySet, Sum
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from agents.models import ENDED, Step, StepKind, StepStatus, Task
from tools import registry
from tools.models import Attempt

CALL_SECONDS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
TASK_SECONDS = (1.0, 3.0, 10.0, 60.0, 600.0, 3600.0, 86_400.0)
# A name that the model made up is no label of its own.
UNKNOWN_TOOL = "other"


def timing() -> Iterator[Metric]:
    yield _tool_calls()
    finished = Step.objects.filter(status=StepStatus.FINISHED)
    reads = finished.filter(kind=StepKind.TOOL, operation__isnull=True, tool__in=registry.TOOLS)
    yield _histogram(
        "countersign_tool_seconds",
        "How long a tool call that changes nothing took",
        reads,
        column="tool",
        label="tool",
        limits=CALL_SECONDS,
    )
    yield _histogram(
        "countersign_send_seconds",
        "How long one try at sending a change took",
        Attempt.objects.filter(finished_at__isnull=False),
        column="operation__kind",
        label="kind",
        limits=CALL_SECONDS,
    )
    yield _histogram(
        "countersign_model_seconds",
        "How long a model step took, tries included",
        finished.filter(kind=StepKind.MODEL),
        column="model",
        label="model",
        limits=CALL_SECONDS,
    )
    yield _histogram(
        "countersign_task_seconds",
        "How long a task took from its opening to its end",
        Task.objects.filter(status__in=ENDED),
        column="status",
        label="status",
        limits=TASK_SECONDS,
        begin="created_at",
    )


def _tool_calls() -> CounterMetricFamily:
    calls = CounterMetricFamily(
        "countersign_tool_calls",
        "Finished tool calls by how they ended: ok, or the code of the error or refusal",
        labels=["tool", "outcome"],
    )
    counted: dict[tuple[str, str], int] = {}
    finished = Step.objects.filter(kind=StepKind.TOOL, status=StepStatus.FINISHED)
    rows = finished.values_list("tool", "error").annotate(count=Count("pk"))
    for tool, error, count in rows:
        key = (tool if tool in registry.TOOLS else UNKNOWN_TOOL, error or "ok")
        counted[key] = counted.get(key, 0) + count
    for key in sorted(counted):
        calls.add_metric(key, counted[key])
    return calls


def _histogram(
    name: str,
    text: str,
    rows: QuerySet[Any],
    *,
    column: str,
    label: str,
    limits: tuple[float, ...],
    begin: str = "started_at",
) -> HistogramMetricFamily:
    """Count rows by how long they took, for each value of a column."""
    took = ExpressionWrapper(F("finished_at") - F(begin), output_field=DurationField())
    within = {
        f"within_{n}": Count("pk", filter=Q(took__lte=timedelta(seconds=limit)))
        for n, limit in enumerate(limits)
    }
    family = HistogramMetricFamily(name, text, labels=[label])
    timed = rows.annotate(took=took).filter(took__isnull=False).order_by()
    for row in timed.values(column).annotate(count=Count("pk"), total=Sum("took"), **within):
        buckets = [(f"{limit}", row[f"within_{n}"]) for n, limit in enumerate(limits)]
        buckets.append(("+Inf", row["count"]))
        family.add_metric([row[column]], buckets=buckets, sum_value=row["total"].total_seconds())
    return family
