"""Operations before and after the wire: create, grant, turn down, settle.

Every function locks the row, checks, changes, saves the named fields, records and announces, all
in one transaction. Sending itself is in `sending.py`.
"""

from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypedDict

from django.db import transaction
from django_fsm import TransitionNotAllowed

from accounts.models import Customer, Role, Shop
from audit import services as audit
from tools import money
from tools.clients.shapes import Order
from tools.language import Text, pick
from tools.models import OPEN, Kind, Operation, State
from tools.seal import Intent, seal
from tools.signals import operation_moved
from tools.tickets import TicketFacts

IN_WORDS = {
    State.AWAITING_APPROVAL: "waiting for a yes",
    State.APPROVED: "approved and about to be sent",
    State.SENDING: "being sent",
    State.UNKNOWN: "still being checked with the shop",
    State.NEEDS_PERSON: "being checked by a person",
}

_MADE: dict[Kind, Text] = {
    Kind.REFUND: (
        "Refunded {amount} for order {order} (reference {reference})",
        "{amount} für Bestellung {order} erstattet (Beleg {reference})",
    ),
    Kind.CANCEL: (
        "Cancelled order {order} (reference {reference})",
        "Bestellung {order} storniert (Beleg {reference})",
    ),
    Kind.CHANGE_ADDRESS: (
        "Changed the delivery address of order {order} (reference {reference})",
        "Lieferadresse von Bestellung {order} geändert (Beleg {reference})",
    ),
    Kind.CLOSE_TICKET: (
        "Closed this request (reference {reference})",
        "Diese Anfrage beendet (Beleg {reference})",
    ),
}
_ON_ITS_WAY: Text = (
    "A refund of {amount} for order {order} is on its way (reference {reference})",
    "Eine Erstattung von {amount} für Bestellung {order} ist unterwegs (Beleg {reference})",
)

NOT_SENT_IN_TIME = "not_sent_in_time"
NOT_NEEDED = "Nothing was left to do: somebody else came first. It was not done by us."
CAME_BACK = "The money has come back to the shop since; a person takes care of it."
AFTER_ALL = "The shop says since that this was made after all; a person takes care of it."
ON_ITS_WAY = "The shop has taken this and calls it pending: the money is on its way, not there yet."


class OperationStateError(Exception):
    """The operation is not in a state in which this can be done. `operation` shows which it is in."""

    def __init__(self, operation: Operation) -> None:
        super().__init__(f"{operation.idempotency_key} is {operation.state}")
        self.operation = operation


def get_open(*, shop_id: int, subject: Order | TicketFacts) -> Operation | None:
    """The one non-final operation about an order, or the one closure of a ticket."""
    live = Operation.objects.filter(shop_id=shop_id, state__in=OPEN)
    if isinstance(subject, TicketFacts):
        return live.filter(ticket_id=subject.ticket, kind=Kind.CLOSE_TICKET).first()
    return live.filter(order_id=subject.id).first()


def list_of_task(*, task_id: int) -> list[Operation]:
    """A task's operations, oldest first."""
    operations = Operation.objects.filter(task_id=task_id)
    return list(operations.select_related("customer", "reversal", "transit").order_by("id"))


def succeeded_kinds(*, ticket_id: int) -> frozenset[str]:
    """The kinds of change that have truly happened in this ticket."""
    return frozenset(
        Operation.objects.filter(ticket_id=ticket_id, state=State.SUCCEEDED).values_list(
            "kind", flat=True
        )
    )


def create(
    intent: Intent,
    *,
    shop: Shop,
    customer: Customer,
    subject: Order | TicketFacts,
    arguments: dict[str, Any],
    required_roles: list[str],
    ticket_id: int,
    task_id: int,
    step_n: int,
    now: datetime,
) -> Operation:
    """Seal an intent and store it with its idempotency key, before anybody is asked.

    Runs in the caller's transaction.
    """
    seconds = shop.customer_approval_seconds
    if Role.STAFF in required_roles:
        seconds += shop.staff_approval_seconds
    if Role.SECOND_STAFF in required_roles:
        seconds += shop.staff_approval_seconds
    key = f"task-{task_id}-step-{step_n}"
    expires_at = now + timedelta(seconds=seconds)
    sealed = seal(
        intent,
        shop=shop.slug,
        customer=customer.external_id,
        subject=subject,
        arguments=arguments,
        policy_version=shop.policy_version,
        expires_at=expires_at,
        idempotency_key=key,
    )
    operation = Operation.objects.create(
        shop=shop,
        customer=customer,
        ticket_id=ticket_id,
        task_id=task_id,
        step_n=step_n,
        kind=intent.kind,
        order_id=intent.order_id,
        idempotency_key=key,
        intent=intent.key(customer=customer.external_id),
        seal=sealed.body,
        digest=sealed.digest,
        amount=intent.amount,
        currency=intent.currency,
        required_roles=required_roles,
        policy_version=shop.policy_version,
        created_at=now,
        expires_at=expires_at,
    )
    record(operation, "proposed", actor="agent", at=now, data={"digest": sealed.digest})
    return operation


@transaction.atomic
def grant(*, operation_id: int, role: str, by: str, now: datetime) -> Operation:
    """Add one role's yes. With the last one that is required the operation is approved.

    Raises OperationStateError when it no longer waits for a yes.
    """
    operation = lock(operation_id)
    if operation.state != State.AWAITING_APPROVAL:
        raise OperationStateError(operation)
    operation.granted_roles = sorted({*operation.granted_roles, role})
    is_complete = set(operation.required_roles) <= set(operation.granted_roles)
    if is_complete:
        operation.approve()
    operation.save(update_fields=["granted_roles", "state"])
    record(operation, "granted", actor=by, at=now, data={"role": role})
    if is_complete:
        announce(operation)
    return operation


@transaction.atomic
def reject(*, operation_id: int, role: str, by: str, reason: str, now: datetime) -> Operation:
    """A person said no. Raises OperationStateError once it is being sent or final."""
    operation = lock(operation_id)
    try:
        operation.reject(role=role, reason=reason, at=now)
    except TransitionNotAllowed as exc:
        raise OperationStateError(operation) from exc
    return _turned_down(operation, "rejected", actor=by, now=now)


@transaction.atomic
def expire(*, operation_id: int, now: datetime) -> Operation:
    """Its time is over: nobody answered, or all did and it could not be sent (NOT_SENT_IN_TIME).

    Raises OperationStateError once it is being sent or final.
    """
    operation = lock(operation_id)
    code = NOT_SENT_IN_TIME if operation.state == State.APPROVED else ""
    try:
        operation.expire(reason=code, at=now)
    except TransitionNotAllowed as exc:
        raise OperationStateError(operation) from exc
    return _turned_down(operation, "expired", actor="system", now=now, code=code)


@transaction.atomic
def supersede(*, operation_id: int, reason: str, now: datetime) -> Operation:
    """What was approved is no longer what would happen: it must be proposed anew."""
    operation = lock(operation_id)
    try:
        operation.supersede(reason=reason, at=now)
    except TransitionNotAllowed as exc:
        raise OperationStateError(operation) from exc
    return _turned_down(operation, "superseded", actor="system", now=now, code=reason)


@transaction.atomic
def cancel(*, operation_id: int, by: str, reason: str, now: datetime) -> Operation:
    """Withdraw it before it is sent. Raises OperationStateError when it is too late for that."""
    operation = lock(operation_id)
    try:
        operation.cancel(reason=reason, at=now)
    except TransitionNotAllowed as exc:
        raise OperationStateError(operation) from exc
    code = reason if by == "system" else ""
    return _turned_down(operation, "cancelled", actor=by, now=now, code=code)


def result(operation: Operation) -> dict[str, Any]:
    """An operation as the model is told of it: its true state and nothing to guess from."""
    told: dict[str, Any] = {
        "operation": operation.idempotency_key,
        "kind": operation.kind,
        "order_id": operation.order_id,
        "state": operation.state,
    }
    if operation.amount is not None:
        told["amount"] = money.to_decimal_text(operation.amount, operation.currency)
        told["currency"] = operation.currency
    if operation.state == State.SUCCEEDED:
        told["reference"] = operation.reference
        if operation.came_back:
            told["message"] = CAME_BACK
        elif operation.is_on_its_way:
            told |= {"pending": True, "message": ON_ITS_WAY}
    if operation.state in {State.REJECTED, State.CANCELLED}:
        told["decided_by"] = operation.decided_by_role
    if operation.reason and operation.state not in {State.SUCCEEDED, *OPEN}:
        told["reason"] = operation.reason
    if operation.is_already_done:
        told["message"] = NOT_NEEDED
    if operation.is_contradicted:
        told["message"] = AFTER_ALL
    if operation.state in IN_WORDS:
        told["message"] = f"This is {IN_WORDS[State(operation.state)]}."
    return told


def in_words(operation: Operation, locale: str) -> str:
    """A change that happened, in a line for its customer."""
    amount = ""
    if operation.amount is not None:
        amount = money.show(operation.amount, operation.currency, locale)
    made = pick(_ON_ITS_WAY if operation.is_on_its_way else _MADE[Kind(operation.kind)], locale)
    return made.format(amount=amount, order=operation.order_id, reference=operation.reference)


def lock(operation_id: int) -> Operation:
    """The row, locked, with its shop and customer at hand."""
    return (
        Operation.objects.select_for_update(of=("self",))
        .select_related("shop", "customer")
        .get(pk=operation_id)
    )


class About(TypedDict):
    """The columns of an audit event that say which change it is about."""

    shop_id: int
    task_id: int
    ticket_id: int
    customer: str
    order_id: str
    tool: str
    amount: int | None
    currency: str


def about(operation: Operation) -> About:
    """For whoever records an event about an operation."""
    return About(
        shop_id=operation.shop_id,
        task_id=operation.task_id,
        ticket_id=operation.ticket_id,
        customer=operation.customer.external_id,
        order_id=operation.order_id,
        tool=f"{operation.kind}",
        amount=operation.amount,
        currency=operation.currency,
    )


def record(
    operation: Operation,
    what: str,
    *,
    actor: str,
    at: datetime,
    data: dict[str, Any] | None = None,
    personal: str | None = None,
) -> None:
    """The audit event of an operation's change, in the same transaction.

    `personal` is a person's words, kept beside the chain.
    """
    audit.record(
        actor=actor,
        action=f"{operation.kind}.{what}",
        subject=f"operation:{operation.idempotency_key}",
        at=at,
        outcome=operation.state,
        data=data,
        personal=personal,
        **about(operation),
    )


def announce(operation: Operation) -> None:
    """Tell the layers above once this is committed."""
    transaction.on_commit(
        partial(
            operation_moved.send,
            sender=Operation,
            operation_id=operation.pk,
            task_id=operation.task_id,
        )
    )


def _turned_down(
    operation: Operation, what: str, *, actor: str, now: datetime, code: str = ""
) -> Operation:
    """`code` is a reason of our own; a person's words stay out of the chain."""
    operation.save(update_fields=["state", "decided_by_role", "reason", "finished_at"])
    data = {"reason": code} if code else {"reason_given": bool(operation.reason)}
    record(operation, what, actor=actor, at=now, data=data)
    announce(operation)
    return operation
