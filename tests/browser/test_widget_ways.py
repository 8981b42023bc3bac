"""The chat for whoever uses no mouse, sees little, reads from the right, or comes back late."""

from playwright.sync_api import expect

from tests.browser.visitor import Visitor, violations, visit
from tests.live import Product

__all__ = ["visit"]

MANY = """
from django.utils import timezone
from accounts.models import User
from agents import services
from agents.models import Ticket
ticket = Ticket.objects.filter(customer__external_id="esther").latest("pk")
staff = User.objects.get(username="staff")
services.take_over(ticket_id=ticket.pk, user=staff, now=timezone.now())
for n in range(12):
    services.reply_as_staff(ticket_id=ticket.pk, user=staff, text=f"{n}", now=timezone.now())
"""


DRAFT = """
from agents import events
from agents.models import Task
task = Task.objects.filter(customer__external_id="dmitri").latest("pk")
assert events.tell_draft(task, 9, "I have looked at it. Nothing is done yet.")
"""


def _press_until(visitor: Visitor, key: str, selector: str) -> None:
    """Press a key until the focus is there, as somebody does who sees it."""
    for _ in range(20):
        visitor.page.keyboard.press(key)
        if visitor.frame.evaluate(f"document.activeElement.matches({selector!r})"):
            return
    raise AssertionError(f"{selector} is not reached by {key}")


def test_an_order_is_cancelled_with_the_keyboard_alone(visit, product: Product):
    visitor = visit()
    visitor.open_as("esther")
    visitor.begin_anew()  # other tests may have spoken as this customer before
    page = visitor.page
    page.reload()
    page.get_by_role("button", name="Open chat").focus()
    page.keyboard.press("Enter")
    chat = visitor.chat
    expect(chat.locator("#presence")).to_have_attribute("data-state", "open")
    expect(chat.get_by_label("Your message")).to_be_focused()
    _press_until(visitor, "Shift+Tab", "#needs-button")
    page.keyboard.press("Enter")
    _press_until(visitor, "Tab", ".choices li:nth-child(3) button")
    page.keyboard.press("Enter")
    expect(chat.get_by_label("Order", exact=True)).to_be_focused()
    page.keyboard.type("1056")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    _press_until(visitor, "Tab", ".fields .yes")
    page.keyboard.press("Enter")

    expect(chat.locator(".card.action")).to_contain_text("Cancel order 1056")
    assert visitor.frame.evaluate("document.activeElement !== document.body")
    _press_until(visitor, "Shift+Tab", "[data-decision=yes]")
    page.keyboard.press("Enter")
    expect(chat.locator(".card.receipt").last).to_contain_text("Order cancelled")
    assert product.shop.order("1056")["status"] == "cancelled"
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Open chat")).to_be_focused()
    assert visitor.errors == []


def test_twice_as_large_in_forced_colours_and_without_motion_it_still_serves(visit, tmp_path):
    # 1280 by 800 pixels at 200 % are so many of the page's own.
    visitor = visit(
        viewport={"width": 640, "height": 400}, forced_colors="active", reduced_motion="reduce"
    )
    chat = visitor.open_as("cleo")
    chat.get_by_role("button", name="What do you need?").click()
    chat.get_by_role("button", name="Get a refund").click()
    chat.get_by_role("button", name="Continue").click()

    expect(chat.locator("[data-field=reason] .fault")).to_be_visible()
    visitor.screenshot(tmp_path, "large")
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert visitor.frame.evaluate(wide) <= 0
    moving = "document.getAnimations().filter(one => one.playState === 'running').length"
    assert visitor.frame.evaluate(moving) == 0
    assert violations(visitor) == []


def test_more_than_nine_unread_are_nine_and_more_after_a_reload_too(visit, product: Product):
    visitor = visit()
    visitor.open_as("esther")
    visitor.begin_anew()
    visitor.say("What is your return policy on lamps?")
    expect(visitor.chat.locator(".said[data-author=agent]")).to_have_count(1)
    visitor.page.keyboard.press("Escape")
    expect(visitor.page.get_by_role("dialog")).to_be_hidden()

    done = product.manage("shell", "-c", MANY)
    assert done.returncode == 0, done.stderr

    badge = visitor.page.get_by_role("button", name="Open chat, 9+ unread")
    expect(badge).to_be_visible()
    visitor.page.reload()
    expect(badge).to_be_visible()


def test_arabic_and_hebrew_read_from_the_right_among_the_rest(visit):
    visitor = visit()
    chat = visitor.open_as("cleo")
    visitor.begin_anew()
    for text in ("مرحبا، أين طلبي؟", "שלום, איפה ההזמנה שלי?", "Hello, where is it?"):
        visitor.say(text)
        expect(visitor.said(text)).to_be_visible()

    directions = "all => all.map(one => getComputedStyle(one).direction)"
    said = chat.locator(".said[data-author=customer] .bubble").evaluate_all(directions)
    assert said == ["rtl", "rtl", "ltr"]


def test_a_reply_is_seen_while_it_is_written_and_said_once(visit, product: Product, tmp_path):
    """Seen only: a reader of the screen hears it when it is said."""
    visitor = visit(viewport={"width": 390, "height": 844})
    chat = visitor.open_as("dmitri")
    visitor.begin_anew()
    visitor.say("Please cancel order 1058, I no longer need it")
    expect(chat.get_by_role("button", name="No: Cancel order 1058")).to_be_visible()
    draft = chat.locator(".said.is-draft")
    expect(draft).to_have_count(0)

    done = product.manage("shell", "-c", DRAFT)
    assert done.returncode == 0, done.stderr
    expect(draft.locator(".bubble")).to_have_text("I have looked at it. Nothing is done yet.")
    expect(draft).to_have_attribute("aria-hidden", "true")
    visitor.screenshot(tmp_path, "draft")
    assert violations(visitor) == []

    chat.get_by_role("button", name="No: Cancel order 1058").click()
    expect(chat.locator(".said[data-author=agent]:not(.is-draft)")).to_have_count(1)
    expect(draft).to_have_count(0)
    assert visitor.errors == []


def test_a_refund_that_the_shop_calls_pending_is_on_its_way(visit, product: Product, tmp_path):
    customer, order = product.newcomer()
    product.shop.fault("pending", scope={"order": order}, times=1)
    visitor = visit()
    chat = visitor.open_as(customer)
    visitor.say(f"The thing from order {order} arrived broken, please refund it")
    chat.locator(".card.action").locator("[data-decision=yes]").click()

    receipt = chat.locator(".card.receipt")
    expect(receipt.get_by_role("heading")).to_have_text("Refund on its way")
    expect(chat.locator(".timeline")).to_contain_text("is on its way (reference re_")
    visitor.screenshot(tmp_path, "pending")
    assert visitor.errors == []
