"""Look again after refunds that are on their way: a shop need not tell of what became of them.

The shop is asked for the effect under the refund's key, first a minute after it was taken, then
after half of what has passed since, twelve hours at most. After GIVE_UP_AFTER the desk is told, and
nobody looks any more; what the shop tells by itself is believed later as well.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from accounts.services import DelegationRevokedError, ShopUnavailableError
from tools import execution, inquiries, operations, reversals, sending, transits
from tools.access import ask
from tools.adapters import RestingError
from tools.clients.errors import ShopError
from tools.clients.shapes import Receipt
from tools.clock import ClockTimestamp, database_now
from tools.models import Inquiry, InquiryKind, Observation, Operation, Transit
from tools.proof import LOOK_UP, TAKEN_BACK, Effect, is_approved_one, is_paid_out, proves
from tools.settlement import Showed, WrongStateError, can_be_looked_up

LONGEST_PAUSE = timedelta(hours=12)
GIVE_UP_AFTER = timedelta(days=14)
_NO_ANSWER = (ShopError, DelegationRevokedError, ShopUnavailableError)


def look_after(*, limit: int = 20) -> int:
    """Ask about what is due now, longest overdue first. Returns how many were taken up.

    Calls the shops, so never inside a transaction. Of two workers at once one looks.
    """
    due = _due().order_by(F("next_look_at").asc(nulls_first=True), "pk")
    return sum(_take_up(transit) for transit in list(due[:limit]))


def look_now(*, operation_id: int, by: str) -> Showed:
    """Ask the shop at once, for a person, and write down what it shows, as any other look does.

    Calls the shop, so never inside a transaction. Raises WrongStateError for what is not on its way.
    """
    operation = sending.get(operation_id)
    if not operation.is_on_its_way:
        raise WrongStateError(operation)
    if not can_be_looked_up(operation):
        return Showed.CANNOT_BE_ASKED
    try:
        receipt = _ask(operation)
    except _NO_ANSWER:
        return Showed.NO_ANSWER
    return _keep(operation.pk, receipt, by)


def _due() -> QuerySet[Transit]:
    """What is on its way, of which the desk does not know yet, and whose time has come."""
    asked = Inquiry.objects.filter(
        Q(closed_at=None) | Q(kind=InquiryKind.NO_END), operation=OuterRef("operation")
    )
    return Transit.objects.filter(
        ~Exists(asked),
        Q(next_look_at=None) | Q(next_look_at__lte=ClockTimestamp()),
        arrived_at=None,
        operation__reversal=None,
    )


def _take_up(transit: Transit) -> bool:
    now = database_now()
    if not _put_off(transit, _next_look(transit, now)):
        return False
    operation = sending.get(transit.operation_id)
    if can_be_looked_up(operation) and not execution.is_off(operation):
        _look(operation, transit)
    if now >= transit.began_at + GIVE_UP_AFTER:
        _give_up(operation.pk)
    return True


def _put_off(transit: Transit, until: datetime) -> bool:
    """Name the next look; whoever names it has this one. A lost worker costs one look."""
    mine = Transit.objects.filter(pk=transit.pk, arrived_at=None, next_look_at=transit.next_look_at)
    is_ours = mine.update(next_look_at=until) == 1
    transit.next_look_at = until
    return is_ours


def _next_look(transit: Transit, now: datetime) -> datetime:
    pause = min(max((now - transit.began_at) / 2, transits.FIRST_LOOK), LONGEST_PAUSE)
    end = transit.began_at + GIVE_UP_AFTER
    return min(now + pause, end) if now < end else now + pause


def _look(operation: Operation, transit: Transit) -> None:
    """Without an answer nothing is written; the shop may name the time of the next question."""
    try:
        receipt = _ask(operation)
    except _NO_ANSWER as exc:
        wait = getattr(exc, "retry_after", None)
        if wait is not None and not isinstance(exc, RestingError):
            until = database_now() + timedelta(seconds=wait)
            _put_off(transit, max(until, transit.next_look_at or until))
        return
    _keep(operation.pk, receipt, "agent")


def _ask(operation: Operation) -> Receipt | None:
    return ask(operation.customer, lambda client: client.find_effect(operation.idempotency_key))


def _keep(operation_id: int, receipt: Receipt | None, by: str) -> Showed:
    """Write down what was seen, and what follows from it."""
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        now = database_now()
        effect = None if receipt is None else Effect.of_receipt(receipt)
        body = {"found": False} if effect is None else {"found": True, "effect": effect.as_body()}
        Observation.objects.create(operation=operation, source=LOOK_UP, body=body, at=now)
        data = {"source": LOOK_UP, "found": effect is not None}
        operations.record(operation, "observed", actor=by, at=now, data=data)
        if effect is None:
            return Showed.NOTHING
        return _weigh(operation, effect, by, now)


def _weigh(operation: Operation, effect: Effect, by: str, now: datetime) -> Showed:
    if is_paid_out(operation, effect):
        transits.end(operation, actor=by, now=now)
        return Showed.PAID_OUT
    if is_approved_one(operation, effect) and effect.status in TAKEN_BACK:
        reversals.open_if_shown(operation, effect, now=now)
        return Showed.TAKEN_BACK
    if proves(operation, effect):
        return Showed.PENDING
    if operation.is_on_its_way:
        seen = {"source": LOOK_UP, "status": effect.status}
        inquiries.open_once(operation, InquiryKind.CONTRADICTED, now=now, data=seen)
    return Showed.SOMETHING_ELSE


def _give_up(operation_id: int) -> None:
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        if operation.is_on_its_way:
            inquiries.open_once(operation, InquiryKind.NO_END, now=database_now())
