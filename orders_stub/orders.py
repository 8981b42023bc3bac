"""Orders: how they are kept, read and changed. Every change raises the version by one."""

import base64
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orders_stub import outbox, shapes, times
from orders_stub.database import Database
from orders_stub.errors import RefusalError, not_found
from orders_stub.order_shapes import read_edit

LAST_POSSIBLE = ("~", "")


@dataclass
class Order:
    """One order: what is looked up by is a field, the rest stands in the document."""

    id: str
    customer_id: str
    version: int
    status: str
    placed_at: str
    document: dict[str, Any]

    @property
    def total(self) -> int:
        """What its lines cost, in minor units."""
        lines: list[dict[str, Any]] = self.document["lines"]
        return sum(line["unit_price"] * line["quantity"] for line in lines)

    @property
    def captured(self) -> int:
        """What was really taken from the customer, in minor units."""
        payments: list[dict[str, Any]] = self.document["payments"]
        return sum(paid["amount"] for paid in payments if paid["status"] == "captured")

    @property
    def refunded(self) -> int:
        """What was given back so far, in minor units."""
        refunds: list[dict[str, Any]] = self.document["refunds"]
        return sum(refund["amount"] for refund in refunds)

    @property
    def currency(self) -> str:
        """The one currency of all its amounts."""
        return str(self.document["currency"])

    @property
    def etag(self) -> str:
        """The version as an HTTP entity tag."""
        return f'"{self.version}"'

    def public(self) -> dict[str, Any]:
        """The order as the API shows it; tracking has its own address."""
        document = self.document
        return {
            "id": self.id,
            "version": self.version,
            "status": self.status,
            "placed_at": self.placed_at,
            "shipped_at": document["shipped_at"],
            "delivered_at": document["delivered_at"],
            "currency": self.currency,
            "total": self.total,
            "captured": self.captured,
            "refunded": self.refunded,
            "lines": document["lines"],
            "shipping_address": document["shipping_address"],
            "payments": document["payments"],
            "refunds": document["refunds"],
            "notes": document["notes"],
        }


def get_order(db: Database, order_id: str, customer_id: str) -> Order:
    """The customer's own order. Raises the same not_found for unknown and for foreign ids."""
    row = db.row("SELECT * FROM orders WHERE id = ? AND customer_id = ?", order_id, customer_id)
    if row is None:
        raise not_found()
    return _order(row)


def get_any_order(db: Database, order_id: str) -> Order:
    """Any order, as the shop's own staff see it. Raises not_found."""
    row = db.row("SELECT * FROM orders WHERE id = ?", order_id)
    if row is None:
        raise not_found()
    return _order(row)


def list_orders(
    db: Database,
    customer_id: str,
    *,
    status: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> tuple[list[Order], str | None]:
    """A page of the customer's orders, newest first, and the cursor of the next page.

    Raises ValueError when the cursor is none of ours.
    """
    after = _read_cursor(cursor) if cursor is not None else LAST_POSSIBLE
    rows = db.rows(
        "SELECT * FROM orders WHERE customer_id = ? AND (placed_at, id) < (?, ?)"
        " AND status = coalesce(?, status) ORDER BY placed_at DESC, id DESC LIMIT ?",
        customer_id,
        *after,
        status,
        limit + 1,
    )
    found = [_order(row) for row in rows[:limit]]
    more = len(rows) > limit
    return found, _write_cursor(found[-1]) if more else None


def insert(db: Database, order: Order) -> None:
    """Add a new order, inside the caller's transaction."""
    db.run(
        "INSERT INTO orders (id, customer_id, version, status, placed_at, document, captured,"
        " refunded) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        order.id,
        order.customer_id,
        order.version,
        order.status,
        order.placed_at,
        json.dumps(order.document),
        order.captured,
        order.refunded,
    )


def save(db: Database, order: Order) -> None:
    """Write a changed order under its next version, inside the caller's transaction."""
    changed = db.run(
        "UPDATE orders SET version = version + 1, status = ?, placed_at = ?, document = ?,"
        " captured = ?, refunded = ? WHERE id = ? AND version = ?",
        order.status,
        order.placed_at,
        json.dumps(order.document),
        order.captured,
        order.refunded,
        order.id,
        order.version,
    )
    if changed != 1:
        raise RefusalError(412, "version_mismatch", "The order was changed meanwhile.")
    order.version += 1


def edit(db: Database, order_id: str, changes: Any, *, at: datetime) -> Order:
    """Change an order as the shop's own staff may, inside the caller's transaction.

    Objects are merged name by name, lists are replaced. Raises not_found, and ShapeError when
    the changed order would be none (more refunded than captured included).
    """
    order = get_any_order(db, order_id)
    fields = read_edit(changes, order.id, order.document, at=at)
    order.status = fields.pop("status", order.status)
    order.placed_at = fields.pop("placed_at", order.placed_at)
    order.document.update(fields)
    _stamp(order, at=at)
    if order.refunded > order.captured:
        raise shapes.ShapeError("order", "would have more refunded than captured")
    save(db, order)
    outbox.note(
        db,
        "order.changed",
        {"id": order.id, "version": order.version, "status": order.status, "change": None},
        customer_id=order.customer_id,
        order_id=order.id,
        at=at,
    )
    return order


def _stamp(order: Order, *, at: datetime) -> None:
    """An order sent or delivered says when."""
    moment = times.to_text(at)
    if order.status in {"shipped", "delivered"} and order.document["shipped_at"] is None:
        order.document["shipped_at"] = moment
    if order.status == "delivered" and order.document["delivered_at"] is None:
        order.document["delivered_at"] = moment


def _order(row: Any) -> Order:
    return Order(
        id=row["id"],
        customer_id=row["customer_id"],
        version=row["version"],
        status=row["status"],
        placed_at=row["placed_at"],
        document=json.loads(row["document"]),
    )


def _write_cursor(order: Order) -> str:
    return base64.urlsafe_b64encode(f"{order.placed_at} {order.id}".encode()).decode()


def _read_cursor(cursor: str) -> tuple[str, str]:
    placed_at, _, order_id = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
    if not order_id:
        raise ValueError("not a cursor")
    return placed_at, order_id
