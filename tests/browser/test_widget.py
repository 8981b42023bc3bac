"""The chat on a shop's page, as a customer meets it in a browser."""

import json
from pathlib import Path

from playwright.sync_api import Route, WebSocketRoute, expect

from tests.browser.visitor import CONNECTED, staff_approve, staff_write, violations, visit
from tests.live import Product

__all__ = ["visit"]

WIDTHS = ((390, 844), (768, 1024), (1440, 900))
LOOKS = ("light", "dark")
YES = "Yes, go ahead"


def test_a_customer_asks_says_yes_staff_agree_and_a_receipt_appears(visit, product: Product):
    visitor = visit()
    chat = visitor.open_as("dmitri")
    visitor.begin_anew()  # other tests may have spoken as this customer before
    expect(chat.locator("#disclosure")).to_contain_text("AI assistant")
    expect(chat.locator("#model")).to_have_text(
        "No language model is attached: answers come from built-in rules."
    )

    visitor.say("The stools from order 1036 arrived broken, please refund them")
    card = chat.locator(".card.action")
    expect(card.get_by_role("heading")).to_have_text("Refund $250.00 for order 1036")
    expect(card).to_contain_text("A colleague must agree too")
    expect(chat.locator(".now")).to_have_text("Waiting for your yes")
    expect(chat.locator(".steps")).to_contain_text("Looked up order 1036")
    assert product.shop.effects(order_id="1036") == []

    card.get_by_role("button", name=YES).click()
    expect(chat.locator(".now")).to_have_text("A colleague is looking at this")
    expect(card).to_contain_text("You said yes")
    expect(card.get_by_role("button", name=YES)).to_have_count(0)
    visitor.say("Is there any news?")
    expect(chat.locator("#hint")).to_contain_text("once the colleague has decided")
    assert product.shop.effects(order_id="1036") == []

    staff_approve(visitor, "Refund $250.00 for order 1036")
    receipt = chat.locator(".card.receipt")
    expect(receipt).to_contain_text("$250.00")
    (effect,) = product.shop.effects(order_id="1036")
    expect(receipt).to_contain_text("re_")
    expect(chat.locator(".now")).to_have_count(0)
    assert (effect["kind"], effect["amount"]) == ("refund", 25_000)
    assert visitor.errors == []
    assert visitor.foreign == []


def test_what_was_said_is_there_again_on_the_next_page_and_in_the_list(visit):
    visitor = visit()
    chat = visitor.open_as("cleo")
    visitor.begin_anew()  # other tests may have spoken as this customer before
    visitor.say("Where is my order 1052?")
    expect(visitor.said("Where is my order 1052?")).to_be_visible()
    expect(chat.locator(".said[data-author=agent]")).to_have_count(1)

    visitor.page.reload()
    chat = visitor.open()
    expect(chat.locator(".said")).to_have_count(2)
    visitor.begin_anew()
    visitor.say("What is your return policy?")
    expect(chat.locator(".said[data-author=agent]")).to_have_count(1)
    chat.get_by_role("button", name="Conversations").click()
    chat.get_by_role("button", name="Where is my order 1052?").click()

    expect(visitor.said("Where is my order 1052?")).to_be_visible()
    assert visitor.errors == []


def test_a_no_changes_nothing(visit, product: Product):
    visitor = visit()
    chat = visitor.open_as("cleo")
    visitor.say("Please cancel order 1057")
    chat.get_by_role("button", name="No: Cancel order 1057").click()

    expect(chat.locator(".card.action")).to_contain_text("You said no. Nothing was changed.")
    expect(chat.locator(".now")).to_have_count(0)
    assert product.shop.effects(order_id="1057") == []
    assert product.shop.order("1057")["status"] == "pending"


def test_text_is_text_whatever_it_looks_like(visit):
    visitor = visit()
    chat = visitor.open_as("esther")
    visitor.say('<img src=x onerror="document.title=1"><b>bold</b> https://evil.example [x](y)')

    expect(visitor.said('<img src=x onerror="document.title=1"><b>bold</b>')).to_be_visible()
    assert chat.locator(".timeline img, .timeline b, .timeline a").count() == 0
    assert visitor.errors == []
    assert visitor.foreign == []


def test_a_message_written_offline_is_sent_once_when_back(visit, product: Product):
    visitor = visit()
    chat = visitor.open_as("esther")
    visitor.context.set_offline(True)
    expect(chat.locator("#banner")).to_contain_text("You are offline")
    visitor.say("What is your return policy, please?")
    expect(chat.locator(".said.is-pending")).to_contain_text("Sending…")

    visitor.context.set_offline(False)
    expect(visitor.said("What is your return policy, please?")).to_have_count(1)
    expect(chat.locator(".said.is-pending")).to_have_count(0)
    expect(chat.locator("#banner")).to_be_hidden()

    token = {"Authorization": f"Bearer {product.shop.sign('esther')}"}
    tickets = product.http.get("/v1/tickets", headers=token).json()["tickets"]
    texts = [
        message["text"]
        for ticket in tickets
        for message in product.http.get(f"/v1/tickets/{ticket['id']}", headers=token).json()[
            "messages"
        ]
    ]
    assert texts.count("What is your return policy, please?") == 1


def test_a_web_process_that_dies_takes_nothing_with_it(visit, product: Product):
    visitor = visit()
    chat = visitor.open_as("esther")
    visitor.begin_anew()
    visitor.say("What is your policy on returns?")
    expect(chat.locator(".said[data-author=agent]")).to_have_count(1)

    product.kill("web")
    expect(chat.locator("#banner")).to_contain_text("Reconnecting")
    visitor.say("And on exchanges?")

    expect(chat.locator("#banner")).to_be_hidden()
    expect(visitor.said("And on exchanges?")).to_have_count(1)
    expect(chat.locator(".said[data-author=agent]")).to_have_count(2)
    expect(chat.locator(".said")).to_have_count(4)


def test_without_websockets_the_chat_asks_over_http(visit):
    visitor = visit()
    visitor.page.route_web_socket("**/ws/chat/", lambda socket: socket.close(code=1011))
    visitor.open_as("esther")
    visitor.begin_anew()
    visitor.page.evaluate(
        "window.heard = []; countersign('on', 'message', ({ author }) => heard.push(author))"
    )
    visitor.say("How long do refunds take?")

    expect(visitor.said("How long do refunds take?")).to_have_count(1)
    expect(visitor.chat.locator(".said[data-author=agent]")).to_have_count(1)
    assert visitor.page.evaluate("heard") == ["agent"]


def test_whoever_turns_to_another_conversation_is_not_taken_back_by_a_late_answer(visit):
    visitor = visit()
    visitor.page.route_web_socket("**/ws/chat/", lambda socket: socket.close(code=1011))
    chat = visitor.open_as("esther")
    visitor.begin_anew()
    visitor.say("Do you ship abroad?")
    expect(chat.locator(".said[data-author=agent]")).to_have_count(1)
    held: list[Route] = []
    visitor.page.route("**/widget/exchange", lambda route: hold_one_look(route, held))
    visitor.wait_until(lambda: bool(held))

    visitor.begin_anew()
    with visitor.page.expect_response("**/widget/exchange"):
        held[0].fulfill(response=held[0].fetch())
    visitor.say("How long do refunds take?")

    expect(chat.locator(".said[data-author=agent]")).to_have_count(1)
    expect(visitor.said("Do you ship abroad?")).to_have_count(0)


def hold_one_look(route: Route, held: list[Route]) -> None:
    """Keep the answer to the first exchange that sends nothing; let the others pass."""
    asked = json.loads(route.request.post_data or "{}")
    if held or asked["frame"] is not None:
        route.continue_()
    else:
        held.append(route)


class SlowLine:
    """Passes on what a page and the service say to each other, but a greeting only when told to."""

    def __init__(self) -> None:
        self.is_slow = False
        self.greeting: tuple[WebSocketRoute, str | bytes] | None = None

    def connect(self, socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def from_page(message: str | bytes) -> None:
            if self.is_slow and self.greeting is None:
                self.greeting = (server, message)
            else:
                server.send(message)

        socket.on_message(from_page)

    def pass_on(self) -> None:
        assert self.greeting is not None
        server, message = self.greeting
        server.send(message)


def test_a_choice_made_while_the_line_comes_up_is_kept(visit):
    line = SlowLine()
    visitor = visit()
    visitor.page.route_web_socket("**/ws/chat/", line.connect)
    chat = visitor.open_as("esther")
    visitor.begin_anew()
    visitor.say("Do you ship abroad?")
    expect(chat.locator(".said[data-author=agent]")).to_have_count(1)
    line.is_slow = True
    visitor.page.context.set_offline(True)
    visitor.page.context.set_offline(False)
    visitor.wait_until(lambda: line.greeting is not None)

    visitor.begin_anew()
    line.pass_on()

    expect(chat.locator("#presence")).to_have_attribute("data-state", CONNECTED)
    visitor.say("How long do refunds take?")
    expect(chat.locator(".said[data-author=agent]")).to_have_count(1)
    # What is left out of an answer to "I know this already" is there after a reload.
    visitor.page.reload()
    visitor.open()
    expect(visitor.said("How long do refunds take?")).to_have_count(1)
    expect(visitor.said("Do you ship abroad?")).to_have_count(0)


def test_what_is_written_before_the_line_is_up_goes_to_the_conversation_that_is_open(visit):
    line = SlowLine()
    visitor = visit()
    visitor.page.route_web_socket("**/ws/chat/", line.connect)
    chat = visitor.open_as("esther")
    visitor.begin_anew()
    visitor.say("Do you ship to Malta?")
    expect(chat.locator(".said[data-author=agent]")).to_have_count(1)
    line.is_slow = True
    visitor.page.reload()
    visitor.page.get_by_role("button", name="Open chat").click()
    visitor.say("And to Cyprus?")
    visitor.say("How long would it take?")
    visitor.wait_until(lambda: line.greeting is not None)
    line.pass_on()

    expect(visitor.said("How long would it take?")).to_have_count(1)
    expect(visitor.said("And to Cyprus?")).to_have_count(1)
    expect(visitor.said("Do you ship to Malta?")).to_have_count(1)
    assert visitor.errors == []


def test_the_keyboard_is_enough_and_the_focus_comes_back(visit):
    visitor = visit()
    page = visitor.sign_in("esther")
    launcher = page.get_by_role("button", name="Open chat")
    expect(launcher).to_have_attribute("aria-expanded", "false")
    launcher.focus()
    page.keyboard.press("Enter")
    expect(visitor.chat.get_by_label("Your message")).to_be_focused()
    expect(page.get_by_role("button", name="Close chat").first).to_have_attribute(
        "aria-expanded", "true"
    )

    page.keyboard.type("One line")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("and another")
    expect(visitor.chat.get_by_label("Your message")).to_have_value("One line\nand another")
    page.keyboard.press("Escape")

    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.get_by_role("button", name="Open chat")).to_be_focused()


def test_news_is_counted_while_the_chat_is_closed(visit, product: Product):
    visitor = visit()
    visitor.open_as("esther")
    visitor.begin_anew()
    visitor.say("I'd like to talk to a person")
    expect(visitor.chat.locator("#presence")).to_have_attribute("data-state", "person")
    visitor.page.keyboard.press("Escape")
    expect(visitor.page.get_by_role("dialog")).to_be_hidden()

    staff_write(visitor, "I'd like to talk to a person", "Hello Esther, I am a person.")

    badge = visitor.page.get_by_role("button", name="Open chat, 1 unread")
    expect(badge).to_be_visible()
    visitor.page.reload()
    expect(badge).to_be_visible()
    badge.click()
    expect(visitor.said("Hello Esther, I am a person.")).to_be_visible()
    visitor.page.keyboard.press("Escape")
    expect(visitor.page.get_by_role("button", name="Open chat", exact=True)).to_be_visible()


def test_signing_out_of_the_shop_leaves_nothing_behind(visit):
    visitor = visit()
    visitor.open_as("esther")
    visitor.say("Where is my order 1058?")
    expect(visitor.said("Where is my order 1058?")).to_be_visible()
    visitor.page.keyboard.press("Escape")
    visitor.page.get_by_role("button", name="Sign out").click()
    visitor.page.get_by_role("button", name="Open chat").click()

    expect(visitor.chat.locator("#disclosure")).to_contain_text("Please sign in")
    expect(visitor.chat.locator(".said")).to_have_count(0)
    kept = "[...Object.keys(sessionStorage), ...Object.keys(localStorage)]"
    assert visitor.frame.evaluate(kept) == []
    expect(visitor.chat.get_by_label("Your message")).to_be_hidden()


def test_every_text_is_there_in_every_language(visit):
    visitor = visit()
    visitor.open_as("cleo")
    languages = visitor.frame.evaluate(
        """async () => {
            const { LANGUAGES } = await import("/static/widget/strings.js");
            return Object.fromEntries(
              Object.entries(LANGUAGES).map(([name, texts]) => [name, texts]));
        }"""
    )
    sources = [
        path.read_text()
        for folder in ("static/widget", "templates/widget")
        for path in Path(folder).glob("*")
        if path.name != "strings.js"
    ]

    assert languages["de"].keys() == languages["en"].keys()
    for name, text in languages["en"].items():
        assert set(_fields(text)) == set(_fields(languages["de"][name])), name
        stem = name.removesuffix("_done").removesuffix("_about")
        is_made_up = name.startswith(("receipt_", "form_", "reason_")) or stem in TOOLS
        assert is_made_up or any(f'"{name}"' in source for source in sources), f"{name} is unused"


TOOLS = (
    *("find_orders", "track_parcel", "search_policy", "refund_order", "cancel_order"),
    *("change_address", "close_ticket", "hand_off", "other"),
)


def _fields(text: str) -> list[str]:
    return [part.split("}")[0] for part in text.split("{")[1:]]


def test_it_looks_right_and_sounds_right_at_every_size(visit, tmp_path: Path):
    """Screenshots are kept in the test's folder, for whoever wants to look."""
    first = visit()
    first.open_as("cleo")
    first.say("Please refund order 1034, all of it arrived damaged")
    expect(first.chat.get_by_role("button", name=YES)).to_be_visible()
    assert violations(first) == []

    for width, height in WIDTHS:
        for look in LOOKS:
            visitor = visit(viewport={"width": width, "height": height}, color_scheme=look)
            chat = visitor.open_as("cleo")
            expect(chat.locator(".timeline")).to_be_visible()
            visitor.screenshot(tmp_path, f"{width}-{look}")
            rest = "talk => talk.scrollHeight - talk.scrollTop - talk.clientHeight"
            assert chat.locator("#talk").evaluate(rest) < 2
            assert violations(visitor) == []
            overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert visitor.frame.evaluate(overflow) <= 0
            panel = visitor.page.get_by_role("dialog").bounding_box()
            assert panel is not None
            assert (panel["width"] == width) == (width <= 668)
            chat.get_by_role("button", name="Conversations").click()
            assert violations(visitor) == []
            visitor.context.close()

    first.chat.get_by_role("button", name=YES).click()
    expect(first.chat.locator(".card.receipt")).to_be_visible()
    first.screenshot(tmp_path, "receipt")
    assert violations(first) == []
    assert first.errors == []


def test_right_to_left_turns_the_page_and_breaks_nothing(visit):
    visitor = visit(viewport={"width": 390, "height": 844})
    chat = visitor.open_as("cleo")
    chat.locator("html").evaluate("html => { html.dir = 'rtl'; }")

    mark, close = (chat.locator(name).bounding_box() for name in (".mark", "#close"))

    assert mark is not None
    assert close is not None
    assert close["x"] < mark["x"]
    assert visitor.frame.evaluate("document.documentElement.scrollWidth") <= 390
