"""The one place that speaks to the model: OpenAI chat completions over HTTP, always streamed.

Everything about a reply is hostile until it was checked: how long it is and how long it takes
here, its shape, characters and tool calls in `agents.replies`. What the arguments of a call say is
not judged in either; that is the gateway's business.
"""

import json
import math
import os
import threading
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any, Literal, cast

import httpx2
import openai
from django.conf import settings

from agents.replies import (
    DONE,
    ModelReply,
    ReplyReader,
    StreamFaultError,
    ToolCall,
    UnreadableError,
    Usage,
    read_chunk,
    read_events,
)
from agents.transport import BoundedTransport, OutOfRoomError, OutOfTimeError
from tools.text import clean

__all__ = [
    "ModelRefusedError",
    "ModelReply",
    "ModelUnavailableError",
    "ToolCall",
    "Usage",
    "complete",
    "cost",
    "estimate_tokens",
    "takes_temperature",
]

CONNECT_SECONDS = 5
TEMPERATURE = 0
CHARS_PER_TOKEN = 8  # more than any tokenizer's average: beyond it a reply ignores its limit
MAX_RETRY_AFTER = 3600.0

# Framing that a provider adds: role markers around a message, the schema dialect around a tool.
TOKENS_PER_MESSAGE = 16
TOKENS_PER_TOOL = 16

_NOT_CHARGED = frozenset({"connect", "rate_limited", "no_quota"})
_REFUSALS = {401: "not_authenticated", 403: "forbidden", 404: "not_found"}
_PASSING = frozenset({408, 409, 425, 429})


class ModelUnavailableError(Exception):
    """The model gave no usable reply this time; trying again later may help.

    `kind` is one of connect, timeout, reset, rate_limited, no_quota, server_error, stream_cut,
    unreadable, empty. `retry_after` is in seconds, when the provider named a time. `detail` is
    for the operator's log: cut, its odd characters shown, never to be shown to a customer.
    """

    def __init__(self, kind: str, retry_after: float | None = None, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind
        self.retry_after = retry_after
        self.detail = detail

    @property
    def may_be_charged(self) -> bool:
        """Whether the provider may have done, and so charged, the work."""
        return self.kind not in _NOT_CHARGED


class ModelRefusedError(Exception):
    """The endpoint refuses the request itself: a fault of the configuration, or of what was sent.

    `kind` is one of not_authenticated, forbidden, not_found, too_long, bad_request, redirected.
    `detail` as in ModelUnavailableError.
    """

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind
        self.detail = detail


def complete(
    *,
    model: str,
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]],
    tool_choice: Literal["auto", "none"],
    max_output_tokens: int,
    on_text: Callable[[str], None] | None = None,
) -> ModelReply:
    """Ask the model once and give its checked reply. Retries are the caller's business.

    `on_text` is called with each piece of text as it arrives, in this thread. A reply that runs
    past 8 characters a token, or past settings.MODEL_TIMEOUT seconds, is cut: its text so far is
    returned with finish_reason "cut" and no calls. A truncated call is never returned, nor is one
    made under `tool_choice="none"`. The call ends within twice MODEL_TIMEOUT whatever the server
    does. Raises ModelUnavailableError and ModelRefusedError, and whatever `on_text` raises.
    """
    reader = ReplyReader(
        max_chars=max_output_tokens * CHARS_PER_TOKEN,
        may_call=bool(tools) and tool_choice == "auto",
        on_text=on_text,
    )
    body = _body(model, messages, tools, tool_choice, max_output_tokens)
    response = _open_as_understood(body)
    try:
        return _read(response, reader)
    except (OutOfTimeError, OutOfRoomError) as exc:
        if reader.is_empty:
            raise _lost(exc) from None
        return reader.reply(is_cut=True)
    except httpx2.TransportError as exc:
        raise _lost(exc) from None
    except StreamFaultError as exc:
        raise ModelUnavailableError("server_error", detail=_detail(str(exc))) from None
    except (UnreadableError, httpx2.DecodingError) as exc:
        raise ModelUnavailableError("unreadable", detail=_detail(str(exc))) from None
    finally:
        response.close()


def takes_temperature(model: str) -> bool:
    """Whether the model is sent TEMPERATURE: all are, but those that were found to refuse one."""
    return (settings.OPENAI_BASE_URL, model, "temperature") not in _not_taken


def estimate_tokens(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> int:
    """An upper bound of the prompt's tokens, cheap enough to take before every call.

    One token for each byte of what others wrote: a token of a byte-level tokenizer covers at
    least one byte, so no text, however odd, costs more. One for two bytes of what is our own
    (system messages and tools), plain English and JSON schemas that come to four bytes a token.
    """
    ours = sum(_size(tool) for tool in tools)
    theirs = 0
    for message in messages:
        if message.get("role") == "system":
            ours += _size(message.get("content"))
        else:
            theirs += _size(message.get("content")) + _size(message.get("tool_calls"))
    framing = len(messages) * TOKENS_PER_MESSAGE + len(tools) * TOKENS_PER_TOOL
    return (ours + 1) // 2 + theirs + framing


def cost(usage: Usage) -> int:
    """The price of these tokens in millionths of a US dollar, rounded up.

    Remembered prompt tokens are priced like any other: the bound holds whatever the provider's
    discount.
    """
    thousandths = (
        usage.prompt * settings.MODEL_PRICE_INPUT + usage.completion * settings.MODEL_PRICE_OUTPUT
    )
    return -(-thousandths // 1000)


def _size(value: object) -> int:
    """Bytes of UTF-8, of the text itself or else of its JSON."""
    if not value:
        return 0
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return len(text.encode("utf-8", "surrogatepass"))


def _body(
    model: str,
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]],
    tool_choice: str,
    max_output_tokens: int,
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": model,
        "messages": messages,
        "temperature": TEMPERATURE,
        "max_completion_tokens": max_output_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if tools:
        body |= {"tools": tools, "tool_choice": tool_choice}
    return body


# --- The wire ---------------------------------------------------------------------------------


class _Line:
    """The process's one client, made anew when the configuration or the process is another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made_for: tuple[str, str, float] | None = None
        self._client: openai.OpenAI | None = None

    def client(self, base_url: str, api_key: str, seconds: float) -> openai.OpenAI:
        wanted = (base_url, api_key, seconds)
        with self._lock:
            if self._client is None or self._made_for != wanted:
                if self._client is not None:
                    self._client.close()
                self._client = _new_client(base_url, api_key, seconds)
                self._made_for = wanted
            return self._client


def _new_client(base_url: str, api_key: str, seconds: float) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=base_url,
        api_key=api_key,
        max_retries=0,
        timeout=httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
        default_headers={"Accept": "text/event-stream", "Accept-Encoding": "identity"},
        http_client=httpx2.Client(
            transport=BoundedTransport(limits=httpx2.Limits(keepalive_expiry=15)),
            trust_env=False,
            follow_redirects=False,
        ),
    )


_line = _Line()


def _hang_up_in_child() -> None:
    """A connection shared by two processes would mix their replies."""
    global _line
    _line = _Line()


os.register_at_fork(after_in_child=_hang_up_in_child)


class _NotTakenError(Exception):
    """The endpoint refuses a field by name. Nothing was run, so nothing was charged."""

    def __init__(self, field: str) -> None:
        super().__init__(field)
        self.field = field


# Fields that some models or servers refuse, and what says the same to them, if anything does.
_OTHER_WORDS: dict[str, str | None] = {"temperature": None, "max_completion_tokens": "max_tokens"}
# What this process has learned to leave out: (base URL, model, field).
_not_taken: set[tuple[str, str, str]] = set()


def _open_as_understood(body: dict[str, Any]) -> httpx2.Response:
    """Send the request, in the dialect that this model was found to speak.

    Reasoning models take no temperature, older servers know only `max_tokens`. A refusal that
    names such a field is learned from and asked again at once; any other refusal is raised.
    """
    while True:  # each round has one field less that could be refused
        try:
            return _open(_translated(body))
        except _NotTakenError as exc:
            _not_taken.add((settings.OPENAI_BASE_URL, body["model"], exc.field))


def _translated(body: dict[str, Any]) -> dict[str, Any]:
    changed = dict(body)
    for field, other in _OTHER_WORDS.items():
        if (settings.OPENAI_BASE_URL, body["model"], field) in _not_taken:
            value = changed.pop(field)
            if other is not None:
                changed[other] = value
    return changed


def _refused_field(exc: openai.APIStatusError, body: dict[str, Any]) -> str | None:
    """The field that a 400 is about, if it is one that can be done without."""
    if exc.status_code not in (400, 422):
        return None
    named = (field for field in _OTHER_WORDS if field in body)
    return next((field for field in named if field in (exc.param, *exc.message.split("'"))), None)


def _open(body: dict[str, Any]) -> httpx2.Response:
    """Send the request and give the answer as soon as its head is there."""
    client = _line.client(settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY, settings.MODEL_TIMEOUT)
    try:
        # Not chat.completions.create: it costs twice the time and checks nothing of what comes.
        answer = client.post(
            "/chat/completions",
            body=body,
            cast_to=httpx2.Response,
            stream=True,
            stream_cls=openai.Stream[object],
        )
    except openai.APIStatusError as exc:
        field = _refused_field(exc, body)
        if field is not None:
            raise _NotTakenError(field) from None
        raise _status_error(exc) from None
    except openai.APIConnectionError as exc:
        raise _lost(exc.__cause__) from None
    except UnicodeEncodeError:
        raise ModelRefusedError("bad_request", "a message holds half a character") from None
    except httpx2.TransportError as exc:  # while the body of an error was read
        raise _lost(exc) from None
    return cast(httpx2.Response, answer)


def _read(response: httpx2.Response, reader: ReplyReader) -> ModelReply:
    is_done = False
    for data in read_events(response.iter_bytes()):
        if data == DONE:
            is_done = True
            break
        reader.take(read_chunk(data))
        if reader.is_full:
            return reader.reply(is_cut=True)
    if reader.finish_reason and not (
        reader.is_empty and reader.finish_reason in ("stop", "tool_calls")
    ):
        return reader.reply()
    if reader.finish_reason or (is_done and not reader.has_choice):
        raise ModelUnavailableError("empty")
    raise ModelUnavailableError("stream_cut")


def _status_error(exc: openai.APIStatusError) -> Exception:
    status = exc.status_code
    detail = _detail(exc.message)
    if status >= 500 or status in _PASSING:
        kind = "server_error"
        if status == 429:
            kind = "no_quota" if exc.code == "insufficient_quota" else "rate_limited"
        return ModelUnavailableError(kind, _retry_after(exc.response.headers), detail)
    if 300 <= status < 400:
        return ModelRefusedError("redirected", detail)
    if exc.code == "context_length_exceeded" or status == 413:
        return ModelRefusedError("too_long", detail)
    return ModelRefusedError(_REFUSALS.get(status, "bad_request"), detail)


def _lost(cause: BaseException | None) -> ModelUnavailableError:
    """The error for a connection that gave no answer, or half of one."""
    detail = _detail(str(cause))
    match cause:
        case httpx2.ConnectError() | httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return ModelUnavailableError("connect", detail=detail)
        case httpx2.TimeoutException():
            return ModelUnavailableError("timeout", detail=detail)
        case OutOfRoomError():
            return ModelUnavailableError("unreadable", detail=detail)
        case _:
            return ModelUnavailableError("reset", detail=detail)


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds to wait as the provider asks, within an hour; None when it names no time."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * scale
        except ValueError:
            continue
        if math.isfinite(seconds):
            return min(max(seconds, 0.0), MAX_RETRY_AFTER)
    try:
        at = parsedate_to_datetime(headers.get("retry-after", ""))
        return min(max(at.timestamp() - time.time(), 0.0), MAX_RETRY_AFTER)
    except (ValueError, OverflowError):
        return None


def _detail(text: str) -> str:
    """A provider's words for the log: short, visible, and without the key if it repeats that."""
    key = settings.OPENAI_API_KEY
    return clean(text.replace(key, "[key]") if key else text, 300)
