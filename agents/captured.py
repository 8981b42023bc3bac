"""What goes into a span of what was said, when the operator asks for it; off unless they do.

Card numbers were hidden before anything was kept (agents.cards) and are looked for again, since the
shop's own records may hold one. The customer's name, e-mail address and number are left out wherever
they stand, and so are addresses and notes where they are fields of their own. What people wrote in
their own words stays: whoever switches this on lets the collector hold personal data.
"""

import json
import re
from typing import Any

from agents.cards import hide_cards
from agents.outcomes import ModelAnswered, OperationStands, StepOutcome, ToolExamined
from agents.store import Claim
from tools import gateway
from tools.operations import result as result_of

LEFT_OUT = "[left out]"
MAX_TEXT = 4_000  # characters of one text
_FIELDS = frozenset(
    {"address", "shipping_address", "new_address", "old_address", "notes", "events", "email"}
)
# A name shorter than this is a part of too many other words.
_SHORTEST = 3


def of_chat(held: Claim, outcome: StepOutcome) -> dict[str, str]:
    """The messages that the model was sent, and what it said, by the conventions' JSON schemas."""
    request = held.model_request
    hide = _Hider(held)
    told = {}
    if request is not None:
        told["gen_ai.input.messages"] = _json([_sent(hide, each) for each in request.messages])
    if isinstance(outcome, ModelAnswered):
        reply = outcome.reply
        parts = [{"type": "text", "content": hide.text(reply.text)}] if reply.text else []
        parts += [_call_part(hide, call.id, call.name, call.arguments) for call in reply.tool_calls]
        said = {"role": "assistant", "parts": parts, "finish_reason": reply.finish_reason}
        told["gen_ai.output.messages"] = _json([said])
    return told


def of_tool(held: Claim, outcome: StepOutcome) -> dict[str, str]:
    """The arguments of a call, and what came of it."""
    hide = _Hider(held)
    told = {"gen_ai.tool.call.arguments": _json(hide.json(held.step.arguments))}
    match outcome:
        case ToolExamined(gateway.Answered() | gateway.Refused() as examined):
            told["gen_ai.tool.call.result"] = _json(hide.value(examined.result))
        case OperationStands(operation):
            told["gen_ai.tool.call.result"] = _json(hide.value(result_of(operation)))
    return told


class _Hider:
    """Takes out of a value whatever names the customer."""

    def __init__(self, held: Claim) -> None:
        customer = held.task.customer
        words = {customer.external_id, customer.email, customer.name, *customer.name.split()}
        longest_first = sorted((word for word in words if len(word) >= _SHORTEST), key=len)[::-1]
        named = "|".join(re.escape(word) for word in longest_first)
        self._named = re.compile(rf"(?<!\w)(?:{named})(?!\w)", re.IGNORECASE) if named else None

    def text(self, text: str) -> str:
        # Half a character cannot be sent, and would take the others of its batch with it.
        text = hide_cards(text.encode("utf-8", "replace").decode()).text
        if self._named is not None:
            text = self._named.sub(LEFT_OUT, text)
        return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"

    def json(self, text: str) -> Any:
        """The value that a text of JSON stands for; the text itself where it is none."""
        try:
            return self.value(json.loads(text))
        except (ValueError, RecursionError):  # the model may nest as deep as it likes
            return self.text(text)

    def value(self, value: Any) -> Any:
        match value:
            case dict():
                return {
                    self.text(str(key)): LEFT_OUT if key in _FIELDS else self.value(inner)
                    for key, inner in value.items()
                }
            case list() | tuple():
                return [self.value(inner) for inner in value]
            case str():
                return self.text(value)
            case _:
                return value


def _sent(hide: _Hider, message: dict[str, Any]) -> dict[str, Any]:
    """One message as the conventions write it: a role, and parts."""
    content = message.get("content")
    if message["role"] == "tool":
        answered = {
            "type": "tool_call_response",
            "id": message["tool_call_id"],
            "response": hide.json(str(content)),
        }
        return {"role": "tool", "parts": [answered]}
    parts = [{"type": "text", "content": hide.text(content)}] if content else []
    for call in message.get("tool_calls", ()):
        function = call["function"]
        parts.append(_call_part(hide, call["id"], function["name"], function["arguments"]))
    return {"role": message["role"], "parts": parts}


def _call_part(hide: _Hider, call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": hide.json(arguments)}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
