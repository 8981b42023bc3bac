"""The desk in a browser: a story of an outcome that nobody knew, and every page of it looked at."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from accounts.backends import DEMO_PASSWORD
from accounts.models import Shop, User
from agents.models import Task
from tests.agents.conftest import desk, model_process
from tests.agents.desk import Desk, operation, reply
from tests.browser.test_console import look_at, visit
from tests.desk.telling import Teller, about_refund
from tools import reconcile, settlement
from tools.models import Operation, State

__all__ = ["desk", "model_process", "visit"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch):
    """A person is asked as soon as the shop does not answer."""
    monkeypatch.setattr(reconcile, "GIVE_UP_AFTER", timedelta(0))


def give_up(desk: Desk, request: str, fault: str) -> Task:
    """A change whose outcome is lost, and that nobody could look up."""
    desk.shop.fault(fault, scope={"path": "/refunds"}, times=1)
    lookups = desk.shop.fault("error_before", scope={"path": "/effects"})
    task = desk.work(desk.ask(request))
    while task.status == "waiting_approval":
        task = desk.say_yes(task)
    task = desk.wake(task)
    assert operation(task).state == State.NEEDS_PERSON
    desk.shop.http.delete(f"/control/faults/{lookups}")
    return task


def test_two_people_settle_what_the_shop_cannot_tell(desk: Desk, visit):
    staff, second = visit(), visit()
    page = staff.sign_in("staff")
    page.get_by_role("link", name="Desk").click()
    expect(page.get_by_text("Nothing waits for a person.")).to_be_visible()

    task = give_up(desk, "My chair from order 1043 is damaged, please refund it", "error_before")
    link = page.get_by_role("link", name="Refund $400.00 for order 1043")
    expect(link).to_be_visible()
    expect(page).to_have_title("(1) Desk · Countersign")
    link.click()

    page.get_by_role("button", name="Check with the shop now").click()
    expect(page.get_by_role("status").first).to_contain_text("shows nothing under this key")
    page.get_by_label("It did not happen").check()
    page.get_by_label("How do you know?").fill("Not in the shop's books, says their accountant.")
    page.get_by_label("Your password, again").fill(DEMO_PASSWORD)
    page.get_by_role("button", name="Propose to a second person").click()
    expect(page.get_by_text("A second person has to confirm it.")).to_be_visible()

    second.sign_in("staff2")
    other = second.open(reverse("console:desk-operation", args=[operation(task).pk]))
    expect(other.locator(".proposed")).to_contain_text("says their accountant")
    other.get_by_label("Your password, again").fill(DEMO_PASSWORD)
    other.get_by_role("button", name="Confirm exactly this").click()

    expect(other.get_by_text("There is nothing to settle here any more.")).to_be_visible()
    # The first one's page hears of it by itself.
    expect(page.locator("#decision")).to_contain_text("There is nothing to settle here any more.")
    assert operation(task).state == State.FAILED
    assert "was not made: a colleague has checked it with the shop." in reply(task)
    assert desk.shop.effects() == []
    assert staff.errors == second.errors == []
    assert staff.foreign == second.foreign == []


def lay_out(desk: Desk) -> dict[str, str]:
    """One of everything that the desk can show, and the addresses of its pages."""
    proposed = operation(
        give_up(desk, "My chair from order 1043 is damaged, please refund it", "error_before")
    )
    settlement.propose(
        operation_id=proposed.pk,
        user_id=User.objects.get(username="staff").pk,
        outcome=State.FAILED,
        reference="",
        evidence="Not in the shop's books of today.\nAsked their accountant by telephone.",
    )
    open_one = operation(
        give_up(desk, "Please refund order 1042, the mug is broken", "error_after")
    )
    returned = operation(desk.done("Please refund order 1049"))
    Teller.of(Shop.objects.get(slug="demo")).told(
        about_refund(returned, "reversed", id=returned.reference, reason="account_closed")
    )
    desk.shop.fault("error_after", scope={"path": "/refunds"}, times=1)
    looking = desk.work(desk.ask("Please refund order 1047"))
    while looking.status == "waiting_approval":
        looking = desk.say_yes(looking)
    assert operation(looking).state == State.UNKNOWN
    pages = {"proposed": proposed, "needs-person": open_one, "came-back": returned}
    return {"desk": reverse("console:desk")} | {
        name: reverse("console:desk-operation", args=[row.pk]) for name, row in pages.items()
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_of_the_desk_is_sound_at_every_width(desk: Desk, visit, tmp_path: Path, scheme):
    User.objects.filter(username="admin").update(is_approver=True)
    pages = lay_out(desk)
    visitor = visit(color_scheme=scheme, reduced_motion="reduce")
    visitor.sign_in("admin")
    faults = []
    for name, path in pages.items():
        faults += look_at(visitor.open(path), name, tmp_path)
    assert faults == []
    assert visitor.errors == []
    assert visitor.foreign == []
    assert Operation.objects.filter(state=State.NEEDS_PERSON).count() == 2
