"""Somebody in front of a shop's page with the chat on it."""

import logging
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Frame, FrameLocator, Page, expect

from accounts.backends import DEMO_PASSWORD
from tests.browser import pictures
from tests.browser.conftest import has_failed
from tests.live import Product

logger = logging.getLogger(__name__)

SECONDS = 20
CONNECTED = re.compile("open|person")


class Visitor:
    """A customer at a browser, who notes every error and every request to somebody else."""

    def __init__(self, context: BrowserContext, product: Product) -> None:
        self.product = product
        self.context = context
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        context.on("request", self._on_request)

    def sign_in(self, customer: str) -> Page:
        self.page.goto(self.product.shop.url)
        self.page.get_by_label("Somebody else? Their customer id").fill(customer)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url("**/orders")
        return self.page

    def open(self) -> FrameLocator:
        """Open the chat and wait until it is connected."""
        self.page.get_by_role("button", name="Open chat").click()
        expect(self.chat.locator("#presence")).to_have_attribute("data-state", CONNECTED)
        return self.chat

    def open_as(self, customer: str) -> FrameLocator:
        self.sign_in(customer)
        return self.open()

    @property
    def chat(self) -> FrameLocator:
        return self.page.frame_locator("countersign-chat iframe")

    @property
    def frame(self) -> Frame:
        (frame,) = [frame for frame in self.page.frames if "/widget/" in frame.url]
        return frame

    def begin_anew(self) -> None:
        self.chat.get_by_role("button", name="Conversations").click()
        self.chat.get_by_role("button", name="New conversation").click()
        expect(self.chat.locator(".said")).to_have_count(0)

    def say(self, text: str) -> None:
        self.chat.get_by_label("Your message").fill(text)
        self.chat.get_by_label("Your message").press("Enter")

    def said(self, text: str) -> Any:
        return self.chat.locator(".said:not(.is-pending) .bubble", has_text=text)

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Let the page go on until this is so. Raises AssertionError after ten seconds."""
        ends_at = time.monotonic() + 10
        while not is_so():
            assert time.monotonic() < ends_at, "it never came to that"
            self.page.wait_for_timeout(50)

    def screenshot(self, folder: Path, name: str) -> None:
        pictures.keep(self.page, folder / f"{name}.png")

    def tell(self) -> None:
        """Log what stands in the chat, for whoever looks into a test that failed."""
        shown = [frame.inner_text("body") for frame in self.page.frames if "/widget/" in frame.url]
        logger.warning("In the chat, errors %s:\n%s", self.errors, "\n".join(shown))

    def _on_console(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.errors.append(message.text)

    def _on_request(self, request: Any) -> None:
        ours = (self.product.url, self.product.shop.url, self.product.url.replace("http", "ws"))
        if not request.url.startswith((*ours, "data:")):
            self.foreign.append(request.url)


@pytest.fixture
def visit(
    browser: Browser, product: Product, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Visitor]]:
    visitors: list[Visitor] = []

    def make(**options: Any) -> Visitor:
        context = browser.new_context(**options)
        context.set_default_timeout(SECONDS * 1000)
        visitors.append(Visitor(context, product))
        return visitors[-1]

    expect.set_options(timeout=SECONDS * 1000)
    yield make
    for visitor in visitors:
        if has_failed(request.node):
            visitor.tell()
        visitor.context.close()


def violations(visitor: Visitor) -> list[str]:
    """What axe finds in the shop's page and in the chat within it."""
    found = []
    errors = list(visitor.errors)
    for place in (visitor.page, visitor.frame):
        results = Axe().run(place)  # a frame evaluates as a page does
        found += [
            f"{violation['id']}: {[node['html'][:200] for node in violation['nodes']]}"
            for violation in results.response["violations"]
        ]
    visitor.errors[:] = errors  # axe itself writes to frames that do not know it
    return found


def console_as(visitor: Visitor, name: str = "staff") -> Page:
    """The console, with a member of staff signed in, in a browser of their own."""
    page = visitor.context.browser.new_page()  # type: ignore[union-attr]
    page.goto(f"{visitor.product.url}/console/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(DEMO_PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    return page


def staff_approve(visitor: Visitor, title: str) -> None:
    page = console_as(visitor)
    page.get_by_role("link", name=title).click()
    page.get_by_label("Your password, again").fill(DEMO_PASSWORD)
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#decision")).to_contain_text("By staff:staff")
    page.close()


def staff_write(visitor: Visitor, subject: str, text: str) -> None:
    """Take a conversation over and write to its customer."""
    page = console_as(visitor)
    page.goto(f"{visitor.product.url}/console/tickets/")
    page.get_by_role("link", name=subject).first.click()
    page.get_by_role("button", name="Take over").click()
    page.get_by_label("Write to the customer").fill(text)
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".talk")).to_contain_text(text)
    page.close()
