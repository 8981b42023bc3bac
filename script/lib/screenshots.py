"""The guides' pictures: the product used in a browser as its people use it, page by page.

A private server with data of its own is started and stopped, so that the pictures are the same
wherever and however often they are taken, but for dates and numbers drawn at random.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, FrameLocator, Page, expect, sync_playwright

from script.lib import environment, record
from script.lib.bootstrap import ROOT, SetupError
from script.lib.checks import CHROMIUM

FOLDER = ROOT / "docs" / "images"
PASSWORD = "countersign-demo"  # noqa: S105 - the demo's, printed at every start
READY_SECONDS = 180
PATIENCE = 30_000  # milliseconds for a page or a state
DESK = (1440, 900)  # pixels
PHONE = (390, 844)
CHROMIUM_WORDS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
CONNECTED = re.compile("open|person")

# Picture, who looks, where. The stories below have filled these pages by then.
PAGES = (
    ("console-approvals", "staff", "/console/"),
    ("console-tickets", "staff", "/console/tickets/"),
    ("console-dashboard", "staff", "/console/dashboard/"),
    ("console-desk", "staff", "/console/desk/"),
    ("console-switches", "admin", "/console/switches/"),
    ("console-settings", "admin", "/console/settings/"),
    ("auditor-trail", "auditor", "/console/audit/"),
)


def main(arguments: list[str]) -> int:
    """Take all pictures, or those whose names are given; 0 when every one was taken."""
    parser = argparse.ArgumentParser(prog="script/screenshots", description=__doc__)
    parser.add_argument("--into", type=Path, default=FOLDER, help="default: docs/images")
    options = parser.parse_args(arguments)
    options.into.mkdir(parents=True, exist_ok=True)
    try:
        with _server() as running, _browser() as browser:
            Photographer(browser, running, options.into).take_all()
    except SetupError as exc:
        print(f"script/screenshots: {exc}", file=sys.stderr)
        return 1
    return 0


class Photographer:
    """Lives through the stories and takes a picture at each point of interest."""

    def __init__(self, browser: Browser, running: record.Record, folder: Path) -> None:
        self._browser = browser
        self._urls = running.urls
        self._folder = folder

    def take_all(self) -> None:
        self._mug()
        self._chair()
        for name, person, path in PAGES:
            with self._signed_in(person) as page:
                page.goto(f"{self._urls['web']}{path}")
                self._shoot(page, name)

    def _mug(self) -> None:
        """Forty dollars: the customer's yes is enough."""
        with self._context(DESK) as context:
            page = context.new_page()
            chat = self._open_chat(page, "ada")
            _say(chat, "My mug from order 1042 arrived broken, please refund it")
            yes = chat.get_by_role("button", name=re.compile("^Yes"))
            expect(yes).to_be_visible()
            self._shoot(page, "widget-card")
            yes.click()
            expect(chat.locator(".card.receipt")).to_be_visible()
            self._shoot(page, "widget-receipt")

    def _chair(self) -> None:
        """Four hundred: staff are asked too, and see why."""
        with self._context(PHONE, dark=True) as context:
            page = context.new_page()
            chat = self._open_chat(page, "ada")
            chat.get_by_role("button", name="Conversations").click()
            chat.get_by_role("button", name="New conversation").click()
            _say(chat, "Please refund order 1043, the chair is damaged")
            yes = chat.get_by_role("button", name=re.compile("^Yes"))
            expect(yes).to_be_visible()
            yes.click()
            expect(chat.locator(".now")).to_contain_text("colleague")
            self._shoot(page, "widget-waiting")
        with self._signed_in("staff") as page:
            page.goto(f"{self._urls['web']}/console/")
            page.get_by_role("link", name=re.compile("1043|400")).first.click()
            self._shoot(page, "console-approval")
        with self._signed_in("staff") as page:
            page.goto(f"{self._urls['web']}/console/tasks/1/")
            self._shoot(page, "console-task")

    def _open_chat(self, page: Page, customer: str) -> FrameLocator:
        page.goto(self._urls["shop"])
        page.get_by_label("Somebody else? Their customer id").fill(customer)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/orders")
        page.get_by_role("button", name="Open chat").click()
        chat = page.frame_locator("countersign-chat iframe")
        expect(chat.locator("#presence")).to_have_attribute("data-state", CONNECTED)
        return chat

    @contextmanager
    def _signed_in(self, person: str) -> Iterator[Page]:
        with self._context(DESK) as context:
            page = context.new_page()
            page.goto(f"{self._urls['web']}/console/login/")
            page.get_by_label("Name").fill(person)
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url("**/console/")
            yield page

    @contextmanager
    def _context(self, size: tuple[int, int], *, dark: bool = False) -> Iterator[BrowserContext]:
        context = self._browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        context.set_default_timeout(PATIENCE)
        try:
            yield context
        finally:
            context.close()

    def _shoot(self, page: Page, name: str) -> None:
        page.wait_for_load_state("networkidle")
        page.screenshot(path=str(self._folder / f"{name}.png"))
        print(f"{name}.png")


def _say(chat: FrameLocator, text: str) -> None:
    chat.get_by_label("Your message").fill(text)
    chat.get_by_label("Your message").press("Enter")


@contextmanager
def _browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        raise SetupError("Chromium is not installed; script/test says how to.")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_WORDS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def _server() -> Iterator[record.Record]:
    """A server on free ports with data that is thrown away; raises SetupError with its log."""
    with tempfile.TemporaryDirectory(prefix="countersign-") as name:
        folder, log_path = Path(name) / "data", Path(name) / "log"
        ours = {name for name in os.environ if environment.OURS.fullmatch(name)}
        env = {name: value for name, value in os.environ.items() if name not in ours}
        with log_path.open("w") as log:
            process = subprocess.Popen(
                [sys.executable, str(ROOT / "script" / "server"), "--port", "0"],
                env=env | {"COUNTERSIGN_DATA": str(folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield _ready(folder, process, log_path)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _ready(folder: Path, process: "subprocess.Popen[bytes]", log_path: Path) -> record.Record:
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until and process.poll() is None:
        found = record.running(folder)
        if found and found.ready_at:
            return found
        time.sleep(0.2)
    raise SetupError(f"the server did not become ready:\n{log_path.read_text()[-2000:]}")
