"""Events that the shop's agent is to be told of, written down with what they tell of.

In the transaction of the effect or the edit itself, so that none is lost and none tells of what did
not happen. webhooks.py sends them.
"""

import json
import secrets
from datetime import datetime
from typing import Any

from orders_stub import times
from orders_stub.database import Database

SWITCH = "webhooks_on"


def switch(db: Database, *, on: bool) -> None:
    """Write events down from now on, or stop doing so. Earlier ones that nobody took are dropped."""
    with db.transaction():
        db.run("DELETE FROM settings WHERE name = ?", SWITCH)
        if on:
            db.run("INSERT INTO settings (name, value) VALUES (?, 'yes')", SWITCH)
        else:
            db.run("DELETE FROM webhooks WHERE delivered_at IS NULL")


def note(
    db: Database, kind: str, data: dict[str, Any], *, customer_id: str, order_id: str, at: datetime
) -> None:
    """Write an event down, in the caller's transaction; nothing while nobody is to be told."""
    if db.row("SELECT 1 FROM settings WHERE name = ?", SWITCH) is None:
        return
    moment = times.to_text(at)
    body = {"type": kind, "timestamp": moment, "data": data}
    db.run(
        "INSERT INTO webhooks (id, type, customer_id, order_id, body, at, due_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        f"evt_{secrets.token_hex(8)}",
        kind,
        customer_id,
        order_id,
        json.dumps(body),
        moment,
        moment,
    )


def list_events(db: Database, order_id: str | None) -> list[dict[str, Any]]:
    """Events, oldest first, of one order where given."""
    rows = db.rows(
        "SELECT * FROM webhooks WHERE order_id = coalesce(?, order_id) ORDER BY n", order_id
    )
    names = ("id", "type", "order_id", "at", "attempts", "answer", "delivered_at", "fault")
    return [{name: row[name] for name in names} for row in rows]
