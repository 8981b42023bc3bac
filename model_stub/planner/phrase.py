"""Questions back, small talk, and the putting together of a reply."""

from collections.abc import Mapping
from typing import Any

from model_stub.planner import intents
from model_stub.planner.dialog import Dialog
from model_stub.planner.formats import contents, item_options, line_name
from model_stub.planner.intents import is_unhappy
from model_stub.planner.items import Choice, remaining
from model_stub.planner.understand import Utterance
from model_stub.planner.words import plain

_OFFERED_ORDERS = 5
_ABILITIES = (
    "I can look up your orders, track a parcel, change a delivery address, cancel an order, ask for a "
    "refund, and answer questions about our policies."
)
_WHICH = {
    intents.REFUND: "Which order should I refund",
    intents.CANCEL: "Which order should I cancel",
    intents.ADDRESS: "Which order is the new address for",
    intents.TRACK: "Which order should I track",
    intents.STATUS: "Which order should I look up",
    intents.COMPLAINT: "I am sorry to hear that. Which order is it about, so that I can look into a refund",
}
_FIELDS = {
    "name": "the name of the recipient",
    "line1": "the street and house number",
    "city": "the city",
    "postal_code": "the postal code",
    "country": "the country",
}
_SORRY = ("damaged", "not_received", "wrong_item", "not_as_described")


def which_order(kind: str, candidates: list[Mapping[str, Any]], *, unknown: str = "") -> str:
    """Ask which order is meant, offering the candidates if there are any."""
    question = _WHICH[kind]
    lead = f"{unknown} " if unknown else ""
    if not candidates:
        return f"{lead}{question} (the order number is enough)?"
    shown = [
        f"{plain(order.get('order_id'), 20)} ({contents(order, 2)})"
        for order in candidates[:_OFFERED_ORDERS]
    ]
    more = " or another one" if len(candidates) > _OFFERED_ORDERS else ""
    options = " or ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]
    return f"{lead}{question}: {options}{more}?"


def which_item(order_id: str, choice: Choice) -> str:
    """Ask which line, or how many of a line, are to be refunded."""
    lines = [line for line, _ in choice.lines]
    if choice.unsure == "how_many":
        line = lines[0]
        return f"How many of the {remaining(line)} x {line_name(line)} in order {order_id} should I refund?"
    if choice.unsure == "none" and len(lines) == 1:
        return (
            f"I can't see a {plain(choice.wanted, 30)} in order {order_id}, only this: "
            f"{line_name(lines[0])}. Would you like me to refund order {order_id}?"
        )
    lead = (
        f"I can't see a {plain(choice.wanted, 30)} in order {order_id}. " if choice.wanted else ""
    )
    return f"{lead}Which item of order {order_id} should I refund: {item_options(lines)}?"


def which_amount(order_id: str, currency: str) -> str:
    """Ask for the sum in the order's own currency."""
    return (
        f"Order {order_id} was paid in {plain(currency, 3)}. "
        f"How much in {plain(currency, 3)} should I refund for order {order_id}?"
    )


def which_address(order_id: str, missing: tuple[str, ...], known: str) -> str:
    """Ask for what an address lacks."""
    if not known:
        return (
            f"What is the new address for order {order_id} "
            "(name if it changes, street, city, postal code and country)?"
        )
    wanted = " and ".join(_FIELDS[field] for field in missing)
    return f"So far I have: {known}. What is {wanted} of the new address for order {order_id}?"


def offer_refund(order: Mapping[str, Any], order_id: str) -> str:
    """Offer a refund to a customer who has complained and asked for nothing."""
    what = contents(order)
    return (
        "I am sorry to hear that. "
        f"Would you like me to ask for a refund of order {order_id}{f' ({what})' if what else ''}?"
    )


def offer_person(text: str) -> str:
    """Answer a request for something that no tool does."""
    lowered = text.lower()
    if any(word in lowered for word in ("exchang", "replac", "swap", "send me")):
        lead = "I can't arrange an exchange or a replacement; I can ask for a refund."
    elif is_unhappy(lowered):
        lead = "I am sorry that you are not happy with us."
    elif "charged" in lowered or "overcharged" in lowered:
        lead = "I can't look into payments myself."
    else:
        lead = "That is something I can't do here."
    return f"{lead} Would you like me to pass this on to a colleague?"


def sympathy(reason: str) -> str:
    """Return a kind word for a refund whose reason is our fault."""
    return "I am sorry about that. " if reason in _SORRY else ""


def taken_back(kind: str, order_id: str | None) -> str:
    """Confirm that a request was dropped before anything was done for it."""
    order = f" order {order_id}" if order_id else " anything"
    words = {
        intents.REFUND: f"I will not refund{order}.",
        intents.CANCEL: f"I will not cancel{order}.",
        intents.ADDRESS: f"I will not change the address{f' of order {order_id}' if order_id else ''}.",
    }
    return "All right. " + words.get(kind, "I will leave that.")


def compose(dialog: Dialog, outcomes: list[str], questions: list[str], first_name: str) -> str:
    """Put the parts of an answer together: results first, then at most the open questions."""
    parts = list(dict.fromkeys([*outcomes, *questions]))
    if not parts:
        return small_talk(dialog, first_name)
    greets = any(said.greets for said in dialog.said)
    opening = f"Hello{_named(first_name)}! " if greets else ""
    return opening + "\n\n".join(parts)


def small_talk(dialog: Dialog, first_name: str) -> str:
    """Answer a message that asks for nothing."""
    if not dialog.said:
        return f"Hello{_named(first_name)}! {_ABILITIES} What can I do for you?"
    said = dialog.said[-1]
    if dialog.too_late:
        return (
            "What I told you last is done already, and I can't take it back from here. "
            "A colleague can look at it: just ask for a person."
        )
    if dialog.dropped:
        return "All right, I will leave it at that."
    if said.small_talk is not None:
        return _SMALL_TALK[said.small_talk].format(abilities=_ABILITIES)
    if said.thanks or said.leaves:
        return (
            f"You're welcome{_named(first_name, comma=True)}! I am here if you need anything else."
        )
    if said.agrees:
        return (
            "Thank you. If an action is waiting for your yes, please press its button; "
            "a yes typed in the chat does not confirm it. Otherwise just tell me what you need."
        )
    if said.declines:
        return "All right. Just tell me if you need anything else."
    if said.greets and len(said.text.split()) <= 6:
        return f"Hello{_named(first_name)}! {_ABILITIES} What can I do for you?"
    return _not_understood(said)


def _not_understood(said: Utterance) -> str:
    return f"I am not sure I understood that. {_ABILITIES} What would you like me to do?"


_SMALL_TALK = {
    "how_are_you": "I am well, thank you! What can I do for you?",
    "who": (
        "I am the shop's automatic assistant, not a person. {abilities} "
        "If you would rather talk to a person, just say so."
    ),
    "help": "{abilities} Just tell me what you need, with the order number if you have it.",
    "joke": "I am better with orders than with that. {abilities}",
    "sorry": "No harm done. What can I do for you?",
}


def _named(first_name: str, *, comma: bool = False) -> str:
    name = plain(first_name, 30)
    return f"{',' if comma else ''} {name}" if name else ""
