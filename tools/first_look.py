"""Look before a first send, while commits may be missing: has it been done already?

A key may have been used by an operation that was lost, and the order may have been changed by one.
"""

from datetime import timedelta

from tools.access import ask
from tools.clients.capabilities import for_provider
from tools.clients.shapes import Order, Receipt
from tools.clock import database_now
from tools.models import AttemptOutcome, Kind, LookFirst, Operation
from tools.outcome import Outcome, of_look_up

UNRECORDED = "unrecorded_refund_at_shop"
# How much the shop's clock may be behind ours.
CLOCK_MARGIN = timedelta(hours=1)


class TooEarlyError(Exception):
    """The shop's look-ups still lag behind what may have been sent before the commits were lost."""


def look(
    operation: Operation, order: Order, period: LookFirst
) -> tuple[Outcome, Receipt | None] | None:
    """What the shop shows that stands in the way of a first send; None when nothing does.

    An effect under the operation's key is either the approved one, which has happened then, or for
    a person to look at; so is a refund of the order that is on no record of ours. Asks the shop, so
    never in a transaction; raises TooEarlyError, and what a read raises.
    """
    capabilities = for_provider(operation.shop.provider)
    if capabilities.lookup_by_key:
        receipt = ask(
            operation.customer, lambda client: client.find_effect(operation.idempotency_key)
        )
        if receipt is not None:
            return of_look_up(operation, receipt), receipt
        lag = timedelta(seconds=capabilities.lookup_lag_seconds)
        if database_now() < period.started_at + lag:
            raise TooEarlyError
    if _has_unrecorded_refund(operation, order, period):
        return Outcome(AttemptOutcome.UNKNOWN, UNRECORDED, needs_person=True), None
    return None


def _has_unrecorded_refund(operation: Operation, order: Order, period: LookFirst) -> bool:
    """Has the shop refunded some of this order, since commits may be missing, that we do not know of?"""
    recent = {
        refund.id for refund in order.refunds if refund.created_at >= period.since - CLOCK_MARGIN
    }
    if not recent:
        return False
    known = Operation.objects.filter(
        shop_id=operation.shop_id, order_id=operation.order_id, kind=Kind.REFUND
    )
    return bool(recent - set(known.values_list("reference", flat=True)))
