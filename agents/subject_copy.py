"""A customer's own copy of what we hold about them, in a form of its own (docs/operations.md).

Everything that leaves here is named here: the shapes take no other field. So no note of staff, no
verdict, no look-up and nothing of anybody else can come along with a row that grew a column.
"""

from datetime import datetime
from typing import Literal

from django.db import transaction
from pydantic import BaseModel, ConfigDict

from accounts.models import Customer, Delegation, Erasure, Role
from agents.models import Author, Message, Ticket
from approvals.models import DECIDED, Approval
from audit import services as audit
from tools import money
from tools.erasing import content_of, is_erased
from tools.models import Kind, Operation
from tools.seal import BrokenSealError, describe

Speaker = Literal["you", "assistant", "staff"]
_WHO: dict[str, Speaker] = {
    Author.CUSTOMER: "you",
    Author.AGENT: "assistant",
    Author.STAFF: "staff",
}


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Person(Shape):
    """What the shop told us about the customer. `id` is the shop's number for them."""

    shop: str
    id: str
    name: str
    email: str
    locale: str
    known_since: datetime


class Said(Shape):
    at: datetime
    who: Speaker
    text: str


class Decision(Shape):
    """A yes or no about a change. Members of staff are not named; what they told you is."""

    who: Literal["you", "staff"]
    answer: str
    at: datetime | None
    reason: str


class Change(Shape):
    """A change of an order, as it was put to you. `amount` is a decimal in `currency`."""

    kind: str
    order: str
    amount: str
    currency: str
    title: str
    items: list[str]
    before: list[str]
    after: list[str]
    state: str
    asked_at: datetime
    ended_at: datetime | None
    reference: str
    decisions: list[Decision]


class Case(Shape):
    number: int
    subject: str
    status: str
    opened_at: datetime
    closed_at: datetime | None
    messages: list[Said]
    changes: list[Change]


class Leave(Shape):
    """A time in which we could act for you at the shop."""

    given_at: datetime
    ended_at: datetime | None


class Forgotten(Shape):
    asked_at: datetime
    done_at: datetime | None


class SubjectCopy(Shape):
    format: Literal["countersign.subject-copy/1"] = "countersign.subject-copy/1"
    made_at: datetime
    customer: Person
    conversations: list[Case]
    leave_to_act: list[Leave]
    erasures: list[Forgotten]


@transaction.atomic
def make_copy(*, customer_id: int, by: str, now: datetime) -> SubjectCopy:
    """Everything that is the customer's, as it stands now; that it was made is on the trail.

    Whoever may have it is the caller's business, and so is the shop.
    """
    customer = Customer.objects.select_related("shop").get(pk=customer_id)
    tickets = list(Ticket.objects.filter(customer=customer).order_by("pk"))
    made = SubjectCopy(
        made_at=now,
        customer=_person(customer),
        conversations=[_case(ticket) for ticket in tickets],
        leave_to_act=[
            Leave(given_at=row.created_at, ended_at=row.revoked_at)
            for row in Delegation.objects.filter(customer=customer).order_by("pk")
        ],
        erasures=[
            Forgotten(asked_at=row.asked_at, done_at=row.done_at)
            for row in Erasure.objects.filter(customer=customer, ticket_id=None).order_by("pk")
        ],
    )
    audit.record(
        actor=by,
        action="customer.copied",
        subject=f"customer:{customer.pk}",
        at=now,
        shop_id=customer.shop_id,
        customer=customer.external_id,
        data={"tickets": len(tickets)},
    )
    return made


def _person(customer: Customer) -> Person:
    return Person(
        shop=customer.shop.slug,
        id=customer.external_id,
        name=customer.name,
        email=customer.email,
        locale=customer.locale,
        known_since=customer.created_at,
    )


def _case(ticket: Ticket) -> Case:
    messages = Message.objects.filter(ticket=ticket).order_by("seq")
    operations = Operation.objects.filter(ticket_id=ticket.pk).prefetch_related("approvals")
    return Case(
        number=ticket.pk,
        subject=ticket.subject,
        status=ticket.status,
        opened_at=ticket.opened_at,
        closed_at=ticket.closed_at,
        messages=[
            Said(at=message.at, who=_WHO[message.author], text=message.text) for message in messages
        ],
        changes=[_change(operation) for operation in operations.order_by("pk")],
    )


def _change(operation: Operation) -> Change:
    try:
        card = describe(content_of(operation))
    except BrokenSealError:
        card = None
    amount = ""
    if operation.amount is not None:
        amount = money.to_decimal_text(operation.amount, operation.currency)
    return Change(
        kind=operation.kind,
        order=operation.order_id,
        amount=amount,
        currency=operation.currency,
        title=card.title if card else Kind(operation.kind).label,
        items=card.lines if card else [],
        before=card.before if card else [],
        after=card.after if card and not is_erased(operation) else [],
        state=operation.state,
        asked_at=operation.created_at,
        ended_at=operation.finished_at,
        reference=operation.reference,
        decisions=[
            _decision(approval)
            for approval in sorted(operation.approvals.all(), key=lambda row: row.pk)
            if approval.status in DECIDED
        ],
    )


def _decision(approval: Approval) -> Decision:
    return Decision(
        who="you" if approval.role == Role.CUSTOMER else "staff",
        answer=str(approval.status),
        at=approval.decided_at,
        reason=approval.reason,
    )
