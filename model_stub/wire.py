"""Read a chat completion request: the checks of the OpenAI API, its defaults and its 400s."""

import json
from dataclasses import dataclass
from typing import Any

from model_stub import tokens
from model_stub.errors import ApiError, not_supported, wrong_type, wrong_value
from model_stub.messages import check_messages
from model_stub.toolspec import ToolChoice, check_parallel, check_tool_choice, check_tools

CONTEXT_WINDOW = 128_000
_KNOWN = frozenset({
    "messages", "model", "audio", "frequency_penalty", "logit_bias", "logprobs",
    "max_completion_tokens", "max_tokens", "metadata", "modalities", "n",
    "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key",
    "prompt_cache_retention", "reasoning_effort", "response_format", "safety_identifier",
    "seed", "service_tier", "stop", "store", "stream", "stream_options", "temperature",
    "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity",
    "web_search_options",
})  # fmt: skip
_RANGES = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
}


@dataclass(frozen=True)
class ChatRequest:
    """A checked request. `max_tokens` is None for no limit; `stop` holds at most four texts."""

    model: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    tool_choice: ToolChoice
    parallel: bool
    max_tokens: int | None
    stop: tuple[str, ...]
    stream: bool
    include_usage: bool

    @property
    def last_user_text(self) -> str:
        """The text of the newest user message, or the empty text."""
        for message in reversed(self.messages):
            if message["role"] == "user":
                return tokens.content_text(message["content"])
        return ""


def parse_body(raw: bytes) -> dict[str, Any]:
    """Return the JSON object of a request body; raise the API's 400 when it is none."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise ApiError(
            400,
            "We could not parse the JSON body of your request. The API expects a JSON payload.",
        ) from exc
    if not isinstance(body, dict):
        raise ApiError(400, "Invalid body: expected a JSON object.")
    return body


def parse_request(body: dict[str, Any]) -> ChatRequest:
    """Return the checked request; raise ApiError (400) naming the parameter at fault."""
    model = body.get("model")
    if model is None:
        raise ApiError(400, "you must provide a model parameter", param="model")
    if not isinstance(model, str):
        raise wrong_type("model", "a string", model)
    unknown = sorted(set(body) - _KNOWN)
    if unknown:
        raise ApiError(
            400,
            f"Unknown parameter: '{unknown[0]}'.",
            param=unknown[0],
            code="unknown_parameter",
        )
    messages = check_messages(body.get("messages"))
    tools = check_tools(body.get("tools"))
    _check_sampling(body)
    _check_formats(body)
    _check_length(messages, tools)
    stream = _boolean(body, "stream")
    return ChatRequest(
        model=model,
        messages=messages,
        tools=tools,
        tool_choice=check_tool_choice(body.get("tool_choice"), tools),
        parallel=check_parallel(body.get("parallel_tool_calls"), tools),
        max_tokens=_max_tokens(body),
        stop=_stop(body.get("stop")),
        stream=stream,
        include_usage=_include_usage(body, stream=stream),
    )


def _check_sampling(body: dict[str, Any]) -> None:
    for param, (low, high) in _RANGES.items():
        value = body.get(param)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong_type(param, "a decimal", value)
        if not low <= value <= high:
            raise wrong_value(param, f"{value} is not between {low} and {high}.")
    n = _integer(body, "n")
    if n is not None and n != 1:
        raise not_supported("n", "must be 1 with this model.")
    if _boolean(body, "logprobs"):
        raise not_supported("logprobs", "is not supported with this model.")


def _check_formats(body: dict[str, Any]) -> None:
    wanted = body.get("response_format")
    if wanted is None:
        return
    if not isinstance(wanted, dict):
        raise wrong_type("response_format", "an object", wanted)
    if wanted.get("type") != "text":
        raise not_supported("response_format", "must be {'type': 'text'} with this model.")


def _check_length(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> None:
    used = tokens.of_prompt(messages, tools)
    if used > CONTEXT_WINDOW:
        raise ApiError(
            400,
            f"This model's maximum context length is {CONTEXT_WINDOW} tokens. However, your "
            f"messages resulted in {used} tokens. Please reduce the length of the messages.",
            param="messages",
            code="context_length_exceeded",
        )


def _max_tokens(body: dict[str, Any]) -> int | None:
    old, new = _integer(body, "max_tokens"), _integer(body, "max_completion_tokens")
    if old is not None and new is not None:
        raise ApiError(
            400,
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
            param="max_tokens",
        )
    param, value = ("max_tokens", old) if new is None else ("max_completion_tokens", new)
    if value is not None and value < 1:
        raise ApiError(
            400,
            f"Invalid '{param}': integer below minimum value. Expected a value >= 1, "
            f"but got {value} instead.",
            param=param,
            code="integer_below_min_value",
        )
    return value


def _stop(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    stops = [value] if isinstance(value, str) else value
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise wrong_type("stop", "one of a string or array of strings", value)
    if len(stops) > 4:
        raise wrong_value("stop", "array too long, at most 4 texts.")
    return tuple(stop for stop in stops if stop)


def _include_usage(body: dict[str, Any], *, stream: bool) -> bool:
    options = body.get("stream_options")
    if options is None:
        return False
    if not stream:
        raise ApiError(
            400,
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            param="stream_options",
        )
    if not isinstance(options, dict):
        raise wrong_type("stream_options", "an object", options)
    return _boolean(options, "include_usage", prefix="stream_options.")


def _boolean(body: dict[str, Any], param: str, *, prefix: str = "") -> bool:
    value = body.get(param)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise wrong_type(prefix + param, "a boolean", value)
    return value


def _integer(body: dict[str, Any], param: str) -> int | None:
    value = body.get(param)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(param, "an integer", value)
    return value
