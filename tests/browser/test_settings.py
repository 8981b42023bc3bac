"""Settings and sign-in in a browser: two admins loosen a limit, an app is set up and asked for."""

import base64
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.urls import reverse
from playwright.sync_api import Page, expect

from accounts.backends import DEMO_PASSWORD
from accounts.models import Customer, SecondFactor, Shop, User
from tests.agents.conftest import desk, model_process
from tests.agents.desk import Desk
from tests.browser.test_console import ask_for_the_chair, look_at, visit
from tests.two_people import propose_change
from tools.models import Operation

__all__ = ["desk", "model_process", "visit"]

pytestmark = pytest.mark.django_db(transaction=True)


def limit() -> int:
    return Shop.objects.get(slug="demo").staff_limit


def code_for(secret: str) -> str:
    """What an app shows for a secret that was typed in; as if no code had been taken yet."""
    SecondFactor.objects.update(last_counter=0)
    key = base64.b32decode(secret.replace(" ", ""))
    now = int(datetime.now(UTC).timestamp())
    return TOTP(key, 6, SHA1(), 30).generate(now).decode()  # noqa: S303


def sign_in(visitor, name: str, code: Callable[[], str] | None = None) -> Page:
    page: Page = visitor.open(reverse("console:login"))
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(DEMO_PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    if code is not None:
        page.get_by_label("Code from your authenticator app").fill(code())
        page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Approvals")).to_be_visible()
    return page


def test_two_admins_loosen_a_limit_and_one_tightens_it(desk: Desk, visit):
    first, second = visit(), visit(java_script_enabled=False)
    page = sign_in(first, "admin2")
    page.get_by_role("link", name="Settings").click()
    money = page.get_by_role("region", name="Money and approvals")
    money.get_by_label("Refunds above this need staff").fill("250.00")
    money.get_by_label("Why").fill("The season begins.")
    money.get_by_label("Your password, again").fill(DEMO_PASSWORD)
    money.get_by_role("button", name="Change, or propose").click()

    waiting = page.get_by_role("region", name="Waiting for a second admin")
    expect(waiting).to_contain_text("$100.00 → $250.00")
    expect(waiting.get_by_role("button", name="Confirm exactly this")).to_have_count(0)
    assert limit() == 10_000

    other = sign_in(second, "admin")
    other.get_by_role("link", name="Settings").click()
    waits = other.get_by_role("region", name="Waiting for a second admin")
    waits.get_by_label("Your password, again").fill(DEMO_PASSWORD)
    waits.get_by_role("button", name="Confirm exactly this").click()
    expect(waits).to_contain_text("Nothing.")
    assert limit() == 25_000

    page.reload()
    money.get_by_label("Refunds above this need staff").fill("80.00")
    money.get_by_label("Your password, again").fill(DEMO_PASSWORD)
    money.get_by_role("button", name="Change, or propose").click()
    expect(page.get_by_role("status").first).to_contain_text("1 setting changed.")
    assert limit() == 8_000
    assert first.errors == second.errors == []
    assert first.foreign == second.foreign == []


def test_an_app_is_set_up_and_then_asked_for_at_the_door_and_before_money(desk: Desk, visit):
    staff = visit()
    page = sign_in(staff, "staff")
    page.get_by_role("link", name=re.compile("your sign-in")).click()
    page.get_by_role("region", name="Second factor").get_by_label("Your password, again").fill(
        DEMO_PASSWORD
    )
    page.get_by_role("button", name="Set it up").click()
    picture = page.get_by_role("img", name="The picture that your app scans")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.naturalWidth") > 100
    secret = page.locator(".code.long").inner_text()
    page.get_by_label("Code from your app").fill(code_for(secret))
    page.get_by_role("button", name="Turn it on").click()
    expect(page.locator(".recovery li")).to_have_count(10)
    page.get_by_role("button", name="Sign out", exact=True).click()

    page = sign_in(staff, "staff", lambda: code_for(secret))
    task = ask_for_the_chair(desk)
    page.get_by_role("link", name="Refund $400.00 for order 1043").click()
    page.get_by_label("Fresh code from your app").fill("000000")
    page.get_by_role("button", name="Approve $400.00").click()
    expect(page.get_by_role("alert")).to_contain_text("That is not a fresh code of your app.")
    expect(page.get_by_label("Fresh code from your app")).to_be_focused()
    assert Operation.objects.get(task_id=task.pk).granted_roles == ["customer"]
    page.get_by_label("Fresh code from your app").fill(code_for(secret))
    page.get_by_role("button", name="Approve $400.00").click()
    expect(page.locator("#decision")).to_contain_text("By staff:staff")
    assert Operation.objects.get(task_id=task.pk).granted_roles == ["customer", "staff"]
    assert staff.errors == []
    assert staff.foreign == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_of_settings_and_sign_in_is_sound_at_every_width(
    desk: Desk, visit, tmp_path: Path, scheme
):
    shop = Shop.objects.get(slug="demo")
    propose_change(shop, User.objects.get(username="admin2"), staff_limit=50_000)
    visitor = visit(color_scheme=scheme, reduced_motion="reduce")
    page = sign_in(visitor, "admin")
    task = ask_for_the_chair(desk)
    Customer.objects.filter(pk=task.customer_id).update(is_sensitive=True)
    pages = {
        "reason": reverse("console:ticket", args=[task.ticket_id]),
        "sensitive": reverse("console:sensitive", args=[shop.pk]),
        "settings": reverse("console:shop-settings", args=[shop.pk]),
        "secrets": reverse("console:shop-secrets", args=[shop.pk]),
        "people": reverse("console:people"),
        "security": reverse("console:security"),
    }
    faults = []
    for name, path in pages.items():
        faults += look_at(visitor.open(path), name, tmp_path)
    page.get_by_role("region", name="Second factor").get_by_label("Your password, again").fill(
        DEMO_PASSWORD
    )
    page.get_by_role("button", name="Set it up").click()
    faults += look_at(page, "setting-up", tmp_path)
    secret = page.locator(".code.long").inner_text()
    page.get_by_label("Code from your app").fill(code_for(secret))
    page.get_by_role("button", name="Turn it on").click()
    faults += look_at(page, "recovery-codes", tmp_path)
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(DEMO_PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    faults += look_at(page, "code", tmp_path)

    assert faults == []
    assert visitor.errors == []
    assert visitor.foreign == []
