"""find_orders and track_parcel: what the customer's own orders look like."""

from typing import Any, Literal

from pydantic import Field

from tools import money
from tools.catalogue.base import Arguments, Reading, ReadTool
from tools.clients.errors import NotFoundError
from tools.clients.shapes import Order
from tools.policy import DeniedError
from tools.text import clean, normalise_order_id

Status = Literal["pending", "processed", "shipped", "delivered", "cancelled"]

# How many orders one look shows; the model is told when there are more.
PAGE = 10
# How many items of an order: of one that was asked for, and of each in a list.
MAX_ITEMS = 50
MAX_ITEMS_LISTED = 10
MAX_NOTES = 5
MAX_NOTE_LENGTH = 500


class FindOrders(Arguments):
    order_id: str | None = Field(default=None, max_length=40, description="One order's number.")
    status: Status | None = Field(default=None, description="Only orders in this state.")


class TrackParcel(Arguments):
    order_id: str = Field(max_length=40, description="The order's number.")


def show_order(order: Order, *, max_items: int = MAX_ITEMS) -> dict[str, Any]:
    """An order as the model sees it: only what it needs, texts capped and with their author.

    `more_items` is there when not all items are, and says how many are left out.
    """
    left_out = len(order.lines) - max_items
    return {
        "order_id": order.id,
        "status": order.status,
        "placed_on": order.placed_at.date().isoformat(),
        "delivered_on": order.delivered_at.date().isoformat() if order.delivered_at else None,
        "total": money.to_decimal_text(order.total, order.currency),
        "refunded": money.to_decimal_text(order.refunded, order.currency),
        "currency": order.currency,
        "items": [
            {
                "item_id": line.id,
                "title": clean(line.title, 120),
                "variant": clean(line.variant, 60),
                "quantity": line.quantity,
                "unit_price": money.to_decimal_text(line.unit_price, order.currency),
                "refunded_quantity": line.refunded_quantity,
            }
            for line in order.lines[:max_items]
        ],
        **({"more_items": left_out} if left_out > 0 else {}),
        "ship_to": {
            name: clean(value, 120) for name, value in order.shipping_address.model_dump().items()
        },
        "notes": [
            {"author": clean(note.author, 20), "text": clean(note.text, MAX_NOTE_LENGTH)}
            for note in order.notes[:MAX_NOTES]
        ],
    }


def _find(arguments: FindOrders, reading: Reading) -> dict[str, Any]:
    if arguments.order_id is not None:
        order = reading.client.get_order(normalise_order_id(arguments.order_id))
        return {"orders": [show_order(order)], "more": False}
    orders = reading.client.list_orders(status=arguments.status, limit=PAGE + 1)
    shown = [show_order(order, max_items=MAX_ITEMS_LISTED) for order in orders[:PAGE]]
    return {"orders": shown, "more": len(orders) > PAGE}


def _track(arguments: TrackParcel, reading: Reading) -> dict[str, Any]:
    order_id = normalise_order_id(arguments.order_id)
    order = reading.client.get_order(order_id)
    try:
        tracking = reading.client.get_tracking(order_id)
    except NotFoundError as exc:
        raise DeniedError(
            "no_parcel", f"Order {order_id} is {order.status}: no parcel yet."
        ) from exc
    return {
        "order_id": order_id,
        "carrier": clean(tracking.carrier, 60),
        "tracking_number": clean(tracking.tracking_number, 60),
        "status": tracking.status,
        "expected_on": tracking.expected_on.isoformat() if tracking.expected_on else None,
        "events": [
            {
                "at": event.at.isoformat(),
                "place": clean(event.place, 80),
                "text": clean(event.text, 200),
            }
            for event in tracking.events[-8:]
        ],
    }


FIND_ORDERS = ReadTool(
    name="find_orders",
    description="Look up the customer's own orders: one by its number, or the latest ones.",
    arguments=FindOrders,
    permission="orders:read",
    calls_per_minute=60,
    read=_find,
)
TRACK_PARCEL = ReadTool(
    name="track_parcel",
    description="Follow the parcel of a shipped order.",
    arguments=TrackParcel,
    permission="orders:read",
    calls_per_minute=60,
    read=_track,
)
