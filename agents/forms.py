"""Forms: what a customer fills in when no model is there to understand them, or instead of writing.

A form is one tool call as its customer made it, in place of one that the model proposes. It takes
the same way: the gates, the seal, the questions to people, the send. Only the answers are templates.
Pure.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agents import form_words
from agents.moves import CallTool, HandOff, Log, Move, Reply
from audit import currencies
from tools.registry import TOOLS
from tools.strictjson import MAX_BYTES
from tools.text import normalise_order_id

# How a task says that a form opened it, and how its steps say so. The form itself is step 1.
WORKFLOW = "form"
CALL_ID = "form_{n}"
FORM_TOOLS = ("find_orders", "cancel_order", "refund_order", "change_address")
# The button "Talk to a person": a form with nothing to fill in.
PERSON = CallTool("hand_off", '{"reason": "The customer asked for a person."}', "form_1")
_WHOLE_AMOUNT = re.compile(r"[0-9]{1,10}")


class FormError(ValueError):
    """The form is not filled in as it must be. `faults` names each field with what is wrong."""

    def __init__(self, faults: dict[str, str]) -> None:
        super().__init__(", ".join(faults))
        self.faults = faults


def read(tool: str, values: Mapping[str, Any], *, currency: str) -> CallTool:
    """The call that a filled form makes. Raises FormError.

    Where the model must write "40.00", people may write "40": in their own form it leaves nothing
    open. `currency` is the shop's.
    """
    if tool not in FORM_TOOLS:
        raise FormError({"tool": "unknown"})
    filled = {name: value for name, value in values.items() if value not in (None, "")}
    amount = filled.get("amount")
    if isinstance(amount, str):
        filled["amount"] = _decimal(amount.strip(), currency)
    try:
        checked = TOOLS[tool].arguments.model_validate(filled)
    except ValidationError as exc:
        raise FormError(_faults(exc)) from exc
    arguments = checked.model_dump(mode="json", exclude_none=True)
    if "order_id" in arguments:
        arguments["order_id"] = normalise_order_id(arguments["order_id"])
    text = json.dumps(arguments, sort_keys=True, ensure_ascii=False)
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise FormError({"tool": "too_long"})
    return CallTool(tool, text, CALL_ID.format(n=1))


def next_move(log: Log) -> Move:
    """After the form's own call: for a parcel under way its track, and then the answer."""
    first = log.steps[0]
    result = first.result or {}
    if first.tool == PERSON.name and "error" not in result:
        return HandOff("asked_for_a_person")
    orders = result.get("orders", []) if first.tool == "find_orders" else []
    is_on_its_way = len(orders) == 1 and orders[0].get("status") == "shipped"
    if is_on_its_way and len(log.steps) == 1:
        arguments = json.dumps({"order_id": orders[0]["order_id"]})
        return CallTool("track_parcel", arguments, CALL_ID.format(n=2))
    return Reply(form_words.answer(log), is_template=True)


def is_left(log: Log) -> bool:
    """Once the customer has said more than the form does, the agent goes on from its log."""
    has_asked_model = any(step.kind == "model" for step in log.steps)
    return has_asked_model or bool(log.steps and log.has_unheard_message)


def proposed_by(call_id: str) -> str:
    """Who made a call, by its id: the model, a fixed workflow, or a customer's form."""
    maker = call_id.partition("_")[0]
    return maker if maker in {"workflow", WORKFLOW} else "model"


def _decimal(amount: str, currency: str) -> str:
    """The amount with all of the currency's decimals; what cannot be one is left for the schema."""
    amount = amount.replace(",", ".")
    precision = currencies.precision(currency)
    is_whole = _WHOLE_AMOUNT.fullmatch(amount) and precision
    return f"{amount}.{'0' * precision}" if is_whole else amount


def _faults(exc: ValidationError) -> dict[str, str]:
    """Names of fields, which are ours or the sender's and so cut, and Pydantic's codes."""
    errors = exc.errors(include_input=False, include_context=False, include_url=False)
    return {
        ".".join(str(part) for part in error["loc"])[:80] or "tool": error["type"]
        for error in errors[:8]
    }
