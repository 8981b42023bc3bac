"""The chat with no model to answer: forms, and everything that comes of them."""

import signal
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.visitor import staff_approve, violations, visit
from tests.live import Product

__all__ = ["visit"]

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
    expect(chat.get_by_label("Order number")).to_be_focused()
    expect(chat.locator("[data-field=reason] .fault")).to_have_text("Please fill this in.")
    chat.get_by_label("Order number").fill("1039")
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
    chat.get_by_label("Order number").fill("1051")
    chat.get_by_label("Order number").press("Enter")
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
    for label, text in (
        ("Bestellnummer", "1059"),
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
    for label, text in (
        ("Bestellnummer", "1059"),
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
