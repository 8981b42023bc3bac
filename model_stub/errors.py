"""Errors in the shape that the OpenAI API gives them."""

from collections.abc import Mapping
from typing import Any


class ApiError(Exception):
    """An answer that is an error: HTTP status, and the fields of OpenAI's `error` object."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.param = param
        self.code = code
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """Return the JSON body to send."""
        return {
            "error": {
                "message": self.message,
                "type": self.kind,
                "param": self.param,
                "code": self.code,
            }
        }


def missing(param: str) -> ApiError:
    """Return the 400 for a required parameter that is not there."""
    return ApiError(
        400,
        f"Missing required parameter: '{param}'.",
        param=param,
        code="missing_required_parameter",
    )


def wrong_type(param: str, wanted: str, value: object) -> ApiError:
    """Return the 400 for a parameter of the wrong JSON type."""
    return ApiError(
        400,
        f"Invalid type for '{param}': expected {wanted}, but got {json_type(value)} instead.",
        param=param,
        code="invalid_type",
    )


def wrong_value(param: str, message: str) -> ApiError:
    """Return the 400 for a parameter of the right type whose value is not allowed."""
    return ApiError(
        400, f"Invalid value for '{param}': {message}", param=param, code="invalid_value"
    )


def not_supported(param: str, message: str) -> ApiError:
    """Return the 400 for something that the API knows and this model cannot do."""
    return ApiError(
        400, f"Unsupported value: '{param}' {message}", param=param, code="unsupported_value"
    )


def json_type(value: object) -> str:
    """Return the words OpenAI's messages use for the JSON type of `value`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, float):
        return "a decimal"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "an object"
