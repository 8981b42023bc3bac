"""The chat with no model to answer: forms, and everything that comes of them."""

import signal
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.visitor import staff_approve, violations, visit
from tests.live import Product

__all__ = ["visit"]

TIMES = "\N{MULTIPLICATION SIGN}"
YES = "Yes, go ahead"
AWAY = "The assistant can't be reached at the moment."


@pytest.fixture
def no_model(product: Product):
    """The model stands still for a while."""
    product.kill("model", signal.SIGSTOP)
    yield
    product.kill("model", signal.SIGCONT)


def test_the_shop_still_serves_while_the_model_is_away(
    visit, product: Product, no_model, tmp_path: Path
):
    visitor = visit(viewport={"width": 390, "height": 844})
    chat = visitor.open_as("bob")
    visitor.begin_anew()
    visitor.say("The lamp from order 1039 arrived broken")
    expect(chat.locator(".away")).to_contain_text(AWAY)
    visitor.screenshot(tmp_path, "away")
    assert violations(visitor) == []

    chat.get_by_role("button", name="Get a refund").click()
    chat.get_by_role("button", name="Continue").click()
    expect(chat.get_by_label("Order", exact=True)).to_be_focused()
    expect(chat.locator("[data-field=reason] .fault")).to_have_text("Please fill this in.")
    chat.get_by_label("Order", exact=True).select_option("1039")
    chat.get_by_label("Reason").select_option("damaged")
    visitor.screenshot(tmp_path, "form")
    assert violations(visitor) == []
    chat.get_by_role("button", name="Continue").click()

    card = chat.locator(".card.action")
    expect(card.get_by_role("heading")).to_contain_text("for order 1039")
    expect(card).to_contain_text("A colleague must agree too")
    title = card.get_by_role("heading").inner_text()
    assert product.shop.effects(order_id="1039") == []
    card.get_by_role("button", name=YES).click()
    expect(chat.locator(".now")).to_have_text("A colleague is looking at this")
    staff_approve(visitor, title)
    expect(chat.locator(".card.receipt")).to_contain_text("re_")
    (effect,) = product.shop.effects(order_id="1039")
    assert effect["kind"] == "refund"
    visitor.screenshot(tmp_path, "receipt")

    chat.get_by_role("button", name="What do you need?").click()
    chat.get_by_role("button", name="Where is my order?").click()
    chat.get_by_label("Order", exact=True).select_option("1051")
    chat.get_by_role("button", name="Look it up").click()
    expect(visitor.said("Order 1051")).to_be_visible()
    assert visitor.errors == []
    assert visitor.foreign == []


def test_an_address_is_shown_old_and_new_before_it_is_changed(visit, product: Product, tmp_path):
    visitor = visit(color_scheme="dark", locale="de-DE")
    chat = visitor.sign_in("ada") and visitor.chat
    visitor.page.evaluate('countersign("setLocale", "de-DE"); countersign("open")')
    expect(chat.locator("#presence")).to_have_attribute("data-state", "open")
    chat.get_by_role("button", name="Was brauchen Sie?").click()
    visitor.screenshot(tmp_path, "choices")
    chat.get_by_role("button", name="Eine Lieferadresse ändern", exact=True).click()
    chat.get_by_label("Bestellung", exact=True).select_option("1059")
    for label, text in (
        ("Name", "Ada Lindqvist"),
        ("Straße und Hausnummer", "12 Quay St"),
        ("Postleitzahl", "97209"),
        ("Ort", "Portland"),
        ("Land", "XX"),
    ):
        chat.get_by_label(label, exact=True).fill(text)
    visitor.screenshot(tmp_path, "address")
    assert violations(visitor) == []
    chat.get_by_role("button", name="Weiter").click()
    expect(visitor.said("Diese Adresse kann der Shop nicht verwenden")).to_be_visible()

    chat.get_by_role("button", name="Was brauchen Sie?").click()
    chat.get_by_role("button", name="Eine Lieferadresse ändern", exact=True).click()
    chat.get_by_label("Bestellung", exact=True).select_option("1059")
    for label, text in (
        ("Name", "Ada Lindqvist"),
        ("Straße und Hausnummer", "12 Quay St"),
        ("Postleitzahl", "97209"),
        ("Ort", "Portland"),
        ("Land", "us"),
    ):
        chat.get_by_label(label, exact=True).fill(text)
    chat.get_by_role("button", name="Weiter").click()

    card = chat.locator(".card.action")
    expect(card.get_by_role("heading")).to_have_text("Lieferadresse von Bestellung 1059 ändern")
    old = product.shop.order("1059")["shipping_address"]["line1"]
    expect(card.locator(".move > div").first).to_contain_text(old)
    expect(card.locator(".move > div").last).to_contain_text("12 Quay St")
    visitor.screenshot(tmp_path, "card")
    chat.get_by_role("button", name="Ja, bitte").click()
    expect(chat.locator(".card.receipt").last).to_contain_text("Adresse geändert")
    expect(visitor.said("Die Adressänderung für Bestellung 1059 ist erledigt")).to_be_visible()
    assert product.shop.order("1059")["shipping_address"]["line1"] == "12 Quay St"
    visitor.screenshot(tmp_path, "done")
    assert violations(visitor) == []
    assert visitor.errors == []


def test_single_items_of_an_order_are_refunded_and_shown_before(visit, product: Product, tmp_path):
    visitor = visit(viewport={"width": 390, "height": 844}, color_scheme="dark")
    chat = visitor.open_as("ada")
    visitor.begin_anew()
    chat.get_by_role("button", name="What do you need?").click()
    chat.get_by_role("button", name="Get a refund").click()
    order = chat.get_by_label("Order", exact=True)
    expect(order.locator("option", has_text="1018")).to_have_text("1018 · Delivered · $165.00")
    order.select_option("1018")
    expect(chat.locator("#field-order-hint")).to_contain_text("Stoneware mug (blue)")
    chat.get_by_label("Reason").select_option("damaged")
    chat.get_by_label("Only some items").check()
    expect(chat.get_by_label("Amount")).to_be_hidden()
    chat.get_by_role("button", name="Continue").click()
    expect(chat.locator("[data-field=items] .fault")).to_have_text(
        "Please choose at least one item."
    )
    mugs = chat.get_by_label("How many: Stoneware mug (blue)")
    mugs.fill("3")
    chat.get_by_role("button", name="Continue").click()
    expect(chat.locator("[data-field=items] .fault")).to_have_text("Please look at this again.")
    visitor.screenshot(tmp_path, "items")
    assert violations(visitor) == []
    mugs.fill("1")
    chat.get_by_label("Oak serving tray").check()
    chat.get_by_role("button", name="Continue").click()

    card = chat.locator(".card.action")
    expect(card.get_by_role("heading")).to_have_text("Refund $85.00 for order 1018")
    expect(card.locator(".lines li")).to_have_text(
        [f"1 {TIMES} Stoneware mug (blue)", f"1 {TIMES} Oak serving tray"]
    )
    visitor.screenshot(tmp_path, "card")
    card.get_by_role("button", name="No: Refund").click()
    expect(card).to_contain_text("You said no. Nothing was changed.")
    assert product.shop.effects(order_id="1018") == []
    assert visitor.errors == []


def test_another_language_keeps_what_was_filled_in_and_the_focus(visit, tmp_path: Path):
    visitor = visit()
    chat = visitor.open_as("ada")
    chat.get_by_role("button", name="What do you need?").click()
    chat.get_by_role("button", name="Get a refund").click()
    chat.get_by_label("Order", exact=True).select_option("1018")
    chat.get_by_label("Reason").select_option("damaged")
    chat.get_by_label("Only some items").check()
    chat.get_by_label("Oak serving tray").check()
    chat.get_by_label("How many: Stoneware mug (blue)").fill("1")

    visitor.page.evaluate('countersign("setLocale", "de-DE")')

    order = chat.get_by_label("Bestellung", exact=True)
    expect(order.locator("option", has_text="1018")).to_contain_text("Geliefert")
    expect(order).to_have_value("1018")
    expect(chat.get_by_label("Grund")).to_have_value("damaged")
    expect(chat.get_by_label("Nur einzelne Artikel")).to_be_checked()
    expect(chat.get_by_label("Oak serving tray")).to_be_checked()
    mugs = chat.get_by_label("Wie viele: Stoneware mug (blue)")
    expect(mugs).to_have_value("1")
    expect(mugs).to_be_focused()
    expect(chat.get_by_label("Betrag")).to_be_hidden()
    visitor.screenshot(tmp_path, "refund")

    chat.get_by_role("button", name="Zurück").click()
    chat.get_by_role("button", name="Eine Lieferadresse ändern", exact=True).click()
    order.select_option(label="Eine andere Bestellung…")
    chat.get_by_label("Bestellnummer").fill("9999")
    chat.get_by_label("Ort", exact=True).fill("Portland")
    visitor.page.evaluate('countersign("setLocale", "en-GB")')

    expect(
        chat.get_by_label("Order", exact=True).locator("option", has_text="1018")
    ).to_contain_text("Delivered")
    expect(chat.get_by_label("Order number")).to_have_value("9999")
    expect(chat.get_by_label("City")).to_have_value("Portland")
    expect(chat.get_by_label("City")).to_be_focused()
    assert violations(visitor) == []
    assert visitor.errors == []


def test_an_order_is_typed_while_the_shop_lists_none_or_not_this_one(
    visit, product: Product, tmp_path
):
    visitor = visit()
    chat = visitor.open_as("cleo")
    product.shop.fault("error_before", scope={"path": "/api/orders"}, status=503, times=1)
    chat.get_by_role("button", name="What do you need?").click()
    chat.get_by_role("button", name="Cancel an order").click()
    expect(chat.locator("#field-order_id-hint")).to_have_text(
        "Your orders can't be listed at the moment. Please type the number."
    )
    number = chat.get_by_label("Order number")
    expect(number).to_be_focused()
    visitor.screenshot(tmp_path, "typed")
    assert violations(visitor) == []
    visitor.page.evaluate('countersign("setLocale", "en-GB")')
    chat.get_by_role("button", name="Back").click()
    chat.get_by_role("button", name="Cancel an order").click()
    expect(chat.get_by_label("Order", exact=True)).to_be_focused()
    chat.get_by_label("Order", exact=True).select_option(label="Another order…")
    expect(number).to_be_focused()
    number.fill("9999")
    chat.get_by_label("Reason").select_option("other")
    chat.get_by_role("button", name="Continue").click()

    expect(visitor.said("I can't find order 9999 in your account.")).to_be_visible()
