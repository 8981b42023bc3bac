"""A reply before it is sent, and its two shapes: one completion object, or stream chunks."""

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from model_stub import tokens
from model_stub.wire import ChatRequest

FINGERPRINT = "fp_countersign1"
_PIECE = re.compile(r"\s*\S+|\s+")
_ARGUMENT_PIECE = 12


@dataclass(frozen=True)
class ToolCall:
    """One function call. `arguments` is the text as it goes out, valid JSON or not."""

    name: str
    arguments: str
    id: str = field(default_factory=lambda: "call_" + secrets.token_hex(12))


@dataclass(frozen=True)
class Reply:
    """What the model says.

    `finish_reason` None means the natural one. `usage` None means that it is counted; `has_usage`
    False leaves it out of the answer. `has_choice` False sends `choices: []`. `endless` adds that
    many pieces of filler to a stream.
    """

    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    has_usage: bool = True
    has_choice: bool = True
    endless: int = 0

    @property
    def reason(self) -> str:
        """The finish reason to send."""
        if self.finish_reason is not None:
            return self.finish_reason
        return "tool_calls" if self.tool_calls else "stop"

    @property
    def completion_tokens(self) -> int:
        """The tokens of the content and of every call."""
        calls = sum(
            tokens.count(call.name) + tokens.count(call.arguments) for call in self.tool_calls
        )
        return tokens.count(self.content or "") + calls


def limited(reply: Reply, request: ChatRequest) -> Reply:
    """Return the reply as `stop` and the token limit of the request leave it."""
    content = reply.content
    if content is not None:
        for stop in request.stop:
            content = content.split(stop, 1)[0]
        reply = replace(reply, content=content)
    if request.max_tokens is None or reply.completion_tokens <= request.max_tokens:
        return reply
    return _cut(reply, request.max_tokens)


def _cut(reply: Reply, max_tokens: int) -> Reply:
    """Cut content first to last, then calls: a call cut off keeps the start of its arguments."""
    left = max_tokens * tokens.CHARS_PER_TOKEN
    content = reply.content[:left] if reply.content is not None else None
    left -= len(content or "")
    calls = []
    for call in reply.tool_calls:
        if left <= len(call.name):
            break
        left -= len(call.name)
        calls.append(replace(call, arguments=call.arguments[:left]))
        left -= len(calls[-1].arguments)
    return replace(reply, content=content, tool_calls=tuple(calls), finish_reason="length")


def usage_of(reply: Reply, request: ChatRequest) -> dict[str, Any]:
    """Return the `usage` object for this reply to this request."""
    if reply.usage is not None:
        return reply.usage
    prompt = tokens.of_prompt(request.messages, request.tools)
    completion = reply.completion_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {
            "cached_tokens": tokens.cached(request.messages, request.tools),
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def new_completion_id() -> str:
    """Return a fresh id of a completion."""
    return "chatcmpl-" + secrets.token_hex(14)


def completion(
    reply: Reply, request: ChatRequest, *, completion_id: str, created: int
) -> dict[str, Any]:
    """Return the `chat.completion` object. `created` is in Unix seconds."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": reply.content,
        "refusal": None,
        "annotations": [],
    }
    if reply.tool_calls:
        message["tool_calls"] = [_call_object(call) for call in reply.tool_calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.reason}
    body = _envelope("chat.completion", request, completion_id, created)
    body["choices"] = [choice] if reply.has_choice else []
    if reply.has_usage:
        body["usage"] = usage_of(reply, request)
    return body


def _call_object(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _envelope(kind: str, request: ChatRequest, completion_id: str, created: int) -> dict[str, Any]:
    return {
        "id": completion_id,
        "object": kind,
        "created": created,
        "model": request.model,
        "service_tier": "default",
        "system_fingerprint": FINGERPRINT,
    }


def chunks(
    reply: Reply, request: ChatRequest, *, completion_id: str, created: int
) -> Iterator[dict[str, Any]]:
    """Yield the `chat.completion.chunk` objects of a streamed reply, the usage chunk last.

    With `include_usage` every chunk before the usage chunk carries `usage: null`.
    """
    head = _envelope("chat.completion.chunk", request, completion_id, created)
    if request.include_usage and reply.has_usage:
        head["usage"] = None
    for delta, reason in _deltas(reply) if reply.has_choice else ():
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        yield {**head, "choices": [choice]}
    if not reply.has_choice:
        yield {**head, "choices": []}
    if request.include_usage and reply.has_usage:
        yield {**head, "choices": [], "usage": usage_of(reply, request)}


def _deltas(reply: Reply) -> Iterator[tuple[dict[str, Any], str | None]]:
    first = None if reply.tool_calls and not reply.content else ""
    yield {"role": "assistant", "content": first, "refusal": None}, None
    for piece in pieces(reply.content or ""):
        yield {"content": piece}, None
    for _ in range(reply.endless):
        yield {"content": " and on"}, None
    for index, call in enumerate(reply.tool_calls):
        opening = _call_object(replace(call, arguments=""))
        yield {"tool_calls": [{"index": index, **opening}]}, None
        for start in range(0, len(call.arguments), _ARGUMENT_PIECE):
            fragment = {"arguments": call.arguments[start : start + _ARGUMENT_PIECE]}
            yield {"tool_calls": [{"index": index, "function": fragment}]}, None
    yield {}, reply.reason


def pieces(text: str) -> list[str]:
    """Return `text` cut at its words; the pieces joined are the text again."""
    return _PIECE.findall(text)
