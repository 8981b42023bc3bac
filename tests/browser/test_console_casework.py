"""What staff do around a case, in a browser: every page looked at and listened to."""

from pathlib import Path

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from agents.casework import CannedReply, SavedView
from agents.models import Task
from agents.services import notes, speaking
from approvals import handling
from approvals.models import Approval
from tests.agents.desk import Desk
from tests.browser.test_console import (
    ask_for_the_chair,
    desk,
    look_at,
    model_process,
    pytestmark,
    visit,
)

__all__ = ["desk", "model_process", "pytestmark", "visit"]


# The plots' tables unfolded, with numbers as wide as a busy day's.
BUSY_TABLES = """() => {
    for (const details of document.querySelectorAll(".plot details")) details.open = true;
    for (const cell of document.querySelectorAll(".numbers .number:is(td)")) {
        cell.textContent = cell.textContent.includes("$") ? "$88.8888" : "88,888";
    }
}"""


def a_held_case(desk: Desk) -> tuple[Task, CannedReply]:
    """A case that admin holds, with a note in it, a ready-made answer at hand and a view saved."""
    admin, now = User.objects.get(username="admin"), timezone.now()
    task = desk.work(desk.ask("I want to talk to a person about my parcel"))
    speaking.take_over(ticket_id=task.ticket_id, user=admin, now=now)
    notes.add_note(ticket_id=task.ticket_id, user=admin, text="She called as well.", now=now)
    hello = CannedReply.objects.create(shop=task.shop, name="Hello", text="Dear {customer}, hello.")
    SavedView.objects.create(user=admin, page="queue", name="Big ones", query="least=400")
    question = Approval.objects.get(role="staff", status="open")
    handling.assign(approval_id=question.pk, to=admin, by=admin, now=now)
    handling.watch(approval_id=question.pk, user=User.objects.get(username="staff2"), now=now)
    return task, hello


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_of_the_work_is_sound_at_every_width(
    desk: Desk, visit, tmp_path: Path, scheme: str
):
    User.objects.filter(username="admin").update(is_approver=True)
    desk.done("Please refund order 1042, the mug is broken")
    waiting = ask_for_the_chair(desk)
    held, hello = a_held_case(desk)
    question = Approval.objects.get(operation__task_id=waiting.pk, role="staff")
    pages = {
        "queue": f"{reverse('console:queue')}?least=1&flagged=",
        "question": reverse("console:approval", args=[question.public_id]),
        "mine": f"{reverse('console:ticket', args=[held.ticket_id])}?canned={hello.pk}",
        "answers": f"{reverse('console:canned')}?reply={hello.pk}",
        "dashboard": f"{reverse('console:dashboard')}?span=day",
        "attention": reverse("console:attention"),
        "keys": reverse("console:keys"),
    }
    visitor = visit(color_scheme=scheme, reduced_motion="reduce")
    page = visitor.sign_in("admin")
    faults = []
    for name, path in pages.items():
        visitor.open(path)
        faults += look_at(page, name, tmp_path)
    visitor.open(pages["dashboard"])
    page.evaluate(BUSY_TABLES)
    expect(page.get_by_role("cell", name="88,888").first).to_be_visible()
    faults += look_at(page, "tables", tmp_path)

    assert faults == []
    assert visitor.errors == []
    assert visitor.foreign == []


def test_several_are_put_off_without_javascript(desk: Desk, visit):
    task = ask_for_the_chair(desk)
    question = Approval.objects.get(operation__task_id=task.pk, role="staff")
    page = visit(java_script_enabled=False).sign_in("staff")

    page.locator(f"#pick-{question.public_id}").check()
    page.get_by_role("button", name="Put off").click()

    expect(page.get_by_role("main").get_by_role("status")).to_have_text("1 done")
    page.get_by_role("link", name="Back to the approvals").click()
    expect(page.get_by_text("Nothing waits for a yes.")).to_be_visible()
