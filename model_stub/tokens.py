"""A token count that is close enough for budgets: about four characters to a token."""

import json
from collections.abc import Sequence
from typing import Any

CHARS_PER_TOKEN = 4
MESSAGE_OVERHEAD = 4
REPLY_PRIMER = 3
CACHE_MINIMUM = 1024
CACHE_STEP = 128


def count(text: str) -> int:
    """Return the number of tokens of `text`; 0 only for the empty text."""
    return -(-len(text) // CHARS_PER_TOKEN)


def canonical(value: object) -> str:
    """Return `value` as the JSON text that is counted and hashed: key order is the sender's."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def of_tools(tools: Sequence[dict[str, Any]]) -> int:
    """Return the tokens that a list of tool definitions takes in the prompt."""
    return count(canonical(list(tools))) if tools else 0


def of_message(message: dict[str, Any]) -> int:
    """Return the tokens of one message, its tool calls and a fixed overhead included."""
    total = MESSAGE_OVERHEAD + count(content_text(message.get("content")))
    for call in message.get("tool_calls") or ():
        function = call["function"]
        total += count(function["name"]) + count(function["arguments"])
    return total


def of_prompt(messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> int:
    """Return the tokens of a whole prompt."""
    return of_tools(tools) + sum(map(of_message, messages)) + REPLY_PRIMER


def cached(messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> int:
    """Return how many prompt tokens a provider's prompt cache would serve.

    Stateless: the static head of a prompt (tool list and first system message) counts as cached
    when it is long enough to be cacheable at all, in whole steps of 128 tokens.
    """
    head = of_tools(tools)
    if messages and messages[0]["role"] in ("system", "developer"):
        head += of_message(messages[0])
    return head - head % CACHE_STEP if head >= CACHE_MINIMUM else 0


def content_text(content: object) -> str:
    """Return the text of a message's content: a string, a list of text parts or null."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part.get("text") or part.get("refusal") or "" for part in content)
    return ""
