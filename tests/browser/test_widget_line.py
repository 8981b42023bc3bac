"""A line that goes while the customer's answer is on it: the answer arrives all the same, once."""

import json

from playwright.sync_api import Route, WebSocketRoute, expect

from tests.browser.visitor import Visitor, visit
from tests.live import Product

__all__ = ["visit"]


class LineThatGoes:
    """Passes on what a page says, until the first frame of one kind: the line is gone before it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.lost: list[str] = []
        self.sent: list[str] = []

    def connect(self, socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def from_page(message: str | bytes) -> None:
            frame = json.loads(message)
            if frame["type"] != self.kind:
                server.send(message)
            elif not self.lost:
                self.lost.append(frame["decision_id"])
                socket.close(code=1011)
            else:
                self.sent.append(frame["decision_id"])
                server.send(message)

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
