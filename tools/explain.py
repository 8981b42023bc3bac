"""The gates' verdicts in words for people."""

from collections.abc import Sequence

from django.db.models import Q

from tools import money
from tools.models import Finding, Gate, Operation, Verdict

# What asks staff whatever the sum, in words.
_WHATEVER_THE_SUM = {
    "refund_came_back_before": "An earlier refund of this order came back to the shop",
    "end_contradicted_before": "The shop contradicts how an earlier change of this order ended",
}
STAFF_RULES = (*_WHATEVER_THE_SUM, "staff_over_limit", "second_staff_over_limit")


def list_verdicts(*, task_id: int, step_n: int | None = None) -> list[Verdict]:
    """What the gates found about a task's calls, or about one step's, in their order."""
    verdicts = Verdict.objects.filter(task_id=task_id)
    if step_n is not None:
        verdicts = verdicts.filter(step_n=step_n)
    return list(verdicts.order_by("step_n", "id"))


def why_staff(operations: Sequence[Operation]) -> dict[int, str]:
    """By operation's id, what asked staff: "$60.00 + $60.00 > $100.00 in 24 hours".

    A sum comes before what asks whatever the sum. Where two of staff are asked, the limit is the second.
    """
    by_step = {(operation.task_id, operation.step_n): operation.pk for operation in operations}
    if not by_step:
        return {}
    steps = Q()
    for task_id, step_n in by_step:
        steps |= Q(task_id=task_id, step_n=step_n)
    asked = (
        Verdict.objects.filter(steps, gate=Gate.APPROVAL, rule__in=STAFF_RULES, finding=Finding.ASK)
        .exclude(inputs={})  # erased with its customer
        .order_by("id")
    )
    return {
        by_step[verdict.task_id, verdict.step_n]: (
            _WHATEVER_THE_SUM.get(verdict.rule) or _over_limit(verdict.inputs)
        )
        for verdict in asked
    }


def _over_limit(inputs: dict[str, int | str]) -> str:
    currency = str(inputs["currency"])
    amount, limit = (money.show(int(inputs[name]), currency) for name in ("amount", "limit"))
    others = int(inputs["other_refunds_24h"])
    if not others:
        return f"{amount} > {limit}"
    return f"{money.show(others, currency)} + {amount} > {limit} in 24 hours"
