"""Whole HTTP answers of a model, well formed and not, and a server that gives them."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import LazySettings

from agents import llm
from tests.clients.canned import CannedServer, answer, canned_server

TOOL = {
    "type": "function",
    "function": {
        "name": "find_orders",
        "description": "Look up the customer's orders.",
        "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}},
    },
}
ASKED = [{"role": "user", "content": "Where is order 1042?"}]


def ask(**changes: Any) -> llm.ModelReply:
    arguments: dict[str, Any] = {
        "model": "m",
        "messages": ASKED,
        "tools": [TOOL],
        "tool_choice": "auto",
        "max_output_tokens": 100,
    }
    return llm.complete(**arguments | changes)


def delta(reason: str | None = None, **content: Any) -> dict[str, Any]:
    """One chunk of a stream."""
    choice = {"index": 0, "delta": content, "finish_reason": reason}
    return {"id": "chatcmpl-1", "model": "m-2", "choices": [choice]}


def call(index: int = 0, arguments: str = "{}", **more: Any) -> dict[str, Any]:
    """One piece of a tool call."""
    piece: dict[str, Any] = {"index": index, "id": f"call_{index}"} | more
    piece["function"] = {"name": piece.pop("name", "find_orders"), "arguments": arguments}
    return piece


def stream(*chunks: Any, done: bool = True) -> bytes:
    """A whole HTTP answer. A chunk that is bytes is sent as it is."""
    events = [
        chunk if isinstance(chunk, bytes) else f"data: {json.dumps(chunk)}\n\n".encode()
        for chunk in chunks
    ]
    if done:
        events.append(b"data: [DONE]\n\n")
    return answer(b"".join(events), content_type="text/event-stream")


def finished_with(*calls: dict[str, Any], reason: str = "tool_calls") -> bytes:
    return stream(delta(tool_calls=list(calls)), delta(reason))


@pytest.fixture
def says(settings: LazySettings) -> Iterator[Callable[..., CannedServer]]:
    """Put a server that gives these answers in the model's place."""
    servers = []

    def start(*answers: bytes) -> CannedServer:
        context = canned_server(*answers)
        servers.append(context)
        server = context.__enter__()
        settings.OPENAI_BASE_URL = f"{server.url}/v1"
        settings.OPENAI_API_KEY = "key-of-the-shop"
        return server

    yield start
    for context in servers:
        context.__exit__(None, None, None)
