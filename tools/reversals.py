"""Money of a refund that came back to the shop after all: a case for staff, and no new history."""

from datetime import datetime

from django.db import transaction

from accounts.rights import get_countersigner
from tools import inquiries, operations, tickets
from tools.clock import database_now
from tools.models import Kind, Operation, Reversal, ShopEvent, State
from tools.proof import LOOK_UP, TAKEN_BACK, Effect, told_since_sent
from tools.text import clean

MAX_NOTE = 2000


class CaseError(Exception):
    """The case cannot be closed like this; nothing was changed. The message is for the person."""


def open_if_told(operation: Operation, *, now: datetime) -> bool:
    """Open a case if the shop has said that this refund came back; at most one for an operation.

    In the transaction that has the operation's row locked. How it ended stays as it is; its ticket
    goes to staff and the customer is told. Says whether a case was opened.
    """
    if operation.kind != Kind.REFUND or operation.state != State.SUCCEEDED:
        return False
    for told in told_since_sent(operation):
        effect = Effect.of_body(told.body)
        if effect is not None and effect.status in TAKEN_BACK:
            event = ShopEvent.objects.get(shop_id=operation.shop_id, event_id=told.body["event"])
            return _open(operation, event, told.body.get("reason", ""), now)
    return False


def open_if_shown(operation: Operation, effect: Effect, *, now: datetime) -> bool:
    """The same for what a look-up of ours has shown of this refund, which has succeeded."""
    if effect.status not in TAKEN_BACK:
        return False
    return _open(operation, None, "", now)


@transaction.atomic
def close_case(*, operation_id: int, user_id: int, note: str) -> Reversal:
    """Say what was done about the money that came back. Raises CaseError."""
    operation = operations.lock(operation_id)
    case = Reversal.objects.select_for_update().filter(operation=operation).first()
    user = get_countersigner(user_id, customer=operation.customer)
    if user is None:
        raise CaseError("You may not close this case.")
    if case is None or case.closed_at is not None:
        raise CaseError("There is no open case here any more.")
    if not note.strip() or len(note) > MAX_NOTE:
        raise CaseError(f"Say what was done about it, in at most {MAX_NOTE} characters.")
    case.closed_by = user.actor
    case.closed_at = now = database_now()
    case.note = note
    case.save(update_fields=["closed_by", "closed_at", "note"])
    operations.record(operation, "case_closed", actor=user.actor, at=now, personal=note)
    return case


def _open(operation: Operation, event: ShopEvent | None, reason: str, now: datetime) -> bool:
    """Without an event it was a look-up that showed it."""
    if Reversal.objects.filter(operation=operation).exists():
        return False
    Reversal.objects.create(
        operation=operation, event=event, reason=clean(reason, 150), opened_at=now
    )
    data = {"source": LOOK_UP} if event is None else {"event": event.event_id, "type": event.kind}
    shop = f"shop:{operation.shop.slug}"
    operations.record(operation, "reversed", actor=shop, at=now, data=data)
    inquiries.end(operation, by=shop, now=now)
    tickets.desk().open_case(operation, now=now)
    return True
