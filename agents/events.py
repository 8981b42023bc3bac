"""A task as its followers see it: a snapshot, and events whose ids derive from the step log.

An event's id is `step.phase`; both only grow within a task, so a follower that says the last id it
has gets all that came after, once each. A phase reads like decimals: 3.35 lies between 3.3 and 3.4. The doorbell tells followers to look; it carries nothing
but, now and then, a reply that is being written.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings

from accounts.models import Role
from agents.models import ENDED, Message, Step, StepKind, StepStatus, Task
from approvals.models import Approval
from approvals.selectors import list_of_operation
from tools import money
from tools.erasing import content_of
from tools.models import Operation, State
from tools.registry import EFFECTS
from tools.seal import describe
from tools.trigger import Point, reach

logger = logging.getLogger(__name__)

# Phases of a step, in the order in which they can come to be, in hundredths: an id leaves out the
# last nought, so that ids which clients hold keep their meaning when a phase is put between two.
STARTED, ASKS_CUSTOMER, ASKS_STAFF, ASKS_SECOND, CHECKING = 10, 20, 30, 35, 40
FINISHED, ENDED_PHASE = 50, 90
ASKS = {Role.CUSTOMER: ASKS_CUSTOMER, Role.STAFF: ASKS_STAFF, Role.SECOND_STAFF: ASKS_SECOND}
# What the doorbell says of a reply that is being written.
DRAFT = "draft"
MAX_DRAFT = 8000
EFFECT_TOOLS = frozenset(tool.name for tool in EFFECTS.values())


@dataclass(frozen=True)
class Event:
    """One thing that happened to a task. `id` is "step.phase"."""

    step: int
    phase: int
    type: str
    data: dict[str, Any]

    @property
    def id(self) -> str:
        return written(self.step, self.phase)


def written(step: int | str, phase: int) -> str:
    """The id of a position in the step log."""
    return f"{step}.{phase:02d}".removesuffix("0")


def parse_id(text: str) -> tuple[int, int]:
    """The position an event id stands for; (0, 0), the beginning, for anything odd."""
    step, _, phase = text.partition(".")
    if step.isascii() and step.isdigit() and phase.isascii() and phase.isdigit():
        return int(step[:9]), int(phase[:2].ljust(2, "0"))
    return 0, 0


def list_events(task: Task, *, after: str = "") -> list[Event]:
    """Everything that happened to the task after an event id, in order."""
    position = parse_id(after)
    steps = list(task.steps.select_related("operation").order_by("n"))
    locale = task.ticket.spoken
    events = [event for step in steps for event in _step_events(step, locale)]
    if task.status in ENDED:
        last = steps[-1].n if steps else 0
        events.append(Event(last, ENDED_PHASE, "task.done", task_data(task)))
    return [event for event in events if (event.step, event.phase) > position]


def task_data(task: Task) -> dict[str, Any]:
    """The task's own fields as a door shows them."""
    return {
        "id": task.pk,
        "ticket": task.ticket_id,
        "agent": task.agent,
        "status": task.status,
        "outcome": task.outcome,
        "reason": task.reason,
        "reply": reply_of(task),
        "created_at": task.created_at.isoformat(),
        "finished_at": task.finished_at.isoformat() if task.finished_at else None,
        "model_calls": task.steps.filter(kind=StepKind.MODEL).count(),
        "tokens": task.tokens_spent,
        "cost": task.cost_spent,
    }


def reply_of(task: Task) -> str:
    """The last thing the agent said in this task."""
    last = Message.objects.filter(task=task, author="agent").order_by("-seq").first()
    return last.text if last else ""


def step_data(step: Step) -> dict[str, Any]:
    """A step as the customer may see it: what was done and how it was judged."""
    return {
        "n": step.n,
        "kind": step.kind,
        "tool": step.tool,
        "status": step.status,
        "verdict": step.verdict,
        "outcome": step_outcome(step),
        "order_id": step.operation.order_id if step.operation else _order_in(step),
        "attempts": step.attempts,
        "started_at": step.started_at.isoformat() if step.started_at else None,
        "finished_at": step.finished_at.isoformat() if step.finished_at else None,
    }


def step_outcome(step: Step) -> str:
    """A finished step in one word: its error, its operation's state, or ok."""
    if step.status != StepStatus.FINISHED:
        return ""
    result = step.result or {}
    return step.error or str(result.get("error") or result.get("state") or "ok")


def operation_data(operation: Operation) -> dict[str, Any]:
    """An operation as the API tells of it."""
    return {
        "kind": operation.kind,
        "order_id": operation.order_id,
        "state": operation.state,
        "amount": operation.amount,
        "currency": operation.currency,
        "idempotency_key": operation.idempotency_key,
        "reference": operation.reference,
        "pending": operation.is_on_its_way,
        "required_roles": operation.required_roles,
        "granted_roles": operation.granted_roles,
    }


def action_data(
    approval: Approval, operation: Operation, step_n: int, locale: str
) -> dict[str, Any]:
    """The question as people see it, drawn from the sealed bytes."""
    content = content_of(operation)
    card = describe(content, locale)
    return {
        "step": step_n,
        "approval": str(approval.public_id),
        "role": approval.role,
        "status": approval.status,
        "digest": approval.digest,
        "kind": operation.kind,
        "order_id": card.order_id,
        "title": card.title,
        "lines": card.lines,
        "from": card.before,
        "to": card.after,
        "amount": operation.amount,
        "currency": operation.currency,
        "amount_text": card.amount,
        "reason": card.reason,
        "expires_at": approval.expires_at.isoformat(),
        "also_staff": "staff" in operation.required_roles,
        "state": operation.state,
    }


def pending_action(task: Task) -> dict[str, Any] | None:
    """The action that waits for somebody's yes, if there is one."""
    step = task.steps.select_related("operation").filter(status=StepStatus.WAITING).last()
    if step is None or step.operation is None:
        return None
    if step.operation.state != State.AWAITING_APPROVAL:
        return None
    for approval in list_of_operation(operation_id=step.operation.pk):
        if approval.status == "open":
            return action_data(approval, step.operation, step.n, task.ticket.spoken)
    return None


def receipt_data(operation: Operation, locale: str) -> dict[str, Any]:
    """What the customer keeps: only for what truly happened."""
    amount = ""
    if operation.amount is not None:
        amount = money.show(operation.amount, operation.currency, locale)
    return {**operation_data(operation), "amount_text": amount}


def ring(task_id: int, ticket_id: int) -> None:
    """Tell followers that there is something new. Losing it delays them and nothing else."""
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        reach(Point.C19)
        async_to_sync(_tell)(layer, task_id, ticket_id, {"type": "doorbell"})
    except Exception as exc:  # noqa: BLE001 - the telling path fails open: rows are the truth
        logger.warning("Nobody could be told of task %s: %s", task_id, type(exc).__name__)


async def _tell(layer: Any, task_id: int, ticket_id: int, message: dict[str, Any]) -> None:
    """Both groups in one event loop: a loop is dear to make, and so is its way to Redis."""
    await layer.group_send(task_group(task_id), message)
    await layer.group_send(ticket_group(ticket_id), message)


def tell_draft(task: Task, step_n: int, text: str) -> bool:
    """Tell followers of the checked beginning of a reply. False when nobody could be told."""
    layer = get_channel_layer()
    if layer is None:
        return False
    draft = {
        "type": DRAFT,
        "ticket": task.ticket_id,
        "task": task.pk,
        "step": step_n,
        "text": text[:MAX_DRAFT],
    }
    try:
        async_to_sync(_tell)(layer, task.pk, task.ticket_id, draft)
    except Exception as exc:  # noqa: BLE001 - the telling path fails open: the reply comes anyway
        logger.warning("Nobody saw task %s write: %s", task.pk, type(exc).__name__)
        return False
    return True


def task_group(task_id: int) -> str:
    return f"task-{task_id}"


def ticket_group(ticket_id: int) -> str:
    return f"ticket-{ticket_id}"


def _step_events(step: Step, locale: str) -> Iterator[Event]:
    if step.status == StepStatus.PLANNED:
        return
    yield Event(step.n, STARTED, "step.started", step_data(step))
    if step.operation is not None and step.operation.task_id == step.task_id:
        yield from _operation_events(step, step.operation, locale)
    if step.status == StepStatus.FINISHED:
        data = step_data(step)
        if step.operation is not None and step.operation.state == State.SUCCEEDED:
            data["receipt"] = receipt_data(step.operation, locale)
        yield Event(step.n, FINISHED, "step.finished", data)


def _operation_events(step: Step, operation: Operation, locale: str) -> Iterator[Event]:
    for approval in list_of_operation(operation_id=operation.pk):
        phase = ASKS[Role(approval.role)]
        data = action_data(approval, operation, step.n, locale)
        yield Event(step.n, phase, "approval.needed", data)
    if operation.state == State.UNKNOWN:
        yield Event(step.n, CHECKING, "operation.checking", operation_data(operation))


def _order_in(step: Step) -> str:
    result = step.result or {}
    if "order_id" in result:
        return str(result["order_id"])
    orders = result.get("orders") or []
    return str(orders[0].get("order_id", "")) if len(orders) == 1 else ""


def is_demo_model() -> bool:
    """Is the bundled rule-based planner answering instead of a language model?"""
    return bool(settings.MODEL_IS_STAND_IN)
