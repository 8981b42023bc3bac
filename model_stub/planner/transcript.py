"""Read the messages of a request into a transcript of what was said, called and found."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from model_stub.tokens import content_text

_FIRST_NAME = re.compile(
    r"\b(?:customer(?:['\u2019]s)?[ _]*(?:first[ _]*)?(?:name)?|first[ _]*name)\"?\s*[:=]\s*\"?"
    r"([^\W\d_][^\s\",;{}\[\]]{0,40})",
    re.IGNORECASE,
)


_NO_NAME = ("not", "none", "null", "unknown")


@dataclass(frozen=True)
class UserSaid:
    """A message of the customer: the only kind of text that can ask for something."""

    at: int
    text: str


@dataclass(frozen=True)
class AssistantSaid:
    """A finished answer of the agent or of staff.

    `is_draft` tells that it stands after a tool call. Tool calls are sent for the task under way
    only, so such an answer was never given: the customer wrote again before it could be.
    """

    at: int
    text: str
    is_draft: bool = False


@dataclass(frozen=True)
class Called:
    """A tool call of this task with its result; an unreadable result is an `unavailable` error."""

    at: int
    name: str
    args: dict[str, Any]
    result: dict[str, Any]

    @property
    def order_id(self) -> str | None:
        """The order the call was about, if any."""
        value = self.args.get("order_id")
        return str(value) if value else None

    @property
    def error(self) -> str | None:
        """The error code of the result; None for a result that is no refusal."""
        value = self.result.get("error")
        return str(value) if value else None

    @property
    def state(self) -> str:
        """The state of the operation, for tools with an effect."""
        return str(self.result.get("state", ""))


Event = UserSaid | AssistantSaid | Called


@dataclass(frozen=True)
class Transcript:
    """Events in order, and what the context says. `notices` are late words of the code."""

    events: list[Event] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    first_name: str = ""

    @property
    def calls(self) -> list[Called]:
        """Every tool call, oldest first."""
        return [event for event in self.events if isinstance(event, Called)]


def read(messages: list[dict[str, Any]]) -> Transcript:
    """Return the transcript of checked messages (each tool call has its result)."""
    results = {m["tool_call_id"]: m for m in messages if m["role"] == "tool"}
    events: list[Event] = []
    context: list[str] = []
    notices: list[str] = []
    for at, message in enumerate(messages):
        text = content_text(message.get("content"))
        role = message["role"]
        if role in ("system", "developer"):
            (notices if events else context).append(text)
        elif role == "user":
            events.append(UserSaid(at, text))
            notices.clear()
        elif role == "assistant":
            is_draft = any(isinstance(event, Called) for event in events)
            events.extend(_assistant(at, text, message, results, is_draft=is_draft))
    return Transcript(events, notices, _first_name(context))


def _assistant(
    at: int,
    text: str,
    message: dict[str, Any],
    results: dict[str, dict[str, Any]],
    *,
    is_draft: bool,
) -> list[Event]:
    calls = message.get("tool_calls")
    if not calls:
        return [AssistantSaid(at, text, is_draft)]
    return [
        Called(
            at,
            call["function"]["name"],
            _object(call["function"]["arguments"]) or {},
            _result(results, call["id"]),
        )
        for call in calls
    ]


def _result(results: dict[str, dict[str, Any]], call_id: str) -> dict[str, Any]:
    message = results.get(call_id)
    found = _object(content_text(message["content"])) if message else None
    return found if found is not None else {"error": "unavailable"}


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _first_name(context: list[str]) -> str:
    """The static rules come first and may speak of names, so the last context text wins."""
    for text in reversed(context):
        match = _FIRST_NAME.search(text)
        if match and match.group(1).lower() not in _NO_NAME:
            return match.group(1).strip(".'")
    return ""
