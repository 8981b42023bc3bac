"""Fixed workflows: frequent requests that need no agent loop.

"Where is my order 1045?" is looked up by code with the customer's own rights; the model is asked
once, to put the result into words, and when it is down a plain template answers.
"""

import json
import re
from typing import Any

from agents import forms, order_words
from agents.moves import CallModel, CallTool, Log, Move, Reply
from tools.language import pick

ORDER_STATUS = "order_status"
NAMES = frozenset({ORDER_STATUS, forms.WORKFLOW})

# A question about where an order or parcel is, and nothing in it that asks for more.
_ASKS_WHERE = re.compile(
    r"\b(where(\s+is|'s|\u2019s)|track(ing)?|status\s+of|what(\s+is|'s|\u2019s)\s+the\s+status|"
    r"when\s+(will|does|is|do)\b.*\b(arriv\w*|come|get|deliver\w*|be\s+here))\b",
    re.IGNORECASE,
)
_ABOUT_AN_ORDER = re.compile(r"\b(order|parcel|package|delivery|shipment)s?\b", re.IGNORECASE)
_ASKS_MORE = re.compile(
    r"\b(refund\w*|money|cancel\w*|chang\w*|address|return\w*|broken|damaged|wrong|missing|never|"
    r"person|human|agent|someone|complain\w*|policy|exchange|replace\w*|and|but|also|not|n't)\b",
    re.IGNORECASE,
)
_ORDER_NUMBER = re.compile(r"#?\s?\b(\d{3,12})\b")
MAX_LENGTH = 120


def match(message: str) -> str:
    """The workflow that fits a message, or "" when the agent loop should have it."""
    if len(message) > MAX_LENGTH or _ASKS_MORE.search(message):
        return ""
    if not _ASKS_WHERE.search(message) or not _ABOUT_AN_ORDER.search(message):
        return ""
    return ORDER_STATUS if len(_ORDER_NUMBER.findall(message)) == 1 else ""


def next_move(log: Log) -> Move:
    """The stages in their order: look the order up, follow its parcel, put it into words."""
    if log.workflow == forms.WORKFLOW:
        return forms.next_move(log)
    order_id = _order_number(log.request)
    if not log.steps:
        return _tool("find_orders", order_id, 1)
    if len(log.steps) == 1:
        status = _order(log).get("status")
        if status == "shipped":
            return _tool("track_parcel", order_id, 2)
        return CallModel(phrase_only=True)
    last = log.steps[-1]
    if last.kind == "tool":
        return CallModel(phrase_only=True)
    text = str((last.result or {}).get("text", "")).strip()
    return Reply(text) if text else Reply(_template(log, order_id), is_template=True)


def _order_number(message: str) -> str:
    found = _ORDER_NUMBER.search(message)
    return found.group(1) if found else ""


def _tool(name: str, order_id: str, n: int) -> CallTool:
    return CallTool(name, json.dumps({"order_id": order_id}), f"workflow_{n}")


def _order(log: Log) -> dict[str, Any]:
    orders = (log.steps[0].result or {}).get("orders") or [{}]
    first: dict[str, Any] = orders[0]
    return first


def _template(log: Log, order_id: str) -> str:
    """The answer in plain words when no model can phrase it."""
    looked_up = log.steps[0].result or {}
    if "error" in looked_up:
        is_unknown = looked_up["error"] == "not_found"
        text = order_words.NOT_FOUND if is_unknown else order_words.NOT_SEEN
        return pick(text, log.locale).format(order=order_id)
    parcel = next((step.result or {} for step in log.steps if step.tool == "track_parcel"), {})
    return order_words.order({**_order(log), "order_id": order_id}, parcel, log.locale)
