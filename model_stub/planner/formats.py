"""Money, dates, orders and addresses as a customer reads them."""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from model_stub.planner.items import remaining
from model_stub.planner.words import plain


def decimal(value: object) -> Decimal | None:
    """Return a finite decimal from the text of a tool result, else None."""
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def money(amount: object, currency: object) -> str:
    """Return "$40.00" for US dollars and "40.00 EUR" for every other currency."""
    number = decimal(amount)
    code = plain(currency, 3) or "USD"
    if number is None:
        return "the amount"
    return f"${number:,}" if code == "USD" else f"{number:,} {code}"


def day(value: object) -> str:
    """Return "3 March 2026" for an ISO date or time; the empty text for anything else."""
    try:
        found = date.fromisoformat(str(value)[:10])
    except ValueError:
        return ""
    return f"{found.day} {found:%B %Y}"


def moment(value: object) -> str:
    """Return "3 March 2026, 14:05" for an ISO time, the day alone for a date."""
    text = str(value)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return ""
    return f"{day(text)}, {found:%H:%M}" if len(text) > 10 else day(text)


def line_name(line: Mapping[str, Any]) -> str:
    """Return "Stoneware mug (blue)"."""
    title, variant = plain(line.get("title"), 60) or "item", plain(line.get("variant"), 30)
    return f"{title} ({variant})" if variant else title


def contents(order: Mapping[str, Any], limit: int = 3) -> str:
    """Return what is in an order in a few words: "2 x Stoneware mug (blue), Chair and 1 more"."""
    lines = order_lines(order)
    names = [
        f"{line['quantity']} x {line_name(line)}"
        if line.get("quantity", 1) != 1
        else line_name(line)
        for line in lines[:limit]
    ]
    more = f" and {len(lines) - limit} more" if len(lines) > limit else ""
    return ", ".join(names) + more


def order_lines(order: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the lines of an order; none when the result has another shape."""
    lines = order.get("items")
    if not isinstance(lines, list):
        return []
    return [line for line in lines if isinstance(line, dict) and "item_id" in line]


def total(order: Mapping[str, Any]) -> str:
    """Return what an order costs."""
    return money(order.get("total"), order.get("currency"))


def is_refunded(order: Mapping[str, Any]) -> bool:
    """Tell whether nothing of an order is left to refund."""
    whole, refunded = decimal(order.get("total")), decimal(order.get("refunded") or "0")
    if whole is None or refunded is None or whole <= 0:
        return False
    return refunded >= whole


def item_options(lines: list[dict[str, Any]]) -> str:
    """Return "Mug (blue) or Mug (red)" for a question."""
    names = [
        f"{remaining(line)} x {line_name(line)}" if remaining(line) > 1 else line_name(line)
        for line in lines
    ]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def address(value: Mapping[str, Any]) -> str:
    """Return an address on one line, its fields in the order people write them."""
    region = " ".join(
        part
        for part in (plain(value.get("region"), 40), plain(value.get("postal_code"), 20))
        if part
    )
    parts = [plain(value.get(key), 80) for key in ("name", "line1", "line2", "city")]
    return ", ".join(part for part in (*parts, region, plain(value.get("country"), 40)) if part)
