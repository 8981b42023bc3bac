"""Sentences for what was looked up: orders, parcels, policies."""

import re
from collections.abc import Mapping
from typing import Any

from model_stub.planner.facts import orders_of
from model_stub.planner.formats import address, contents, day, decimal, moment, money, total
from model_stub.planner.transcript import Called
from model_stub.planner.words import plain, tokens

_LISTED = 10
_STATES = {
    "pending": "It is waiting to be processed and has not been shipped yet.",
    "processed": "It is being prepared and has not been shipped yet.",
    "shipped": "It has been shipped.",
    "delivered": "It has been delivered.",
    "cancelled": "It shows as cancelled.",
}
_PARCELS = {
    "label_created": "has a label, but the carrier does not have it yet",
    "in_transit": "is in transit",
    "out_for_delivery": "is out for delivery",
    "delivered": "has been delivered",
    "exception": "is held up: the carrier reports a problem",
}
_COMMON = frozenset({
    "the", "and", "for", "are", "can", "you", "what", "your", "does", "how", "when", "much", "long",
    "there", "any", "our", "who", "have", "with", "this", "that", "policy", "policies", "get", "will",
})  # fmt: skip


_NOT_IN_POLICIES = (
    "I can't find anything about that in our policies, so I don't want to guess. "
    "A colleague can answer it: just ask for a person."
)


def order_report(order: Mapping[str, Any], *, refunds: bool = False) -> str:
    """Return the state of an order in a few sentences; `refunds` speaks of none, too."""
    what = contents(order)
    placed = day(order.get("placed_on"))
    opening = f"Order {plain(order.get('order_id'), 20)}"
    opening += f" ({what})" if what else ""
    opening += (
        f" was placed on {placed} for {total(order)}." if placed else f" costs {total(order)}."
    )
    sentences = [opening, state_of(order)]
    refunded = decimal(order.get("refunded") or "0")
    if refunded:
        sentences.append(f"Refunds so far: {money(refunded, order.get('currency'))}.")
    elif refunds:
        sentences.append("Refunds so far: none.")
    ship_to = order.get("ship_to")
    if isinstance(ship_to, dict) and order.get("status") in ("pending", "processed"):
        sentences.append(f"It will go to {address(ship_to)}.")
    return " ".join(sentences)


def state_of(order: Mapping[str, Any]) -> str:
    """Return one sentence on where an order stands."""
    status = str(order.get("status"))
    delivered = day(order.get("delivered_on"))
    if status == "delivered" and delivered:
        return f"It was delivered on {delivered}."
    return _STATES.get(status, f"Its status is {plain(status, 20)}.")


def parcel_report(call: Called) -> str:
    """Return where a parcel is: state, dates, carrier, number, and place and time of the last scan."""
    found = call.result
    carrier, number = plain(found.get("carrier"), 40), plain(found.get("tracking_number"), 40)
    status = str(found.get("status"))
    parcel = f"The parcel for order {plain(call.order_id or found.get('order_id'), 20)}"
    state = _PARCELS.get(status, f"has the status {plain(status, 30)}")
    expected = day(found.get("expected_on"))
    due = f" and is expected on {expected}" if expected and status != "delivered" else ""
    sentences = [f"{parcel} {state}{due}."]
    if carrier or number:
        with_number = f", tracking number {number}" if number else ""
        sentences.append(f"Carrier: {carrier or 'not named'}{with_number}.")
    sentences.append(_latest_scan(found.get("events")))
    return " ".join(sentence for sentence in sentences if sentence)


def _latest_scan(events: object) -> str:
    if not isinstance(events, list):
        return ""
    known = [event for event in events if isinstance(event, dict) and moment(event.get("at"))]
    if not known:
        return ""
    newest = max(known, key=lambda event: str(event["at"]))
    place = plain(newest.get("place"), 60)
    return f"Last seen {f'in {place} ' if place else ''}on {moment(newest['at'])}."


def list_report(call: Called) -> str:
    """Return the orders of a look-up, one a line."""
    orders = orders_of(call)
    if not orders:
        status = plain(call.args.get("status"), 20)
        return f"I can't find any {status + ' ' if status else ''}orders in your account."
    lines = [f"- {order_line(order)}" for order in orders[:_LISTED]]
    if len(orders) > _LISTED or call.result.get("more"):
        lines.append("- and more; tell me the number of the one you mean.")
    return "Here is what I found:\n" + "\n".join(lines)


def order_line(order: Mapping[str, Any]) -> str:
    """Return an order on one line of a list."""
    status = plain(order.get("status"), 20)
    delivered = day(order.get("delivered_on"))
    state = f"delivered {delivered}" if status == "delivered" and delivered else status
    return f"{plain(order.get('order_id'), 20)}: {contents(order, 2)}, {total(order)}, {state}"


def policy_report(call: Called, question: str) -> str:
    """Return the sentences of the best passage that fit the question, and where they stand."""
    passages = call.result.get("passages")
    known = [p for p in passages if isinstance(p, dict)] if isinstance(passages, list) else []
    if _words(question):
        known = [passage for passage in known if _passage_fit(passage, question)]
    if not known:
        return _NOT_IN_POLICIES
    best = max(known, key=lambda p: (_passage_fit(p, question), str(p.get("effective_from"))))
    text = str(best.get("text"))
    since = day(best.get("effective_from"))
    version = plain(str(best.get("version") or ""), 20)
    details = [f"version {version}" if version else "", f"in effect since {since}" if since else ""]
    source = plain(best.get("document"), 60) or "our policy"
    where = ", ".join(detail for detail in details if detail)
    return f"{_excerpt(text, question)}\nSource: {source}{f' ({where})' if where else ''}."


def _words(text: str) -> set[str]:
    """Return the beginnings of the words that matter, so that "ship" finds "shipping"."""
    return {word[:4] for word in tokens(text) if word not in _COMMON and len(word) > 2}


def _fit(text: str, question: str) -> int:
    return len(_words(text) & _words(question))


def _passage_fit(passage: Mapping[str, Any], question: str) -> int:
    return _fit(f"{passage.get('document')} {passage.get('text')}", question)


def _excerpt(text: str, question: str) -> str:
    """Return the up to three sentences that fit best, in their own order."""
    sentences = [
        plain(part, 300) for part in re.split(r"(?<=[.!?])\s+|\n+", text) if part.strip(" #*-")
    ]
    ranked = sorted(range(len(sentences)), key=lambda at: (-_fit(sentences[at], question), at))
    fitting = [at for at in ranked[:3] if _fit(sentences[at], question)] or ranked[:2]
    return " ".join(sentences[at] for at in sorted(fitting))
