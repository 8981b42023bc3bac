"""The shop's books: effects (what really happened) and calls (what was asked, and the answer)."""

import json
from datetime import datetime
from typing import Any

from orders_stub import times
from orders_stub.database import Database


def open_call(
    db: Database,
    *,
    method: str,
    path: str,
    customer_id: str | None,
    order_id: str | None,
    key: str | None,
    at: datetime,
) -> int:
    """Write down a call as it arrives, before anything is done about it. Gives its number."""
    return db.add(
        "INSERT INTO calls (at, method, path, customer_id, order_id, idempotency_key)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        times.to_text(at),
        method,
        path,
        customer_id,
        order_id,
        key,
    )


def close_call(
    db: Database, n: int, *, status: int | None, error: str | None, fault: str | None
) -> None:
    """Write down the answer; the status stays null when the caller hung up before there was one."""
    db.run("UPDATE calls SET status = ?, error = ?, fault = ? WHERE n = ?", status, error, fault, n)


def list_effects(db: Database, order_id: str | None, key: str | None) -> list[dict[str, Any]]:
    """Effects, oldest first, of one order and one key where given."""
    rows = db.rows(
        "SELECT effects.*, reversals.at AS reversed_at FROM effects"
        " LEFT JOIN reversals ON effect_id = id WHERE order_id = coalesce(?, order_id)"
        " AND (? IS NULL OR idempotency_key = ?) ORDER BY n",
        order_id,
        key,
        key,
    )
    return [
        {
            "id": row["id"],
            "kind": row["kind"],
            "customer": row["customer_id"],
            "order_id": row["order_id"],
            "amount": row["amount"],
            "currency": row["currency"],
            "idempotency_key": row["idempotency_key"],
            "at": row["at"],
            "reversed_at": row["reversed_at"],
            "detail": json.loads(row["detail"]),
        }
        for row in rows
    ]


def list_calls(db: Database, order_id: str | None, key: str | None) -> list[dict[str, Any]]:
    """Calls, oldest first, of one order and one key where given."""
    rows = db.rows(
        "SELECT * FROM calls WHERE (? IS NULL OR order_id = ?)"
        " AND (? IS NULL OR idempotency_key = ?) ORDER BY n",
        order_id,
        order_id,
        key,
        key,
    )
    return [
        {
            "at": row["at"],
            "method": row["method"],
            "path": row["path"],
            "customer": row["customer_id"],
            "order_id": row["order_id"],
            "idempotency_key": row["idempotency_key"],
            "status": row["status"],
            "error": row["error"],
            "fault": row["fault"],
        }
        for row in rows
    ]


def forget_calls(db: Database) -> None:
    """Empty the list of calls. Effects are history and stay."""
    db.run("DELETE FROM calls")
