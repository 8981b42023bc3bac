"""A model's streamed reply, read with distrust: server-sent events in, one capped reply out.

No I/O and no clock: the bytes come from `agents.llm`, which also bounds the time.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

MAX_CALLS = 8
MAX_ARGUMENTS = 16_384  # characters; the gateway parses no more than these anyway
MAX_EVENT = 1_048_576  # bytes of one server-sent event
MAX_TOKENS = 100_000_000
DONE = "[DONE]"

# A reply that ended for any other reason is not known to be whole.
_WHOLE = frozenset({"stop", "tool_calls", "function_call"})
_KNOWN_ENDS = _WHOLE | {"length", "content_filter"}
# What providers accept when the reply is sent back to them as history.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}", re.ASCII)
UNREADABLE_NAME = "unreadable_name"


class UnreadableError(ValueError):
    """The stream is not one of chat completion chunks. The message quotes none of it."""


class StreamFaultError(Exception):
    """The provider reported an error inside the stream."""


@dataclass(frozen=True)
class Usage:
    """Tokens as the provider counted them; `cached` is the part of `prompt` that it remembered."""

    prompt: int
    cached: int
    completion: int


@dataclass(frozen=True)
class ToolCall:
    """One call as proposed. `arguments` is unparsed text and may be anything but NUL.

    `id` is unique within its reply. A name that no tool could have is UNREADABLE_NAME.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class ModelReply:
    """What the model said.

    `finish_reason` is "stop", "tool_calls", "function_call", "length", "content_filter", "cut"
    (ended here, at a cap) or "other". A reply that is not known to be whole `is_truncated` and
    has no calls. `usage` None means that the charge is unknown.
    """

    text: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str
    usage: Usage | None
    model: str
    response_id: str
    is_truncated: bool = False

    def as_result(self, n: int) -> dict[str, Any]:
        """What the log keeps of it as the result of step n.

        The calls get ids of our own: a model may leave them out or use one twice.
        """
        return {
            "text": self.text,
            "tool_calls": [
                {"id": f"call_{n}_{index}", "name": call.name, "arguments": call.arguments}
                for index, call in enumerate(self.tool_calls, start=1)
            ],
            "finish_reason": self.finish_reason,
            "is_truncated": self.is_truncated,
            "response_id": self.response_id,
        }


@dataclass
class _Call:
    """A call while it arrives in pieces."""

    index: int
    id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ReplyReader:
    """Puts a reply together from its chunks, up to `max_chars` characters of text and calls.

    `on_text` is told each piece of text as it comes, cleaned. Calls are kept only when
    `may_call`: one that was not invited never leaves here.
    """

    def __init__(
        self, *, max_chars: int, may_call: bool, on_text: Callable[[str], None] | None = None
    ) -> None:
        self.has_choice = False
        self.finish_reason = ""
        self._left = max_chars
        self._may_call = may_call
        self._on_text = on_text
        self._text: list[str] = []
        self._half = ""
        self._calls: list[_Call] = []
        self._usage: Usage | None = None
        self._model = ""
        self._id = ""

    @property
    def is_full(self) -> bool:
        """True once the reply has reached its cap; what follows is not wanted."""
        return self._left <= 0

    @property
    def is_empty(self) -> bool:
        """True while there is neither a call nor text other than blanks."""
        return not self._calls and not "".join(self._text).strip()

    def take(self, chunk: dict[str, Any]) -> None:
        """Add one chunk. Raises StreamFaultError when it reports an error."""
        if chunk.get("error"):
            raise StreamFaultError(_message(chunk["error"]))
        self._id = self._id or _label(chunk.get("id"))
        self._model = self._model or _label(chunk.get("model"))
        self._usage = read_usage(chunk.get("usage")) or self._usage
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._take_choice(choice)

    def reply(self, *, is_cut: bool = False) -> ModelReply:
        """The reply so far. `is_cut` when it was ended here and not by the model."""
        self._say(self._half, is_last=True)
        reason = "cut" if is_cut else self.finish_reason
        is_truncated = reason not in _WHOLE
        return ModelReply(
            text="".join(self._text),
            tool_calls=() if is_truncated else _finished(self._calls),
            finish_reason=reason,
            usage=None if is_cut else self._usage,
            model=self._model,
            response_id=self._id,
            is_truncated=is_truncated,
        )

    def _take_choice(self, choice: dict[str, Any]) -> None:
        self.has_choice = True
        delta = choice.get("delta")
        if isinstance(delta, dict):
            for key in ("content", "refusal"):
                if isinstance(delta.get(key), str):
                    self._say(self._half + self._within(delta[key]))
            calls = delta.get("tool_calls")
            for piece in calls if isinstance(calls, list) and self._may_call else ():
                if isinstance(piece, dict):
                    self._take_call(piece)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason if reason in _KNOWN_ENDS else "other"

    def _within(self, text: str) -> str:
        """The part of a piece that the cap still allows."""
        piece = text[: max(self._left, 0)]
        self._left -= len(text)
        return piece

    def _say(self, text: str, *, is_last: bool = False) -> None:
        """Keep text and pass it on. Half a character waits for its other half."""
        self._half = ""
        if text and not is_last and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        text = clean(text)
        if not text:
            return
        self._text.append(text)
        if self._on_text is not None:
            self._on_text(text)

    def _take_call(self, piece: dict[str, Any]) -> None:
        call = self._call_of(piece)
        function = piece.get("function")
        if call is None or not isinstance(function, dict):
            return
        name, arguments = function.get("name"), function.get("arguments")
        # Some servers repeat the name in every chunk.
        if isinstance(name, str) and name != call.name:
            call.name += self._within(name)
        if isinstance(arguments, str):
            call.arguments.append(self._within(arguments))

    def _call_of(self, piece: dict[str, Any]) -> _Call | None:
        """The call that a piece belongs to; None when there are too many of them.

        The index tells. Some servers give every call the index 0, or none at all: then a new id
        opens a new call.
        """
        index, call_id = piece.get("index"), piece.get("id")
        if isinstance(index, bool) or not isinstance(index, int):
            index = 0
        if not isinstance(call_id, str):
            call_id = ""
        for call in reversed(self._calls):
            if call.index == index and (not call_id or call.id in ("", call_id)):
                call.id = call.id or call_id
                return call
        if len(self._calls) >= MAX_CALLS:
            return None
        self._calls.append(_Call(index=index, id=self._within(call_id)))
        return self._calls[-1]


def read_events(pieces: Iterable[bytes]) -> Iterator[str]:
    """The data of each server-sent event. Raises UnreadableError for one beyond MAX_EVENT."""
    data: list[str] = []
    for line in _lines(pieces):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []
    if data:
        yield "\n".join(data)


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace").removesuffix("\r")
        if len(rest) > MAX_EVENT:
            raise UnreadableError("an event is too large")
    if rest:
        yield rest.decode("utf-8", "replace").removesuffix("\r")


def read_chunk(data: str) -> dict[str, Any]:
    """One event's JSON object. Raises UnreadableError for anything else."""
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise UnreadableError("an event is not JSON") from exc
    if not isinstance(chunk, dict):
        raise UnreadableError("an event is not an object")
    return chunk


def read_usage(value: object) -> Usage | None:
    """The counts of a `usage` object; None when they are missing or make no sense."""
    if not isinstance(value, dict):
        return None
    prompt = _count(value.get("prompt_tokens"))
    completion = _count(value.get("completion_tokens"))
    if prompt is None or completion is None:
        return None
    details = value.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return Usage(prompt, min(cached or 0, prompt), completion)


def clean(text: str) -> str:
    """Without NUL, which PostgreSQL refuses, and with half characters joined or replaced."""
    if text.isascii():
        return text.replace("\0", "")
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\0", "")


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MAX_TOKENS else None


def _finished(calls: list[_Call]) -> tuple[ToolCall, ...]:
    given = {call.id for call in calls}
    used: set[str] = set()
    finished = []
    for number, call in enumerate(calls, start=1):
        call_id = call.id
        if not _ID.fullmatch(call_id) or call_id in used:
            call_id = f"call_{number}"
            while call_id in used or call_id in given:
                call_id += "_"
        used.add(call_id)
        name = call.name if _NAME.fullmatch(call.name) else UNREADABLE_NAME
        finished.append(ToolCall(call_id, name, _arguments("".join(call.arguments))))
    return tuple(finished)


def _arguments(text: str) -> str:
    """Arguments as they came; too long ones become a remark that parses as nothing.

    Their first part alone could be valid JSON that says something else.
    """
    if len(text) > MAX_ARGUMENTS:
        return f"(arguments of {len(text)} characters)"
    return clean(text)


def _label(value: object) -> str:
    return clean(value[:80]) if isinstance(value, str) else ""


def _message(error: object) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""
