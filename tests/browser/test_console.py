"""The console in a browser: a story from sign-in to receipt, and every page looked at and listened to."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Browser, BrowserContext, Page, expect

from accounts.backends import DEMO_PASSWORD
from accounts.models import User
from agents.models import Task
from approvals.models import Approval
from audit import sealer
from audit.models import Event
from tests.agents.conftest import desk, model_process
from tests.agents.desk import Desk
from tests.browser import pictures
from tools.models import Operation

__all__ = ["desk", "model_process"]

pytestmark = pytest.mark.django_db(transaction=True)

WIDTHS = (390, 768, 1440)
ONE_ROW = 70  # pixels
BAR = "document.querySelector('header.bar').offsetHeight"
# Tables that somebody would have to push to and fro; lines of code are meant to be.
SIDEWAYS = """[...document.querySelectorAll(".sheet:not(.scrolls)")]
    .filter(sheet => sheet.scrollWidth > sheet.clientWidth + 1)
    .map(sheet => sheet.getAttribute("aria-label"))"""


class Visitor:
    """Somebody at a browser, who notes every error and every request that leaves the server."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.url = url
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._on_request)

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.url}{path}")
        return self.page

    def sign_in(self, name: str) -> Page:
        page = self.open(reverse("console:login"))
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill(DEMO_PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Approvals")).to_be_visible()
        return page

    def _on_console(self, message) -> None:
        # Chromium itself reports every answer of 4xx; those are meant to come.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def _on_request(self, request) -> None:
        if not request.url.startswith((self.url, "data:")):
            self.foreign.append(request.url)


@pytest.fixture
def visit(browser: Browser, live_server, settings) -> Iterator[Callable[..., Visitor]]:
    # Nobody follows by socket here, and the bell cannot be rung from a thread with a loop.
    settings.CHANNEL_LAYERS = {}
    contexts: list[BrowserContext] = []

    def make(**options) -> Visitor:
        context = browser.new_context(**options)
        context.set_default_timeout(10_000)
        contexts.append(context)
        return Visitor(context, live_server.url)

    yield make
    for context in contexts:
        context.close()


def ask_for_the_chair(desk: Desk) -> Task:
    """Ada asks for her $400.00 back and says yes: now staff are asked."""
    return desk.say_yes(
        desk.work(desk.ask("My chair from order 1043 is damaged, please refund it"))
    )


def test_staff_see_it_come_approve_it_and_see_it_sent(desk: Desk, visit):
    staff = visit()
    page = staff.sign_in("staff")
    expect(page.get_by_text("Nothing waits for a yes.")).to_be_visible()

    task = ask_for_the_chair(desk)

    link = page.get_by_role("link", name="Refund $400.00 for order 1043")
    expect(link).to_be_visible()
    expect(page).to_have_title("(1) Approvals · Countersign")
    link.click()
    expect(page.get_by_text("Nothing has changed since this was sealed.")).to_be_visible()

    page.get_by_label("Your password, again").fill("not my password")
    page.get_by_role("button", name="Approve $400.00").click()
    expect(page.get_by_role("alert")).to_contain_text("That is not your password.")
    expect(page.get_by_label("Your password, again")).to_be_focused()
    assert Operation.objects.get(task_id=task.pk).granted_roles == ["customer"]

    page.get_by_label("Your password, again").fill(DEMO_PASSWORD)
    page.get_by_role("button", name="Approve $400.00").click()
    expect(page.locator("#decision")).to_contain_text("By staff:staff")
    desk.work(task)

    expect(page.locator("#state")).to_contain_text("succeeded")
    expect(page.locator("#state")).to_contain_text(Operation.objects.get(task_id=task.pk).reference)
    assert [effect["amount"] for effect in desk.shop.effects()] == [40_000]
    assert staff.errors == []
    assert staff.foreign == []


def test_a_server_that_does_not_answer_is_told_of_and_a_yes_without_answer_too(desk: Desk, visit):
    """What stands between may answer for a server that is away: 502."""
    task = ask_for_the_chair(desk)
    approval = Approval.objects.get(operation__task_id=task.pk, role="staff")
    staff = visit()
    staff.sign_in("staff")
    page = staff.open(reverse("console:approval", args=[approval.public_id]))
    line = page.locator("#connection")
    page.route("**/console/**", lambda route: route.fulfill(status=502, body="Bad gateway"))

    expect(line).to_contain_text("this page shows what was last known")
    page.get_by_label("Your password, again").fill(DEMO_PASSWORD)
    page.get_by_role("button", name="Approve $400.00").click()
    expect(line).to_contain_text("not known whether that was done")
    page.unroute("**/console/**")
    for _ in range(2):
        with page.expect_response(lambda response: response.ok):
            pass

    expect(line).to_contain_text("not known whether that was done")
    assert Operation.objects.get(task_id=task.pk).granted_roles == ["customer"]


def test_the_slower_of_two_is_told_who_was_first(desk: Desk, visit):
    task = ask_for_the_chair(desk)
    approval = Approval.objects.get(operation__task_id=task.pk, role="staff")
    here = reverse("console:approval", args=[approval.public_id])
    slow = visit(java_script_enabled=False)
    slow.sign_in("staff2")
    slow.open(here)
    desk.decide(task, is_yes=False, by="staff", reason="The photos show normal wear.")

    slow.page.get_by_label("Reason for a no").fill("Too late.")
    slow.page.get_by_role("button", name="Reject").click()

    expect(slow.page.get_by_role("alert")).to_contain_text("staff:staff decided")
    approval.refresh_from_db(fields=["reason"])
    assert approval.reason == "The photos show normal wear."


def test_a_customers_case_is_taken_over_answered_and_given_back(desk: Desk, visit):
    task = desk.work(desk.ask("I want to talk to a person"))
    staff = visit()
    staff.sign_in("staff")
    page = staff.open(reverse("console:ticket", args=[task.ticket_id]))
    expect(page.get_by_role("heading", name="Handed over to staff")).to_be_visible()

    page.get_by_role("button", name="Take over").click()
    page.get_by_label("Write to the customer").fill("Hello, this is a person.")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".talk")).to_contain_text("Hello, this is a person.")
    desk.submit("Thank you!", ticket_id=task.ticket_id)
    expect(page.locator(".talk")).to_contain_text("Thank you!")

    page.get_by_role("button", name="Give back to the agent").click()
    expect(page.locator("#standing")).to_have_text("agent")
    assert staff.errors == []


def a_busy_day(desk: Desk) -> dict[str, str]:
    """One of everything that a page can show, and the addresses of the pages."""
    desk.done("Please refund order 1042, the mug is broken")
    desk.work(desk.ask("Where is my order 1045?"))
    waiting = ask_for_the_chair(desk)
    person = desk.work(desk.ask("I want to talk to a person"))
    noted = desk.say_yes(desk.work(desk.ask("Please refund order 1047")))
    second = desk.say_yes(desk.work(desk.ask("Please refund order 1049")))
    desk.decide(second, is_yes=False, reason="One refund a week is what we do.")
    desk.work(second)
    sealer.seal_once()
    question, changed = (
        Approval.objects.get(operation__task_id=task.pk, role="staff") for task in (waiting, noted)
    )
    desk.shop.refund_by_hand("1047", 500)
    return {
        "queue": reverse("console:queue"),
        "approval": reverse("console:approval", args=[question.public_id]),
        "changed": reverse("console:approval", args=[changed.public_id]),
        "tickets": reverse("console:tickets"),
        "ticket": reverse("console:ticket", args=[person.ticket_id]),
        "case": reverse("console:ticket", args=[waiting.ticket_id]),
        "task": f"{reverse('console:task', args=[second.pk])}#step-4",
        "step": reverse("console:step", args=[second.pk, 4]),
        "audit": reverse("console:audit"),
        "event": reverse(
            "console:event", args=[Event.objects.filter(action="refund.succeeded")[0].pk]
        ),
        "switches": reverse("console:switches"),
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_sound_at_every_width(desk: Desk, visit, tmp_path: Path, scheme):
    User.objects.filter(username="admin").update(is_approver=True)
    pages = a_busy_day(desk)
    visitor = visit(color_scheme=scheme, reduced_motion="reduce")
    page = visitor.open(reverse("console:login"))
    faults = look_at(page, "login", tmp_path)
    visitor.sign_in("admin")
    for name, path in pages.items():
        visitor.open(path)
        faults += look_at(page, name, tmp_path)
    assert faults == []
    assert visitor.errors == []
    assert visitor.foreign == []


def look_at(page: Page, name: str, folder: Path) -> list[str]:
    """What axe finds, and what sticks out at any width; `--pictures` leaves them in the folder."""
    faults = [
        f"{name}: {rule['id']}: {node['html']}"
        for rule in Axe().run(page).response["violations"]
        for node in rule["nodes"]
    ]
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        pictures.keep(page, folder / f"{name}-{width}.png", full_page=True)
        wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wider > 0:
            faults.append(f"{name} is {wider} px too wide at {width}")
        faults += [f"{name}: {label} scrolls at {width}" for label in page.evaluate(SIDEWAYS)]
    page.set_viewport_size({"width": 1280, "height": 900})
    if page.locator("header.bar").count() and page.evaluate(BAR) > ONE_ROW:
        faults.append(f"{name}: the menu takes more than a row")
    return faults
