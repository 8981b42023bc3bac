"""How a task ends, and what the customer is told: never more than the rows can prove."""

from collections.abc import Sequence
from datetime import datetime

from django.utils.text import Truncator

from agents import claims, proofs, store, wording
from agents.markdown import plain
from agents.models import (
    Author,
    Message,
    Outcome,
    Speaker,
    StepKind,
    StepStatus,
    Task,
    TaskStatus,
    Ticket,
)
from agents.moves import HandOff, Reply
from agents.trail import about
from audit import services as audit
from tools import money, operations
from tools.language import pick
from tools.models import Operation
from tools.text import clean

# Why a task was cancelled: staff took its ticket over; a form came while it waited for the model.
TAKEN_OVER = "taken_over"
FORM_INSTEAD = "form_instead"
_CANCELLED = {TAKEN_OVER: wording.TAKEN_OVER, FORM_INSTEAD: wording.FORM_INSTEAD}


def end_with_reply(task: Task, reply: Reply, *, outcome: Outcome, now: datetime) -> None:
    """Succeed with a text, once it is checked against what has truly happened.

    The task's row is locked; the caller saves it.
    """
    text = plain(reply.text, allowed_hosts=frozenset()) if not reply.is_template else reply.text
    checked = text if reply.is_template else _checked(task, text, now)
    _say(task, checked, now, is_template=reply.is_template or checked != text)
    _end(task, TaskStatus.SUCCEEDED, now, outcome=outcome)


def end_with_hand_off(task: Task, move: HandOff, *, request: str, now: datetime) -> None:
    """A person takes over: the customer is told, staff get a summary, the agent falls silent."""
    step = store.plan(task, kind=StepKind.HAND_OFF, now=now)
    step.status = StepStatus.FINISHED
    step.started_at = step.finished_at = now
    step.attempts = 1
    step.result = {"reason": move.reason, "summary": _summary(task, move, request)}
    step.save()
    _say(task, wording.hand_off(move.reason, task.ticket.spoken), now, is_template=True)
    Ticket.objects.filter(pk=task.ticket_id).update(speaker=Speaker.STAFF)
    _end(task, TaskStatus.HANDED_OFF, now, reason=move.reason)


def end_cancelled(task: Task, *, now: datetime) -> None:
    """Stop because the customer said so, or staff took over; what was already sent is told as it is.

    The task's row is locked, no worker holds it, and the caller saves it.
    """
    _close_open_step(task, now)
    is_taken_over = task.reason == TAKEN_OVER
    sent = [
        operation
        for operation in operations.list_of_task(task_id=task.pk)
        if operation.first_sent_at is not None
    ]
    locale = task.ticket.spoken
    text = pick(_CANCELLED.get(task.reason, wording.CANCELLED), locale)
    if sent:
        text = pick(wording.ALREADY_SENDING, locale) + true_state(sent, locale)
    _say(task, text, now, is_template=True)
    status = TaskStatus.HANDED_OFF if is_taken_over else TaskStatus.CANCELLED
    _end(task, status, now, reason=task.reason)


def _close_open_step(task: Task, now: datetime) -> None:
    """The step that will not run any more, or whose change was withdrawn."""
    step = task.steps.select_related("operation").exclude(status=StepStatus.FINISHED).first()
    if step is None:
        return
    operation = step.operation
    step.result = operations.result(operation) if operation else {"error": "cancelled"}
    step.error = "cancelled"
    step.status = StepStatus.FINISHED
    step.finished_at = now
    step.save(update_fields=["result", "error", "status", "finished_at"])


def _checked(task: Task, text: str, now: datetime) -> str:
    """The model's text if every claim in it is proven, else the true state in code's own words."""
    facts = proofs.gather(task.ticket_id)
    faults = facts.faults(text)
    if not faults:
        return text
    audit.record(
        actor="system",
        action="reply.replaced",
        subject=f"task:{task.pk}",
        at=now,
        data={
            "unproven": sorted(faults.unproven),
            "denied": sorted(faults.denied),
            "asks_for_secrets": faults.asks_for_secrets,
        },
        personal=text,
        **about(task),
    )
    if faults.asks_for_secrets and not faults.unproven and not faults.denied:
        return pick(wording.ASKED_FOR_SECRETS, task.ticket.spoken)
    return true_state([*facts.coming, *facts.known], task.ticket.spoken)


def true_state(known: Sequence[Operation], locale: str) -> str:
    """What has become of these operations, oldest first, in code's own words."""
    return claims.true_state([_view_of(operation, locale) for operation in known], locale)


def _view_of(operation: Operation, locale: str) -> claims.OperationView:
    """An operation as its customer is told of it."""
    amount = ""
    if operation.amount is not None:
        amount = money.show(operation.amount, operation.currency, locale)
    return claims.OperationView(
        kind=operation.kind,
        order_id=operation.order_id,
        state=operation.state,
        amount_text=amount,
        reference=operation.reference,
        reason=operation.reason,
        decided_by=operation.decided_by_role,
        came_back=operation.came_back,
        is_on_its_way=operation.is_on_its_way,
        is_contradicted=operation.is_contradicted,
    )


def _summary(task: Task, move: HandOff, request: str) -> str:
    """What staff read first, written by code from the log."""
    lines = [
        f"Asked: {Truncator(clean(request, 400)).chars(300)}",
        f"Handed off: {move.reason}" + (f" ({clean(move.detail, 300)})" if move.detail else ""),
    ]
    lines += [
        f"Change: {operation.kind} of order {operation.order_id}, {operation.state}"
        for operation in operations.list_of_task(task_id=task.pk)
    ]
    used = task.steps.filter(kind=StepKind.TOOL).values_list("tool", "error")
    tools = ", ".join(tool + (f" ({error})" if error else "") for tool, error in used)
    lines.append(f"Tried: {tools or 'no tool'}")
    return "\n".join(lines)


def _say(task: Task, text: str, now: datetime, *, is_template: bool) -> Message:
    return store.add_message(
        task.ticket,
        author=Author.AGENT,
        text=text[:8000],
        now=now,
        task=task,
        is_template=is_template,
    )


def _end(
    task: Task, status: TaskStatus, now: datetime, *, outcome: str = "", reason: str = ""
) -> None:
    task.status = status
    task.outcome = outcome
    task.reason = reason
    task.lease_until = None
    task.wake_at = None
    task.finished_at = now
    audit.record(
        actor="agent",
        action=f"task.{status}",
        subject=f"task:{task.pk}",
        at=now,
        outcome=outcome or reason,
        data={"reason": reason},
        **about(task),
    )
