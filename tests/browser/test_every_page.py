"""No page of the console is left out of what the browser looks at."""

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.test import RequestFactory
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page

from accounts import keeping
from accounts.models import Customer, User
from approvals import shown
from config import console_urls
from tests.agents.desk import Desk
from tests.browser.test_console import Visitor, desk, look_at, model_process, visit
from tests.factories import make_customer, make_shop

__all__ = ["desk", "model_process", "visit"]

pytestmark = pytest.mark.django_db(transaction=True)

FILES = {"task-log", "public-key", "verifier"}  # downloads
LOCKED_AFTER = 8  # wrong passwords


def pages_of_the_console(rf: RequestFactory) -> set[str]:
    """The names of all addresses that answer a GET with a page."""
    asked = rf.get("/")
    asked.user, asked.session = AnonymousUser(), SessionStore()
    patterns = {str(pattern.name): pattern.callback for pattern in console_urls.urlpatterns}
    return {name for name, view in patterns.items() if view(asked).status_code != 405} - FILES


def test_each_page_is_among_those_that_a_browser_looks_at(rf):
    """By the names in the sources beside this one, each of which hands its pages to `look_at`."""
    sources = [path.read_text() for path in Path(__file__).parent.glob("test_*.py")]
    named = {
        name
        for source in sources
        if "look_at(" in source
        for name in re.findall(r"""reverse\(\s*["']console:([\w-]+)""", source)
    }

    pages = pages_of_the_console(rf)

    assert len(pages) > 25
    assert pages - named == {"login-code"}, "where the sign-in leads whoever has a second factor"


def customers_pages(desk: Desk) -> dict[str, str]:
    """A customer with a hold, one whose page asks for a reason, and one who was never there."""
    desk.done("Please refund order 1042, the mug is broken")
    ada = Customer.objects.get(external_id="ada")
    admin = User.objects.get(username="admin")
    keeping.place_hold(
        customer_id=ada.pk, reason="A claim at court.", by=admin.actor, now=timezone.now()
    )
    bob = make_customer(ada.shop, name="Bob Lindqvist", is_sensitive=True)
    customers = reverse("console:customers")
    return {
        "customers": customers,
        "nobody-found": f"{customers}?q=nobody",
        "customer": reverse("console:customer", args=[ada.pk]),
        "reason-first": reverse("console:customer", args=[bob.pk]),
        "shops": reverse("console:settings"),
        "not-found": reverse("console:customer", args=[10**9]),
        "no-such-page": "/console/nothing/here/",
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_customers_and_every_page_of_trouble_are_sound_at_every_width(
    desk: Desk, visit, tmp_path: Path, monkeypatch, scheme
):
    make_shop(slug="another")
    pages = customers_pages(desk)
    visitor = visit(color_scheme=scheme, reduced_motion="reduce")
    visitor.sign_in("admin")
    faults = []
    for name, path in pages.items():
        faults += look_at(visitor.open(path), name, tmp_path)
    faults += look_at(refused(visit, scheme), "forbidden", tmp_path)
    faults += look_at(locked_out(visit, scheme), "locked-out", tmp_path)
    monkeypatch.setattr(shown, "list_inbox", None)
    broken = visitor.open(reverse("console:queue"))
    assert "Something went wrong on our side" in broken.inner_text("main")
    faults += look_at(broken, "broken", tmp_path)

    assert faults == []
    assert visitor.errors == []
    assert visitor.foreign == []


def refused(visit, scheme: str) -> Page:
    """What an auditor sees of the settings."""
    visitor: Visitor = visit(color_scheme=scheme, reduced_motion="reduce")
    visitor.sign_in("auditor")
    page = visitor.open(reverse("console:settings"))
    assert "not" in page.inner_text("main")
    return page


def locked_out(visit, scheme: str) -> Page:
    """What somebody sees who has guessed too often."""
    page: Page = visit(color_scheme=scheme, reduced_motion="reduce").open(reverse("console:login"))
    for _ in range(LOCKED_AFTER):
        page.get_by_label("Name").fill("staff2")
        page.get_by_label("Password").fill("a guess")
        page.get_by_role("button", name="Sign in").click()
    assert "wrong" in page.inner_text("main").lower()
    return page
