"""What one person of the console may see of tickets and tasks: their shop's, or all without one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, Q, QuerySet, Subquery

from accounts.models import User
from agents.models import LIVE, Step, StepKind, StepStatus, Task, Ticket
from tools.models import Operation
from tools.text import normalise_order_id

PAGE = 50


@dataclass(frozen=True)
class TicketFilter:
    """Which tickets; an empty field asks for nothing. `text` is a customer, an order or a ticket."""

    status: str = ""
    speaker: str = ""
    text: str = ""


@dataclass(frozen=True)
class TicketPage:
    """Some tickets, last changed first; `before` asks for the page after this one."""

    tickets: Sequence[Ticket]
    before: str


def list_tickets(user: User, wanted: TicketFilter, *, before: str = "") -> TicketPage:
    """A page of the tickets that match. A `before` that nobody gave out is the first page."""
    tickets = (
        _tickets(user)
        .annotate(
            last_task_id=Subquery(_newest_task("pk")),
            last_task_status=Subquery(_newest_task("status")),
        )
        .order_by("-updated_at", "-pk")
    )
    if wanted.status:
        tickets = tickets.filter(status=wanted.status)
    if wanted.speaker:
        tickets = tickets.filter(speaker=wanted.speaker)
    if wanted.text:
        tickets = tickets.filter(_about(wanted.text))
    position = _position(before)
    if position is not None:
        at, pk = position
        tickets = tickets.filter(Q(updated_at__lt=at) | Q(updated_at=at, pk__lt=pk))
    found = list(tickets[: PAGE + 1])
    page = found[:PAGE]
    last = page[-1] if len(found) > PAGE else None
    return TicketPage(page, f"{last.updated_at.isoformat()}_{last.pk}" if last else "")


def get_ticket(user: User, ticket_id: int) -> Ticket | None:
    return _tickets(user).filter(pk=ticket_id).first()


def get_task(user: User, task_id: int) -> Task | None:
    tasks = Task.objects.filter(pk=task_id)
    if user.shop_id is not None:
        tasks = tasks.filter(shop_id=user.shop_id)
    return tasks.select_related("shop", "customer", "ticket").first()


def list_tasks_of(ticket: Ticket) -> list[Task]:
    """A ticket's tasks, newest first."""
    return list(Task.objects.filter(ticket=ticket).order_by("-pk"))


def list_operations_of(ticket: Ticket) -> list[Operation]:
    """Everything that was accepted in this ticket, newest first."""
    operations = Operation.objects.filter(ticket_id=ticket.pk).select_related("reversal")
    return list(operations.order_by("-pk"))


def hand_off_summary(ticket: Ticket) -> str:
    """What code wrote for staff when the agent last handed this ticket over; "" when it never did."""
    step = (
        Step.objects.filter(task__ticket=ticket, kind=StepKind.HAND_OFF, status=StepStatus.FINISHED)
        .order_by("-pk")
        .first()
    )
    return str((step.result or {}).get("summary", "")) if step else ""


def has_live_task(ticket: Ticket) -> bool:
    return Task.objects.filter(ticket=ticket, status__in=LIVE).exists()


def _tickets(user: User) -> QuerySet[Ticket]:
    tickets = Ticket.objects.select_related("customer", "shop", "assigned_to")
    return tickets if user.shop_id is None else tickets.filter(shop_id=user.shop_id)


def _newest_task(field: str) -> QuerySet[Task, object]:
    newest = Task.objects.filter(ticket=OuterRef("pk")).order_by("-pk")
    return newest.values_list(field, flat=True)[:1]


def _about(text: str) -> Q:
    number = text.removeprefix("#")
    about = (
        Q(customer__name__icontains=text)
        | Q(customer__external_id__iexact=text)
        | Q(customer__email__iexact=text)
        | Q(subject__icontains=text)
        | Q(pk__in=Operation.objects.filter(order_id=normalise_order_id(text)).values("ticket_id"))
    )
    if number.isascii() and number.isdigit() and len(number) < 19:
        about |= Q(pk=int(number))
    return about


def _position(before: str) -> tuple[datetime, int] | None:
    at, _, pk = before.partition("_")
    try:
        return datetime.fromisoformat(at), int(pk)
    except ValueError:
        return None
