"""A memory of the calls received, for tests that ask what was sent and how often."""

import hashlib
import itertools
import threading
from collections import deque
from datetime import UTC, datetime
from typing import Any

from model_stub import tokens

KEPT_CALLS = 10_000
KEPT_BODIES = 200


def prefix_digest(body: dict[str, Any]) -> str | None:
    """Return the SHA-256 of the static head of a prompt: tool list and first message.

    Two prompts share the digest only if a provider's prompt cache could serve the one's head for
    the other. None when the body has no readable first message.
    """
    messages = body.get("messages")
    if not (isinstance(messages, list) and messages):
        return None
    head = tokens.canonical([body.get("tools"), messages[0]])
    return hashlib.sha256(head.encode("utf-8", "surrogatepass")).hexdigest()


class CallLog:
    """The newest calls in order of arrival, the newest bodies beside them."""

    def __init__(self) -> None:
        self._calls: deque[dict[str, Any]] = deque(maxlen=KEPT_CALLS)
        self._bodies: dict[int, str] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def start(self, raw: bytes) -> dict[str, Any]:
        """Note a call that has just arrived; the caller completes the returned entry."""
        number = next(self._numbers)
        entry: dict[str, Any] = {
            "id": number,
            "at": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "model": None,
            "messages": None,
            "tools": None,
            "tool_choice": None,
            "stream": None,
            "max_tokens": None,
            "prefix_sha256": None,
            "status": None,
            "finish_reason": None,
            "tool_calls": [],
            "usage": None,
            "faults": [],
        }
        with self._lock:
            self._calls.append(entry)
            self._bodies[number] = raw.decode("utf-8", "replace")
            self._bodies.pop(number - KEPT_BODIES, None)
        return entry

    def listed(self) -> list[dict[str, Any]]:
        """Return the calls, oldest first."""
        with self._lock:
            return [dict(entry) for entry in self._calls]

    def body(self, number: int) -> str | None:
        """Return the body of a call as it arrived; None when it is no longer kept."""
        with self._lock:
            return self._bodies.get(number)

    def clear(self) -> None:
        """Forget every call and body."""
        with self._lock:
            self._calls.clear()
            self._bodies.clear()


def describe(entry: dict[str, Any], body: dict[str, Any]) -> None:
    """Write what a request asked for into its entry, whether it is valid or not."""
    messages, tools = body.get("messages"), body.get("tools")
    entry["model"] = body.get("model")
    entry["messages"] = len(messages) if isinstance(messages, list) else None
    entry["tools"] = len(tools) if isinstance(tools, list) else 0
    entry["tool_choice"] = body.get("tool_choice")
    entry["stream"] = body.get("stream") is True
    entry["max_tokens"] = body.get("max_completion_tokens") or body.get("max_tokens")
    entry["prefix_sha256"] = prefix_digest(body)
