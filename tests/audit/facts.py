"""What the tests of the trail share: a moment, and entries that fill every column."""

from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction

from audit import sealer, services
from audit.services import Entry

NOW = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
SHOP = 7
TABLES = ("audit_event", "audit_personal_text", "audit_customer_key", "audit_seal")


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


def record_committed(*entries):
    """Record in a transaction of its own."""
    with transaction.atomic():
        return services.record_many(entries)


def seal():
    """Seal what waits, which must be something."""
    made = sealer.seal_once(now=NOW)
    assert made is not None
    return made


def sealed_trail(seals=2, events=3):
    """Events in seals, `events` to a seal; the events by id."""
    made = []
    for _ in range(seals):
        made += record_committed(*[full_entry(personal=f"words {n}") for n in range(events)])
        seal()
    return made


def tamper(statement, params=()):
    """Change rows as a database superuser can, past the triggers."""
    with transaction.atomic(), connection.cursor() as cursor:
        # Checks still owed for rows written before are paid first, as in a transaction of their own.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(statement, params)
        changed = cursor.rowcount
        cursor.execute("SET LOCAL session_replication_role = origin")
    return changed
