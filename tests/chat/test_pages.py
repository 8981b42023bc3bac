"""The widget's loader and page, and the exchange that stands in for a socket."""

import gzip
import json
import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import Shop, WidgetKey
from agents.chat import allowance
from agents.models import Message, Ticket
from tests.accounts.factories import Signer, make_shop
from tests.api.clients import delegate, everything
from tests.factories import make_customer

# What the customer made below is known by already.
SAME: dict[str, Any] = {"name": "Ada Lovelace", "email": None, "locale": "en"}
ORIGINS = ["https://shop.example", "http://127.0.0.1:8001"]


@pytest.fixture
def shop(db) -> Shop:
    shop = make_shop(name="Juniper <& Clay>", allowed_origins=ORIGINS)
    WidgetKey.objects.create(shop=shop, key="juniper")
    return shop


@pytest.fixture
def signer(shop: Shop) -> Signer:
    return Signer(shop)


def _directives(response: Any) -> dict[str, list[str]]:
    policy = [part.split() for part in response["Content-Security-Policy"].split(";")]
    return {words[0]: words[1:] for words in policy}


def test_the_loader_is_small_and_says_when_it_has_not_changed(client: Client):
    response = client.get("/widget.js")
    again = client.get("/widget.js", headers={"If-None-Match": response["ETag"]})

    assert response["Content-Type"] == "text/javascript; charset=utf-8"
    assert response["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert len(gzip.compress(response.content)) < 10_000
    assert b"postMessage(" in response.content
    assert b'"*"' not in response.content
    assert (again.status_code, again.content) == (304, b"")


def test_only_the_shops_own_sites_may_embed_its_page(client: Client, shop: Shop):
    response = client.get("/widget/?key=juniper")

    assert response.status_code == 200
    assert _directives(response)["frame-ancestors"] == ORIGINS
    assert "X-Frame-Options" not in response
    assert "Set-Cookie" not in response


def test_without_a_site_of_its_own_nobody_may_embed_it(client: Client, db):
    WidgetKey.objects.create(shop=make_shop(allowed_origins=[]), key="bare")

    response = client.get("/widget/?key=bare")

    assert _directives(response)["frame-ancestors"] == ["'none'"]


@pytest.mark.parametrize("query", ["", "?key=", "?key=nobody", "?key=%00", "?key=" + "a" * 500])
def test_an_unknown_key_gives_a_page_that_embeds_nowhere(client: Client, shop: Shop, query: str):
    response = client.get(f"/widget/{query}")

    assert response.status_code == 404
    assert _directives(response)["frame-ancestors"] == ["'none'"]
    assert response["X-Frame-Options"] == "DENY"


def test_the_page_holds_nothing_inline_and_its_policy_would_not_let_it(client: Client, shop: Shop):
    response = client.get("/widget/?key=juniper")
    html = response.content.decode()

    assert "Juniper &lt;&amp; Clay&gt;" in html
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", html)
    directives = _directives(response)
    assert directives["default-src"] == ["'none'"]
    assert directives["script-src"] == directives["style-src"] == ["'self'"]
    assert directives["connect-src"] == ["'self'", "ws://127.0.0.1:8000"]


def _exchange(client: Client, token: str, **body: Any) -> Any:
    return client.post(
        "/widget/exchange",
        json.dumps(body),
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}"},
    )


def test_an_exchange_answers_as_a_socket_would(client: Client, signer: Signer):
    delegate(make_customer(signer.shop, external_id="ada"))
    say = {"type": "say", "text": "Where is my parcel?", "client_message_id": "m-1"}

    empty = _exchange(client, signer.sign(), key="juniper").json()["frames"]
    said = _exchange(client, signer.sign(), frame=say).json()["frames"]
    ticket = Ticket.objects.get().pk
    later = _exchange(client, signer.sign(), ticket=ticket, after={"message": 1}).json()["frames"]
    new = _exchange(client, signer.sign(), ticket="new").json()["frames"]

    assert [(item["type"], item["ticket"]) for item in empty] == [("snapshot", None)]
    assert [item["type"] for item in said] == ["snapshot", "done", "snapshot"]
    assert [item["text"] for item in said[-1]["messages"]] == ["Where is my parcel?"]
    assert (later[0]["ticket"]["id"], later[0]["messages"]) == (ticket, [])
    assert new[0]["ticket"] is None


def test_an_exchange_needs_a_token_that_proves_something(client: Client, signer: Signer):
    stranger = Signer(make_shop())
    make_customer(stranger.shop, external_id="ada")
    before = everything()

    bare = client.post("/widget/exchange", "{}", content_type="application/json")
    bad = _exchange(client, signer.sign()[:-5], frame={"type": "person"})
    other = _exchange(client, stranger.sign(**SAME), key="juniper", frame={"type": "person"})

    assert [answer.status_code for answer in (bare, bad, other)] == [401, 401, 401]
    assert {answer.json()["code"] for answer in (bare, bad, other)} == {"unauthenticated"}
    assert everything() == before


def test_an_odd_exchange_is_refused(client: Client, signer: Signer):
    odd: list[dict[str, Any]] = [
        {"ticket": "old"},
        {"frame": {"type": "ping"}},
        {"frame": {"type": "say", "text": ""}},
        {"frames": []},
    ]
    answers = [_exchange(client, signer.sign(), **body) for body in odd]

    say = {"type": "say", "text": "\u0085", "client_message_id": "m-1"}
    named = _exchange(client, signer.sign(), frame=say)

    assert [answer.status_code for answer in answers] == [400] * len(odd)
    assert (named.status_code, named.json()["for"], named.json()["ref"]) == (400, "say", "m-1")
    assert client.get("/widget/exchange").status_code == 405
    assert Message.objects.count() == 0


def test_too_many_exchanges_in_a_minute_are_refused(client: Client, signer: Signer, monkeypatch):
    monkeypatch.setattr(allowance, "EXCHANGES_PER_MINUTE", 0)

    answer = _exchange(client, signer.sign(), frame={"type": "person"})

    assert (answer.status_code, answer.json()["code"]) == (429, "too-many-requests")
    assert Message.objects.count() == 0
