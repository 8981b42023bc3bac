"""/metrics: what an operator watches, in Prometheus' text format.

Everything is counted from the rows at the time of the question, so that each web process tells the
same; the process's own numbers come beside it.
"""

import hmac
import ipaddress
from collections.abc import Iterable, Iterator
from pathlib import Path

from django.conf import settings
from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from accounts.models import Shop
from agents.lag import ready_lag
from agents.models import LIVE, Outcome, Step, StepKind, StepStatus, Task, TaskStatus
from approvals.models import ASKED_ROLES, Approval, ApprovalStatus
from approvals.pace import PAUSED
from audit.heads import uncovered_since
from audit.models import Event
from config.timing import timing
from tools.adapters import list_stopped
from tools.models import AdapterState, LookFirst, Operation, State
from tools.unresolved import count_overdue

_FORWARDED = ("HTTP_FORWARDED", "HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP")


@require_GET
def metrics(request: HttpRequest) -> HttpResponse:
    """For whoever brings COUNTERSIGN_METRICS_TOKEN; without one, for this machine only."""
    if not _may_read(request):
        return HttpResponse("Not for you.\n", status=403, content_type="text/plain")
    registry = CollectorRegistry()
    registry.register(_FromRows())
    text = generate_latest(registry) + generate_latest(REGISTRY)
    return HttpResponse(
        text, content_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"}
    )


def _may_read(request: HttpRequest) -> bool:
    if settings.METRICS_TOKEN:
        given = request.headers.get("Authorization", "")
        wanted = f"Bearer {settings.METRICS_TOKEN}"
        return hmac.compare_digest(given.encode(), wanted.encode())
    # Behind a proxy everybody seems to come from this machine.
    if any(name in request.META for name in _FORWARDED):
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


class _FromRows(Collector):
    """The figures of the deployment, read when they are asked for."""

    @override
    def collect(self) -> Iterable[Metric]:
        yield from _tasks()
        yield from _operations()
        yield from _shops()
        yield from _model()
        yield from _trail()
        yield from timing()


def _tasks() -> Iterator[Metric]:
    by_status = GaugeMetricFamily("countersign_tasks", "Tasks by status", labels=["status"])
    counts = _counted(Task.objects.values_list("status").annotate(Count("pk")))
    for status in TaskStatus.values:
        by_status.add_metric([status], counts.get(status, 0))
    yield by_status

    outcomes = GaugeMetricFamily(
        "countersign_task_outcomes", "Succeeded tasks by what they came to", labels=["outcome"]
    )
    counts = _counted(Task.objects.exclude(outcome="").values_list("outcome").annotate(Count("pk")))
    for outcome in Outcome.values:
        outcomes.add_metric([outcome], counts.get(outcome, 0))
    yield outcomes

    yield GaugeMetricFamily(
        "countersign_tasks_live",
        "Tasks under way",
        value=Task.objects.filter(status__in=LIVE).count(),
    )
    yield GaugeMetricFamily(
        "countersign_oldest_ready_task_seconds",
        "How long the oldest ready task has been waiting for a worker",
        value=ready_lag(),
    )


def _operations() -> Iterator[Metric]:
    by_state = GaugeMetricFamily(
        "countersign_operations", "Operations by kind and state", labels=["kind", "state"]
    )
    rows = Operation.objects.values_list("kind", "state").annotate(count=Count("pk"))
    counts = {(kind, state): count for kind, state, count in rows}
    for kind in sorted({kind for kind, _ in counts}):
        for state in State.values:
            by_state.add_metric([kind, state], counts.get((kind, state), 0))
    yield by_state

    overdue = GaugeMetricFamily(
        "countersign_outcomes_overdue",
        "Operations whose outcome is not known 24 hours after they were first sent",
        labels=["state"],
    )
    for state, count in count_overdue(now=timezone.now()).items():
        overdue.add_metric([state], count)
    yield overdue

    waiting = GaugeMetricFamily(
        "countersign_approvals_open", "Questions that wait for an answer", labels=["role"]
    )
    open_approvals = Approval.objects.filter(status=ApprovalStatus.OPEN)
    counts_by_role = _counted(open_approvals.values_list("role").annotate(Count("pk")))
    for role in ASKED_ROLES:
        waiting.add_metric([role], counts_by_role.get(role, 0))
    yield waiting

    paused = Event.objects.filter(shop_id__in=Shop.objects.values("pk"), action=PAUSED)
    yield CounterMetricFamily(
        "countersign_approvers_paused",
        "Times that somebody was stopped who approved money too fast",
        value=paused.count(),
    )

    yield CounterMetricFamily(
        "countersign_duplicate_proposals_prevented",
        "Proposals that were resolved to an operation that was there already",
        value=Step.objects.filter(
            kind=StepKind.TOOL,
            status=StepStatus.FINISHED,
            operation__isnull=True,
            result__operation__isnull=False,
        ).count(),
    )


def _shops() -> Iterator[Metric]:
    stopped = GaugeMetricFamily(
        "countersign_shops_not_called",
        "Shops that are not called at the moment, by why",
        labels=["state"],
    )
    counts = _counted(list_stopped().order_by().values_list("state").annotate(Count("pk")))
    for state in (AdapterState.AWAY, AdapterState.REFUSED):
        stopped.add_metric([state], counts.get(state, 0))
    yield stopped
    yield GaugeMetricFamily(
        "countersign_looking_first",
        "1 while commits may be missing and nothing is sent before the shop was asked",
        value=LookFirst.objects.filter(is_on=True).count(),
    )


def _model() -> Iterator[Metric]:
    calls = Step.objects.filter(kind=StepKind.MODEL).aggregate(
        calls=Sum("attempts"),
        prompt=Sum("tokens_in"),
        cached=Sum("tokens_cached"),
        completion=Sum("tokens_out"),
        cost=Sum("cost"),
    )
    yield CounterMetricFamily(
        "countersign_model_calls", "Calls of the model, tries included", value=calls["calls"] or 0
    )
    tokens = CounterMetricFamily("countersign_model_tokens", "Tokens by kind", labels=["kind"])
    for kind in ("prompt", "cached", "completion"):
        tokens.add_metric([kind], calls[kind] or 0)
    yield tokens
    yield CounterMetricFamily(
        "countersign_model_cost_microdollars",
        "Cost of the model's calls, in millionths of a US dollar",
        value=calls["cost"] or 0,
    )


def _trail() -> Iterator[Metric]:
    """Only where heads are published: what nobody could prove if the database were lost now."""
    if not settings.SEAL_HEAD_FILE:
        return
    since = uncovered_since(Path(settings.SEAL_HEAD_FILE))
    yield GaugeMetricFamily(
        "countersign_trail_uncovered_seconds",
        "How long the trail's oldest event has been without a published head that covers it",
        value=0.0 if since is None else max(0.0, (timezone.now() - since).total_seconds()),
    )


def _counted(rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    return dict(rows)
