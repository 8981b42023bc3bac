"""The client of a shop's OAuth endpoints (RFC 8693 exchange, refresh, RFC 7009 revocation).

It speaks to the shop's own base address and to nothing else, whatever an answer says.
"""

import base64
import re
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings

from accounts import wire

TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105 - a name
JWT_TYPE = "urn:ietf:params:oauth:token-type:jwt"

# What may stand in a header after "Bearer ".
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{8,4096}")
_MAX_LIFETIME = 24 * 3600  # seconds


class GrantRefusedError(Exception):
    """The shop answers invalid_grant: the identity or the delegation is no good (any more)."""


class ShopUnavailableError(Exception):
    """The shop cannot be reached, or answers nothing that makes sense. Try again later.

    `retry_after` is in seconds, None when the shop did not say.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ClientRefusedError(ShopUnavailableError):
    """The shop does not take our own name and secret: nothing works there, for any customer."""


@dataclass(frozen=True)
class Endpoint:
    """A shop's OAuth server, and our name and secret there."""

    base_url: str
    client_id: str
    client_secret: str = field(repr=False)


@dataclass(frozen=True)
class Tokens:
    """`expires_in` is in seconds from now; `refresh_token` is "" when the shop sent none."""

    access_token: str = field(repr=False)
    expires_in: int
    refresh_token: str = field(default="", repr=False)


def exchange(endpoint: Endpoint, identity_token: str) -> Tokens:
    """A new delegation for the customer whom the token names, refresh token included.

    Raises GrantRefusedError or ShopUnavailableError.
    """
    tokens = _grant(
        endpoint,
        {
            "grant_type": TOKEN_EXCHANGE,
            "subject_token": identity_token,
            "subject_token_type": JWT_TYPE,
        },
    )
    if not tokens.refresh_token:
        raise ShopUnavailableError("The shop gave no refresh token")
    return tokens


def refresh(endpoint: Endpoint, refresh_token: str) -> Tokens:
    """A fresh access token. Raises GrantRefusedError or ShopUnavailableError."""
    return _grant(endpoint, {"grant_type": "refresh_token", "refresh_token": refresh_token})


def revoke(endpoint: Endpoint, refresh_token: str) -> None:
    """Tell the shop to forget the delegation. Raises ShopUnavailableError when it was not told."""
    answer = _post(endpoint, "/oauth/revoke", {"token": refresh_token})
    if answer.status != 200:
        raise _away(answer, "The shop did not take the revocation")


def check_client(endpoint: Endpoint) -> None:
    """Whether the shop takes our name and secret, found out without touching any delegation.

    It is asked to forget a token that never was, which it has to answer with 200 (RFC 7009, 2.2).
    Raises ClientRefusedError or ShopUnavailableError.
    """
    revoke(endpoint, secrets.token_urlsafe(32))


def fetch_jwks(base_url: str) -> list[dict[str, Any]]:
    """The shop's public identity keys, unchecked. Raises ShopUnavailableError."""
    try:
        answer = wire.read(
            f"{base_url}/.well-known/jwks.json",
            headers={},
            params={},
            timeout=settings.SHOP_TIMEOUT,
        )
    except (wire.NotSentError, wire.BrokenError) as exc:
        raise ShopUnavailableError("The shop cannot be reached") from exc
    keys = _json_object(answer).get("keys")
    if answer.status != 200 or not isinstance(keys, list):
        raise ShopUnavailableError("The shop shows no keys")
    return [key for key in keys if isinstance(key, dict)]


def _grant(endpoint: Endpoint, form: dict[str, str]) -> Tokens:
    answer = _post(endpoint, "/oauth/token", form)
    body = _json_object(answer)
    if answer.status == 400 and body.get("error") == "invalid_grant":
        raise GrantRefusedError
    if answer.status != 200:
        raise _away(answer, "The shop gives no token")
    return _tokens(body)


def _away(answer: wire.Answer, what: str) -> ShopUnavailableError:
    """401, 403 and invalid_client (RFC 6749, 5.2) are about us, and no word about the customer."""
    message = f"{what} ({answer.status})"
    refusals = {"invalid_client", "unauthorized_client"}
    if answer.status in {401, 403} or (
        answer.status == 400 and _json_object(answer).get("error") in refusals
    ):
        return ClientRefusedError(message)
    return ShopUnavailableError(message, answer.retry_after() if answer.status == 429 else None)


def _tokens(body: dict[str, Any]) -> Tokens:
    access, lifetime = body.get("access_token"), body.get("expires_in")
    fresh = body.get("refresh_token", "")
    if not _is_token(access) or not (fresh == "" or _is_token(fresh)):
        raise ShopUnavailableError("The shop gave no usable token")
    if str(body.get("token_type")).lower() != "bearer":
        raise ShopUnavailableError("The shop gave a token of an unknown type")
    if type(lifetime) is not int or lifetime <= 0:
        raise ShopUnavailableError("The shop gave a token without a lifetime")
    return Tokens(str(access), min(lifetime, _MAX_LIFETIME), str(fresh))


def _is_token(value: object) -> bool:
    return isinstance(value, str) and _TOKEN.fullmatch(value) is not None


def _post(endpoint: Endpoint, path: str, form: dict[str, str]) -> wire.Answer:
    # RFC 6749, 2.3.1: id and secret are form-encoded before they are joined.
    pair = f"{quote(endpoint.client_id, safe='')}:{quote(endpoint.client_secret, safe='')}"
    headers = {
        "Authorization": "Basic " + base64.b64encode(pair.encode()).decode(),
        "Content-Type": "application/x-www-form-urlencoded",
    }
    try:
        return wire.write(
            "POST",
            endpoint.base_url + path,
            headers=headers,
            body=urlencode(form).encode(),
            timeout=settings.SHOP_TIMEOUT,
        )
    except (wire.NotSentError, wire.BrokenError) as exc:
        raise ShopUnavailableError("The shop cannot be reached") from exc


def _json_object(answer: wire.Answer) -> dict[str, Any]:
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
