"""Scripted models: given replies in a given order, for tests that need an exact conversation."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model_stub.errors import ApiError, wrong_type, wrong_value
from model_stub.replies import Reply, ToolCall

PREFIX = "script:"
_NAME = re.compile(r"[a-z0-9_-]{1,64}")
_FIELDS = {"content", "tool_calls", "finish_reason", "usage", "choices", "error"}


@dataclass(frozen=True)
class Script:
    """Replies as JSON objects; `after` says what follows the last: it again, or an error."""

    replies: tuple[dict[str, Any], ...]
    after: str = "repeat"

    def reply(self, said: int) -> Reply:
        """Return the reply for a conversation in which the model has spoken `said` times.

        Raises ApiError when the script is over and `after` is `error`, and when the reply in turn
        is an error itself.
        """
        if said >= len(self.replies) and self.after == "error":
            raise ApiError(
                400,
                f"The script has {len(self.replies)} replies and was asked for one more.",
                code="script_ended",
            )
        return _reply(self.replies[min(said, len(self.replies) - 1)])


class ScriptShelf:
    """Scripts by name: those put in at run time, else the JSON files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, Script] = {}

    def put(self, name: str, value: object) -> Script:
        """Keep a script under `name`; raise ApiError (400) when it is not one."""
        if not _NAME.fullmatch(name):
            raise wrong_value("name", "only a-z, 0-9, '_' and '-' are allowed.")
        script = parse_script(value)
        self._held[name] = script
        return script

    def clear(self) -> None:
        """Forget the scripts put in at run time; files stay."""
        self._held.clear()

    def names(self) -> list[str]:
        """Return the names of all scripts."""
        files = (path.stem for path in self._folder.glob("*.json") if _NAME.fullmatch(path.stem))
        return sorted({*self._held, *files})

    def get(self, name: str) -> Script | None:
        """Return the script, read anew from its file; None when there is none of that name."""
        if name in self._held:
            return self._held[name]
        if not _NAME.fullmatch(name):
            return None
        try:
            text = (self._folder / f"{name}.json").read_text("utf-8")
        except OSError:
            return None
        try:
            return parse_script(json.loads(text))
        except ValueError as exc:
            raise ApiError(
                500, f"The script {name}.json is not JSON.", kind="server_error"
            ) from exc


def parse_script(value: object) -> Script:
    """Return the script in `value`: a list of replies or `{"replies": […], "after": …}`."""
    if isinstance(value, list):
        value = {"replies": value}
    if not isinstance(value, dict):
        raise wrong_type("script", "an array or an object", value)
    replies, after = value.get("replies"), value.get("after", "repeat")
    if not isinstance(replies, list) or not replies:
        raise wrong_value("replies", "a list of at least one reply is expected.")
    if after not in ("repeat", "error"):
        raise wrong_value("after", "'repeat' or 'error' is expected.")
    for index, item in enumerate(replies):
        _check_reply(item, f"replies[{index}]")
    return Script(tuple(replies), after)


def _check_reply(item: object, at: str) -> None:
    if not isinstance(item, dict):
        raise wrong_type(at, "an object", item)
    unknown = sorted(set(item) - _FIELDS)
    if unknown:
        raise wrong_value(f"{at}.{unknown[0]}", f"known are: {', '.join(sorted(_FIELDS))}.")
    if not isinstance(item.get("content"), str | None):
        raise wrong_type(f"{at}.content", "a string or null", item["content"])
    if not isinstance(item.get("usage"), dict | None):
        raise wrong_type(f"{at}.usage", "an object or null", item["usage"])
    if item.get("choices", []) != []:
        raise wrong_value(f"{at}.choices", "only an empty array can be scripted.")
    _check_error(item.get("error"), f"{at}.error")
    calls = item.get("tool_calls", [])
    if not isinstance(calls, list):
        raise wrong_type(f"{at}.tool_calls", "an array of objects", calls)
    for index, call in enumerate(calls):
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            raise wrong_value(f"{at}.tool_calls[{index}]", "an object with a 'name' is expected.")


def _check_error(error: object, at: str) -> None:
    if error is None:
        return
    if not isinstance(error, dict) or not isinstance(error.get("status"), int):
        raise wrong_value(at, "an object with an integer 'status' is expected.")


def _reply(item: dict[str, Any]) -> Reply:
    error = item.get("error")
    if error is not None:
        kind = "server_error" if error["status"] >= 500 else "invalid_request_error"
        raise ApiError(error["status"], str(error.get("message", "Scripted error.")), kind=kind)
    return Reply(
        content=item.get("content"),
        tool_calls=tuple(_call(call) for call in item.get("tool_calls") or ()),
        finish_reason=item.get("finish_reason"),
        usage=item.get("usage"),
        has_usage="usage" not in item or item["usage"] is not None,
        has_choice="choices" not in item,
    )


def _call(call: dict[str, Any]) -> ToolCall:
    """A string of arguments goes out as it is, so that broken JSON can be scripted."""
    arguments = call.get("arguments", {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    if "id" in call:
        return ToolCall(call["name"], text, str(call["id"]))
    return ToolCall(call["name"], text)
