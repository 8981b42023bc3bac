"""Single keys in the console: what they do, and when they do nothing."""

from django.urls import reverse
from playwright.sync_api import Page, expect

from accounts.models import User
from agents.casework import Habits
from agents.models import Ticket
from approvals.models import Approval
from tests.agents.desk import Desk
from tests.browser.test_console import ask_for_the_chair, desk, model_process, pytestmark, visit

__all__ = ["desk", "model_process", "pytestmark", "visit"]


def two_questions(desk: Desk) -> tuple[Approval, Approval]:
    """Staff are asked about two orders, the first with the older deadline."""
    first = ask_for_the_chair(desk)
    second = desk.say_yes(desk.work(desk.ask("Please refund order 1047")))
    found = Approval.objects.filter(role="staff", operation__task_id__in=[first.pk, second.pk])
    one, other = found.order_by("expires_at")
    return one, other


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.id"))


def test_staff_work_the_inbox_without_a_mouse(desk: Desk, visit):
    first, second = two_questions(desk)
    staff = visit()
    page = staff.sign_in("staff")
    here, there = (f"approval-{each.public_id}" for each in (first, second))
    expect(page.locator(f"#{there}")).to_be_visible()

    for key, expected in [("j", here), ("j", there), ("j", there), ("k", here)]:
        page.keyboard.press(key)
        assert focused(page) == expected, key
    page.keyboard.press("/")
    assert focused(page) == "q"
    page.keyboard.type("jj?/n")
    expect(page.locator("#q")).to_have_value("jj?/n")

    page.locator(f"#{there}").focus()
    page.keyboard.press("r")
    expect(page.locator("#reason")).to_be_focused()
    assert page.url.endswith(f"{second.public_id}/#reason")
    page.keyboard.type("Not this one.")
    page.locator("h1").click()
    page.keyboard.press("a")
    assert focused(page) == "password"
    page.locator("h1").click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    assert not Approval.objects.filter(role="staff").exclude(status="open").exists()
    assert staff.errors == []


def test_taking_over_by_key_asks_once_more(desk: Desk, visit):
    task = desk.work(desk.ask("I want to talk to a person"))
    staff = visit()
    staff.sign_in("staff")
    page = staff.open(reverse("console:ticket", args=[task.ticket_id]))

    page.keyboard.press("t")
    page.get_by_role("dialog").get_by_role("button", name="No").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert Ticket.objects.get(pk=task.ticket_id).assigned_to is None

    page.keyboard.press("t")
    page.get_by_role("dialog").get_by_role("button", name="Yes").click()
    expect(page.get_by_label("Write to the customer")).to_be_visible()
    assert Ticket.objects.get(pk=task.ticket_id).assigned_to == User.objects.get(username="staff")
    page.keyboard.press("n")
    expect(page.get_by_label("Note among staff")).to_be_focused()


def test_keys_that_are_switched_off_do_nothing(desk: Desk, visit):
    ask_for_the_chair(desk)
    Habits.objects.create(user=User.objects.get(username="staff"), has_keys=False)
    page = visit().sign_in("staff")
    expect(page.locator("[data-row]")).to_have_count(1)

    for key in "jk/?t":
        page.keyboard.press(key)

    assert focused(page) in {"", "main"}
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_what_was_ticked_stays_ticked_when_the_list_moves(desk: Desk, visit):
    first, second = two_questions(desk)
    page = visit().sign_in("staff")
    page.locator(f"#pick-{second.public_id}").check()
    desk.say_yes(desk.work(desk.ask("Please refund order 1049")))

    expect(page.locator("[data-row]")).to_have_count(3)

    expect(page.locator(f"#pick-{second.public_id}")).to_be_checked()
    expect(page.locator(f"#pick-{first.public_id}")).not_to_be_checked()
    page.get_by_label("choose this page").check()
    expect(page.locator("input[name=approval]:checked")).to_have_count(3)
