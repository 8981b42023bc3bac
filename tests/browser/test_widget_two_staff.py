"""Above the shop's second limit: a customer's yes, then that of two different members of staff."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from accounts.backends import DEMO_PASSWORD
from tests.browser import pictures
from tests.browser.visitor import console_as, visit
from tests.live import Product

__all__ = ["visit"]

TITLE = "Refund $520.00 for order 1024"
SET = "from accounts.models import Shop; Shop.objects.update(second_limit=50_000)"
REMOVE = """
from accounts.models import Shop
from tests.two_people import loosen
loosen(Shop.objects.get(), second_limit=None)
"""


@pytest.fixture
def second_limit(product: Product) -> Iterator[None]:
    """Above $500.00 two of staff are asked, for as long as this test runs."""
    run(product, SET)
    yield
    run(product, REMOVE)


def run(product: Product, code: str) -> None:
    done = product.manage("shell", "-c", code)
    assert done.returncode == 0, done.stderr


def approve(page: Page) -> None:
    page.get_by_label("Your password, again").fill(DEMO_PASSWORD)
    page.get_by_role("button", name="Approve $520.00").click()


def test_two_different_members_of_staff_say_yes_and_the_refund_is_paid_once(
    visit, product: Product, second_limit, tmp_path: Path
):
    visitor = visit()
    chat = visitor.open_as("dmitri")
    visitor.begin_anew()
    visitor.say("Everything in order 1024 arrived broken, please refund it")
    card = chat.locator(".card.action")
    expect(card.get_by_role("heading")).to_have_text(TITLE)
    visitor.screenshot(tmp_path, "1-asked")
    card.get_by_role("button", name="Yes, go ahead").click()
    expect(chat.locator(".now")).to_have_text("A colleague is looking at this")

    first = console_as(visitor, "staff")
    first.get_by_role("link", name=TITLE).click()
    expect(first.get_by_text("Another member of staff is asked after you.")).to_be_visible()
    pictures.keep(first, tmp_path / "2-first.png", full_page=True)
    approve(first)
    expect(first.locator("#decision")).to_contain_text("It needs a second person")
    pictures.keep(first, tmp_path / "3-first-said-yes.png", full_page=True)
    first.get_by_role("link", name="the question to them").click()
    expect(first.locator("#decision")).to_contain_text("You gave the first yes.")
    expect(first.get_by_role("button", name="Approve")).to_have_count(0)
    expect(first.get_by_role("button", name="Reject")).to_have_count(0)
    pictures.keep(first, tmp_path / "4-first-cannot.png", full_page=True)
    first.get_by_role("link", name="Back to the approvals").click()
    row = first.get_by_role("row").filter(has=first.get_by_role("link", name=TITLE))
    expect(row).to_contain_text("You gave the first yes.")
    expect(first).to_have_title("Approvals · Countersign")
    pictures.keep(first, tmp_path / "4-first-inbox.png", full_page=True)
    expect(chat.locator(".now")).to_have_text("A colleague is looking at this")
    visitor.screenshot(tmp_path, "5-still-looked-at")
    assert product.shop.effects(order_id="1024") == []

    second = console_as(visitor, "staff2")
    row = second.get_by_role("row").filter(has=second.get_by_role("link", name=TITLE))
    expect(row).to_contain_text("second of two: approved by staff:staff")
    pictures.keep(second, tmp_path / "6-second-inbox.png", full_page=True)
    row.get_by_role("link", name=TITLE).click()
    approve(second)
    expect(second.locator("#decision")).to_contain_text("By staff:staff2")

    receipt = chat.locator(".card.receipt")
    expect(receipt).to_contain_text("$520.00")
    (effect,) = product.shop.effects(order_id="1024")
    expect(receipt).to_contain_text(effect["id"])
    expect(chat.locator(".said[data-author=agent]").last).to_contain_text("1024")
    visitor.screenshot(tmp_path, "7-receipt")
    expect(second.locator("#state")).to_contain_text("succeeded")
    pictures.keep(second, tmp_path / "8-second-said-yes.png", full_page=True)
    assert (effect["kind"], effect["amount"]) == ("refund", 52_000)
    assert visitor.errors == []
    assert visitor.foreign == []
    first.close()
    second.close()
