"""The seal: the canonical bytes of an operation and their digest.

What people are shown, what they approve and what the shop is sent all come from these bytes
(RFC 8785, JSON Canonicalization Scheme), so none of them can differ from the others.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import rfc8785

from tools import money
from tools.clients.shapes import Order
from tools.language import Text, pick
from tools.tickets import TicketFacts

FORMAT = 1


def canonical(value: Any) -> bytes:
    """RFC 8785 bytes of a JSON value without floats."""
    return rfc8785.dumps(value)


def digest_of(value: Any) -> str:
    """Hex SHA-256 of the canonical bytes."""
    return hashlib.sha256(canonical(value)).hexdigest()


def facts_of(subject: Order | TicketFacts) -> dict[str, Any]:
    """The material facts of an order or a ticket: a change in any of them voids what was approved.

    An order's notes are left out on purpose: a new one changes nothing about what people said yes to.
    """
    if isinstance(subject, TicketFacts):
        return subject.as_facts()
    order = subject
    return {
        "status": order.status,
        "currency": order.currency,
        "captured": order.captured,
        "refunded": order.refunded,
        "lines": [
            {
                "line_id": line.id,
                "quantity": line.quantity,
                "unit_price": line.unit_price,
                "refunded_quantity": line.refunded_quantity,
            }
            for line in order.lines
        ],
        "shipping_address": order.shipping_address.model_dump(),
    }


@dataclass(frozen=True)
class Intent:
    """What a tool worked out from a call and an order's facts: exactly this is to happen.

    `request` is the body the shop will be sent; `shown` is what people need beside it to judge
    (titles, the old address). `amount` is in minor units, None where no money moves.
    """

    kind: str
    order_id: str
    request: dict[str, Any]
    shown: dict[str, Any]
    amount: int | None = None
    currency: str = ""

    def key(self, *, customer: str) -> str:
        """The natural key: equal for the same request proposed again, whatever reason is given."""
        asked = {name: value for name, value in self.request.items() if name != "reason"}
        return digest_of(
            {"customer": customer, "kind": self.kind, "order": self.order_id, "request": asked}
        )


@dataclass(frozen=True)
class Sealed:
    body: bytes
    digest: str


def seal(
    intent: Intent,
    *,
    shop: str,
    customer: str,
    subject: Order | TicketFacts,
    arguments: dict[str, Any],
    policy_version: int,
    expires_at: datetime,
    idempotency_key: str,
) -> Sealed:
    """Freeze an intent with the facts it rests on."""
    body = canonical(
        {
            "format": FORMAT,
            "shop": shop,
            "customer": customer,
            "kind": intent.kind,
            "order": intent.order_id,
            "order_version": subject.version if isinstance(subject, Order) else None,
            "facts": facts_of(subject),
            "arguments": arguments,
            "request": intent.request,
            "shown": intent.shown,
            "amount": intent.amount,
            "currency": intent.currency,
            "policy_version": policy_version,
            "expires_at": expires_at.isoformat(),
            "idempotency_key": idempotency_key,
        }
    )
    return Sealed(body=body, digest=hashlib.sha256(body).hexdigest())


class BrokenSealError(Exception):
    """The stored bytes do not match the digest that people approved."""


def open_seal(body: bytes | memoryview, digest: str) -> dict[str, Any]:
    """The sealed content. Raises BrokenSealError when the bytes are not the approved ones."""
    body = bytes(body)
    if hashlib.sha256(body).hexdigest() != digest:
        raise BrokenSealError(digest)
    content: dict[str, Any] = json.loads(body)
    return content


def request_body(content: dict[str, Any]) -> bytes:
    """The exact bytes to send the shop, first time and every time."""
    return canonical(content["request"])


@dataclass(frozen=True)
class Card:
    """An operation in words for people, drawn from the sealed bytes by code."""

    title: str
    order_id: str
    lines: list[str]
    before: list[str]
    after: list[str]
    amount: str
    reason: str


_TITLES: dict[str, Text] = {
    "refund": (
        "Refund {amount} for order {order}",
        "Erstattung von {amount} für Bestellung {order}",
    ),
    "cancel": ("Cancel order {order}", "Bestellung {order} stornieren"),
    "change_address": (
        "Change the delivery address of order {order}",
        "Lieferadresse von Bestellung {order} ändern",
    ),
    "close_ticket": (
        "Close this conversation and send one e-mail",
        "Diese Unterhaltung beenden und eine E-Mail senden",
    ),
}
REASONS: dict[str, Text] = {
    "damaged": ("arrived damaged", "beschädigt angekommen"),
    "not_received": ("not received", "nicht angekommen"),
    "wrong_item": ("wrong item", "falscher Artikel"),
    "not_as_described": ("not as described", "nicht wie beschrieben"),
    "changed_mind": ("changed mind", "anders überlegt"),
    "no_longer_needed": ("no longer needed", "nicht mehr gebraucht"),
    "ordered_by_mistake": ("ordered by mistake", "versehentlich bestellt"),
    "other": ("other", "anderer Grund"),
}
_NO_REASON: Text = ("", "")
_RECIPIENT: Text = ("To: {text}", "An: {text}")
_SUBJECT: Text = ("Subject: {text}", "Betreff: {text}")


def describe(content: dict[str, Any], locale: str = "en_US") -> Card:
    """Render sealed content for a person: words in the locale's language, amounts in its format.

    What others wrote (titles, addresses, the e-mail) stays as it was sealed.
    """
    amount = ""
    if content["amount"] is not None:
        amount = money.show(content["amount"], content["currency"], locale)
    shown = content["shown"]
    return Card(
        title=pick(_TITLES[content["kind"]], locale).format(amount=amount, order=content["order"]),
        order_id=content["order"],
        lines=[_line_text(line) for line in shown.get("lines", [])],
        before=_address_lines(shown.get("from")),
        after=_address_lines(shown.get("to")) or _mail_lines(content, locale),
        amount=amount,
        reason=pick(REASONS.get(content["request"].get("reason", ""), _NO_REASON), locale),
    )


def _mail_lines(content: dict[str, Any], locale: str) -> list[str]:
    """The e-mail of a closure, as it will be sent."""
    if content["kind"] != "close_ticket":
        return []
    mail = content["request"]
    text = [line for line in mail["text"].splitlines() if line]
    return [
        pick(_RECIPIENT, locale).format(text=mail["recipient"]),
        pick(_SUBJECT, locale).format(text=mail["subject"]),
        *text,
    ]


def _line_text(line: dict[str, Any]) -> str:
    variant = f" ({line['variant']})" if line.get("variant") else ""
    return f"{line['quantity']} \N{MULTIPLICATION SIGN} {line['title']}{variant}"


def _address_lines(address: dict[str, str] | None) -> list[str]:
    if not address:
        return []
    place = " ".join(
        part for part in (address["city"], address.get("region"), address["postal_code"]) if part
    )
    parts = (address["name"], address["line1"], address.get("line2"), place, address["country"])
    return [part for part in parts if part]
