"""Short words for what the tests of sending and reconciling do again and again."""

import time
from typing import Any

from approvals.services import is_still_granted
from tests.factories import make_approved_operation
from tests.shop_floor import Buyer
from tools import reconcile, sending
from tools.access import ask
from tools.clients.shapes import Order
from tools.execution import StillGranted
from tools.models import Operation


def lease(epoch: int = 1, seconds: float = 60.0) -> sending.Lease:
    return sending.Lease(epoch=epoch, ends_at=time.monotonic() + seconds)


def look(buyer: Buyer, order_id: str) -> Order:
    """The order as the shop shows it to this customer now."""
    return ask(buyer.row, lambda client: client.get_order(order_id))


def approved(
    buyer: Buyer, order_id: str, tool: str = "refund_order", **arguments: Any
) -> Operation:
    """A change of a real order with every yes that it needs."""
    return make_approved_operation(buyer.row, look(buyer, order_id), tool, **arguments)


def send(
    operation: Operation, *, epoch: int = 1, still_granted: StillGranted = is_still_granted
) -> Operation:
    return sending.send(operation_id=operation.pk, lease=lease(epoch), still_granted=still_granted)


def find_out(operation: Operation, *, epoch: int = 2) -> Operation:
    return reconcile.reconcile(
        operation_id=operation.pk, lease=lease(epoch), still_granted=is_still_granted
    )


def writes(buyer: Buyer, operation: Operation) -> list[dict[str, Any]]:
    """Every call that could have changed the order, under this operation's key."""
    calls = buyer.shop.calls(idempotency_key=operation.idempotency_key)
    return [call for call in calls if call["method"] != "GET"]


def trail(operation: Operation) -> list[tuple[int, str, str]]:
    """The attempts: number, outcome and what it was."""
    return list(operation.attempts.order_by("n").values_list("n", "outcome", "detail"))
