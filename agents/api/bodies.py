"""Request bodies: read with a limit, parsed strictly, checked against a shape."""

from typing import Any, TypeVar

from django.http import HttpRequest
from django.http.request import UnreadablePostError
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from agents.api import problems
from agents.api.problems import ProblemError
from tools.strictjson import NotAnObjectError, StrictJSONError, UnstorableTextError, parse_object

MAX_BODY = 64 * 1024  # bytes

S = TypeVar("S", bound=serializers.Serializer[Any])


def refuse_large(request: HttpRequest) -> None:
    """413 for a body that says it is too large, before a byte of it is looked at."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not (length.isascii() and length.isdigit()):
        raise ProblemError(problems.BAD_REQUEST, "Content-Length is not a number.")
    if len(length) > 18 or int(length) > MAX_BODY:
        raise ProblemError(problems.TOO_LARGE, f"A body may have {MAX_BODY} bytes at most.")


def refuse_other_media(request: HttpRequest) -> None:
    """415 for anything but plain JSON in UTF-8: no form, no other charset, nothing compressed."""
    parameters = request.content_params or {}
    is_plain = (
        request.content_type == "application/json"
        and not set(parameters) - {"charset"}
        and parameters.get("charset", "utf-8").lower() in {"utf-8", "utf8"}
        and request.headers.get("Content-Encoding", "identity").lower() == "identity"
    )
    if not is_plain:
        raise ProblemError(problems.UNSUPPORTED_MEDIA)


def read_object(request: HttpRequest) -> dict[str, Any]:
    """The body as one JSON object. No body at all counts as an empty object.

    Raises ProblemError: 413, 415, 400 for what is not JSON, 422 for text that cannot be stored or
    a value that is not an object.
    """
    raw = read_bytes(request)
    return parse(request, raw) if raw else {}


def read_bytes(request: HttpRequest) -> bytes:
    """The body as it came. Raises ProblemError: 413, or 400 when it ended too early."""
    refuse_large(request)
    return _read(request)


def parse(request: HttpRequest, raw: bytes) -> dict[str, Any]:
    """The bytes as one JSON object. Raises ProblemError as `read_object` does."""
    refuse_other_media(request)
    try:
        return parse_object(raw.decode("utf-8"), max_bytes=MAX_BODY)
    except UnicodeDecodeError as exc:
        raise ProblemError(problems.MALFORMED_JSON, "The body is not UTF-8.") from exc
    except (UnstorableTextError, NotAnObjectError) as exc:
        error = {"pointer": "#", "detail": _sentence(exc)}
        raise ProblemError(problems.INVALID, errors=[error]) from exc
    except StrictJSONError as exc:
        raise ProblemError(problems.MALFORMED_JSON, _sentence(exc)) from exc


def check(serializer: S) -> S:
    """The serializer with its values validated; 422 naming every bad field otherwise."""
    if not serializer.is_valid():
        raise ProblemError(problems.INVALID, errors=_flat(serializer.errors, "#"))
    return serializer


def _read(request: HttpRequest) -> bytes:
    """At most the allowed bytes, also when no length was given."""
    try:
        raw = request.read(MAX_BODY + 1)
    except UnreadablePostError as exc:
        raise ProblemError(problems.BAD_REQUEST, "The body ended too early.") from exc
    if len(raw) > MAX_BODY:
        raise ProblemError(problems.TOO_LARGE, f"A body may have {MAX_BODY} bytes at most.")
    return bytes(raw)


def _sentence(exc: Exception) -> str:
    text = str(exc)
    return f"{text[:1].upper()}{text[1:]}."


def _flat(found: Any, pointer: str) -> list[dict[str, str]]:
    """DRF's nested errors as a list with a JSON pointer each."""
    if isinstance(found, ErrorDetail | str):
        return [{"pointer": pointer, "detail": str(found)}]
    if isinstance(found, dict):
        return [
            error
            for name, value in found.items()
            for error in _flat(
                value, pointer if name == "non_field_errors" else _child(pointer, name)
            )
        ]
    return [error for value in found for error in _flat(value, pointer)]


def _child(pointer: str, name: object) -> str:
    """RFC 6901; names come from outside, so they are cut and stripped of what does not print."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(name))[:80]
    return f"{pointer}/{text.replace('~', '~0').replace('/', '~1')}"
