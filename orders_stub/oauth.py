"""Token exchange (RFC 8693), refresh and revocation (RFC 7009).

The client's own credentials open these two endpoints and nothing else. Tokens are random and
only their digests are kept, so a revocation counts from the next call on.
"""

import base64
import binascii
import hmac
import secrets
from datetime import datetime, timedelta
from urllib.parse import parse_qsl, unquote_plus

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orders_stub import times
from orders_stub.calls import Call, endpoint
from orders_stub.database import Database
from orders_stub.errors import OAuthError
from orders_stub.identity import digest, is_blocked
from orders_stub.shop import Shop

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
JWT_TYPE = "urn:ietf:params:oauth:token-type:jwt"
ACCESS_TYPE = "urn:ietf:params:oauth:token-type:access_token"
ACCESS_LIFETIME = timedelta(minutes=5)
SCOPE = "orders:read orders:write"


def identify(call: Call) -> None:
    """Say for whom a call to these endpoints is, as far as that is proven."""
    if not _is_client(call):
        return
    call.client_id = call.shop.config.client_id
    try:
        form = _form(call)
    except OAuthError:
        return
    if "subject_token" in form:
        call.customer_id = call.shop.signer.verify(form["subject_token"])
        return
    token = form.get("refresh_token") or form.get("token")
    row = _delegation(call.shop.db, token or "", call.client_id)
    if row is not None:
        call.customer_id = row[1]


def token(call: Call) -> Response:
    """`POST /oauth/token`: a signed identity, or a refresh token, for an access token."""
    form = _form(call)
    _require_client(call)
    grant = form.get("grant_type")
    if grant == EXCHANGE:
        return _exchange(call, form)
    if grant == "refresh_token":
        return _refresh(call, form)
    if grant is None:
        raise OAuthError(400, "invalid_request", "grant_type is missing.")
    raise OAuthError(400, "unsupported_grant_type", "Only token exchange and refresh are offered.")


def revoke(call: Call) -> Response:
    """`POST /oauth/revoke`: end a delegation; 200 for unknown tokens too (RFC 7009, 2.2)."""
    form = _form(call)
    client_id = _require_client(call)
    if "token" not in form:
        raise OAuthError(400, "invalid_request", "token is missing.")
    db = call.shop.db
    with db.transaction():
        db.run(
            "UPDATE delegations SET revoked_at = coalesce(revoked_at, ?)"
            " WHERE refresh_digest = ? AND client_id = ?",
            times.to_text(times.now()),
            digest(form["token"]),
            client_id,
        )
        db.run(
            "DELETE FROM access_tokens WHERE digest = ? AND delegation_id IN"
            " (SELECT id FROM delegations WHERE client_id = ?)",
            digest(form["token"]),
            client_id,
        )
    return Response(status_code=200, headers={"Cache-Control": "no-store"})


def bearer(shop: Shop, authorization: str, *, at: datetime) -> tuple[str, str] | None:
    """The client and the customer behind an access token that is good right now, or None."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() != "bearer":
        return None
    row = shop.db.row(
        "SELECT d.client_id, d.customer_id FROM access_tokens a"
        " JOIN delegations d ON d.id = a.delegation_id"
        " WHERE a.digest = ? AND a.expires_at > ? AND d.revoked_at IS NULL",
        digest(value.strip()),
        times.to_text(at),
    )
    return None if row is None else (row["client_id"], row["customer_id"])


def _exchange(call: Call, form: dict[str, str]) -> Response:
    if form.get("subject_token_type") != JWT_TYPE or "subject_token" not in form:
        raise OAuthError(400, "invalid_request", f"A subject_token of type {JWT_TYPE} is needed.")
    if form.get("requested_token_type", ACCESS_TYPE) != ACCESS_TYPE:
        raise OAuthError(400, "invalid_request", "Only access tokens are issued.")
    customer_id = call.shop.signer.verify(form["subject_token"])
    if customer_id is None or _is_revoked(call, customer_id):
        raise OAuthError(400, "invalid_grant", "The identity is not valid (any more).")

    refresh_token = secrets.token_urlsafe(32)
    db, at = call.shop.db, times.now()
    with db.transaction():
        delegation_id = db.add(
            "INSERT INTO delegations (client_id, customer_id, refresh_digest, created_at)"
            " VALUES (?, ?, ?, ?)",
            call.client_id,
            customer_id,
            digest(refresh_token),
            times.to_text(at),
        )
        access_token = _issue(db, delegation_id, at)
    return _tokens(access_token, refresh_token)


def _refresh(call: Call, form: dict[str, str]) -> Response:
    if "refresh_token" not in form:
        raise OAuthError(400, "invalid_request", "refresh_token is missing.")
    db, at = call.shop.db, times.now()
    with db.transaction():
        found = _delegation(db, form["refresh_token"], call.client_id or "")
        if found is None or _is_revoked(call, found[1]):
            raise OAuthError(400, "invalid_grant", "The delegation is unknown or revoked.")
        access_token = _issue(db, found[0], at)
    return _tokens(access_token, form["refresh_token"])


def _is_revoked(call: Call, customer_id: str) -> bool:
    return call.plan.has("revoke_customer") or is_blocked(call.shop.db, customer_id)


def _delegation(db: Database, refresh_token: str, client_id: str) -> tuple[int, str] | None:
    row = db.row(
        "SELECT id, customer_id FROM delegations"
        " WHERE refresh_digest = ? AND client_id = ? AND revoked_at IS NULL",
        digest(refresh_token),
        client_id,
    )
    return None if row is None else (row["id"], row["customer_id"])


def _issue(db: Database, delegation_id: int, at: datetime) -> str:
    access_token = secrets.token_urlsafe(32)
    db.run("DELETE FROM access_tokens WHERE expires_at <= ?", times.to_text(at))
    db.run(
        "INSERT INTO access_tokens (digest, delegation_id, expires_at) VALUES (?, ?, ?)",
        digest(access_token),
        delegation_id,
        times.to_text(at + ACCESS_LIFETIME),
    )
    return access_token


def _tokens(access_token: str, refresh_token: str) -> Response:
    body = {
        "access_token": access_token,
        "issued_token_type": ACCESS_TYPE,
        "token_type": "Bearer",
        "expires_in": int(ACCESS_LIFETIME.total_seconds()),
        "refresh_token": refresh_token,
        "scope": SCOPE,
    }
    return JSONResponse(body, headers={"Cache-Control": "no-store", "Pragma": "no-cache"})


def _form(call: Call) -> dict[str, str]:
    """The form-encoded body, every name once. Raises OAuthError."""
    content_type = call.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/x-www-form-urlencoded":
        raise OAuthError(400, "invalid_request", "The body has to be form-encoded.")
    try:
        pairs = parse_qsl(call.body.decode(), strict_parsing=True, max_num_fields=50)
    except ValueError as exc:
        raise OAuthError(400, "invalid_request", "The body is not well-formed.") from exc
    form = dict(pairs)
    if len(form) != len(pairs):
        raise OAuthError(400, "invalid_request", "A parameter stands there twice.")
    return form


def _require_client(call: Call) -> str:
    if call.client_id is None:
        raise OAuthError(401, "invalid_client", "The client's credentials are wrong or missing.")
    return call.client_id


def _is_client(call: Call) -> bool:
    """HTTP Basic with both halves form-encoded, as RFC 6749, 2.3.1 has it."""
    scheme, _, value = call.request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return False
    try:
        decoded = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    name, _, secret = decoded.partition(":")
    config = call.shop.config
    right_name = hmac.compare_digest(unquote_plus(name).encode(), config.client_id.encode())
    right_secret = hmac.compare_digest(unquote_plus(secret).encode(), config.client_secret.encode())
    return right_name and right_secret


routes = [
    Route("/oauth/token", endpoint(token, identify=identify), methods=["POST"]),
    Route("/oauth/revoke", endpoint(revoke, identify=identify), methods=["POST"]),
]
