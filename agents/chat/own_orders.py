"""A customer's own orders, for them to choose from in a form.

Nothing rests on what is told here: what is chosen takes the way of every other call, and is decided
on by the order as it is then.
"""

from accounts.models import Customer
from agents import order_words
from agents.chat.picture import Frame
from tools import money
from tools.access import ask
from tools.clients.shapes import Line, Order
from tools.text import clean

MOST = 20
MAX_LINES = 50


def look(customer: Customer, locale: str) -> Frame:
    """The newest orders as the shop shows them to this customer now, in words of the locale.

    Calls the shop: raises what `tools.access.ask` raises, and is never called in a transaction.
    """
    found = ask(customer, lambda client: client.list_orders(limit=MOST + 1))
    newest = sorted(found, key=lambda order: order.placed_at, reverse=True)
    return {
        "type": "orders",
        "orders": [_order(order, locale) for order in newest[:MOST]],
        "has_more": len(found) > MOST,
    }


def _order(order: Order, locale: str) -> Frame:
    return {
        "order_id": order.id,
        "status": order.status,
        "status_text": order_words.status(order.status, locale),
        "total_text": money.show(order.total, order.currency, locale),
        "items": [_line(line, order.currency, locale) for line in order.lines[:MAX_LINES]],
    }


def _line(line: Line, currency: str, locale: str) -> Frame:
    """A line with how much of it is left to refund."""
    return {
        "item_id": line.id,
        "title": clean(line.title, 120),
        "variant": clean(line.variant, 60),
        "left": max(0, line.quantity - line.refunded_quantity),
        "unit_text": money.show(line.unit_price, currency, locale),
    }
