"""What the tests of the trail share: a moment, and entries that fill every column."""

from datetime import UTC, datetime
from typing import Any

from audit.services import Entry

NOW = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
SHOP = 7


def full_entry(**changes):
    """An entry with every column filled."""
    fields: dict[str, Any] = {
        "actor": "staff:dana",
        "action": "refund.succeeded",
        "subject": "operation:12",
        "at": NOW,
        "shop_id": SHOP,
        "task_id": 81,
        "ticket_id": 5,
        "customer": "ada",
        "order_id": "1042",
        "tool": "refund_order",
        "outcome": "succeeded",
        "amount": 4000,
        "currency": "USD",
        "data": {"rule": "refund_window", "days": 12, "lines": ["1042-1"], "late": False},
        "personal": "It came broken, Ada",
    }
    return Entry(**(fields | changes))


def plain_entry(**changes):
    """An entry with the least that an event needs."""
    fields: dict[str, Any] = {
        "actor": "system",
        "action": "task.started",
        "subject": "task:81",
        "at": NOW,
    }
    return Entry(**(fields | changes))
