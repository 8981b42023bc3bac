"""The chat belongs to whoever is signed in: nothing of the customer before is theirs."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.test_widget import SlowLine
from tests.browser.visitor import CONNECTED, Visitor, visit
from tests.live import Product

__all__ = ["visit"]


def reconnect(visitor: Visitor) -> None:
    visitor.context.set_offline(True)
    visitor.context.set_offline(False)


def sign_in_as(visitor: Visitor, customer: str, **options: Any) -> None:
    """The page has this customer now, and says so."""
    give(visitor, customer, **options)
    visitor.page.evaluate("countersign('identify', () => window.token)")


def give(visitor: Visitor, customer: str, **options: Any) -> None:
    """When the page is asked again, it answers with this customer's token."""
    token = visitor.product.shop.sign(customer, **options)
    visitor.page.evaluate("token => { window.token = token; }", token)


def test_whoever_signs_in_after_a_sign_out_on_the_same_page_is_let_in(visit):
    """The chat is opened for the first time only then: its frame is told of all three at once."""
    visitor = visit()
    visitor.sign_in("esther")
    visitor.page.evaluate("countersign('reset')")
    sign_in_as(visitor, "cleo")

    visitor.open()

    assert visitor.frame.evaluate("sessionStorage.getItem('countersign:customer')") == '"cleo"'
    assert visitor.errors == []


CALLBACK = """countersign("identify", () => {
    if (window.isAway) throw new Error("The shop cannot be reached");
    return window.token;
})"""


def test_a_shop_that_cannot_say_who_is_signed_in_for_a_while_has_signed_nobody_out(visit):
    visitor = visit()
    chat = visitor.open_as("esther")
    give(visitor, "esther", expires_in=30)  # asked for again five seconds on
    visitor.page.evaluate(CALLBACK)
    expect(chat.locator("#presence")).to_have_attribute("data-state", CONNECTED)

    visitor.page.evaluate("window.isAway = true")
    visitor.page.wait_for_timeout(5_500)  # the renewal is not answered
    expect(chat.locator("#presence")).to_have_attribute("data-state", CONNECTED)
    reconnect(visitor)
    expect(chat.locator("#banner")).to_contain_text("Reconnecting")
    visitor.say("Do you ship to Peru?")
    visitor.page.evaluate("window.isAway = false")

    expect(visitor.said("Do you ship to Peru?")).to_have_count(1)
    expect(chat.locator("#presence")).to_have_attribute("data-state", CONNECTED)
    assert visitor.errors == []


@pytest.mark.parametrize("is_chosen_first", [True, False], ids=["before", "while greeting"])
def test_what_the_customer_before_chose_while_the_line_came_up_is_not_done_for_the_next(
    visit, product: Product, is_chosen_first: bool
):
    product.ask("cleo", "Do you ship to Norway?")
    line = SlowLine()
    visitor = visit()
    visitor.page.route_web_socket("**/ws/chat/", line.connect)
    chat = visitor.open_as("esther")
    visitor.begin_anew()
    visitor.say("Do you ship to Chile?")
    expect(chat.locator(".said[data-author=agent]")).to_have_count(1)
    chat.get_by_label("Your message").fill("Not for others")

    line.is_slow = True
    if is_chosen_first:
        reconnect(visitor)
        visitor.wait_until(lambda: line.greeting is not None)
        visitor.begin_anew()
        sign_in_as(visitor, "cleo")
    else:
        sign_in_as(visitor, "cleo")
        visitor.wait_until(lambda: line.greeting is not None)
        visitor.begin_anew()
        line.pass_on()

    expect(visitor.said("Do you ship to Norway?")).to_be_visible()
    expect(visitor.said("Do you ship to Chile?")).to_have_count(0)
    expect(chat.get_by_label("Your message")).to_have_value("")
    expect(chat.locator("#presence")).to_have_attribute("data-state", CONNECTED)
    assert visitor.frame.evaluate("sessionStorage.getItem('countersign:customer')") == '"cleo"'
    assert visitor.errors == []


@pytest.mark.parametrize("has_socket", [True, False], ids=["socket", "polling"])
def test_a_token_renewed_with_somebody_elses_shows_theirs_and_nothing_of_the_one_before(
    visit, product: Product, has_socket: bool
):
    product.ask("cleo", "Do you ship to Norway?")
    visitor = visit()
    if not has_socket:
        visitor.page.route_web_socket("**/ws/chat/", lambda socket: socket.close(code=1011))
    chat = visitor.open_as("esther")
    visitor.begin_anew()
    visitor.say("Do you ship to Chile?")
    expect(visitor.said("Do you ship to Chile?")).to_be_visible()
    chat.get_by_label("Your message").fill("Not for others")

    sign_in_as(visitor, "esther", expires_in=30)  # asked for again five seconds on
    expect(chat.locator("#presence")).to_have_attribute("data-state", CONNECTED)
    expect(visitor.said("Do you ship to Chile?")).to_be_visible()
    give(visitor, "cleo")

    expect(visitor.said("Do you ship to Norway?")).to_be_visible()
    expect(visitor.said("Do you ship to Chile?")).to_have_count(0)
    expect(chat.get_by_label("Your message")).to_have_value("")
    assert visitor.errors == []
