"""The chat and the page that embeds it: what they say to each other, and who else may not."""

import http.server
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect
from typing_extensions import override

from tests.browser.visitor import visit
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
    visitor.page.evaluate(
        """() => {
            window.postMessage({ countersign: { type: "close" } }, "*");
            const stranger = document.createElement("iframe");
            stranger.srcdoc = "";
            document.body.append(stranger);
            window.stolen = [];
            window.addEventListener("message", (event) => stolen.push(event.origin));
        }"""
    )
    visitor.frame.evaluate("""() => window.postMessage({ countersign: { type: "reset" } }, "*")""")
    visitor.page.wait_for_timeout(300)

    expect(visitor.page.get_by_role("dialog")).to_be_visible()
    expect(visitor.chat.locator("#presence")).to_have_attribute("data-state", "open")
    assert set(visitor.page.evaluate("stolen")) <= {
        visitor.product.url,
        visitor.product.shop.url,
    }


@pytest.fixture
def stranger_url() -> Iterator[Callable[[str], str]]:
    """A page on another site that shows any HTML."""
    pages: list[bytes] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(pages[0])

        @override
        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def serve(html: str) -> str:
        pages[:] = [html.encode()]
        return f"http://127.0.0.1:{server.server_port}/"

    yield serve
    server.shutdown()
    server.server_close()


def test_a_site_that_the_shop_does_not_name_cannot_embed_it(visit, stranger_url, product: Product):
    visitor = visit()
    visitor.page.goto(
        stranger_url(
            f'<script async src="{product.url}/widget.js" data-widget-key="demo"></script>'
        )
    )
    visitor.page.get_by_role("button", name="Open chat").click()
    visitor.page.wait_for_timeout(1000)

    assert any("frame-ancestors" in error for error in visitor.errors)
    assert visitor.chat.locator("#composer").count() == 0


def test_the_loader_needs_nothing_that_a_strict_page_forbids(visit, product: Product):
    policy = httpx.get(product.shop.url, trust_env=False).headers["Content-Security-Policy"]
    visitor = visit()
    visitor.open_as("cleo")

    assert "unsafe" not in policy
    assert visitor.errors == []
