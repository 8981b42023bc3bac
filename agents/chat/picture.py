"""A conversation as its customer sees it: a snapshot, and then only what has changed.

A picture is drawn from the rows each time. Whoever follows remembers what it has been told, so a
thing is told again only when it looks different; losing every push changes nothing but time.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Max
from django.utils import timezone

from accounts.identity import Identity
from accounts.models import Role, Shop
from agents import events
from agents.chat.frames import After
from agents.models import (
    ENDED,
    Message,
    Step,
    StepStatus,
    Task,
    TaskStatus,
    Ticket,
    TicketStatus,
)
from approvals.models import STAFF_ROLES, Approval, ApprovalStatus
from tools.models import Operation, State
from tools.strictjson import StrictJSONError, parse_object

MAX_MESSAGES = 200
MAX_TASKS = 20
MAX_TICKETS = 30

Frame = dict[str, Any]


@dataclass
class Following:
    """Which conversation somebody follows, in which language, and what of it they have been told."""

    ticket_id: int | None = None
    locale: str = ""
    seq: int = 0
    mark: tuple[Any, ...] = ()
    told: dict[str, str] = field(default_factory=dict)


def newest_ticket(customer_id: int) -> int | None:
    """The open conversation in which something happened last."""
    open_tickets = Ticket.objects.filter(customer_id=customer_id, status=TicketStatus.OPEN)
    return open_tickets.order_by("-updated_at", "-pk").values_list("pk", flat=True).first()


def owned_ticket(customer_id: int, ticket_id: int) -> Ticket | None:
    """The ticket if it is this customer's; somebody else's is as if it were not there."""
    own = Ticket.objects.select_related("customer")
    return own.filter(customer_id=customer_id, pk=ticket_id).first()


def is_closed(ticket_id: int) -> bool:
    return Ticket.objects.filter(pk=ticket_id, status=TicketStatus.CLOSED).exists()


def list_tickets(customer_id: int) -> list[Frame]:
    """The customer's conversations, the latest first."""
    tickets = Ticket.objects.filter(customer_id=customer_id).order_by("-updated_at", "-pk")
    return [_ticket_data(ticket) for ticket in tickets[:MAX_TICKETS]]


def snapshot(
    identity: Identity, ticket_id: int | None, after: After, locale: str = ""
) -> tuple[Frame, Following]:
    """All that a customer who has seen `after` needs to know, and where to go on from there.

    Of messages and finished steps, which never change, only later ones; all else as it is now.
    Cards are in `locale`, without one in that of the conversation.
    """
    ticket = None if ticket_id is None else owned_ticket(identity.customer_id, ticket_id)
    following = Following(None if ticket is None else ticket.pk, locale)
    frame = _frame_of(identity, ticket)
    if ticket is None:
        return frame, following
    following.mark = _mark(ticket.pk)
    following.seq = min(after.message, ticket.last_seq)
    newest = list(_messages_after(ticket.pk, following.seq).order_by("-seq")[: MAX_MESSAGES + 1])
    frame["has_earlier"] = len(newest) > MAX_MESSAGES
    messages = newest[:MAX_MESSAGES][::-1]
    following.seq = max([following.seq, *(message.seq for message in messages)])
    frame["messages"] = [_message_data(message) for message in messages]
    seen = _position(after.event)
    for key, item in _items(ticket, locale):
        following.told[key] = _print(item)
        if item["type"] != "ticket" and not _is_known(item, seen):
            frame[f"{item['type']}s"].append(item[item["type"]])
    return frame, following


def earlier(following: Following, before: int) -> Frame:
    """The messages before a number, at most as many as a snapshot has."""
    if following.ticket_id is None:
        return {"type": "earlier", "messages": [], "has_earlier": False}
    found = Message.objects.filter(ticket_id=following.ticket_id, seq__lt=before)
    newest = list(found.order_by("-seq")[: MAX_MESSAGES + 1])
    return {
        "type": "earlier",
        "messages": [_message_data(message) for message in newest[:MAX_MESSAGES][::-1]],
        "has_earlier": len(newest) > MAX_MESSAGES,
    }


def changes(following: Following) -> list[Frame]:
    """What is new since the last time, each thing once, oldest first."""
    if following.ticket_id is None:
        return []
    mark = _mark(following.ticket_id)
    if mark == following.mark:
        return []
    ticket = Ticket.objects.select_related("customer").get(pk=following.ticket_id)
    # Items before messages, so that a receipt is there when the text speaks of it.
    items = _items(ticket, following.locale)
    frames = [item for key, item in items if _is_news(following, key, item)]
    messages = list(_messages_after(ticket.pk, following.seq).order_by("seq"))
    frames += [{"type": "message", "message": _message_data(message)} for message in messages]
    following.seq = max([following.seq, *(message.seq for message in messages)])
    following.mark = mark
    return frames


def expiry(identity: Identity) -> Frame:
    """When the token ends, and in how many seconds: a browser's clock may be wrong."""
    left = (identity.expires_at - timezone.now()).total_seconds()
    return {"expires_at": identity.expires_at.isoformat(), "expires_in": max(0, int(left))}


def _frame_of(identity: Identity, ticket: Ticket | None) -> Frame:
    shop = Shop.objects.get(pk=identity.shop_id)
    return {
        "type": "snapshot",
        "shop": {"name": shop.name},
        "customer": {"id": identity.external_id, "name": identity.name},
        **expiry(identity),
        "is_demo_model": events.is_demo_model(),
        "ticket": None if ticket is None else _ticket_data(ticket),
        "speaker": "agent" if ticket is None else ticket.speaker,
        "has_earlier": False,
        "messages": [],
        "tasks": [],
        "steps": [],
        "actions": [],
        "receipts": [],
    }


def _is_news(following: Following, key: str, item: Frame) -> bool:
    now = _print(item)
    is_news = following.told.get(key) != now
    following.told[key] = now
    return is_news


def _print(item: Frame) -> str:
    return json.dumps(item, sort_keys=True)


def _mark(ticket_id: int) -> tuple[Any, ...]:
    """Differs whenever anything that a customer could see has changed. Three short reads.

    Read before the rest, so that what changes in between is found at the next look.
    """
    ticket = Ticket.objects.filter(pk=ticket_id).values_list(
        "version", "last_seq", "status", "speaker", "subject", "locale"
    )
    tasks = (
        Task.objects.filter(ticket_id=ticket_id)
        .order_by("-pk")
        .values_list("pk", "status", "epoch", "steps_planned", "cancel_requested_at")
    )
    operations = (
        Operation.objects.filter(ticket_id=ticket_id)
        .order_by("pk")
        .annotate(asked=Max("approvals__pk"))
    )
    return (
        tuple(ticket),
        tuple(tasks[:MAX_TASKS]),
        tuple(
            operations.values_list("pk", "state", "granted_roles", "asked", "transit__arrived_at")
        ),
    )


def _messages_after(ticket_id: int, seq: int) -> Any:
    return Message.objects.filter(ticket_id=ticket_id, seq__gt=seq)


def _items(ticket: Ticket, locale: str) -> Iterator[tuple[str, Frame]]:
    """Everything of a ticket that can change, with a key that stays the same."""
    yield "ticket", {"type": "ticket", "ticket": _ticket_data(ticket)}
    tasks = list(Task.objects.filter(ticket=ticket).order_by("-pk")[:MAX_TASKS])[::-1]
    steps = _steps_of(tasks)
    asked = _asked(step.operation_id for found in steps.values() for step in found)
    for task in tasks:
        for step in steps[task.pk]:
            yield from _step_items(task, step, asked, locale or ticket.spoken)
        yield f"task:{task.pk}", {"type": "task", "task": _task_data(task, steps[task.pk], asked)}


def _steps_of(tasks: list[Task]) -> dict[int, list[Step]]:
    found: dict[int, list[Step]] = {task.pk: [] for task in tasks}
    rows = Step.objects.filter(task__in=tasks).exclude(status=StepStatus.PLANNED)
    for step in rows.select_related("operation__transit", "operation__reversal").order_by(
        "task_id", "n"
    ):
        found[step.task_id].append(step)
    return found


def _asked(operation_ids: Iterable[int | None]) -> dict[int, list[Approval]]:
    wanted = {operation_id for operation_id in operation_ids if operation_id is not None}
    found: dict[int, list[Approval]] = {operation_id: [] for operation_id in wanted}
    for approval in Approval.objects.filter(operation_id__in=wanted).order_by("pk"):
        found[approval.operation_id].append(approval)
    return found


def _step_items(
    task: Task, step: Step, asked: dict[int, list[Approval]], locale: str
) -> Iterator[tuple[str, Frame]]:
    key = f"{task.pk}:{step.n}"
    operation = _own_operation(step)
    approvals = asked[operation.pk] if operation is not None else []
    step_frame = {
        **events.step_data(step),
        "task": task.pk,
        "event": events.written(key, _phase(step, operation, approvals)),
        "about": _about(step),
    }
    yield f"step:{key}", {"type": "step", "step": step_frame}
    if operation is None:
        return
    for approval in approvals:
        if approval.role == Role.CUSTOMER:
            action = _action_data(task, step, operation, approval, approvals, locale)
            yield f"action:{key}", {"type": "action", "action": action}
    if operation.state == State.SUCCEEDED:
        receipt = _receipt_data(task, step, operation, locale)
        yield f"receipt:{key}", {"type": "receipt", "receipt": receipt}


def _own_operation(step: Step) -> Operation | None:
    """The operation that this very step asked for; a step may also point at an earlier one."""
    operation = step.operation
    if operation is None or (operation.task_id, operation.step_n) != (step.task_id, step.n):
        return None
    return operation


def _phase(step: Step, operation: Operation | None, approvals: list[Approval]) -> int:
    if step.status == StepStatus.FINISHED:
        return events.FINISHED
    if operation is not None and operation.state == State.UNKNOWN:
        return events.CHECKING
    asked = [events.ASKS[Role(approval.role)] for approval in approvals]
    return max(asked, default=events.STARTED)


def _about(step: Step) -> str:
    """The order that a call names, as the model wrote it: for people to read, not to act on."""
    if not step.arguments or not step.tool:
        return ""
    try:
        named = parse_object(step.arguments).get("order_id")
    except StrictJSONError:
        return ""
    return named[:40] if isinstance(named, str) else ""


def _ticket_data(ticket: Ticket) -> Frame:
    return {
        "id": ticket.pk,
        "status": ticket.status,
        "speaker": ticket.speaker,
        "subject": ticket.subject,
        "opened_at": ticket.opened_at.isoformat(),
        "updated_at": ticket.updated_at.isoformat(),
    }


def _message_data(message: Message) -> Frame:
    return {
        "ticket": message.ticket_id,
        "seq": message.seq,
        "author": message.author,
        "author_name": message.author_name,
        "text": message.text,
        "at": message.at.isoformat(),
        "client_message_id": message.client_message_id,
        "task": message.task_id,
    }


def _task_data(task: Task, steps: list[Step], asked: dict[int, list[Approval]]) -> Frame:
    return {
        "id": task.pk,
        "ticket": task.ticket_id,
        "status": task.status,
        "outcome": task.outcome,
        "reason": task.reason,
        "is_live": task.is_live,
        "is_stopping": task.is_live and task.cancel_requested_at is not None,
        "waits_for": _waits_for(task, steps, asked),
        "created_at": task.created_at.isoformat(),
        "finished_at": task.finished_at.isoformat() if task.finished_at else None,
    }


def _waits_for(task: Task, steps: list[Step], asked: dict[int, list[Approval]]) -> str:
    """Whose turn it is: customer, staff, shop, model, or nobody's."""
    if task.status in ENDED:
        return ""
    if task.status == TaskStatus.WAITING_OUTCOME:
        return "shop"
    if task.status == TaskStatus.WAITING_MODEL:
        return "model"
    if task.status != TaskStatus.WAITING_APPROVAL or not steps:
        return ""
    open_roles = [
        Role.STAFF if approval.role in STAFF_ROLES else approval.role
        for approval in asked.get(steps[-1].operation_id or 0, [])
        if approval.status == ApprovalStatus.OPEN
    ]
    return open_roles[0] if open_roles else ""


def _action_data(
    task: Task,
    step: Step,
    operation: Operation,
    approval: Approval,
    approvals: list[Approval],
    locale: str,
) -> Frame:
    """The customer's question, with how it stands with staff where they are asked too."""
    staff = [other.status for other in approvals if other.role in STAFF_ROLES]
    return {
        **events.action_data(approval, operation, step.n, locale),
        "task": task.pk,
        "at": approval.asked_at.isoformat(),
        "decided_at": approval.decided_at.isoformat() if approval.decided_at else None,
        "staff_status": staff[-1] if staff else "",
        "decided_by": operation.decided_by_role,
        "answer": operation.reason if operation.decided_by_role == Role.STAFF else "",
        "is_already_done": operation.is_already_done,
    }


def _receipt_data(task: Task, step: Step, operation: Operation, locale: str) -> Frame:
    return {
        **events.receipt_data(operation, locale),
        "task": task.pk,
        "step": step.n,
        "at": operation.finished_at.isoformat() if operation.finished_at else None,
    }


def _position(event: str) -> tuple[int, int]:
    """The task and step that a client has seen the end of; (0, 0) for anything odd."""
    task, _, rest = event.partition(":")
    step, phase = events.parse_id(rest)
    if not (task.isascii() and task.isdigit() and len(task) <= 18):
        return 0, 0
    return int(task), step if phase >= events.FINISHED else step - 1


def _is_known(item: Frame, seen: tuple[int, int]) -> bool:
    """Has a client at this position seen the step finished? A finished step changes no more."""
    if item["type"] != "step":
        return False
    step = item["step"]
    is_finished: bool = step["status"] == StepStatus.FINISHED
    return is_finished and step["task"] == seen[0] and step["n"] <= seen[1]
