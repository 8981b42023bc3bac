"""Looking at a task again, in a browser: flagged, compared with a replay, and the prompts beside each other."""

from pathlib import Path

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from agents.services import flags, replays
from tests.agents.desk import Desk
from tests.agents.test_replay import run, says
from tests.browser.test_console import desk, look_at, model_process, pytestmark, visit
from tests.console.test_prompts import two_versions

__all__ = ["desk", "model_process", "pytestmark", "two_versions", "visit"]


def test_a_task_is_flagged_and_closed_without_javascript(desk: Desk, visit):
    task = desk.done("Please refund order 1042, the mug is broken")
    page = visit(java_script_enabled=False).sign_in("staff")
    page.goto(page.url.replace("/console/", reverse("console:task", args=[task.pk])))

    page.get_by_text("Flag for review").click()
    page.get_by_label("What should be looked at").fill("Was the photo looked at?")
    page.get_by_role("button", name="Flag", exact=True).click()
    expect(page.get_by_role("link", name="for review")).to_be_visible()
    expect(page.locator("#review")).to_contain_text("Was the photo looked at?")

    page.get_by_text("Close the flag").click()
    page.get_by_label("What came of it").fill("It was.")
    page.get_by_role("button", name="Close", exact=True).click()
    expect(page.locator("#review")).to_contain_text("Closed: It was.")
    expect(page.get_by_role("link", name="for review")).to_have_count(0)


@pytest.mark.usefixtures("two_versions")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_of_a_review_is_sound_at_every_width(
    desk: Desk, visit, tmp_path: Path, scheme: str
):
    admin, now = User.objects.get(username="admin"), timezone.now()
    task = desk.done("Please refund order 1042, the mug is broken")
    replays.keep(run(task, says("No.")), prompt_version="v1", model="candidate", now=now)
    closed = flags.raise_flag(task_id=task.pk, user=admin, reason="So quick?", now=now)
    flags.close_flag(flag_id=closed.pk, task_id=task.pk, user=admin, word="It was due.", now=now)
    flags.raise_flag(task_id=task.pk, user=admin, reason="Was the photo looked at?", now=now)
    prompts = reverse("console:prompts")
    pages = {
        "flagged": reverse("console:task", args=[task.pk]),
        "case": reverse("console:ticket", args=[task.ticket_id]),
        "for-review": f"{reverse('console:tickets')}?review=on",
        "prompts": prompts,
        "compared": f"{prompts}?prompt=support&a=v1&b=v2",
    }
    visitor = visit(color_scheme=scheme, reduced_motion="reduce")
    page = visitor.sign_in("admin")
    faults = []
    for name, path in pages.items():
        visitor.open(path)
        page.evaluate(
            "document.querySelectorAll('#review details').forEach(each => each.open = true)"
        )
        faults += look_at(page, name, tmp_path)

    assert faults == []
    assert visitor.errors == []
    assert visitor.foreign == []
