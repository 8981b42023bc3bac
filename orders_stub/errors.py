"""Refusals, and the two shapes in which the shop writes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.responses import JSONResponse, Response


@dataclass(eq=False)
class RefusalError(Exception):
    """A request the shop will not do: nothing was changed when this is raised.

    `uses_key` says whether the refusal is an answer worth keeping under the idempotency key.
    A request that could not even be read does not use its key up.
    """

    status: int
    code: str
    message: str
    uses_key: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, str]:
        """The API's error object."""
        return {"error": self.code, "message": self.message}


@dataclass(eq=False)
class OAuthError(Exception):
    """A refusal of the token or the revocation endpoint (RFC 6749, 5.2)."""

    status: int
    code: str
    description: str

    def response(self) -> Response:
        """The OAuth error object, never cached."""
        headers = {"Cache-Control": "no-store"}
        if self.status == 401:
            headers["WWW-Authenticate"] = 'Basic realm="orders_stub", charset="UTF-8"'
        body = {"error": self.code, "error_description": self.description}
        return JSONResponse(body, self.status, headers=headers)


def not_found() -> RefusalError:
    """The one answer for what is unknown and for what is somebody else's."""
    return RefusalError(404, "not_found", "There is nothing here by that name.")


def invalid_request(message: str) -> RefusalError:
    """A request whose shape is wrong."""
    return RefusalError(400, "invalid_request", message, uses_key=False)
