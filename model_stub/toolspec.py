"""Check `tools`, `tool_choice` and `parallel_tool_calls` as the OpenAI API does."""

import re
from dataclasses import dataclass
from typing import Any

from model_stub.errors import ApiError, missing, wrong_type, wrong_value

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MAX_TOOLS = 128


@dataclass(frozen=True)
class ToolChoice:
    """What the caller allows: mode `auto`, `none`, `required` or `named` (then `name`)."""

    mode: str = "auto"
    name: str | None = None


def check_tools(value: object) -> list[dict[str, Any]]:
    """Return the tool definitions (none for a missing list)."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong_type("tools", "an array of objects", value)
    if not value:
        raise ApiError(
            400,
            "Invalid 'tools': empty array. Expected an array with minimum length 1, "
            "but got an empty array instead.",
            param="tools",
            code="empty_array",
        )
    if len(value) > _MAX_TOOLS:
        raise wrong_value("tools", f"array too long, at most {_MAX_TOOLS} tools.")
    for index, tool in enumerate(value):
        _check_tool(tool, f"tools[{index}]")
    return value


def _check_tool(tool: object, at: str) -> None:
    if not isinstance(tool, dict):
        raise wrong_type(at, "an object", tool)
    if tool.get("type") != "function":
        raise wrong_value(f"{at}.type", "'function' is expected.")
    function = tool.get("function")
    if function is None:
        raise missing(f"{at}.function")
    if not isinstance(function, dict):
        raise wrong_type(f"{at}.function", "an object", function)
    name = function.get("name")
    if name is None:
        raise missing(f"{at}.function.name")
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise wrong_value(f"{at}.function.name", "must match ^[a-zA-Z0-9_-]{1,64}$.")
    parameters = function.get("parameters")
    if parameters is not None and not isinstance(parameters, dict):
        raise wrong_type(f"{at}.function.parameters", "an object", parameters)


def tool_names(tools: list[dict[str, Any]]) -> list[str]:
    """Return the names of the tools in the caller's order."""
    return [tool["function"]["name"] for tool in tools]


def check_tool_choice(value: object, tools: list[dict[str, Any]]) -> ToolChoice:
    """Return the caller's choice; without one it is `auto`, or `none` when there are no tools."""
    if value is None:
        return ToolChoice("auto" if tools else "none")
    _only_with_tools("tool_choice", tools)
    if isinstance(value, str):
        if value not in ("auto", "none", "required"):
            raise wrong_value(
                "tool_choice", f"'{value}'. Supported values are: 'none', 'auto', and 'required'."
            )
        return ToolChoice(value)
    if not isinstance(value, dict):
        raise wrong_type("tool_choice", "one of a string or object", value)
    return ToolChoice("named", _chosen_name(value, tools))


def _chosen_name(value: dict[str, Any], tools: list[dict[str, Any]]) -> str:
    function = value.get("function")
    if value.get("type") != "function" or not isinstance(function, dict):
        raise missing("tool_choice.function")
    name = function.get("name")
    if not isinstance(name, str):
        raise missing("tool_choice.function.name")
    if name not in tool_names(tools):
        raise wrong_value(
            "tool_choice", f"the tool '{name}' was not found in the 'tools' parameter."
        )
    return name


def check_parallel(value: object, tools: list[dict[str, Any]]) -> bool:
    """Return whether several calls in one reply are allowed."""
    if value is None:
        return True
    if not isinstance(value, bool):
        raise wrong_type("parallel_tool_calls", "a boolean", value)
    _only_with_tools("parallel_tool_calls", tools)
    return value


def _only_with_tools(param: str, tools: list[dict[str, Any]]) -> None:
    if not tools:
        raise ApiError(
            400,
            f"Invalid value for '{param}': '{param}' is only allowed when 'tools' are specified.",
            param=param,
        )
