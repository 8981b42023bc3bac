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
from tools.seal import BrokenSealError, facts_of, open_seal

UNRECORDED = "unrecorded_refund_at_shop"
USED_BEFORE = "key_used_before"
# How much the shop's clock may be behind ours.
CLOCK_MARGIN = timedelta(hours=1)


class TooEarlyError(Exception):
    """The shop's look-ups still lag behind what may have been sent before the commits were lost."""


def look(
    operation: Operation, order: Order, period: LookFirst
) -> tuple[Outcome, Receipt | None] | None:
    """What the shop shows that stands in the way of a first send; None when nothing does.

    An effect under the operation's key is either the approved one, which has happened then, or for
    a person to look at; so is one that was there when the operation was proposed, and a refund of
    the order that is on no record of ours. Asks the shop, so
    never in a transaction; raises TooEarlyError, and what a read raises.
    """
    capabilities = for_provider(operation.shop.provider)
    if capabilities.lookup_by_key:
        receipt = ask(
            operation.customer, lambda client: client.find_effect(operation.idempotency_key)
        )
        if receipt is not None:
            return _judge(operation, order, receipt), receipt
        lag = timedelta(seconds=capabilities.lookup_lag_seconds)
        if database_now() < period.started_at + lag:
            raise TooEarlyError
    if _has_unrecorded_refund(operation, order, period):
        return Outcome(AttemptOutcome.UNKNOWN, UNRECORDED, needs_person=True), None
    return None


def _judge(operation: Operation, order: Order, receipt: Receipt) -> Outcome:
    """The approved effect, or another, or the same that was there before it was proposed?"""
    outcome = of_look_up(operation, receipt)
    if outcome.kind == AttemptOutcome.SUCCEEDED and _is_from_before(operation, order):
        return Outcome(AttemptOutcome.UNKNOWN, USED_BEFORE, needs_person=True)
    return outcome


def _is_from_before(operation: Operation, order: Order) -> bool:
    """Is the order still as it was sealed? Then no effect since is this operation's doing."""
    try:
        content = open_seal(operation.seal, operation.digest)
    except BrokenSealError:
        return True
    return bool(facts_of(order) == content["facts"])


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
