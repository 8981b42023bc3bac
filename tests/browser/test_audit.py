"""The auditor's door in a browser: search, export, watch it, fetch it, check it; and every page looked at."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from accounts.models import User
from audit import export_work, exports, sealer
from audit.export_models import Export
from audit.models import Event
from audit.selectors import EventFilter
from tests.agents.conftest import desk, model_process
from tests.agents.desk import Desk
from tests.audit.bundles import verify_alone
from tests.audit.conftest import folder, sent
from tests.browser.test_console import look_at, visit

__all__ = ["desk", "folder", "model_process", "sent", "visit"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_auditor_searches_exports_fetches_and_checks(desk: Desk, visit, tmp_path: Path):
    desk.done("Please refund order 1042, the mug is broken")
    sealer.seal_once()
    auditor = visit(accept_downloads=True)
    auditor.sign_in("auditor")
    page = auditor.open(reverse("console:audit"))

    page.get_by_label("What", exact=True).fill("refund")
    page.get_by_text("More to filter by").click()
    page.get_by_label("Amount from").fill("0.01")
    page.get_by_label("Currency").fill("usd")
    page.get_by_role("button", name="Filter").click()
    expect(page).to_have_url(re.compile(r"action=refund&.*currency=usd"))
    expect(page.get_by_role("link", name="refund.succeeded")).to_be_visible()
    expect(page.get_by_role("link", name="message.received")).to_have_count(0)

    page.get_by_label("Besides the exact JSON lines").select_option(label="CSV")
    page.get_by_role("button", name="Export").click()
    expect(page.get_by_text("It waits for a worker.")).to_be_visible()
    export = Export.objects.get()
    Export.objects.update(state="running", epoch=1, total=100, done=34, percent=27, lease_until=export.created_at)  # fmt: skip
    expect(page.get_by_role("progressbar")).to_have_attribute("value", "27")
    expect(page.get_by_text("34 of 100 events, 27 %")).to_be_visible()
    page.reload()
    expect(page.get_by_role("progressbar")).to_have_attribute("value", "27")

    Export.objects.update(state="queued", epoch=0)
    assert export_work.run(export.pk)
    expect(page.get_by_role("button", name="Download the bundle")).to_be_visible()
    bundle = keep(page, page.get_by_role("button", name="Download the bundle"), tmp_path)
    page.get_by_role("link", name="Your exports").last.click()
    key = keep(page, page.get_by_role("link", name="public key"), tmp_path)
    program = keep(page, page.get_by_role("link", name="program"), tmp_path)

    assert bundle.name == Export.objects.get().file_name
    code, said = verify_alone(program, bundle, key)
    assert code == 0, said
    assert Event.objects.filter(action="export.downloaded", actor="auditor:auditor").count() == 1
    assert auditor.errors == []
    assert auditor.foreign == []


def test_without_javascript_it_is_asked_for_stopped_and_asked_for_again(desk: Desk, visit):
    auditor = visit(java_script_enabled=False)
    auditor.sign_in("auditor")
    page = auditor.open(reverse("console:audit"))
    page.get_by_role("button", name="Export").click()
    page.get_by_role("link", name="Look again").click()
    expect(page.get_by_text("It waits for a worker.")).to_be_visible()

    auditor.open(reverse("console:audit"))
    page.get_by_role("button", name="Export").click()
    expect(page.get_by_role("alert")).to_contain_text("You have an export under way.")
    page.get_by_role("table").get_by_role("link").click()
    page.get_by_role("button", name="Stop it").click()
    expect(page.get_by_text("It was stopped. Nothing is left of it.")).to_be_visible()

    assert [event.action for event in Event.objects.filter(action__startswith="export.")] == [
        "export.requested",
        "export.cancelled",
    ]


def keep(page: Page, way: Locator, folder: Path) -> Path:
    """What a click downloads, as a file under its own name."""
    with page.expect_download() as download:
        way.click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def lay_out(desk: Desk) -> dict[str, str]:
    """One of every state of an export, and the addresses of the pages."""
    desk.done("Please refund order 1042, the mug is broken")
    sealer.seal_once()
    admin = User.objects.get(username="admin")
    now = timezone.now()
    pages = {}
    for state in ("ready", "failed", "cancelled", "expired", "running"):
        export = exports.request_export(
            owner_id=admin.pk,
            actor=admin.actor,
            wanted=EventFilter(shop_id=None, action="refund", since=now - timedelta(days=1)),
            form="all",
            is_redacted=state != "ready",
            reason="Case 12 of the ombudsman" if state == "ready" else "",
            now=now,
        )
        if state == "ready":
            assert export_work.run(export.pk)
        else:
            Export.objects.filter(pk=export.pk).update(
                state=state, epoch=1, lease_until=now, total=1_000_000, done=430_211, percent=34,
                error="The file could not be written: No space left on device.",
            )  # fmt: skip
        pages[state] = reverse("console:export-state", args=[export.pk])
    audit = reverse("console:audit")
    return pages | {
        "exports": reverse("console:exports"),
        "trail": audit,
        "filtered": f"{audit}?action=refund&tool=refund&amount_from=1.00&currency=USD",
        "nothing": f"{audit}?customer=nobody",
        "wrong": f"{audit}?amount_from=1&since=yesterday",
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_of_the_auditor_is_sound_at_every_width(
    desk: Desk, visit, tmp_path: Path, scheme
):
    pages = lay_out(desk)
    visitor = visit(color_scheme=scheme, reduced_motion="reduce")
    visitor.sign_in("admin")
    faults = []
    for name, path in pages.items():
        faults += look_at(visitor.open(path), name, tmp_path)
    assert faults == []
    assert visitor.errors == []
    assert visitor.foreign == []
