"""A line that goes while the customer's answer is on it: the answer arrives all the same, once."""

import json
from typing import Any

from playwright.sync_api import Route, WebSocketRoute, expect

from tests.browser.visitor import CONNECTED, Visitor, visit
from tests.live import Product

__all__ = ["visit"]


class LineThatGoes:
    """Passes on what a page says, until the first frame of one kind: the line is gone before it.

    With `stays_away` no other one is had before `comes_back`.
    """

    def __init__(self, kind: str, *, stays_away: bool = False) -> None:
        self.kind = kind
        self.is_away = False
        self.stays_away = stays_away
        self.lost: list[dict[str, Any]] = []
        self.sent: list[dict[str, Any]] = []

    def connect(self, socket: WebSocketRoute) -> None:
        if self.is_away:
            socket.close(code=1011)
            return
        server = socket.connect_to_server()

        def from_page(message: str | bytes) -> None:
            frame = json.loads(message)
            if frame["type"] != self.kind:
                server.send(message)
            elif not self.lost:
                self.lost.append(frame)
                self.is_away = self.stays_away
                socket.close(code=1011)
            else:
                self.sent.append(frame)
                server.send(message)

        socket.on_message(from_page)

    def comes_back(self) -> None:
        self.is_away = False


class LineThatKeeps:
    """Passes on what a page says, but for the first frame of one kind, which goes nowhere."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.has_kept = False

    def connect(self, socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def from_page(message: str | bytes) -> None:
            if self.has_kept or json.loads(message)["type"] != self.kind:
                server.send(message)
            else:
                self.has_kept = True

        socket.on_message(from_page)


def ask_for_refund(visitor: Visitor, product: Product) -> str:
    customer, order = product.newcomer()
    visitor.open_as(customer)
    visitor.say(f"The thing from order {order} arrived broken, please refund it")
    return order


def say_yes(visitor: Visitor) -> None:
    visitor.chat.get_by_role("button", name="Yes, go ahead: Refund $60.00").click()


def test_a_yes_that_the_line_took_with_it_is_given_once_more_by_itself(visit, product: Product):
    line = LineThatGoes("decide")
    visitor = visit()
    visitor.page.route_web_socket("**/ws/chat/", line.connect)
    order = ask_for_refund(visitor, product)
    say_yes(visitor)

    expect(visitor.chat.locator(".card.receipt")).to_contain_text("$60.00")
    assert line.lost == line.sent  # the same answer, under its own id
    assert [effect["amount"] for effect in product.shop.effects(order_id=order)] == [6_000]


def test_a_yes_whose_taking_nobody_heard_of_is_one_yes(visit, product: Product):
    """The service has it, its answer is lost, and the page gives it once more."""
    visitor = visit()
    visitor.page.route_web_socket("**/ws/chat/", lambda socket: socket.close(code=1011))
    given: list[str] = []

    def lose_first_answer(route: Route) -> None:
        frame = json.loads(route.request.post_data or "{}")["frame"]
        if not frame or frame["type"] != "decide":
            route.continue_()
            return
        given.append(frame["decision_id"])
        response = route.fetch()
        route.fulfill(response=response) if len(given) > 1 else route.fulfill(status=503)

    visitor.page.route("**/widget/exchange", lose_first_answer)
    order = ask_for_refund(visitor, product)
    say_yes(visitor)

    expect(visitor.chat.locator(".card.receipt")).to_contain_text("$60.00")
    assert len(set(given)) == 1
    assert [effect["amount"] for effect in product.shop.effects(order_id=order)] == [6_000]


def test_a_yes_that_http_did_not_take_is_given_once_more(visit, product: Product):
    visitor = visit()
    visitor.page.route_web_socket("**/ws/chat/", lambda socket: socket.close(code=1011))
    refused: list[str] = []

    def refuse_first(route: Route) -> None:
        frame = json.loads(route.request.post_data or "{}")["frame"]
        if frame and frame["type"] == "decide" and not refused:
            refused.append(frame["decision_id"])
            route.fulfill(status=503)
        else:
            route.continue_()

    visitor.page.route("**/widget/exchange", refuse_first)
    order = ask_for_refund(visitor, product)
    say_yes(visitor)

    expect(visitor.chat.locator(".card.receipt")).to_contain_text("$60.00")
    assert len(refused) == 1
    assert [effect["amount"] for effect in product.shop.effects(order_id=order)] == [6_000]


def test_a_network_without_sockets_is_got_on_with_though_they_worked_before(visit):
    """On the way from home to the office, with the page open."""
    sockets: list[WebSocketRoute] = []
    visitor = visit()

    def connect_first(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        if len(sockets) == 1:
            socket.connect_to_server()
        else:
            socket.close(code=1011)

    visitor.page.route_web_socket("**/ws/chat/", connect_first)
    # The pauses between its tries take two minutes together; other waits are as they are.
    visitor.context.add_init_script(
        """if (location.pathname === "/widget/") {
            const wait = window.setTimeout;
            window.setTimeout = (run, pause) => wait(run, [3000, 10000].includes(pause) ? pause : pause / 60);
        }"""
    )
    chat = visitor.open_as("esther")
    visitor.begin_anew()

    sockets[0].close(code=1011)
    visitor.say("Do you ship to Oslo?")

    expect(chat.locator(".said[data-author=agent]")).to_have_count(1)
    assert len(sockets) == 7


def test_a_wish_for_a_person_that_the_line_took_with_it_is_heard(visit):
    line = LineThatGoes("person", stays_away=True)
    visitor = visit()
    visitor.page.route_web_socket("**/ws/chat/", line.connect)
    chat = visitor.open_as("esther")
    visitor.begin_anew()
    chat.get_by_role("button", name="Talk to a person").click()
    expect(chat.get_by_role("button", name="Asking for a person…")).to_be_visible()
    line.comes_back()

    expect(chat.locator("#presence")).to_have_attribute("data-state", "person")
    assert (len(line.lost), len(line.sent)) == (1, 1)
    assert visitor.errors == []


def test_a_form_that_the_line_took_with_it_is_given_once_more_as_the_same(visit, product: Product):
    line = LineThatGoes("form", stays_away=True)
    visitor = visit()
    visitor.page.route_web_socket("**/ws/chat/", line.connect)
    customer, order = product.newcomer()
    chat = visitor.open_as(customer)
    chat.get_by_role("button", name="What do you need?").click()
    chat.get_by_role("button", name="Get a refund").click()
    chat.get_by_label("Order", exact=True).select_option(order)
    chat.get_by_label("Reason").select_option("damaged")
    chat.get_by_role("button", name="Continue").click()
    chat.get_by_label("Amount").fill("1.00")  # too late for what is under way
    line.comes_back()

    expect(chat.locator(".card.action")).to_contain_text("Refund $60.00")
    expect(chat.locator("#needs")).to_be_hidden()
    assert line.lost == line.sent


def test_what_is_under_way_when_the_language_changes_arrives(visit):
    """Another language greets anew: a line that is put down takes along what is on it, too."""
    line = LineThatKeeps("say")
    visitor = visit()
    visitor.page.route_web_socket("**/ws/chat/", line.connect)
    visitor.open_as("esther")
    visitor.begin_anew()
    visitor.say("Do you ship to Iceland?")
    visitor.wait_until(lambda: line.has_kept)
    visitor.page.evaluate('countersign("setLocale", "en-GB")')

    expect(visitor.said("Do you ship to Iceland?")).to_have_count(1)
    assert visitor.errors == []


def test_a_yes_said_without_a_line_is_not_said_to_be_reconnecting_once_there_is_one(
    visit, product: Product
):
    visitor = visit()
    order = ask_for_refund(visitor, product)
    yes = visitor.chat.get_by_role("button", name="Yes, go ahead: Refund $60.00")
    expect(yes).to_be_visible()
    visitor.context.set_offline(True)
    expect(visitor.chat.locator("#banner")).to_contain_text("offline")
    yes.click()
    card = visitor.chat.locator(".card.action")
    expect(card.get_by_role("alert")).to_contain_text("Reconnecting")

    visitor.context.set_offline(False)

    expect(visitor.chat.locator("#presence")).to_have_attribute("data-state", CONNECTED)
    expect(card.get_by_role("alert")).to_have_count(0)
    expect(yes).to_be_enabled()
    assert product.shop.effects(order_id=order) == []
