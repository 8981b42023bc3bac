"""Why a call came to what it came to, in words, and what would have changed it.

From the kept verdicts alone: the rule that decided, and what it looked at.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tools import money
from tools.models import Finding, Verdict
from tools.text import clean

Inputs = dict[str, Any]


@dataclass(frozen=True)
class Reason:
    """One deciding rule: what it found, and what would change that."""

    verdict: Verdict
    why: str
    change: str


def reasons_of(verdicts: Sequence[Verdict]) -> list[Reason]:
    """The rules that refused a call or asked people about it, in their order; none for a plain yes."""
    decisive = [verdict for verdict in verdicts if verdict.finding != Finding.ALLOW]
    return [_reason(verdict) for verdict in decisive]


def _reason(verdict: Verdict) -> Reason:
    say = RULES.get(verdict.rule)
    try:
        why, change = say(verdict.inputs) if say else (_by_name(verdict), "")
    except KeyError:  # what it looked at was erased with its customer
        why, change = _by_name(verdict), ""
    return Reason(verdict, why, change)


def _by_name(verdict: Verdict) -> str:
    finding = "refused it" if verdict.finding == Finding.DENY else "asked a person"
    return f"The rule {clean(verdict.rule, 80)} {finding}."


def _said(why: str, change: str) -> Callable[[Inputs], tuple[str, str]]:
    """A rule whose words need nothing of what it looked at."""
    return lambda _: (why, change)


def _text(inputs: Inputs, name: str) -> str:
    return clean(str(inputs.get(name, "?")), 120)


def _staff(inputs: Inputs) -> tuple[str, str]:
    said, free = _against_limit(inputs)
    return (
        f"{said}, so staff were asked after the customer.",
        f"Without staff this customer could have had {free}; or the shop's limit would have to be higher.",
    )


def _second_staff(inputs: Inputs) -> tuple[str, str]:
    said, free = _against_limit(inputs)
    return (
        f"{said}, so two different members of staff were asked, one after the other.",
        f"With one of them this customer could have had {free}; or the second limit would be higher.",
    )


def _against_limit(inputs: Inputs) -> tuple[str, str]:
    """What was over the limit, and how much would not have been."""
    amount, others, limit = (int(inputs[n]) for n in ("amount", "other_refunds_24h", "limit"))
    currency = str(inputs["currency"])
    said = money.show(amount, currency)
    if others:
        said = f"{money.show(others, currency)} of the last 24 hours and {said} now"
    left = limit - others
    free = f"up to {money.show(left, currency)}" if left > 0 else "nothing more today"
    return f"{said} is more than {money.show(limit, currency)}", free


def _window(inputs: Inputs) -> tuple[str, str]:
    days = _text(inputs, "window_days")
    try:
        on = f"{datetime.fromisoformat(str(inputs.get('delivered_at'))):%d %b %Y}"
    except ValueError:
        on = "earlier"
    return (
        f"It was delivered on {on}, and the shop refunds for {days} days.",
        "A longer refund window of the shop, or a refund that the shop makes by hand.",
    )


RULES: dict[str, Callable[[Inputs], tuple[str, str]]] = {
    "tool_is_known": _said("There is no such tool.", "The model calling one of the tools it has."),
    "tool_is_offered": _said(
        "This tool was not offered to this task.", "The model calling one of the tools it has."
    ),
    "tool_is_on": _said(
        "The tool is switched off, for this shop or for all.", "Switching it on again."
    ),
    "within_rate": lambda seen: (
        f"It was called {_text(seen, 'calls_last_minute')} times in a minute before this; that is all.",
        "The same call a minute later.",
    ),
    "arguments_parse": _said("What the model sent is no JSON.", "Arguments that can be read."),
    "arguments_fit_schema": _said(
        "What the model sent does not fit the tool's schema.",
        "Arguments with the right fields in the right shape.",
    ),
    "customer_owns_it": _said(
        "The shop shows this customer no such order: it does not exist or is somebody else's.",
        "An order of this customer's own.",
    ),
    "delegation_is_valid": _said(
        "The shop no longer lets us act for this customer.", "The customer signing in again."
    ),
    "no_other_change_under_way": lambda seen: (
        f"Another change of the same order, {_text(seen, 'operation')}, was not finished.",
        "Its end, or taking it back.",
    ),
    "not_turned_down_before": lambda seen: (
        f"The same was {_text(seen, 'state')} already in this task.",
        "Something else asked for, or a new request of the customer's.",
    ),
    "currency_is_the_shops": lambda seen: (
        f"The order is in {_text(seen, 'order')}, and the shop works in {_text(seen, 'shop')}.",
        "Nothing here: such an order is for the shop itself.",
    ),
    "something_left_to_refund": _said(
        "The order has been refunded in full already.", "Nothing: there is no money left on it."
    ),
    "order_is_delivered": lambda seen: (
        f"The order is {_text(seen, 'status')}; only delivered ones are refunded.",
        "Its delivery; before it is shipped it can be cancelled.",
    ),
    "within_refund_window": _window,
    "items_are_on_the_order": _said(
        "These items, in these quantities, are not left to refund on the order.",
        "Items of the order that were not refunded yet.",
    ),
    "amount_matches_items": _said(
        "The amount is not what the items cost.", "Leaving the amount to the server."
    ),
    "amount_is_left_on_the_payment": _said(
        "More was asked for than is left of what was paid.", "An amount up to what is left."
    ),
    "our_refunds_are_shown": _said(
        "The shop shows less of the order refunded than was refunded through here already.",
        "The shop showing what was refunded, or a person who looks there.",
    ),
    "amount_is_money": _said(
        "What was given is no amount.", 'An amount as it is written: "40.00".'
    ),
    "order_has_not_shipped": lambda seen: (
        f"The order is {_text(seen, 'status')}; it can change only before it ships.",
        "Nothing once it is on its way; a refund is possible after its delivery.",
    ),
    "address_is_plain_text": _said(
        "A part of the address is empty or holds characters that no address has.",
        "An address in plain letters, with name, street, city and postal code.",
    ),
    "country_is_served": lambda seen: (
        f"The shop does not deliver to {_text(seen, 'country')}.",
        "An address in a country that it serves.",
    ),
    "address_differs": _said("The order goes to this address already.", "Another address."),
    "shop_sends_mail": _said(
        "The shop has no sender for its e-mails.", "A sender in the shop's settings."
    ),
    "ticket_is_open": _said("The ticket was closed already.", "Nothing: it is done."),
    "no_change_is_open": _said(
        "A change that was asked for in the conversation has no end yet.",
        "Its end, or a person who settles it at the desk.",
    ),
    "recipient_is_known": _said(
        "The shop told no e-mail address of this customer.", "One in the customer's identity."
    ),
    "customer_countersigns": _said(
        "A change is made only after its customer's yes.", "Nothing: every change is asked about."
    ),
    "refund_came_back_before": _said(
        "An earlier refund of the order came back to the shop, and may have been made good since.",
        "Nothing: staff are asked about every further refund of the order.",
    ),
    "end_contradicted_before": _said(
        "The shop contradicts how an earlier change of the order ended.",
        "Nothing: staff are asked about every further refund of the order.",
    ),
    "staff_over_limit": _staff,
    "second_staff_over_limit": _second_staff,
}
