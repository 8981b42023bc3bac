"""What a form says: as the customer's own message, and as the answer to it. Pure."""

import json
from collections.abc import Sequence
from typing import Any

from agents import order_words
from agents.claims import OperationView, true_state
from agents.moves import CallTool, Log
from tools import money
from tools.language import Text, pick
from tools.operations import CAME_BACK
from tools.seal import REASONS

_ASKED: dict[str, Text] = {
    "find_orders": ("Where is order {order}?", "Wo ist Bestellung {order}?"),
    "cancel_order": ("Please cancel order {order}", "Bitte stornieren Sie Bestellung {order}"),
    "refund_order": ("Please refund order {order}", "Bitte erstatten Sie Bestellung {order}"),
    "change_address": (
        "Please send order {order} to another address",
        "Bitte senden Sie Bestellung {order} an eine andere Adresse",
    ),
}
_ASKED_FOR_ALL: Text = ("What have I ordered?", "Was habe ich bestellt?")
_ONLY_SOME: Text = ("Only some items: {count}", "Nur einzelne Artikel: {count}")
_AMOUNT: Text = ("Amount: {text}", "Betrag: {text}")
_REASON: Text = ("Reason: {text}", "Grund: {text}")
_PERSON: Text = (
    "If you see it otherwise, a colleague can look at it: choose “Talk to a person”.",
    "Wenn Sie das anders sehen, kann es sich das Team ansehen: „Mit einem Menschen sprechen“.",
)
_REFUSED: dict[str, Text] = {
    "not_found": order_words.NOT_FOUND,
    "unavailable": (
        "The shop can't be reached at the moment. Please try again in a little while.",
        "Der Shop ist gerade nicht zu erreichen. Bitte versuchen Sie es in einer Weile noch einmal.",
    ),
    "bad_address": (
        (
            "The shop can't use this address: it does not deliver there, a part of it is missing, or "
            "order {order} goes there anyway."
        ),
        (
            "Diese Adresse kann der Shop nicht verwenden: Er liefert nicht dorthin, ein Teil fehlt, oder "
            "Bestellung {order} geht ohnehin dorthin."
        ),
    ),
    "bad_line": (
        "These items are not left to refund on order {order}.",
        "Für diese Artikel von Bestellung {order} ist keine Erstattung mehr offen.",
    ),
    "bad_arguments": (
        "Something in the form can't be read. Please look at it again.",
        "Etwas im Formular ist nicht zu lesen. Bitte sehen Sie es sich noch einmal an.",
    ),
    "another_change_in_progress": (
        "Something else is under way for order {order}. Please wait until it has ended.",
        "Für Bestellung {order} läuft schon etwas anderes. Bitte warten Sie, bis es zu Ende ist.",
    ),
    "not_authorised": (
        "The shop no longer lets me act for you. Please sign in to it again.",
        "Der Shop lässt mich nicht mehr für Sie handeln. Bitte melden Sie sich dort neu an.",
    ),
    "rate_limited": (
        "That was a lot at once. Please wait a minute.",
        "Das war viel auf einmal. Bitte warten Sie eine Minute.",
    ),
    "tool_off": (
        "This is switched off at the moment.",
        "Das ist im Moment abgeschaltet.",
    ),
}
# Refusals by the shop's rules, with which somebody may disagree.
_BY_RULE: dict[str, Text] = {
    "already_refunded": (
        "Nothing is left to refund on order {order}.",
        "Für Bestellung {order} ist keine Erstattung mehr offen.",
    ),
    "outside_window": (
        "The time in which order {order} can be refunded is over.",
        "Die Frist, in der Bestellung {order} erstattet werden kann, ist vorbei.",
    ),
    "over_captured": (
        "That is more than is left to refund on order {order}.",
        "Das ist mehr, als für Bestellung {order} noch erstattet werden kann.",
    ),
    "currency_mismatch": (
        "Order {order} was paid in another currency than the shop's.",
        "Bestellung {order} wurde in einer anderen Währung als der des Shops bezahlt.",
    ),
    "already_rejected": (
        "This has been turned down before.",
        "Dazu gab es schon ein Nein.",
    ),
}
_TOO_LATE: dict[str, Text] = {
    "cancel_order": (
        "Order {order} can no longer be cancelled: that is possible only before it is shipped.",
        "Bestellung {order} kann nicht mehr storniert werden: Das geht nur vor dem Versand.",
    ),
    "refund_order": (
        "Order {order} can't be refunded: that is possible only once it is delivered.",
        "Bestellung {order} kann nicht erstattet werden: Das geht erst, wenn sie geliefert ist.",
    ),
    "change_address": (
        (
            "The address of order {order} can no longer be changed: that is possible only before it is "
            "shipped."
        ),
        (
            "Die Adresse von Bestellung {order} kann nicht mehr geändert werden: Das geht nur vor dem "
            "Versand."
        ),
    ),
}
_NOT_POSSIBLE: Text = (
    "This is not possible for order {order}.",
    "Das ist bei Bestellung {order} nicht möglich.",
)
_AGAIN: Text = (
    "Please fill in the form again if you still want this.",
    "Bitte füllen Sie das Formular noch einmal aus, wenn Sie das weiterhin möchten.",
)


def asked(form: CallTool, locale: str) -> str:
    """The form in words, as the message of the customer who filled it in."""
    values: dict[str, Any] = json.loads(form.arguments)
    order = values.get("order_id")
    opening = _ASKED[form.name] if order else _ASKED_FOR_ALL
    lines = [pick(opening, locale).format(order=order)]
    if values.get("items"):
        count = sum(item["quantity"] for item in values["items"])
        lines.append(pick(_ONLY_SOME, locale).format(count=count))
    if "amount" in values:
        lines.append(pick(_AMOUNT, locale).format(text=values["amount"]))
    if "reason" in values:
        reason = pick(REASONS[values["reason"]], locale)
        lines.append(pick(_REASON, locale).format(text=reason))
    lines += order_words.address_lines(values.get("address", {}))
    return "\n".join(lines)


def answer(log: Log) -> str:
    """What came of the form, from the log alone."""
    first = log.steps[0]
    result = first.result or {}
    if "error" in result:
        return _refused(str(result["error"]), first.tool, _order_of(first.arguments), log.locale)
    if first.tool == "find_orders":
        parcel = next((step.result or {} for step in log.steps if step.tool == "track_parcel"), {})
        return order_words.orders(result.get("orders", []), parcel, log.locale)
    told = true_state([_view(result, log.locale)], log.locale)
    if result.get("state") == "superseded":
        return f"{told}\n{pick(_AGAIN, log.locale)}"
    return told


def _refused(error: str, tool: str, order: str, locale: str) -> str:
    rule = _TOO_LATE.get(tool) if error == "order_state" else _BY_RULE.get(error)
    plain = _REFUSED.get(error)
    parts: Sequence[Text] = [plain] if plain else [rule or _NOT_POSSIBLE, _PERSON]
    return " ".join(pick(part, locale) for part in parts).format(order=order)


def _order_of(arguments: str) -> str:
    return str(json.loads(arguments).get("order_id", ""))


def _view(result: dict[str, Any], locale: str) -> OperationView:
    amount = ""
    if "amount" in result:
        minor = money.parse_amount(result["amount"], result["currency"])
        amount = money.show(minor, result["currency"], locale)
    return OperationView(
        kind=str(result.get("kind", "")),
        order_id=str(result.get("order_id", "")),
        state=str(result.get("state", "")),
        amount_text=amount,
        reference=str(result.get("reference", "")),
        reason=str(result.get("reason", "")),
        decided_by=str(result.get("decided_by", "")),
        came_back=result.get("message") == CAME_BACK,
        is_on_its_way="pending" in result,
    )
