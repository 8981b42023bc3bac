"""Signed identities, token exchange, refresh and revocation."""

import base64
import json
import time

import jwt
import pytest
from jwt.types import Options

from orders_stub.identity import digest
from tests.orders_stub.conftest import EXCHANGE, run_sql
from tests.stubs import CLIENT


def form_post(shop, path: str, form: dict[str, str], *, auth=CLIENT):
    """Send a form as the agent does."""
    return shop.http.post(path, data=form, auth=auth)


def exchange(shop, token: str, **changes: str):
    """Exchange an identity."""
    return form_post(shop, "/oauth/token", EXCHANGE | {"subject_token": token} | changes)


def refresh(shop, refresh_token: str):
    """Ask for the next access token of a delegation."""
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    return form_post(shop, "/oauth/token", form)


def test_the_identity_verifies_against_the_published_key(shop, buyer):
    token = shop.sign(buyer.id)
    [key] = shop.http.get("/.well-known/jwks.json").json()["keys"]

    claims = jwt.decode(token, jwt.PyJWK(key), algorithms=["EdDSA"], audience="countersign")

    header = jwt.get_unverified_header(token)
    assert header == {"alg": "EdDSA", "typ": "JWT", "kid": key["kid"]}
    assert (key["kty"], key["crv"], key["use"]) == ("OKP", "Ed25519", "sig")
    assert "d" not in key
    assert (claims["iss"], claims["sub"]) == ("demo", buyer.id)
    assert claims["exp"] - claims["iat"] == 600
    assert abs(claims["iat"] - time.time()) < 5
    assert claims["email"] == f"{buyer.id}@example.com"
    assert (claims["locale"], claims["name"]) == ("en-US", buyer.id.replace("buyer-", "Buyer "))
    assert claims["jti"] != jwt.decode(shop.sign(buyer.id), options=UNVERIFIED)["jti"]


UNVERIFIED: Options = {"verify_signature": False}


def test_an_identity_is_exchanged_for_short_access_and_a_delegation(shop, buyer):
    response = exchange(shop, shop.sign(buyer.id))

    tokens = response.json()
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    assert tokens["issued_token_type"] == "urn:ietf:params:oauth:token-type:access_token"
    assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 300)
    assert tokens["scope"] == "orders:read orders:write"
    assert tokens["refresh_token"] != buyer.tokens["refresh_token"]
    headers = {"Authorization": f"bearer {tokens['access_token']}"}
    assert shop.http.get("/api/customer", headers=headers).json()["id"] == buyer.id


@pytest.mark.parametrize(
    "options",
    [
        {"expires_in": -60},
        {"claims": {"aud": "somebody-else"}},
        {"claims": {"iss": "another-shop"}},
        {"claims": {"exp": None}},
        {"claims": {"sub": None}},
        {"claims": {"sub": "nobody"}},
        {"claims": {"jti": None}},
        {"claims": {"iat": 9_999_999_999}},
    ],
)
def test_an_identity_with_wrong_claims_is_not_exchanged(shop, buyer, options):
    response = exchange(shop, shop.sign(buyer.id, **options))

    assert (response.status_code, response.json()["error"]) == (400, "invalid_grant")
    assert "access_token" not in response.json()


def forged(token: str, kind: str) -> str:
    """Tokens that nobody may take for ours."""
    header, claims, signature = token.split(".")
    kid = jwt.get_unverified_header(token)["kid"]
    payload = jwt.decode(token, options=UNVERIFIED)
    if kind == "none":
        bare = base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": kid}).encode())
        return f"{bare.decode().rstrip('=')}.{claims}."
    if kind == "hs256":
        return jwt.encode(payload, "k" * 32, algorithm="HS256", headers={"kid": kid})
    if kind == "other claims":
        changed = base64.urlsafe_b64encode(json.dumps(payload | {"sub": "bob"}).encode())
        return f"{header}.{changed.decode().rstrip('=')}.{signature}"
    return {"no signature": f"{header}.{claims}.", "nonsense": "a.b.c", "empty": ""}[kind]


@pytest.mark.parametrize(
    "kind", ["none", "hs256", "other claims", "no signature", "nonsense", "empty"]
)
def test_a_forged_identity_is_not_exchanged(shop, buyer, kind):
    response = exchange(shop, forged(shop.sign(buyer.id), kind))

    assert response.status_code == 400
    assert response.json()["error"] in {"invalid_grant", "invalid_request"}
    assert "access_token" not in response.json()


@pytest.mark.parametrize("auth", [None, ("countersign", "wrong"), ("other", CLIENT[1])])
def test_only_the_known_client_gets_tokens_or_revokes(shop, buyer, auth):
    form = EXCHANGE | {"subject_token": shop.sign(buyer.id)}
    answers = [
        form_post(shop, "/oauth/token", form, auth=auth),
        form_post(shop, "/oauth/revoke", {"token": buyer.tokens["refresh_token"]}, auth=auth),
    ]

    for response in answers:
        assert (response.status_code, response.json()["error"]) == (401, "invalid_client")
        assert response.headers["www-authenticate"].startswith("Basic")
    assert buyer.get("/customer").status_code == 200


def test_other_grants_and_incomplete_forms_are_refused_in_oauths_words(shop, buyer):
    token = shop.sign(buyer.id)
    code = {"grant_type": "authorization_code", "code": "x"}

    assert form_post(shop, "/oauth/token", code).json()["error"] == "unsupported_grant_type"
    password = form_post(shop, "/oauth/token", {"grant_type": "password"})
    assert (password.status_code, password.json()["error"]) == (400, "unsupported_grant_type")
    for response in (
        form_post(shop, "/oauth/token", {"subject_token": token}),
        form_post(shop, "/oauth/token", EXCHANGE),
        exchange(shop, token, subject_token_type="urn:ietf:params:oauth:token-type:saml2"),
        exchange(shop, token, requested_token_type="urn:ietf:params:oauth:token-type:id_token"),
        form_post(shop, "/oauth/token", {"grant_type": "refresh_token"}),
        form_post(shop, "/oauth/revoke", {"nothing": "here"}),
        shop.http.post("/oauth/token", json=EXCHANGE, auth=CLIENT),
        shop.http.post(
            "/oauth/token",
            content="grant_type=refresh_token&grant_type=refresh_token",
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            auth=CLIENT,
        ),
    ):
        assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
        assert response.json()["error_description"]


def test_a_refresh_gives_new_access_under_the_same_delegation(shop, buyer):
    response = refresh(shop, buyer.tokens["refresh_token"])

    tokens = response.json()
    assert response.status_code == 200
    assert tokens["refresh_token"] == buyer.tokens["refresh_token"]
    assert tokens["access_token"] != buyer.tokens["access_token"]
    buyer.tokens = tokens
    assert buyer.get("/customer").json()["id"] == buyer.id


def test_a_revoked_delegation_ends_its_access_at_once_and_no_other(shop, buyer, key):
    order_id = buyer.order(4000)
    other = exchange(shop, shop.sign(buyer.id)).json()

    revoked = form_post(shop, "/oauth/revoke", {"token": buyer.tokens["refresh_token"]})

    assert (revoked.status_code, revoked.content) == (200, b"")
    refused = buyer.refund(order_id, key=key)
    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_token")
    again = refresh(shop, buyer.tokens["refresh_token"])
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert shop.effects(order_id=order_id) == []
    buyer.tokens = other
    assert buyer.get("/customer").status_code == 200


def test_revoking_an_access_token_ends_that_one_only(shop, buyer):
    form_post(shop, "/oauth/revoke", {"token": buyer.tokens["access_token"]})

    assert buyer.get("/customer").status_code == 401
    buyer.tokens = refresh(shop, buyer.tokens["refresh_token"]).json()
    assert buyer.get("/customer").status_code == 200


def test_an_access_token_runs_out_and_its_delegation_does_not(shop, buyer):
    past = "2026-01-01T00:00:00.000000Z"
    sql = "UPDATE access_tokens SET expires_at = ? WHERE digest = ?"
    assert run_sql(shop, sql, past, digest(buyer.tokens["access_token"])) == 1

    response = buyer.get("/customer")

    assert (response.status_code, response.json()["error"]) == (401, "invalid_token")
    buyer.tokens = refresh(shop, buyer.tokens["refresh_token"]).json()
    assert buyer.get("/customer").status_code == 200


def test_the_database_holds_no_token_in_clear(shop, buyer):
    stored = (shop.data / "shop.sqlite3").read_bytes() + (
        shop.data / "shop.sqlite3-wal"
    ).read_bytes()

    assert digest(buyer.tokens["access_token"]).encode() in stored
    for name in ("access_token", "refresh_token"):
        assert buyer.tokens[name].encode() not in stored


def test_revoking_an_unknown_token_is_no_error(shop):
    assert form_post(shop, "/oauth/revoke", {"token": "never-issued"}).status_code == 200


def test_a_blocked_customer_gets_nothing_until_unblocked(shop, buyer):
    token = shop.sign(buyer.id)
    shop.block(buyer.id)

    assert buyer.get("/customer").status_code == 401
    assert exchange(shop, token).json()["error"] == "invalid_grant"
    assert refresh(shop, buyer.tokens["refresh_token"]).json()["error"] == "invalid_grant"
    sign_in = shop.http.post("/sign-in", json={"customer": buyer.id})
    assert (sign_in.status_code, sign_in.json()["error"]) == (404, "unknown_customer")
    shop.block(buyer.id, blocked=False)
    assert buyer.get("/customer").status_code == 200


def test_the_ledger_says_for_whom_a_token_call_was_and_holds_no_token(shop, buyer):
    refresh(shop, buyer.tokens["refresh_token"])

    ledger = shop.http.get("/control/ledger").text
    last = json.loads(ledger)["calls"][-1]

    assert (last["path"], last["customer"], last["status"]) == ("/oauth/token", buyer.id, 200)
    assert buyer.tokens["refresh_token"] not in ledger
    assert buyer.tokens["access_token"] not in ledger
