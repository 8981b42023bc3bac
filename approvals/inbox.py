"""The staff's inbox: which questions, in which order, and what about them deserves a second look."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import (
    BooleanField,
    Count,
    Exists,
    ExpressionWrapper,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
)

from accounts.models import CustomerStatus, Role, User
from approvals.entitlement import with_bars
from approvals.models import STAFF_ROLES, Approval, ApprovalStatus, Watch
from tools.models import Kind, Operation, State
from tools.text import normalise_order_id

RECENT = timedelta(days=30)
MANY_REFUNDS = 3
# A page that is open says so every ten seconds.
STILL_OPEN = timedelta(seconds=30)

WAITING, SNOOZED, ANSWERED = "waiting", "snoozed", "answered"
MINE, NOBODY = "mine", "nobody"

# What is looked at about the customer and the order, and how it is said.
FLAGS = {
    "is_blocked": "Customer is blocked",
    "was_refused": "Staff said no about this order before",
    "was_refunded": "Part of this order was refunded before",
    "asks_often": "More than 3 refunds asked for in 30 days",
    "is_unclear": "Another change of this customer has no known outcome",
}


@dataclass(frozen=True)
class InboxFilter:
    """Which questions; an empty field asks for nothing. Amounts are minor units, ages are hours.

    `text` is a customer, an order or a ticket; only approvers find a sensitive customer by it.
    `person` is "mine", "nobody" or a user's id.
    """

    status: str = ""
    kind: str = ""
    least: int | None = None
    most: int | None = None
    older: int | None = None
    person: str = ""
    text: str = ""
    only_flagged: bool = False


def list_inbox(user: User, wanted: InboxFilter, *, now: datetime) -> QuerySet[Approval]:
    """The questions of this person's shop that match: the oldest deadline first, answered ones last."""
    found = with_bars(_flagged(_of_shop(user), now), user)
    found = _by_status(found, wanted.status or WAITING, now)
    if wanted.kind:
        found = found.filter(operation__kind=wanted.kind)
    if wanted.least is not None:
        found = found.filter(operation__amount__gte=wanted.least)
    if wanted.most is not None:
        found = found.filter(operation__amount__lte=wanted.most)
    if wanted.older is not None:
        found = found.filter(asked_at__lte=now - timedelta(hours=wanted.older))
    if wanted.person:
        found = found.filter(_whose(wanted.person, user))
    if wanted.text:
        found = found.filter(_about(wanted.text, user))
    if wanted.only_flagged:
        found = found.filter(_any_flag())
    return found


@dataclass(frozen=True)
class Waiting:
    """How many questions wait: for staff, and of those for one person."""

    for_staff: int
    for_them: int


def count_waiting(user: User, *, now: datetime) -> Waiting:
    """How many questions wait for staff of this person's shop now, those put off left out.

    For an approver those count that they may answer; whoever only reads is told of all.
    """
    waiting = Approval.objects.filter(role__in=STAFF_ROLES, status=ApprovalStatus.OPEN)
    if user.shop_id is not None:
        waiting = waiting.filter(operation__shop_id=user.shop_id)
    waiting = with_bars(waiting.exclude(handling__snoozed_until__gt=now), user)
    found = waiting.aggregate(for_staff=Count("pk"), for_them=Count("pk", filter=Q(bar="")))
    return Waiting(**found)


def flags_of(approval: Approval) -> list[str]:
    """What deserves a second look, in words; for an approval of `list_inbox` or `with_flags`."""
    return [said for name, said in FLAGS.items() if getattr(approval, name, False)]


def with_flags(approvals: Sequence[Approval], *, now: datetime) -> list[Approval]:
    """The same questions as they are now, with flags, handling and whoever has them open at hand."""
    fresh = _flagged(_questions(), now).in_bulk([approval.pk for approval in approvals])
    return [fresh[approval.pk] for approval in approvals]


def who_may_answer(*, shop_id: int | None) -> list[User]:
    """Everybody who could be given a question of this shop (None: of any), by name."""
    people = User.objects.filter(is_active=True, is_approver=True)
    if shop_id is not None:
        people = people.filter(Q(shop__isnull=True) | Q(shop_id=shop_id))
    return list(people.order_by("username"))


def _questions() -> QuerySet[Approval]:
    questions = Approval.objects.filter(role__in=STAFF_ROLES).select_related(
        "operation__customer__shop",
        "operation__shop__attention",
        "handling__assigned_to",
        "handling__snoozed_by",
    )
    return questions.prefetch_related("operation__approvals")


def _of_shop(user: User) -> QuerySet[Approval]:
    questions = _questions()
    return questions if user.shop_id is None else questions.filter(operation__shop_id=user.shop_id)


def _flagged(questions: QuerySet[Approval], now: datetime) -> QuerySet[Approval]:
    others = Operation.objects.filter(
        customer_id=OuterRef("operation__customer_id"), created_at__gte=now - RECENT
    ).exclude(pk=OuterRef("operation_id"))
    same_order = others.filter(order_id=OuterRef("operation__order_id")).exclude(order_id="")
    refunds = others.filter(kind=Kind.REFUND).order_by("pk")
    open_now = Watch.objects.filter(seen_at__gte=now - STILL_OPEN).select_related("user")
    return questions.annotate(
        is_blocked=ExpressionWrapper(
            Q(operation__customer__status=CustomerStatus.BLOCKED), BooleanField()
        ),
        was_refused=Exists(same_order.filter(state=State.REJECTED, decided_by_role=Role.STAFF)),
        was_refunded=Exists(same_order.filter(kind=Kind.REFUND, state=State.SUCCEEDED)),
        # The fourth with this one: those before it are skipped by number.
        asks_often=Exists(refunds[MANY_REFUNDS - 1 : MANY_REFUNDS]),
        is_unclear=Exists(others.filter(state__in=[State.UNKNOWN, State.NEEDS_PERSON])),
    ).prefetch_related(Prefetch("watches", queryset=open_now.order_by("user__username")))


def _any_flag() -> Q:
    flagged = Q()
    for name in FLAGS:
        flagged |= Q(**{name: True})
    return flagged


def _by_status(questions: QuerySet[Approval], status: str, now: datetime) -> QuerySet[Approval]:
    if status == ANSWERED:
        return questions.exclude(status=ApprovalStatus.OPEN).order_by("-asked_at", "-id")
    waiting = questions.filter(status=ApprovalStatus.OPEN).order_by("expires_at", "id")
    put_off = Q(handling__snoozed_until__gt=now)
    return waiting.filter(put_off) if status == SNOOZED else waiting.exclude(put_off)


def _whose(person: str, user: User) -> Q:
    if person == MINE:
        return Q(handling__assigned_to=user)
    if person == NOBODY:
        return Q(handling__isnull=True) | Q(handling__assigned_to__isnull=True)
    return Q(handling__assigned_to_id=int(person))


def _about(text: str, user: User) -> Q:
    about = (
        Q(operation__customer__name__icontains=text)
        | Q(operation__customer__external_id__iexact=text)
        | Q(operation__customer__email__iexact=text)
    )
    if not user.can_approve:
        about &= Q(operation__customer__is_sensitive=False)
    about |= Q(operation__order_id=normalise_order_id(text))
    number = text.removeprefix("#")
    if number.isascii() and number.isdigit() and len(number) < 19:
        about |= Q(operation__ticket_id=int(number))
    return about
