"""cancel_order: an order that has not left the shop can be called off."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from accounts.models import Shop
from tools.catalogue.base import Arguments, OrderTool
from tools.clients.shapes import Order
from tools.models import Kind
from tools.policy import Ruling
from tools.seal import Intent
from tools.text import clean, normalise_order_id

CANCELLABLE = ("pending", "processed")


class CancelOrder(Arguments):
    order_id: str = Field(max_length=40, description="The order's number.")
    reason: Literal["no_longer_needed", "ordered_by_mistake", "other"]


def decide(
    arguments: CancelOrder, order: Order, shop: Shop, _now: datetime, ruling: Ruling
) -> Intent:
    """The cancellation that the rules allow for these facts. Raises DeniedError."""
    ruling.require(
        "currency_is_the_shops",
        holds=order.currency == shop.currency,
        code="currency_mismatch",
        message=f"Order {order.id} was placed in another currency than the shop's.",
        order=order.currency,
        shop=shop.currency,
    )
    ruling.require(
        "order_has_not_shipped",
        holds=order.status in CANCELLABLE,
        code="order_state",
        message=f"Order {order.id} is {order.status}; it can only be cancelled before it ships.",
        status=order.status,
    )
    return Intent(
        kind=Kind.CANCEL,
        order_id=order.id,
        amount=order.total or None,
        currency=order.currency if order.total else "",
        request={"reason": arguments.reason},
        shown={
            "lines": [
                {
                    "title": clean(line.title, 120),
                    "variant": clean(line.variant, 60),
                    "quantity": line.quantity,
                    "unit_price": line.unit_price,
                }
                for line in order.lines
            ],
        },
    )


CANCEL_ORDER = OrderTool(
    name="cancel_order",
    description=(
        "Propose to cancel an order that has not shipped. The customer is shown it and asked. The "
        "result tells what happened."
    ),
    arguments=CancelOrder,
    permission="orders:write",
    calls_per_minute=10,
    kind=Kind.CANCEL,
    order_id=lambda arguments: normalise_order_id(arguments.order_id),
    decide=decide,
)
