"""Sentences for the results of actions: true to the result, never more.

An effect is claimed for the state `succeeded` alone. Whatever did not happen is said in a plainly
negative sentence, and what is not known yet is "still being checked".
"""

from collections.abc import Callable, Mapping
from typing import Any

from model_stub.planner.facts import FIND, SEARCH, TRACK
from model_stub.planner.formats import address, money
from model_stub.planner.transcript import Called
from model_stub.planner.words import plain

_NOUNS = {
    "refund_order": "the refund for order {id}",
    "cancel_order": "the cancellation of order {id}",
    "change_address": "the address change for order {id}",
    "close_ticket": "closing this ticket",
}
_NOT_DONE = {
    "refund_order": "order {id} was not refunded",
    "cancel_order": "order {id} was not cancelled",
    "change_address": "the address of order {id} was not changed",
    "close_ticket": "this ticket was not closed",
}
_COULD_NOT = {
    "refund_order": "I could not refund order {id}",
    "cancel_order": "I could not cancel order {id}",
    "change_address": "I could not change the address of order {id}",
    "close_ticket": "I could not close this ticket",
    "hand_off": "I could not reach a colleague",
    FIND: "I could not look up your orders",
    TRACK: "I could not track order {id}",
    SEARCH: "I could not look that up in our policies",
}
_OFF = {
    "refund_order": "I can't give refunds here at the moment.",
    "cancel_order": "I can't cancel orders here at the moment.",
    "change_address": "I can't change addresses here at the moment.",
    "close_ticket": "I can't close tickets here at the moment.",
    "hand_off": "I can't reach a colleague from here at the moment.",
    FIND: "I can't look up orders here at the moment.",
    TRACK: "I can't track parcels here at the moment.",
    SEARCH: "I can't look up our policies here at the moment.",
}
_ASK_PERSON = " A colleague can help: just ask for a person."
_UNKNOWN_STATES = ("sending", "unknown", "approved", "proposed")


def not_found(order_id: str) -> str:
    """Return the one sentence for an order that is not the customer's, whether it exists or not."""
    return f"I can't find order {plain(order_id, 20)} in your account. Please check the number."


def already_refunded(order_id: str, amount: str | None = None) -> str:
    """Return the sentence for an order with nothing left to refund.

    Without the amount that the order shows as refunded, no refund is spoken of as done.
    """
    rest = f": it was already refunded in full ({amount})" if amount else ", so I did not ask again"
    return f"There is nothing left to refund on order {plain(order_id, 20)}{rest}."


def tool_off(tool: str) -> str:
    """Return the sentence for a tool that cannot be used now."""
    return _OFF.get(tool, "I can't do that here at the moment.") + (
        "" if tool == "hand_off" else _ASK_PERSON
    )


def told(call: Called) -> str:
    """Return what to tell the customer about the result of a tool with an effect."""
    if call.error is not None:
        return refused(call)
    state = call.state
    if state == "succeeded" and call.result.get("pending"):
        return f"The refund for order {_id(call)} is on its way{_reference(call)}."
    if state == "succeeded":
        return _SUCCEEDED[call.name](call)
    noun, not_done = _fill(_NOUNS, call), _fill(_NOT_DONE, call)
    if state in _UNKNOWN_STATES:
        return (
            f"{_capital(noun)} is still being checked. You will hear the outcome here; "
            "there is no need to ask again."
        )
    if state == "rejected":
        return _rejected(call, noun, not_done)
    if state == "failed" and call.result.get("reason") == "already_done":
        return _NOT_NEEDED.get(call.name, _ENDED["failed"]).format(
            id=_id(call), could_not=_fill(_COULD_NOT, call)
        )
    return _ENDED.get(state, _ENDED["unclear"]).format(
        noun=noun, Noun=_capital(noun), not_done=not_done, could_not=_fill(_COULD_NOT, call)
    )


_ENDED = {
    "failed": "I am sorry, {could_not}: the shop did not accept it." + _ASK_PERSON,
    "expired": "The question about {noun} was not answered in time, so {not_done}.",
    "superseded": "The order changed in the meantime, so {not_done}. Please ask me again in a moment.",
    "cancelled": "{Noun} did not go ahead, so {not_done}.",
    "needs_person": "{Noun} is still being checked, now by a colleague. There is no need to ask again.",
    "awaiting_approval": "{Noun} is waiting for approval.",
    "denied": "{could_not}: our rules do not allow it." + _ASK_PERSON,
    "unclear": "{Noun} is still being checked.",
}

_NOT_NEEDED = {
    "cancel_order": "There was nothing left to do: order {id} had been cancelled elsewhere already.",
    "refund_order": "There is nothing left to refund on order {id}, so I have not refunded it.",
}


def _rejected(call: Called, noun: str, not_done: str) -> str:
    reason = plain(call.result.get("reason"), 200).rstrip(".")
    because = f" The reason given: {reason}." if reason else ""
    if call.result.get("decided_by") == "staff":
        return f"Our staff said no to {noun}, so {not_done}.{because}"
    return f"You said no to {noun}, so {not_done}.{because}"


def _refunded(call: Called) -> str:
    amount = money(call.result.get("amount"), call.result.get("currency"))
    return f"I have refunded {amount} for order {_id(call)}{_reference(call)}."


def _cancelled(call: Called) -> str:
    return f"I have cancelled order {_id(call)}{_reference(call)}."


def _address_changed(call: Called) -> str:
    wanted = call.args.get("address")
    to = f" to {address(wanted)}" if isinstance(wanted, dict) else ""
    return f"I have changed the delivery address of order {_id(call)}{to}{_reference(call)}."


def _closed(call: Called) -> str:
    return "I have closed this ticket. Thank you for getting in touch!"


_SUCCEEDED: Mapping[str, Callable[[Called], str]] = {
    "refund_order": _refunded,
    "cancel_order": _cancelled,
    "change_address": _address_changed,
    "close_ticket": _closed,
}


def refused(call: Called, *, order: Mapping[str, Any] | None = None) -> str:
    """Return the sentence for a call that was refused; `order` adds what to do instead."""
    code = call.error or "unavailable"
    could_not = _fill(_COULD_NOT, call) if call.name in _COULD_NOT else "I could not do that"
    message = _sentence(call.result.get("message"))
    if code == "not_found":
        return (
            not_found(call.order_id or "") if call.order_id else f"{could_not}: it was not found."
        )
    if code == "already_refunded":
        return already_refunded(_id(call))
    if code in ("tool_off", "not_offered", "unknown_tool"):
        return tool_off(call.name)
    if code == "order_state":
        why = message or "What state it is in does not allow that."
        return f"{could_not}. {why}{_instead(call, order)}"
    if code in ("outside_window", "bad_address"):
        return f"{could_not}. {message or _REASONS[code]}{_AFTER.get(code, '')}"
    return f"{could_not}: {_REASONS.get(code, _REASONS['unavailable'])}"


_REASONS = {
    "over_captured": "that is more than is left of what was paid for it.",
    "outside_window": "The time for that is over.",
    "bad_address": "The address was not accepted.",
    "bad_line": "the order does not have those items in that number. Please tell me again which you mean.",
    "bad_arguments": "I did not get the details right. Please tell me again what you need.",
    "currency_mismatch": "the order was paid in another currency.",
    "another_change_in_progress": (
        "another change to it is still in progress. Please ask again once that is finished."
    ),
    "one_action_at_a_time": "another action has to be finished first. Please ask me again then.",
    "already_rejected": "this was declined before, so I have not raised it again." + _ASK_PERSON,
    "rate_limited": "that was a lot in a short time. Please try again in a few minutes.",
    "unavailable": "the shop's system does not answer just now. Please try again in a few minutes.",
}
_AFTER = {"bad_address": " Please send me the whole address again."}


def _instead(call: Called, order: Mapping[str, Any] | None) -> str:
    status = order.get("status") if order else None
    if call.name == "refund_order" and status in ("pending", "processed"):
        return " I can cancel it for you instead: just say so."
    if call.name == "cancel_order" and status in ("shipped", "delivered"):
        return " If something is wrong with it, I can ask for a refund: just say so."
    return ""


def handed_off(call: Called) -> str:
    """Return what to say after a hand-off."""
    if call.error is not None:
        return refused(call)
    return "I have passed this on to a colleague, who will answer you here."


def _id(call: Called) -> str:
    return plain(call.order_id or call.result.get("order_id"), 20)


def _reference(call: Called) -> str:
    reference = plain(call.result.get("reference"), 60)
    return f" (reference {reference})" if reference else ""


def _fill(table: Mapping[str, str], call: Called) -> str:
    return table[call.name].format(id=_id(call))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sentence(value: object) -> str:
    text = plain(value, 200)
    return text if not text or text.endswith((".", "!", "\u2026")) else text + "."
