"""An order's facts as the shop tells them now, beside the facts that an operation was sealed with."""

from dataclasses import dataclass
from typing import Any

from accounts.models import Customer
from accounts.services import DelegationRevokedError, ShopUnavailableError
from tools import money
from tools.access import ask
from tools.clients.errors import (
    NotFoundError,
    ShopError,
    ThrottledError,
    UnauthorizedError,
)
from tools.clients.shapes import Order
from tools.seal import describe, facts_of
from tools.text import clean

REVOKED = "The shop no longer lets us act for this customer."
NOT_FOUND = "The shop does not show this order to this customer any more."
BUSY = "The shop asks us to slow down; try again in a minute."
AWAY = "The shop cannot be reached at the moment."

_ADDRESS = ("name", "line1", "line2", "city", "region", "postal_code", "country")


@dataclass(frozen=True)
class Fact:
    """One material fact, in words: as sealed, and as it is now ("" when the shop was not reached)."""

    name: str
    sealed: str
    now: str = ""
    differs: bool = False


@dataclass(frozen=True)
class FactsNow:
    """The facts side by side. Without an `order`, `trouble` says why the shop did not tell."""

    facts: list[Fact]
    order: Order | None = None
    trouble: str = ""
    has_changed: bool = False


def look_up(customer: Customer, content: dict[str, Any]) -> FactsNow:
    """Ask the shop, with the customer's own token, about the order of a sealed content.

    Calls the shop, so never inside a transaction. Never raises for what the shop does.
    """
    sealed = content["facts"]
    try:
        order = ask(customer, lambda client: client.get_order(content["order"]))
    except (DelegationRevokedError, UnauthorizedError):
        return FactsNow(_in_words(sealed), trouble=REVOKED)
    except NotFoundError:
        return FactsNow(_in_words(sealed), trouble=NOT_FOUND)
    except ThrottledError:
        return FactsNow(_in_words(sealed), trouble=BUSY)
    except (ShopError, ShopUnavailableError):
        return FactsNow(_in_words(sealed), trouble=AWAY)
    now = facts_of(order)
    titles = {line.id: line.title for line in order.lines}
    return FactsNow(_beside(sealed, now, titles), order=order, has_changed=now != sealed)


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[Fact]:
    """What differs between two sealed contents about one order: of its facts, and of what is done."""
    told = _beside(before["facts"], after["facts"], {})
    earlier, later = _asked(before), _asked(after)
    told += [Fact(name, earlier[name], later[name], earlier[name] != later[name]) for name in later]
    return [fact for fact in told if fact.differs]


def _asked(content: dict[str, Any]) -> dict[str, str]:
    """What a sealed content asks for, in words."""
    card = describe(content)
    return {
        "Amount": card.amount or "none",
        "Items": ", ".join(card.lines) or "none",
        "New address": ", ".join(card.after) or "none",
        "Reason": card.reason or "none",
    }


def _in_words(facts: dict[str, Any]) -> list[Fact]:
    return [Fact(name, text) for name, text in _words(facts, {}).items()]


def _beside(sealed: dict[str, Any], now: dict[str, Any], titles: dict[str, str]) -> list[Fact]:
    before, after = _words(sealed, titles), _words(now, titles)
    names = [*before, *(name for name in after if name not in before)]
    return [
        Fact(
            name,
            before.get(name, "not there"),
            after.get(name, "not there"),
            differs=before.get(name) != after.get(name),
        )
        for name in names
    ]


def _words(facts: dict[str, Any], titles: dict[str, str]) -> dict[str, str]:
    currency = facts["currency"]
    told = {
        "Status": str(facts["status"]),
        "Paid": f"{money.show(facts['captured'], currency)} {currency}",
        "Refunded so far": f"{money.show(facts['refunded'], currency)} {currency}",
    }
    for line in facts["lines"]:
        title = clean(titles.get(line["line_id"], ""), 120)
        name = f"Line {line['line_id']}" + (f", {title}" if title else "")
        told[name] = (
            f"{line['quantity']} \N{MULTIPLICATION SIGN} {money.show(line['unit_price'], currency)}, "
            f"{line['refunded_quantity'] or 'none'} refunded"
        )
    address = facts["shipping_address"]
    parts = (clean(address.get(part, ""), 200) for part in _ADDRESS)
    told["Delivery address"] = ", ".join(part for part in parts if part)
    return told
