"""The parts of an order, read from a catalogue or from an edit by the shop's staff."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from orders_stub import shapes, times
from orders_stub.shapes import ShapeError

STATUSES = ("pending", "processed", "shipped", "delivered", "cancelled")
AUTHORS = ("merchant", "customer", "carrier")
PARCEL_STATUSES = ("label_created", "in_transit", "out_for_delivery", "delivered", "exception")

Read = Callable[[Any, str], Any]


def read_time(value: Any, place: str, *, at: datetime) -> str:
    """A moment, absolute or relative to `at`."""
    text = shapes.a_text(value, place, most=40)
    try:
        return times.to_text(times.from_catalogue(text, at=at))
    except (ValueError, OverflowError) as exc:
        example = 'such as "-5d", "-3h", "now" or "2026-03-01T09:30:00Z"'
        raise ShapeError(place, f"must be a time {example}; got {shapes.shown(text)}") from exc


def read_lines(value: Any, place: str, order_id: str) -> list[dict[str, Any]]:
    """The lines of an order: one or more, each with an id of its own (`1042-1` if none is given)."""
    items = shapes.a_list(value, place, most=200)
    if not items:
        raise ShapeError(place, "must have at least one line")
    lines = []
    for n, item in enumerate(items):
        lines.append(_line(item, f"{place}[{n}]", f"{order_id}-{n + 1}"))
    ids = [line["id"] for line in lines]
    if len(set(ids)) != len(ids):
        raise ShapeError(place, "has two lines with the same id")
    return lines


def _line(value: Any, place: str, line_id: str) -> dict[str, Any]:
    fields = {
        "id": False,
        "sku": False,
        "title": True,
        "variant": False,
        "quantity": False,
        "unit_price": True,
        "refunded_quantity": False,
    }
    given = shapes.an_object(value, place, fields)
    quantity = shapes.a_number(given.get("quantity", 1), f"{place}.quantity", least=1, most=10_000)
    given_id = shapes.a_name(given.get("id", line_id), f"{place}.id")
    return {
        "id": given_id,
        "sku": shapes.a_name(given.get("sku", f"SKU-{given_id}"), f"{place}.sku"),
        "title": shapes.a_text(given["title"], f"{place}.title", most=200),
        "variant": shapes.a_text(
            given.get("variant", ""), f"{place}.variant", most=100, empty=True
        ),
        "quantity": quantity,
        "unit_price": shapes.an_amount(given["unit_price"], f"{place}.unit_price"),
        "refunded_quantity": shapes.a_number(
            given.get("refunded_quantity", 0), f"{place}.refunded_quantity", least=0, most=quantity
        ),
    }


def read_notes(value: Any, place: str, *, at: datetime) -> list[dict[str, Any]]:
    """Notes on an order, each with who wrote it."""

    def note(item: Any, where: str) -> dict[str, Any]:
        given = shapes.an_object(item, where, {"author": True, "text": True, "at": False})
        return {
            "author": shapes.a_choice(given["author"], f"{where}.author", AUTHORS),
            "text": shapes.a_text(given["text"], f"{where}.text", most=50_000),
            "at": read_time(given.get("at", "now"), f"{where}.at", at=at),
        }

    return shapes.each(shapes.a_list(value, place, most=100), place, note)


def read_payments(value: Any, place: str, order_id: str, currency: str) -> list[dict[str, Any]]:
    """Payments of an order."""

    def payment(item: Any, where: str) -> dict[str, Any]:
        given = shapes.an_object(
            item, where, {"id": False, "amount": True, "currency": False, "status": False}
        )
        status = given.get("status", "captured")
        return {
            "id": shapes.a_name(given.get("id", f"pay_{order_id}"), f"{where}.id"),
            "amount": shapes.an_amount(given["amount"], f"{where}.amount"),
            "currency": same_currency(
                given.get("currency", currency), f"{where}.currency", currency
            ),
            "status": shapes.a_choice(status, f"{where}.status", ("captured", "voided")),
        }

    return shapes.each(shapes.a_list(value, place, most=100), place, payment)


def read_refunds(
    value: Any, place: str, order_id: str, currency: str, *, at: datetime
) -> list[dict[str, Any]]:
    """Refunds made before the catalogue was loaded."""

    def refund(item: Any, where: str) -> dict[str, Any]:
        fields = {
            "id": False,
            "amount": True,
            "currency": False,
            "created_at": False,
            "lines": False,
            "reason": False,
        }
        given = shapes.an_object(item, where, fields)
        number = where.rpartition("[")[2].rstrip("]")
        reason = given.get("reason", "other")
        return {
            "id": shapes.a_name(given.get("id", f"re_{order_id}_{number}"), f"{where}.id"),
            "amount": shapes.an_amount(given["amount"], f"{where}.amount"),
            "currency": same_currency(
                given.get("currency", currency), f"{where}.currency", currency
            ),
            "created_at": read_time(given.get("created_at", "-2d"), f"{where}.created_at", at=at),
            "lines": read_refund_lines(given.get("lines", []), f"{where}.lines"),
            "reason": shapes.a_text(reason, f"{where}.reason", most=500, empty=True),
        }

    return shapes.each(shapes.a_list(value, place, most=100), place, refund)


def read_refund_lines(value: Any, place: str) -> list[dict[str, Any]]:
    """Which lines a refund is for, and how many of each; no line twice."""

    def line(item: Any, where: str) -> dict[str, Any]:
        given = shapes.an_object(item, where, {"line_id": True, "quantity": True})
        return {
            "line_id": shapes.a_text(given["line_id"], f"{where}.line_id", most=64),
            "quantity": shapes.a_number(
                given["quantity"], f"{where}.quantity", least=1, most=1_000_000
            ),
        }

    lines = shapes.each(shapes.a_list(value, place, most=200), place, line)
    if len({item["line_id"] for item in lines}) != len(lines):
        raise ShapeError(place, "names the same line twice")
    return lines


def read_tracking(value: Any, place: str, *, at: datetime) -> dict[str, Any]:
    """Where the parcel is."""
    fields = {
        "carrier": True,
        "tracking_number": True,
        "status": True,
        "expected_on": False,
        "events": False,
    }
    given = shapes.an_object(value, place, fields)
    expected = given.get("expected_on")

    def event(item: Any, where: str) -> dict[str, Any]:
        seen = shapes.an_object(item, where, {"at": True, "place": True, "text": True})
        return {
            "at": read_time(seen["at"], f"{where}.at", at=at),
            "place": shapes.a_text(seen["place"], f"{where}.place", most=200, empty=True),
            "text": shapes.a_text(seen["text"], f"{where}.text", most=50_000),
        }

    events = shapes.a_list(given.get("events", []), f"{place}.events", most=200)
    return {
        "carrier": shapes.a_text(given["carrier"], f"{place}.carrier", most=200),
        "tracking_number": shapes.a_text(
            given["tracking_number"], f"{place}.tracking_number", most=100
        ),
        "status": shapes.a_choice(given["status"], f"{place}.status", PARCEL_STATUSES),
        "expected_on": _date(expected, f"{place}.expected_on", at=at),
        "events": shapes.each(events, f"{place}.events", event),
    }


def _date(value: Any, place: str, *, at: datetime) -> str | None:
    if value is None:
        return None
    text = shapes.a_text(value, place, most=40)
    if len(text) == 10 and text[4] == "-":
        text = f"{text}T00:00:00Z"
    return read_time(text, place, at=at)[:10]


def same_currency(value: Any, place: str, currency: str) -> str:
    """The order's currency once more."""
    if value != currency:
        raise ShapeError(place, f"must be the order's currency, {currency}")
    return currency


def read_edit(
    changes: Any, order_id: str, document: dict[str, Any], *, at: datetime
) -> dict[str, Any]:
    """The changed fields of an order that staff edit. Raises ShapeError."""
    currency: str = document["currency"]

    def optional_time(value: Any, place: str) -> str | None:
        return None if value is None else read_time(value, place, at=at)

    readers: dict[str, Read] = {
        "status": lambda value, place: shapes.a_choice(value, place, STATUSES),
        "placed_at": lambda value, place: read_time(value, place, at=at),
        "shipped_at": optional_time,
        "delivered_at": optional_time,
        "lines": lambda value, place: read_lines(
            _completed(value, document["lines"]), place, order_id
        ),
        "shipping_address": lambda value, place: shapes.an_address(
            _merged(value, document["shipping_address"]), place
        ),
        "payments": lambda value, place: read_payments(value, place, order_id, currency),
        "refunds": lambda value, place: read_refunds(value, place, order_id, currency, at=at),
        "notes": lambda value, place: read_notes(value, place, at=at),
        "tracking": lambda value, place: (
            None if value is None else read_tracking(value, place, at=at)
        ),
    }
    given = shapes.an_object(changes, "order", dict.fromkeys(readers, False))
    return {name: readers[name](value, f"order.{name}") for name, value in given.items()}


def _merged(value: Any, before: dict[str, Any]) -> Any:
    return before | value if isinstance(value, dict) else value


def _completed(value: Any, before: list[dict[str, Any]]) -> Any:
    """A line named by a known id keeps what the edit does not say about it."""
    if not isinstance(value, list):
        return value
    known = {line["id"]: line for line in before}
    return [
        known.get(str(item.get("id")), {}) | item if isinstance(item, dict) else item
        for item in value
    ]
