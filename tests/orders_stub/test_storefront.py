"""The shop's own website, as a browser gets it."""

import re

import jwt
import pytest

from orders_stub.identity import digest
from tests.orders_stub.conftest import run_sql


def sign_in(shop, customer: str):
    """Sign in at the storefront; the client keeps the cookie."""
    return shop.http.post("/sign-in", data={"customer": customer})


def test_signing_in_by_form_leads_to_the_orders(shop):
    response = sign_in(shop, "ada")

    cookie = response.headers["set-cookie"]
    assert (response.status_code, response.headers["location"]) == (303, "/orders")
    assert cookie.startswith("shop_session=")
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
    page = shop.http.get("/orders").text
    assert "Ada Moreno" in page
    assert "/orders/1042" in page
    assert "/orders/1046" not in page


@pytest.mark.parametrize("kind", ["json", "form"])
def test_a_program_signs_in_and_fetches_its_identity(shop, kind):
    body = {"json": {"json": {"customer": "bob"}}, "form": {"data": {"customer": "bob"}}}[kind]
    headers = {"Accept": "application/json"}

    signed_in = shop.http.post("/sign-in", headers=headers, **body)
    identity = shop.http.get("/identity")

    assert signed_in.status_code == 200
    assert signed_in.json()["customer"]["id"] == "bob"
    assert identity.status_code == 200
    assert identity.headers["cache-control"] == "no-store"
    claims = jwt.decode(identity.json()["token"], options={"verify_signature": False})
    assert claims["sub"] == "bob"
    assert identity.json()["expires_at"].endswith("Z")


@pytest.mark.parametrize("customer", ["mallory", "", "ada' --", "\udcff".encode("utf-8", "ignore")])
def test_nobody_is_signed_in_as_a_customer_who_is_not_there(shop, customer):
    response = sign_in(shop, customer)

    assert response.status_code == 404
    assert "set-cookie" not in response.headers
    assert 'role="alert"' in response.text
    assert shop.http.get("/identity").status_code == 401


def test_without_a_session_there_is_no_identity_and_no_order(shop):
    identity = shop.http.get("/identity")

    assert (identity.status_code, identity.json()["error"]) == (401, "signed_out")
    for path in ("/orders", "/orders/1042"):
        response = shop.http.get(path)
        assert (response.status_code, response.headers["location"]) == (303, "/")


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
)
def test_identity_and_sign_in_answer_only_their_own_origin(shop, headers):
    sign_in(shop, "ada")

    identity = shop.http.get("/identity", headers=headers)
    other = shop.http.post("/sign-in", data={"customer": "bob"}, headers=headers)
    out = shop.http.post("/sign-out", headers=headers)

    for response in (identity, other, out):
        assert (response.status_code, response.json()["error"]) == (403, "cross_origin")
        assert "access-control-allow-origin" not in response.headers
    own = {"Origin": shop.url, "Sec-Fetch-Site": "same-origin"}
    claims = shop.http.get("/identity", headers=own).json()["token"]
    assert jwt.decode(claims, options={"verify_signature": False})["sub"] == "ada"


def test_signing_out_ends_the_session_wherever_its_cookie_went(shop):
    sign_in(shop, "ada")
    copied = {"Cookie": f"shop_session={shop.http.cookies['shop_session']}"}
    assert shop.http.get("/identity", headers=copied).status_code == 200

    response = shop.http.post("/sign-out")

    assert (response.status_code, response.headers["location"]) == (303, "/")
    assert shop.http.get("/identity", headers=copied).status_code == 401


def test_a_session_runs_out(shop):
    sign_in(shop, "ada")
    past, session = "2026-01-01T00:00:00.000000Z", shop.http.cookies["shop_session"]
    sql = "UPDATE sessions SET expires_at = ? WHERE digest = ?"
    assert run_sql(shop, sql, past, digest(session)) == 1

    assert shop.http.get("/identity").status_code == 401
    assert shop.http.get("/orders").headers["location"] == "/"


def test_signing_in_as_another_ends_the_first_session(shop):
    sign_in(shop, "ada")
    first = shop.http.cookies["shop_session"]
    sign_in(shop, "bob")
    shop.http.cookies.clear()

    response = shop.http.get("/identity", headers={"Cookie": f"shop_session={first}"})

    assert response.status_code == 401


@pytest.mark.parametrize("path", ["/", "/orders", "/orders/1047", "/orders/1046", "/nowhere"])
def test_every_page_carries_the_widget_under_a_strict_policy(shop, path):
    sign_in(shop, "ada")
    if path == "/":
        shop.http.cookies.clear()

    response = shop.http.get(path)

    policy = response.headers["content-security-policy"]
    agent = "http://127.0.0.1:8000"
    assert f"script-src 'self' {agent};" in policy
    assert f"frame-src {agent};" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    tag = f'<script async src="{agent}/widget.js" data-widget-key="demo"></script>'
    assert response.text.count(tag) == 1
    scripts = re.findall(r"<script[^>]*>([^<]*)</script>", response.text)
    assert set(scripts) == {""}
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", response.text)


def test_the_identity_callback_is_on_pages_of_the_signed_in_only(shop):
    assert "/static/chat.js" not in shop.http.get("/").text
    sign_in(shop, "ada")
    assert "/static/chat.js" in shop.http.get("/orders").text

    script = shop.http.get("/static/chat.js")

    assert script.headers["content-type"].startswith("text/javascript")
    assert (
        'countersign("identify", () => fetch("/identity").then(r => r.json()).then(b => b.token));'
        in script.text
    )


def test_an_order_page_shows_lines_parcel_address_and_money(shop):
    sign_in(shop, "ada")

    page = shop.http.get("/orders/1045").text

    for text in (
        "Wool throw",
        "moss",
        "$90.00",
        "12 Larkspur Lane",
        "Arrived at the regional depot",
    ):
        assert text in page


@pytest.mark.parametrize("order_id", ["1046", "99999", "%00", "..%2f..%2fetc"])
def test_somebody_elses_order_page_is_not_there(shop, order_id):
    sign_in(shop, "ada")

    response = shop.http.get(f"/orders/{order_id}")

    assert response.status_code == 404
    assert "$80.00" not in response.text


def test_text_from_outside_is_shown_as_text(shop, buyer):
    hostile = '<img src=x onerror=alert(1)>"&{{ 7*7 }}'
    order_id = buyer.order(
        lines=[{"title": hostile, "unit_price": 4000}],
        notes=[{"author": "customer", "text": hostile}],
    )
    sign_in(shop, buyer.id)

    for path in ("/orders", f"/orders/{order_id}"):
        page = shop.http.get(path).text
        assert "<img" not in page
        assert "&lt;img src=x onerror=alert(1)&gt;&#34;&amp;{{ 7*7 }}" in page


def test_orders_are_filtered_and_paged(shop, buyer):
    ids = [buyer.order(placed=f"-{n + 10}d") for n in range(25)]
    pending = buyer.order(status="pending", placed="-1d")
    sign_in(shop, buyer.id)

    first = shop.http.get("/orders").text
    older = re.search(r'href="(/orders\?cursor=[^"]+)"', first)
    assert older is not None
    second = shop.http.get(older[1].replace("&amp;", "&")).text
    filtered = shop.http.get("/orders?status=pending").text

    shown = re.findall(r'href="/orders/(\d+)"', first) + re.findall(r'href="/orders/(\d+)"', second)
    assert shown == [pending, *ids]
    assert re.findall(r'href="/orders/(\d+)"', filtered) == [pending]
    assert "No orders are shipped right now." in shop.http.get("/orders?status=shipped").text
    assert shop.http.get("/orders?cursor=nonsense").status_code == 303
