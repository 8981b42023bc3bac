"""Strict JSON for text that an opponent may have written.

`json.loads` accepts NaN, keeps the last of two equal keys, recurses without limit and lets through
NUL and lone surrogates, which PostgreSQL's jsonb then refuses. Each of those is an error here.
"""

import json
from typing import Any, NoReturn

MAX_BYTES = 16 * 1024
MAX_DEPTH = 12
MAX_DIGITS = 18


class StrictJSONError(ValueError):
    """The text is not JSON that we accept. The message says why and quotes none of it."""


class NotAnObjectError(StrictJSONError):
    """It is JSON, but not an object."""


class UnstorableTextError(StrictJSONError):
    """It is JSON, but holds text that no column can."""


def parse_object(text: str, *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Parse one JSON object.

    Raises StrictJSONError for anything else: too large (`max_bytes` of UTF-8), nested deeper than
    MAX_DEPTH, NaN or Infinity, an integer of more than MAX_DIGITS digits, a number with an
    exponent or fraction out of range, a repeated key, NUL or a lone surrogate.
    """
    if len(text) > max_bytes or len(text.encode("utf-8", "surrogatepass")) > max_bytes:
        raise StrictJSONError("too large")
    _check_depth(text)
    try:
        value = json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_int=_parse_int,
            parse_float=_parse_float,
            object_pairs_hook=_unique_pairs,
        )
    except StrictJSONError:
        raise
    except (ValueError, RecursionError) as exc:
        raise StrictJSONError("not JSON") from exc
    if not isinstance(value, dict):
        raise NotAnObjectError("not an object")
    _check_text(value)
    return value


def _check_depth(text: str) -> None:
    """Count brackets outside strings before the recursive parser sees them."""
    depth = 0
    in_string = escaped = False
    for char in text:
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise StrictJSONError("nested too deeply")
        elif char in "]}":
            depth -= 1


def _refuse_constant(_name: str) -> NoReturn:
    raise StrictJSONError("NaN and Infinity are not numbers here")


def _parse_int(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise StrictJSONError("a number is too long")
    return int(digits)


def _parse_float(digits: str) -> float:
    value = float(digits)
    if len(digits) > 2 * MAX_DIGITS or value in (float("inf"), float("-inf")):
        raise StrictJSONError("a number is out of range")
    return value


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise StrictJSONError("a key is repeated")
    return value


def _check_text(value: Any) -> None:
    """Refuse characters that no text column can hold, in keys and values alike."""
    if isinstance(value, str):
        if "\x00" in value:
            raise UnstorableTextError("text holds a NUL character")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as exc:
            raise UnstorableTextError("text holds half a character") from exc
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(key)
            _check_text(item)
    elif isinstance(value, list):
        for item in value:
            _check_text(item)
