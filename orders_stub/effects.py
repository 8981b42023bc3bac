"""What the shop really does to an order: refund, cancel, change of address.

Each function runs inside the caller's transaction, judges everything before it writes
anything, and leaves one row in the ledger. What it returns is the body of the API's answer.
"""

import json
import secrets
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orders_stub import orders, outbox, shapes, times
from orders_stub.database import Database
from orders_stub.errors import RefusalError, invalid_request, not_found
from orders_stub.order_shapes import read_refund_lines
from orders_stub.orders import Order

SUCCEEDED, PENDING, FAILED, REVERSED = "succeeded", "pending", "failed", "reversed"
CHANGEABLE = frozenset({"pending", "processed"})


@dataclass(frozen=True)
class Origin:
    """Who caused an effect: an OAuth client with its key, or the shop's back office with neither."""

    client_id: str | None
    idempotency_key: str | None
    at: datetime


def refund(
    db: Database, order: Order, body: Any, origin: Origin, *, status: str = SUCCEEDED
) -> dict[str, Any]:
    """Give money back. The sum of an order's refunds never passes what was captured.

    With the status PENDING its money is on its way until `arrive` or `reverse`.

    Raises RefusalError: already_cancelled, already_refunded, currency_mismatch, bad_amount, bad_line,
    amount_over_captured, invalid_request.
    """
    given = _fields(body, "amount", "currency", "lines", "reason")
    reason = _reason(given)
    refuse_if_cancelled(order)
    if given.get("currency") != order.currency:
        message = f"This order was paid in {order.currency}."
        raise RefusalError(422, "currency_mismatch", message)
    amount = _amount(given.get("amount"))
    lines = _refund_lines(order, given.get("lines", []))
    _check_caps(order, amount, lines)

    done = {
        "id": f"re_{secrets.token_hex(8)}",
        "kind": "refund",
        "order_id": order.id,
        "amount": amount,
        "currency": order.currency,
        "lines": lines,
        "reason": reason,
        "status": status,
        "created_at": times.to_text(origin.at),
        "idempotency_key": origin.idempotency_key,
    }
    kept = ("id", "amount", "currency", "created_at", "lines", "reason")
    order.document["refunds"].append({name: done[name] for name in kept})
    quantities = {line["line_id"]: line["quantity"] for line in lines}
    for line in order.document["lines"]:
        line["refunded_quantity"] += quantities.get(line["id"], 0)
    orders.save(db, order)
    _record(db, order, origin, done, {"lines": lines, "reason": reason})
    return done


def cancel(db: Database, order: Order, body: Any, origin: Origin) -> dict[str, Any]:
    """Cancel an order that has not left the house: its payments are voided, nothing is refunded.

    Raises RefusalError: already_cancelled, order_state, invalid_request.
    """
    reason = _reason(_fields(body, "reason"))
    refuse_if_cancelled(order)
    if order.status not in CHANGEABLE:
        message = f"A {order.status} order cannot be cancelled any more."
        raise RefusalError(409, "order_state", message)
    if order.refunded:
        message = "Part of this order has been refunded already, so it cannot be cancelled."
        raise RefusalError(409, "order_state", message)

    voided = order.captured
    order.status = "cancelled"
    for payment in order.document["payments"]:
        payment["status"] = "voided"
    orders.save(db, order)
    done = _change("cancel", order, origin)
    _record(db, order, origin, done, {"reason": reason, "voided": voided})
    return done


def refuse_if_cancelled(order: Order) -> None:
    """Raises RefusalError already_cancelled: there is nothing left to cancel or to refund."""
    if order.status == "cancelled":
        raise RefusalError(409, "already_cancelled", "This order has been cancelled already.")


def change_address(db: Database, order: Order, body: Any, origin: Origin) -> dict[str, Any]:
    """Send an order that has not left the house elsewhere.

    Raises RefusalError: order_state, bad_address.
    """
    try:
        address = shapes.an_address(body, "address")
    except shapes.ShapeError as exc:
        raise RefusalError(422, "bad_address", str(exc)) from exc
    if order.status not in CHANGEABLE:
        message = f"The address of a {order.status} order cannot be changed any more."
        raise RefusalError(409, "order_state", message)

    before = order.document["shipping_address"]
    order.document["shipping_address"] = address
    orders.save(db, order)
    done = _change("change_address", order, origin)
    _record(db, order, origin, done, {"from": before, "to": address})
    return done


def reverse(db: Database, refund_id: str, *, reason: str, at: datetime) -> dict[str, Any]:
    """Money that was given back comes back to the shop after all: a bank would not take it.

    The order owes it again; the effect stays in the ledger, marked. A refund that was pending until
    then has failed. Raises RefusalError: not_found, already_reversed.
    """
    answer = _refund_as_it_is(db, refund_id)
    if answer["status"] in (REVERSED, FAILED):
        raise RefusalError(409, "already_reversed", "This refund was reversed before.")
    done = answer | {"status": _taken_back(answer), "reason": reason}
    order = orders.get_any_order(db, done["order_id"])
    document = order.document
    document["refunds"] = [kept for kept in document["refunds"] if kept["id"] != refund_id]
    quantities = {line["line_id"]: line["quantity"] for line in done["lines"]}
    for line in document["lines"]:
        line["refunded_quantity"] -= quantities.get(line["id"], 0)
    orders.save(db, order)
    moment = times.to_text(at)
    db.run(
        "INSERT INTO reversals (effect_id, reason, at) VALUES (?, ?, ?)", refund_id, reason, moment
    )
    outbox.note(
        db,
        f"refund.{done['status']}",
        done,
        customer_id=order.customer_id,
        order_id=order.id,
        at=at,
    )
    return done


def arrive(db: Database, refund_id: str, *, at: datetime) -> dict[str, Any]:
    """The money of a pending refund was paid out. Raises RefusalError: not_found, not_pending."""
    answer = _refund_as_it_is(db, refund_id)
    if answer["status"] != PENDING:
        raise RefusalError(409, "not_pending", "This refund is not pending.")
    db.run("INSERT INTO arrivals (effect_id, at) VALUES (?, ?)", refund_id, times.to_text(at))
    done = answer | {"status": SUCCEEDED}
    order = orders.get_any_order(db, done["order_id"])
    outbox.note(
        db, "refund.succeeded", done, customer_id=order.customer_id, order_id=order.id, at=at
    )
    return done


def find_by_key(
    db: Database, key: str, *, client_id: str, customer_id: str, before: datetime
) -> dict[str, Any]:
    """The first answer's body of the effect that this key caused, done no later than `before`.

    A refund that was paid out or reversed since says so in its status. Raises not_found for unknown keys, for other customers' keys and for effects too young.
    """
    row = db.row(
        "SELECT id, answer FROM effects WHERE idempotency_key = ? AND client_id = ?"
        " AND customer_id = ? AND at <= ? ORDER BY n LIMIT 1",
        key,
        client_id,
        customer_id,
        times.to_text(before),
    )
    if row is None:
        raise not_found()
    return _as_it_is(db, row)


def _refund_as_it_is(db: Database, refund_id: str) -> dict[str, Any]:
    row = db.row("SELECT * FROM effects WHERE id = ? AND kind = 'refund'", refund_id)
    if row is None:
        raise not_found()
    return _as_it_is(db, row)


def _as_it_is(db: Database, row: sqlite3.Row) -> dict[str, Any]:
    """The first answer's body, with the status that it has now."""
    answer: dict[str, Any] = json.loads(row["answer"])
    if db.row("SELECT 1 FROM arrivals WHERE effect_id = ?", row["id"]) is not None:
        answer["status"] = SUCCEEDED
    if db.row("SELECT 1 FROM reversals WHERE effect_id = ?", row["id"]) is not None:
        answer["status"] = _taken_back(answer)
    return answer


def _taken_back(answer: dict[str, Any]) -> str:
    return FAILED if answer["status"] == PENDING else REVERSED


def _fields(body: Any, *names: str) -> dict[str, Any]:
    try:
        return shapes.an_object(body, "body", dict.fromkeys(names, False))
    except shapes.ShapeError as exc:
        raise invalid_request(str(exc)) from exc


def _reason(given: dict[str, Any]) -> str:
    try:
        return shapes.a_text(given.get("reason", ""), "reason", most=500, empty=True)
    except shapes.ShapeError as exc:
        raise invalid_request(str(exc)) from exc


def _amount(value: Any) -> int:
    try:
        return shapes.an_amount(value, "amount")
    except shapes.ShapeError as exc:
        raise RefusalError(422, "bad_amount", str(exc)) from exc


def _refund_lines(order: Order, value: Any) -> list[dict[str, Any]]:
    try:
        lines = read_refund_lines(value, "lines")
    except shapes.ShapeError as exc:
        raise RefusalError(422, "bad_line", str(exc)) from exc
    known = {line["id"] for line in order.document["lines"]}
    if not known.issuperset(line["line_id"] for line in lines):
        raise RefusalError(422, "bad_line", "This order has no such line.")
    return lines


def _check_caps(order: Order, amount: int, lines: list[dict[str, Any]]) -> None:
    left = order.captured - order.refunded
    if order.refunded and left == 0:
        raise RefusalError(409, "already_refunded", "This order has been refunded in full already.")
    if amount > left:
        message = f"At most {left} can still be refunded of this order; {amount} was asked."
        raise RefusalError(422, "amount_over_captured", message)
    remaining = {
        line["id"]: line["quantity"] - line["refunded_quantity"] for line in order.document["lines"]
    }
    for line in lines:
        if line["quantity"] > remaining[line["line_id"]]:
            message = (
                f"Only {remaining[line['line_id']]} of line {line['line_id']} are left to refund."
            )
            raise RefusalError(422, "amount_over_captured", message)


def _change(kind: str, order: Order, origin: Origin) -> dict[str, Any]:
    return {
        "id": f"ch_{secrets.token_hex(8)}",
        "kind": kind,
        "order": order.public(),
        "idempotency_key": origin.idempotency_key,
    }


def _record(
    db: Database, order: Order, origin: Origin, done: dict[str, Any], detail: dict[str, Any]
) -> None:
    db.run(
        "INSERT INTO effects (id, kind, order_id, customer_id, client_id, amount, currency,"
        " idempotency_key, at, detail, answer) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        done["id"],
        done["kind"],
        order.id,
        order.customer_id,
        origin.client_id,
        done.get("amount"),
        done.get("currency"),
        origin.idempotency_key,
        times.to_text(origin.at),
        json.dumps(detail | {"version": order.version}),
        json.dumps(done),
    )
    _tell(db, order, done, at=origin.at)


def _tell(db: Database, order: Order, done: dict[str, Any], *, at: datetime) -> None:
    who = {"customer_id": order.customer_id, "order_id": order.id}
    if done["kind"] == "refund":
        if done["status"] == SUCCEEDED:  # of a pending one its end is told
            outbox.note(db, "refund.succeeded", done, **who, at=at)
        return
    change = {name: done[name] for name in ("id", "kind", "idempotency_key")}
    data = {"id": order.id, "version": order.version, "change": change}
    outbox.note(db, "order.changed", data, **who, at=at)
