"""Questions about changes that have ended: for staff, since nobody else can find the answer."""

from datetime import datetime
from typing import Any

from django.db import transaction

from accounts.rights import get_countersigner
from tools import operations, tickets
from tools.clock import database_now
from tools.models import Inquiry, InquiryKind, Kind, Operation, SettlementStatus, State
from tools.proof import TAKEN_BACK, Effect

MAX_NOTE = 2000
_ACTIONS = {InquiryKind.NO_END: "overdue", InquiryKind.CONTRADICTED: "contradicted"}


class InquiryError(Exception):
    """It cannot be closed like this; nothing was changed. The message is for the person."""


def open_once(
    operation: Operation, kind: InquiryKind, *, now: datetime, data: dict[str, Any] | None = None
) -> bool:
    """Put the question to the desk, once for an operation; says whether it is new.

    In the transaction that has the operation's row locked. How it ended stays as it is.
    """
    if Inquiry.objects.filter(operation=operation, kind=kind).exists():
        return False
    Inquiry.objects.create(operation=operation, kind=kind, opened_at=now)
    operations.record(operation, _ACTIONS[kind], actor="system", at=now, data=data)
    return True


def weigh(operation: Operation, effect: Effect, source: str, *, now: datetime) -> None:
    """Ask, if this effect under the key of an operation that has ended does not fit its end.

    In the transaction that has the operation's row locked. One that ended unmade was made after all:
    then its ticket goes to staff as well, and the customer is told. A refund that was made was made
    twice, where the shop names another one; unless the first one's name is but a person's word.
    """
    if not operation.is_final or effect.status in TAKEN_BACK:
        return
    data = {"source": source, "reference": effect.reference}
    if operation.state != State.SUCCEEDED:
        is_new = open_once(operation, InquiryKind.CONTRADICTED, now=now, data=data)
        if is_new and operation.kind != Kind.CLOSE_TICKET:
            tickets.desk().take_back(operation, now=now)
    elif operation.kind == Kind.REFUND and effect.reference != operation.reference:
        settled = operation.settlements.filter(status=SettlementStatus.SETTLED)
        if not settled.exists():
            open_once(operation, InquiryKind.CONTRADICTED, now=now, data=data)


def end(operation: Operation, *, by: str, now: datetime) -> None:
    """Take off the desk what had no end, now that `by` tells of one.

    In the transaction that has the operation's row locked.
    """
    open_ones = operation.inquiries.filter(kind=InquiryKind.NO_END, closed_at=None)
    if open_ones.update(closed_by=by, closed_at=now):
        operations.record(operation, "inquiry_closed", actor=by, at=now)


@transaction.atomic
def close(*, operation_id: int, user_id: int, note: str) -> None:
    """Say what was found out, to all that is asked about an operation. Raises InquiryError."""
    operation = operations.lock(operation_id)
    questions = list(operation.inquiries.select_for_update().filter(closed_at=None))
    user = get_countersigner(user_id, customer=operation.customer)
    if user is None:
        raise InquiryError("You may not close this.")
    if not questions:
        raise InquiryError("Nothing is asked here any more.")
    if not note.strip() or len(note) > MAX_NOTE:
        raise InquiryError(f"Say what you found out, in at most {MAX_NOTE} characters.")
    now = database_now()
    for question in questions:
        question.closed_by, question.closed_at = user.actor, now
        question.save(update_fields=["closed_by", "closed_at"])
    operations.record(operation, "inquiry_closed", actor=user.actor, at=now, personal=note)
