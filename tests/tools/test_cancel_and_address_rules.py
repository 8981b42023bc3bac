"""cancel_order and change_address: only before the parcel leaves. Pure: no database, no shop."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from accounts.models import Shop
from tests.factories import ADDRESS, make_line, make_order
from tools.catalogue.address import CHANGE_ADDRESS, ChangeAddress
from tools.catalogue.cancel import CANCEL_ORDER, CancelOrder
from tools.models import Finding
from tools.policy import DeniedError, Ruling

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SHOP = Shop(slug="demo", currency="USD", countries_served=["US"])
NEW = {
    "name": "Ada Moreno",
    "line1": "7 Quay Street",
    "city": "Salem",
    "region": "OR",
    "postal_code": "97301",
    "country": "US",
}


def decide(tool, arguments, order, shop=SHOP):
    return tool.decide(arguments, order, shop, NOW, Ruling())


def denied(tool, arguments, order, shop=SHOP):
    ruling = Ruling()
    with pytest.raises(DeniedError) as caught:
        tool.decide(arguments, order, shop, NOW, ruling)
    assert ruling.verdicts[-1].finding == Finding.DENY
    return caught.value.code


def cancelling(**fields):
    return CancelOrder(**{"order_id": "1044", "reason": "no_longer_needed"} | fields)


def moving(**fields):
    return ChangeAddress.model_validate({"order_id": "1044", "address": NEW | fields})


@pytest.mark.parametrize("status", ["pending", "processed"])
def test_an_order_that_has_not_shipped_is_cancelled_whole(status):
    order = make_order(make_line(2500, 2), id="1044", status=status)

    intent = decide(CANCEL_ORDER, cancelling(), order)

    assert (intent.kind, intent.order_id) == ("cancel", "1044")
    assert (intent.amount, intent.currency) == (5000, "USD")
    assert intent.request == {"reason": "no_longer_needed"}


@pytest.mark.parametrize("status", ["shipped", "delivered", "cancelled", "returned"])
def test_an_order_that_has_left_is_not_cancelled(status):
    assert denied(CANCEL_ORDER, cancelling(), make_order(status=status)) == "order_state"


def test_an_order_in_another_currency_is_not_cancelled():
    order = make_order(status="pending", currency="EUR")

    assert denied(CANCEL_ORDER, cancelling(), order) == "currency_mismatch"


def test_a_free_order_is_cancelled_without_an_amount():
    intent = decide(CANCEL_ORDER, cancelling(), make_order(make_line(0), status="pending"))

    assert (intent.amount, intent.currency) == (None, "")


@pytest.mark.parametrize("status", ["pending", "processed"])
def test_an_address_changes_before_shipping_and_both_are_shown(status):
    intent = decide(CHANGE_ADDRESS, moving(), make_order(status=status))

    assert intent.request == NEW | {"line2": ""}
    assert intent.shown == {"from": ADDRESS, "to": NEW | {"line2": ""}}
    assert intent.amount is None


@pytest.mark.parametrize("status", ["shipped", "delivered", "cancelled"])
def test_the_address_of_a_parcel_on_its_way_stays(status):
    assert denied(CHANGE_ADDRESS, moving(), make_order(status=status)) == "order_state"


@pytest.mark.parametrize(
    "fields",
    [
        {"line1": "7 Quay Street\nSecond line"},
        {"line1": "<b>7 Quay Street</b>"},
        {"line1": "see https://evil.example"},
        {"line1": "{{ 7 * 7 }}"},
        {"line1": "7 Quay\x00Street"},
        {"line1": "7 Quay\N{RIGHT-TO-LEFT OVERRIDE}Street"},
        {"line1": "7 Quay\N{ZERO WIDTH SPACE}Street"},
        {"city": "Salem\N{LINE SEPARATOR}OR"},
        {"line1": "   "},
        {"city": "\t"},
        {"postal_code": " "},
        {"name": " "},
        {"country": "GB"},
        {"country": "XX"},
        {"country": "12"},
    ],
)
def test_what_is_no_address_that_the_shop_delivers_to_is_refused(fields):
    assert denied(CHANGE_ADDRESS, moving(**fields), make_order(status="pending")) == "bad_address"


@pytest.mark.parametrize(
    "fields",
    [
        {"line1": "x" * 10_000},
        {"line1": "x" * 121},
        {"line1": ""},
        {"country": "USA"},
        {"country": "U"},
        {"postal_code": 97301},
        {"line2": ["Flat 2"]},
    ],
)
def test_an_address_that_does_not_fit_the_schema_never_reaches_the_rules(fields):
    with pytest.raises(ValidationError):
        moving(**fields)


def test_the_address_it_already_goes_to_is_no_change():
    order = make_order(status="pending", shipping_address=NEW | {"line2": ""})

    assert denied(CHANGE_ADDRESS, moving(country="us"), order) == "bad_address"


def test_blanks_are_trimmed_and_the_country_is_written_in_capitals():
    intent = decide(
        CHANGE_ADDRESS, moving(city=" Salem ", country="us"), make_order(status="pending")
    )

    assert (intent.request["city"], intent.request["country"]) == ("Salem", "US")


def test_the_countries_are_the_shop_s_own():
    shop = Shop(slug="demo", currency="USD", countries_served=["GB", "IE"])
    pending = make_order(status="pending")

    assert decide(CHANGE_ADDRESS, moving(country="GB"), pending, shop).request["country"] == "GB"
    assert denied(CHANGE_ADDRESS, moving(), pending, shop) == "bad_address"


def test_the_old_address_is_made_safe_to_show():
    order = make_order(
        status="pending",
        shipping_address=ADDRESS | {"line2": "gate\N{RIGHT-TO-LEFT OVERRIDE}4321"},
    )

    intent = decide(CHANGE_ADDRESS, moving(), order)

    assert intent.shown["from"]["line2"] == "gate[U+202E]4321"
