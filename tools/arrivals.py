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
from tools.clients.capabilities import for_provider
from tools.clients.errors import ShopError
from tools.clients.shapes import Receipt
from tools.clock import ClockTimestamp, database_now
from tools.models import Inquiry, InquiryKind, Observation, Operation, Transit
from tools.proof import LOOK_UP, TAKEN_BACK, Effect, is_approved_one, is_paid_out, proves

LONGEST_PAUSE = timedelta(hours=12)
GIVE_UP_AFTER = timedelta(days=14)


def look_after(*, limit: int = 20) -> int:
    """Ask about what is due now, longest overdue first. Returns how many were taken up.

    Calls the shops, so never inside a transaction. Of two workers at once one looks.
    """
    due = _due().order_by(F("next_look_at").asc(nulls_first=True), "pk")
    return sum(_take_up(transit) for transit in list(due[:limit]))


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
    can_be_asked = for_provider(operation.shop.provider).lookup_by_key
    if can_be_asked and not execution.is_off(operation):
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
        receipt = ask(
            operation.customer, lambda client: client.find_effect(operation.idempotency_key)
        )
    except (ShopError, DelegationRevokedError, ShopUnavailableError) as exc:
        wait = getattr(exc, "retry_after", None)
        if wait is not None and not isinstance(exc, RestingError):
            until = database_now() + timedelta(seconds=wait)
            _put_off(transit, max(until, transit.next_look_at or until))
        return
    _keep(operation.pk, receipt)


def _keep(operation_id: int, receipt: Receipt | None) -> None:
    """Write down what was seen, and what follows from it."""
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        now = database_now()
        effect = None if receipt is None else Effect.of_receipt(receipt)
        body = {"found": False} if effect is None else {"found": True, "effect": effect.as_body()}
        Observation.objects.create(operation=operation, source=LOOK_UP, body=body, at=now)
        data = {"source": LOOK_UP, "found": effect is not None}
        operations.record(operation, "observed", actor="agent", at=now, data=data)
        if effect is not None and operation.is_on_its_way:
            _weigh(operation, effect, now)


def _weigh(operation: Operation, effect: Effect, now: datetime) -> None:
    if is_paid_out(operation, effect):
        transits.end(operation, actor="agent", now=now)
    elif is_approved_one(operation, effect) and effect.status in TAKEN_BACK:
        reversals.open_if_shown(operation, effect, now=now)
    elif not proves(operation, effect):
        seen = {"source": LOOK_UP, "status": effect.status}
        inquiries.open_once(operation, InquiryKind.CONTRADICTED, now=now, data=seen)


def _give_up(operation_id: int) -> None:
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        if operation.is_on_its_way:
            inquiries.open_once(operation, InquiryKind.NO_END, now=database_now())
