"""The chat and the page that embeds it: what they say to each other, and who else may not."""

import base64
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect
from typing_extensions import override

from tests.browser.visitor import CONNECTED, staff_approve, visit
from tests.live import Product

__all__ = ["visit"]


def test_methods_and_events_work_before_and_after_loading(visit):
    visitor = visit()
    page = visitor.sign_in("cleo")
    page.evaluate(
        """() => {
            window.heard = [];
            for (const name of ["ready", "open", "close", "unread", "message"])
              countersign("on", name, () => heard.push(name));
            countersign("setTheme", "dark");
            countersign("setLocale", "de-AT");
            countersign("prefill", "Guten Tag");
            countersign("open");
        }"""
    )
    field = visitor.chat.get_by_label("Ihre Nachricht")
    expect(field).to_have_value("Guten Tag")
    expect(visitor.chat.locator("html")).to_have_attribute("data-theme", "dark")
    page.evaluate('countersign("close"); countersign("hide")')

    expect(page.locator("countersign-chat")).to_be_hidden()
    assert page.evaluate("heard.filter(name => name !== 'unread')") == ["open", "ready", "close"]
    assert page.evaluate("Object.keys(window).filter(name => /counter/i.test(name))") == [
        "countersign"
    ]
    page.add_script_tag(url=f"{visitor.product.url}/widget.js")
    expect(page.locator("countersign-chat")).to_have_count(1)


def test_a_stranger_can_neither_command_the_chat_nor_read_from_it(visit):
    visitor = visit()
    visitor.open_as("cleo")
    chat, page = visitor.frame, visitor.page
    # A stranger whose origin is right: a second frame of the same address, beside the chat's own.
    page.evaluate(
        """(url) => new Promise((resolve) => {
            window.postMessage({ countersign: { type: "close" } }, "*");
            const stranger = document.createElement("iframe");
            stranger.onload = resolve;
            stranger.src = url;
            document.body.append(stranger);
            window.stolen = [];
            window.addEventListener("message", (event) => stolen.push(event.origin));
        })""",
        chat.url,
    )
    (stranger,) = [one for one in page.frames if one.url == chat.url and one != chat]
    stranger.evaluate(
        """() => {
            window.heard = [];
            window.addEventListener("message", (event) => heard.push(event.data));
            for (const type of ["close", "identify", "unread"])
              parent.postMessage({ countersign: { type, id: 1, count: 7 } }, "*");
        }"""
    )
    chat.evaluate("""() => window.postMessage({ countersign: { type: "reset" } }, "*")""")
    page.evaluate('countersign("prefill", "For the chat alone")')
    expect(visitor.chat.get_by_role("textbox")).to_have_value("For the chat alone")
    page.wait_for_timeout(300)

    assert stranger.evaluate("heard") == []

    expect(visitor.page.get_by_role("dialog")).to_be_visible()
    expect(visitor.chat.locator("#presence")).to_have_attribute("data-state", "open")
    assert set(visitor.page.evaluate("stolen")) <= {
        visitor.product.url,
        visitor.product.shop.url,
    }


class Site:
    """A site of somebody else: a static page under a policy, and the token of who is signed in."""

    def __init__(self) -> None:
        self.html = ""
        self.policy = ""
        self.token: str | None = None
        self.url = ""

    def answer(self, path: str) -> tuple[str, bytes]:
        if path == "/identity":
            return "application/json", json.dumps({"token": self.token}).encode()
        return "text/html; charset=utf-8", self.html.encode()


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, body = site.answer(self.path)
            self.send_response(200)
            self.send_header("Content-Type", kind)
            if site.policy:
                self.send_header("Content-Security-Policy", site.policy)
            self.end_headers()
            self.wfile.write(body)

        @override
        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    yield site
    server.shutdown()
    server.server_close()


def test_a_site_that_the_shop_does_not_name_cannot_embed_it(visit, site: Site, product: Product):
    site.html = f'<script async src="{product.url}/widget.js" data-widget-key="demo"></script>'
    visitor = visit()
    visitor.page.goto(site.url)
    visitor.page.get_by_role("button", name="Open chat").click()
    visitor.page.wait_for_timeout(1000)

    assert any("frame-ancestors" in error for error in visitor.errors)
    assert visitor.chat.locator("#composer").count() == 0


def _snippet(product: Product) -> tuple[str, str]:
    """What the guide says to put on a page, for this server; and its inline script alone."""
    guide = Path("docs/widget.md").read_text()
    snippet = guide.partition("```html\n")[2].partition("```")[0]
    snippet = snippet.replace("https://countersign.example", product.url)
    snippet = snippet.replace("YOUR-KEY", "demo")
    inline = snippet.partition("<script>")[2].partition("</script>")[0]
    assert "identify" in inline
    return snippet, inline


def test_a_strict_page_of_anybodys_own_serves_the_whole_story(
    visit, site: Site, product: Product, tmp_path: Path
):
    """A static page on another origin, whose policy lets in our script and nothing else of ours."""
    snippet, inline = _snippet(product)
    digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
    site.html = f"<!doctype html><html lang=en><title>Elsewhere</title><h1>Elsewhere</h1>{snippet}"
    site.policy = (
        f"default-src 'none'; script-src {product.url} 'sha256-{digest}'; style-src 'none'; "
        f"frame-src {product.url}; connect-src 'self'; base-uri 'none'; form-action 'none'"
    )
    site.token = product.shop.sign("esther")
    product.allow_origin(site.url)
    visitor = visit()
    visitor.page.goto(site.url)

    chat = visitor.open()
    visitor.begin_anew()
    visitor.say("Order 1038 arrived damaged, please refund all of it")
    card = chat.locator(".card.action")
    expect(card.get_by_role("heading")).to_have_text("Refund $300.00 for order 1038")
    card.get_by_role("button", name="Yes, go ahead").click()
    expect(chat.locator(".now")).to_have_text("A colleague is looking at this")
    staff_approve(visitor, "Refund $300.00 for order 1038")

    receipt = chat.locator(".card.receipt")
    expect(receipt).to_contain_text("$300.00")
    expect(receipt).to_contain_text("re_")
    (effect,) = product.shop.effects(order_id="1038")
    assert (effect["kind"], effect["amount"]) == ("refund", 30_000)
    visitor.screenshot(tmp_path, "elsewhere")
    assert visitor.errors == []
    assert [url for url in visitor.foreign if not url.startswith(site.url)] == []


def test_the_page_is_told_of_a_sign_in_that_has_ended_and_of_no_other(
    visit, site: Site, product: Product
):
    snippet, _ = _snippet(product)
    site.html = f"<!doctype html><html lang=en><title>Elsewhere</title>{snippet}"
    product.allow_origin(site.url)
    visitor = visit()
    page = visitor.page
    page.goto(site.url)
    page.evaluate("window.ended = 0; countersign('on', 'authExpired', () => { ended += 1; })")

    page.get_by_role("button", name="Open chat").click()
    expect(visitor.chat.locator("#disclosure")).to_contain_text("Please sign in")
    never_signed_in = page.evaluate("ended")
    site.token = product.shop.sign("cleo", expires_in=30)  # asked for again five seconds on
    page.evaluate(
        "countersign('identify', () => fetch('/identity').then(r => r.json()).then(b => b.token))"
    )
    expect(visitor.chat.locator("#presence")).to_have_attribute("data-state", CONNECTED)
    site.token = None
    expect(visitor.chat.locator("#disclosure")).to_contain_text("Your sign-in has ended")
    ended = page.evaluate("ended")
    page.evaluate("countersign('reset')")
    expect(visitor.chat.locator("#disclosure")).to_contain_text("Please sign in")

    assert (never_signed_in, ended, page.evaluate("ended")) == (0, 1, 1)


def test_what_is_asked_before_the_page_has_a_body_is_done(visit, site: Site, product: Product):
    site.html = (
        f'<!doctype html><title>Elsewhere</title><script src="{product.url}/widget.js" '
        'data-widget-key="demo"></script><script>countersign("open")</script><body>'
    )
    product.allow_origin(site.url)
    visitor = visit()

    visitor.page.goto(site.url)

    expect(visitor.chat.locator("#disclosure")).to_contain_text("Please sign in")
    assert visitor.errors == []


def test_on_a_phone_held_sideways_the_chat_has_the_whole_screen(visit):
    visitor = visit(viewport={"width": 844, "height": 390})
    visitor.open_as("cleo")

    assert visitor.page.locator("countersign-chat .panel").bounding_box() == {
        "x": 0,
        "y": 0,
        "width": 844,
        "height": 390,
    }


def test_the_loader_needs_nothing_that_a_strict_page_forbids(visit, product: Product):
    policy = httpx.get(product.shop.url, trust_env=False).headers["Content-Security-Policy"]
    visitor = visit()
    visitor.open_as("cleo")

    assert "unsafe" not in policy
    assert visitor.errors == []
