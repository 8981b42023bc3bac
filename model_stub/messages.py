"""Check the `messages` of a chat completion request as the OpenAI API does."""

import re
from typing import Any

from model_stub.errors import ApiError, missing, not_supported, wrong_type, wrong_value

ROLES = ("system", "developer", "user", "assistant", "tool")
_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
_MAX_MESSAGES = 2048


def check_messages(value: object) -> list[dict[str, Any]]:
    """Return the messages; raise the API's 400 with `param` for the first fault found."""
    if value is None:
        raise missing("messages")
    if not isinstance(value, list):
        raise wrong_type("messages", "an array of objects", value)
    if not value:
        raise ApiError(
            400,
            "Invalid 'messages': empty array. Expected an array with minimum length 1, "
            "but got an empty array instead.",
            param="messages",
            code="empty_array",
        )
    if len(value) > _MAX_MESSAGES:
        raise wrong_value("messages", f"array too long, at most {_MAX_MESSAGES} messages.")
    for index, message in enumerate(value):
        _check_message(message, f"messages[{index}]")
    _check_tool_pairs(value)
    return value


def _check_message(message: object, at: str) -> None:
    if not isinstance(message, dict):
        raise wrong_type(at, "an object", message)
    role = message.get("role")
    if role is None:
        raise missing(f"{at}.role")
    if role not in ROLES:
        names = ", ".join(f"'{name}'" for name in ROLES)
        raise wrong_value(f"{at}.role", f"'{role}'. Supported values are: {names}.")
    name = message.get("name")
    if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise wrong_value(f"{at}.name", "up to 64 characters without spaces are expected.")
    if role == "assistant":
        _check_assistant(message, at)
    else:
        _check_content(message.get("content"), f"{at}.content", required=True)
    if role == "tool":
        _need_text(message.get("tool_call_id"), f"{at}.tool_call_id")


def _check_assistant(message: dict[str, Any], at: str) -> None:
    calls = message.get("tool_calls")
    _check_content(message.get("content"), f"{at}.content", required=calls is None)
    if calls is None:
        return
    if not isinstance(calls, list):
        raise wrong_type(f"{at}.tool_calls", "an array of objects", calls)
    if not calls:
        raise ApiError(
            400,
            f"Invalid '{at}.tool_calls': empty array. Expected an array with minimum length 1, "
            "but got an empty array instead.",
            param=f"{at}.tool_calls",
            code="empty_array",
        )
    for index, call in enumerate(calls):
        _check_call(call, f"{at}.tool_calls[{index}]")


def _check_call(call: object, at: str) -> None:
    if not isinstance(call, dict):
        raise wrong_type(at, "an object", call)
    _need_text(call.get("id"), f"{at}.id")
    if call.get("type") != "function":
        raise wrong_value(f"{at}.type", "'function' is expected.")
    function = call.get("function")
    if not isinstance(function, dict):
        raise wrong_type(f"{at}.function", "an object", function)
    _need_text(function.get("name"), f"{at}.function.name")
    if not isinstance(function.get("arguments"), str):
        raise wrong_type(f"{at}.function.arguments", "a string", function.get("arguments"))


def _check_content(content: object, at: str, *, required: bool) -> None:
    if content is None:
        if required:
            raise wrong_type(at, "one of a string or array of objects", content)
        return
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise wrong_type(at, "one of a string or array of objects", content)
    for index, part in enumerate(content):
        _check_part(part, f"{at}[{index}]")


def _check_part(part: object, at: str) -> None:
    if not isinstance(part, dict):
        raise wrong_type(at, "an object", part)
    kind = part.get("type")
    if kind not in ("text", "refusal"):
        raise not_supported(f"{at}.type", "is not supported with this model: send text parts only.")
    if not isinstance(part.get(kind), str):
        raise wrong_type(f"{at}.{kind}", "a string", part.get(kind))


def _need_text(value: object, at: str) -> None:
    if value is None:
        raise missing(at)
    if not isinstance(value, str):
        raise wrong_type(at, "a string", value)


def _check_tool_pairs(messages: list[dict[str, Any]]) -> None:
    """Each tool call is answered at once, and each tool message answers a call."""
    open_ids: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                raise ApiError(
                    400,
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceding message with 'tool_calls'.",
                    param=f"messages.[{index}].role",
                )
            open_ids.remove(message["tool_call_id"])
            continue
        _none_left(open_ids, index)
        open_ids = [call["id"] for call in message.get("tool_calls") or ()]
    _none_left(open_ids, len(messages))


def _none_left(open_ids: list[str], index: int) -> None:
    if open_ids:
        raise ApiError(
            400,
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(open_ids),
            param=f"messages.[{index}].role",
        )
