"""What one person of the console may see of tickets and tasks: their shop's, or all without one."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from accounts import looks
from accounts.models import CustomerStatus, Role, User
from agents.casework import CannedReply, KeptReplay, Note, ReviewFlag
from agents.console.cases import case
from agents.models import LIVE, Speaker, Step, StepKind, StepStatus, Task, Ticket, TicketStatus
from approvals.inbox import MINE, NOBODY
from tools.models import Operation, State
from tools.text import normalise_order_id

PAGE = 50


@dataclass(frozen=True)
class TicketFilter:
    """Which tickets; an empty field asks for nothing. `text` is a customer, an order or a ticket; a
    sensitive customer is found by the latter two only, but by whoever holds the case.

    Amounts are minor units of some change asked for in it, `older` is hours since it last changed.
    `person` is "mine", "nobody" or a user's id.
    """

    status: str = ""
    speaker: str = ""
    text: str = ""
    kind: str = ""
    least: int | None = None
    most: int | None = None
    older: int | None = None
    person: str = ""
    only_flagged: bool = False
    only_for_review: bool = False


@dataclass(frozen=True)
class TicketPage:
    """Some tickets, last changed first; `before` asks for the page after this one.

    Of those in `shut`, by id, nothing is shown before this person has said why they open them.
    """

    tickets: Sequence[Ticket]
    before: str
    shut: Collection[int] = ()


def list_tickets(
    user: User, wanted: TicketFilter, *, now: datetime, before: str = ""
) -> TicketPage:
    """A page of the tickets that match. A `before` that nobody gave out is the first page."""
    tickets = (
        _matching(_tickets(user), wanted, user, now)
        .annotate(
            last_task_id=Subquery(_newest_task("pk")),
            last_task_status=Subquery(_newest_task("status")),
            is_for_review=_for_review("task__ticket_id"),
        )
        .order_by("-updated_at", "-pk")
    )
    position = _position(before)
    if position is not None:
        at, pk = position
        tickets = tickets.filter(Q(updated_at__lt=at) | Q(updated_at=at, pk__lt=pk))
    found = list(tickets[: PAGE + 1])
    page = found[:PAGE]
    shut = {one.pk for one in page if not looks.may_open(user, case(user, one), now=now)}
    last = page[-1] if len(found) > PAGE else None
    return TicketPage(page, f"{last.updated_at.isoformat()}_{last.pk}" if last else "", shut)


def get_ticket(user: User, ticket_id: int) -> Ticket | None:
    return _tickets(user).filter(pk=ticket_id).first()


def get_task(user: User, task_id: int) -> Task | None:
    tasks = Task.objects.filter(pk=task_id)
    if user.shop_id is not None:
        tasks = tasks.filter(shop_id=user.shop_id)
    return tasks.select_related("shop", "customer", "ticket").first()


def list_tasks_of(ticket: Ticket) -> list[Task]:
    """A ticket's tasks, newest first."""
    tasks = Task.objects.filter(ticket=ticket).annotate(is_for_review=_for_review("task_id"))
    return list(tasks.order_by("-pk"))


def list_flags_of(task: Task) -> list[ReviewFlag]:
    """Who wanted this task looked at again, and what came of it; oldest first."""
    flags = ReviewFlag.objects.filter(task=task).select_related("raised_by", "closed_by")
    return list(flags.order_by("pk"))


def list_replays_of(task: Task, *, limit: int = 5) -> list[KeptReplay]:
    """What other prompts and models would have made of it, newest first."""
    return list(KeptReplay.objects.filter(task=task).order_by("-pk")[:limit])


def neighbours_of(task: Task) -> tuple[int | None, int | None]:
    """The ids of the tasks before and after this one in its ticket."""
    others = Task.objects.filter(ticket_id=task.ticket_id).values_list("pk", flat=True)
    before = others.filter(pk__lt=task.pk).order_by("-pk").first()
    return before, others.filter(pk__gt=task.pk).order_by("pk").first()


def list_operations_of(ticket: Ticket) -> list[Operation]:
    """Everything that was accepted in this ticket, newest first."""
    operations = Operation.objects.filter(ticket_id=ticket.pk).select_related("reversal", "transit")
    return list(operations.order_by("-pk"))


def hand_off_summary(ticket: Ticket) -> str:
    """What code wrote for staff when the agent last handed this ticket over; "" when it never did."""
    step = (
        Step.objects.filter(task__ticket=ticket, kind=StepKind.HAND_OFF, status=StepStatus.FINISHED)
        .order_by("-pk")
        .first()
    )
    return str((step.result or {}).get("summary", "")) if step else ""


def list_notes_of(ticket: Ticket) -> list[Note]:
    """What staff told each other about this ticket, oldest first."""
    return list(Note.objects.filter(ticket=ticket).select_related("author").order_by("pk"))


def list_canned(user: User) -> list[CannedReply]:
    """The ready-made answers of this person's shop (of every shop, for whoever sees all)."""
    replies = CannedReply.objects.select_related("shop").order_by("shop__name", "name")
    return list(replies if user.shop_id is None else replies.filter(shop_id=user.shop_id))


def list_colleagues(user: User) -> list[User]:
    """Everybody who could hold a ticket of this person's shop, by name."""
    people = User.objects.filter(is_active=True, role__in=[Role.STAFF, Role.ADMIN])
    if user.shop_id is not None:
        people = people.filter(Q(shop__isnull=True) | Q(shop_id=user.shop_id))
    return list(people.order_by("username"))


def has_live_task(ticket: Ticket) -> bool:
    return Task.objects.filter(ticket=ticket, status__in=LIVE).exists()


def _tickets(user: User) -> QuerySet[Ticket]:
    tickets = Ticket.objects.select_related("customer", "shop", "assigned_to")
    return tickets if user.shop_id is None else tickets.filter(shop_id=user.shop_id)


def _matching(
    tickets: QuerySet[Ticket], wanted: TicketFilter, user: User, now: datetime
) -> QuerySet[Ticket]:
    """The tickets of the filter."""
    if wanted.status:
        tickets = tickets.filter(status=wanted.status)
    if wanted.speaker:
        tickets = tickets.filter(speaker=wanted.speaker)
    if wanted.text:
        tickets = tickets.filter(_about(wanted.text, user))
    if wanted.older is not None:
        tickets = tickets.filter(updated_at__lte=now - timedelta(hours=wanted.older))
    if wanted.person:
        tickets = tickets.filter(_whose(wanted.person, user))
    if wanted.only_flagged:
        tickets = tickets.filter(_needs_a_look())
    if wanted.only_for_review:
        tickets = tickets.filter(_for_review("task__ticket_id"))
    changes = _changes(wanted)
    return tickets if changes is None else tickets.filter(changes)


def _changes(wanted: TicketFilter) -> Exists | None:
    """Some change asked for in the ticket is of that kind and sum."""
    if not wanted.kind and wanted.least is None and wanted.most is None:
        return None
    changes = Operation.objects.filter(ticket_id=OuterRef("pk"))
    if wanted.kind:
        changes = changes.filter(kind=wanted.kind)
    if wanted.least is not None:
        changes = changes.filter(amount__gte=wanted.least)
    if wanted.most is not None:
        changes = changes.filter(amount__lte=wanted.most)
    return Exists(changes)


def _whose(person: str, user: User) -> Q:
    if person == MINE:
        return Q(assigned_to=user)
    if person == NOBODY:
        return Q(assigned_to__isnull=True)
    return Q(assigned_to_id=int(person))


def _needs_a_look() -> Q:
    """It waits for a person, or what came of a change is not known, or the customer is blocked."""
    unresolved = Operation.objects.filter(
        ticket_id=OuterRef("pk"), state__in=[State.UNKNOWN, State.NEEDS_PERSON]
    )
    waits = Q(status=TicketStatus.OPEN, speaker=Speaker.STAFF, assigned_to__isnull=True)
    return waits | Q(customer__status=CustomerStatus.BLOCKED) | Q(Exists(unresolved))


def _for_review(path: str) -> Exists:
    """A flag of it is open; `path` leads from a flag to the row that is looked at."""
    return Exists(ReviewFlag.objects.filter(closed_at=None, **{path: OuterRef("pk")}))


def _newest_task(field: str) -> QuerySet[Task, object]:
    newest = Task.objects.filter(ticket=OuterRef("pk")).order_by("-pk")
    return newest.values_list(field, flat=True)[:1]


def _about(text: str, user: User) -> Q:
    number = text.removeprefix("#")
    whose_or_what = (
        Q(customer__name__icontains=text)
        | Q(customer__external_id__iexact=text)
        | Q(customer__email__iexact=text)
        | Q(subject__icontains=text)
    )
    about = whose_or_what & (Q(customer__is_sensitive=False) | Q(assigned_to=user))
    about |= Q(
        pk__in=Operation.objects.filter(order_id=normalise_order_id(text)).values("ticket_id")
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
