"""refund_order: which refunds the shop's rules allow, and for exactly how much."""

from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import Field

from accounts.models import Shop
from tools import money
from tools.catalogue.base import Arguments, OrderTool
from tools.clients.shapes import Line, Order
from tools.models import Kind
from tools.policy import Ruling
from tools.seal import Intent
from tools.text import clean, normalise_order_id

Reason = Literal[
    "damaged", "not_received", "wrong_item", "not_as_described", "changed_mind", "other"
]


class RefundItem(Arguments):
    item_id: str = Field(max_length=80, description="An item_id that find_orders returned.")
    quantity: int = Field(ge=1, le=1000)


class RefundOrder(Arguments):
    order_id: str = Field(max_length=40, description="The order's number.")
    items: list[RefundItem] | None = Field(
        default=None, max_length=50, description="Which items; leave out for the whole order."
    )
    amount: str | None = Field(
        default=None,
        max_length=16,
        description='A decimal like "40.00". With items it must equal their price.',
    )
    reason: Reason


def decide(
    arguments: RefundOrder, order: Order, shop: Shop, now: datetime, ruling: Ruling
) -> Intent:
    """The refund that the rules allow for these facts. Raises DeniedError."""
    _require_refundable(order, shop, now, ruling)
    lines = _chosen_lines(arguments.items, order, ruling)
    amount = _amount(arguments, lines, order, ruling)
    full_lines = [] if _is_part_payment(arguments, amount, order) else lines
    return Intent(
        kind=Kind.REFUND,
        order_id=order.id,
        amount=amount,
        currency=order.currency,
        request={
            "amount": amount,
            "currency": order.currency,
            "lines": [{"line_id": line.id, "quantity": quantity} for line, quantity in full_lines],
            "reason": arguments.reason,
        },
        shown={
            "lines": [_shown(line, quantity) for line, quantity in full_lines],
            "destination": "original payment method",
        },
    )


def _require_refundable(order: Order, shop: Shop, now: datetime, ruling: Ruling) -> None:
    ruling.require(
        "currency_is_the_shops",
        holds=order.currency == shop.currency,
        code="currency_mismatch",
        message=f"Order {order.id} was paid in another currency than the shop refunds in.",
        order=order.currency,
        shop=shop.currency,
    )
    ruling.require(
        "something_left_to_refund",
        holds=order.status != "delivered" or order.refunded < order.captured,
        code="already_refunded",
        message=f"Order {order.id} has already been refunded in full.",
        captured=order.captured,
        refunded=order.refunded,
    )
    ruling.require(
        "order_is_delivered",
        holds=order.status == "delivered" and order.delivered_at is not None,
        code="order_state",
        message=f"Order {order.id} is {order.status}; only delivered orders can be refunded.",
        status=order.status,
    )
    if order.delivered_at is None:  # the rule above has refused it; this tells the type checker
        return
    ruling.require(
        "within_refund_window",
        holds=now - order.delivered_at <= timedelta(days=shop.refund_window_days),
        code="outside_window",
        message=f"Order {order.id} was delivered more than {shop.refund_window_days} days ago.",
        delivered_at=order.delivered_at.isoformat(),
        window_days=shop.refund_window_days,
    )


def _chosen_lines(
    items: list[RefundItem] | None, order: Order, ruling: Ruling
) -> list[tuple[Line, int]]:
    """The lines to refund with their quantities; all that is left of the order when none is named."""
    if items is None:
        left = ((line, line.quantity - line.refunded_quantity) for line in order.lines)
        return [(line, quantity) for line, quantity in left if quantity > 0]
    by_id = {line.id: line for line in order.lines}
    asked = [item.item_id for item in items]
    fits = (
        bool(items)
        and len(set(asked)) == len(asked)
        and all(
            item.item_id in by_id
            and item.quantity
            <= by_id[item.item_id].quantity - by_id[item.item_id].refunded_quantity
            for item in items
        )
    )
    ruling.require(
        "items_are_on_the_order",
        holds=fits,
        code="bad_line",
        message=f"These items, in these quantities, are not left to refund on order {order.id}.",
        items=[item.model_dump() for item in items],
    )
    return [(by_id[item.item_id], item.quantity) for item in items]


def _amount(
    arguments: RefundOrder,
    lines: list[tuple[Line, int]],
    order: Order,
    ruling: Ruling,
) -> int:
    """The amount in minor units, computed from the order; a given amount is only checked."""
    left = order.captured - order.refunded
    computed = sum(line.unit_price * quantity for line, quantity in lines)
    if arguments.items is None:
        computed = left
    given = computed if arguments.amount is None else _parse(arguments.amount, order, ruling)
    if _is_part_payment(arguments, given, order):
        computed = given
    ruling.require(
        "amount_matches_items",
        holds=given == computed,
        code="bad_arguments",
        message="The amount is not what these items cost; leave it out to have it worked out.",
        given=given,
        computed=computed,
    )
    ruling.require(
        "amount_is_left_on_the_payment",
        holds=0 < computed <= left,
        code="over_captured",
        message=(
            f"No more than {money.to_decimal_text(left, order.currency)} {order.currency} "
            f"is left to refund on order {order.id}."
        ),
        amount=computed,
        left=left,
    )
    return computed


def _is_part_payment(arguments: RefundOrder, amount: int, order: Order) -> bool:
    """Some money back, no item returned: an amount without items that is not simply all of it."""
    is_all = amount == order.captured - order.refunded
    return arguments.items is None and arguments.amount is not None and not is_all


def _parse(text: str, order: Order, ruling: Ruling) -> int:
    try:
        return money.parse_amount(text, order.currency)
    except money.AmountError as exc:
        ruling.require(
            "amount_is_money", holds=False, code="bad_arguments", message=f"Not an amount: {exc}."
        )
        raise


def _shown(line: Line, quantity: int) -> dict[str, Any]:
    return {
        "title": clean(line.title, 120),
        "variant": clean(line.variant, 60),
        "quantity": quantity,
        "unit_price": line.unit_price,
    }


REFUND_ORDER = OrderTool(
    name="refund_order",
    description=(
        "Propose a refund of a delivered order, of some of its items, or of an amount. The customer "
        "is shown the exact refund and asked; staff too where the shop's limit says so. The result "
        "tells what happened."
    ),
    arguments=RefundOrder,
    permission="refunds:write",
    calls_per_minute=10,
    kind=Kind.REFUND,
    order_id=lambda arguments: normalise_order_id(arguments.order_id),
    decide=decide,
    bad={"items": "bad_line"},
)
