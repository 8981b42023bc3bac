import pytest

from tools.money import AmountError, parse_amount, show, to_decimal_text
from tools.text import clean


@pytest.mark.parametrize(
    ("text", "currency", "amount"),
    [
        ("40.00", "USD", 4000),
        ("100.00", "USD", 10_000),
        ("100.01", "USD", 10_001),
        ("0.01", "USD", 1),
        ("1.15", "USD", 115),
        ("9999999999.99", "USD", 999_999_999_999),
        ("40", "JPY", 40),
        ("1.234", "KWD", 1234),
        ("4000.00", "RSD", 400_000),
        ("1.500", "IQD", 1500),
    ],
)
def test_an_amount_is_read_to_the_minor_unit(text, currency, amount):
    assert parse_amount(text, currency) == amount
    assert to_decimal_text(amount, currency) == text


@pytest.mark.parametrize(
    "text",
    [
        "99.995",
        "40.005",
        "40",
        "40.0",
        "40.",
        ".50",
        "0.00",
        "0",
        "-5.00",
        "+5.00",
        "1e9",
        "1e2.00",
        "NaN",
        "Infinity",
        "1_000.00",
        "1,000.00",
        "$40.00",
        "40.00 USD",
        " 40.00",
        "40.00\n",
        "040.00",
        "４０.00",  # noqa: RUF001 - full-width digits
        "٤٠.00",
        "10000000000.00",
        "",
    ],
)
def test_what_is_not_exactly_dollars_and_cents_is_refused(text):
    with pytest.raises(AmountError):
        parse_amount(text, "USD")


@pytest.mark.parametrize(("text", "currency"), [("40.00", "JPY"), ("1.23", "KWD")])
def test_the_decimals_are_those_of_the_currency(text, currency):
    with pytest.raises(AmountError):
        parse_amount(text, currency)


def test_an_amount_is_shown_as_the_locale_writes_it():
    assert show(400_000, "USD") == "$4,000.00"
    assert show(400_000, "EUR", "de-DE") == "4.000,00\N{NO-BREAK SPACE}€"
    assert show(4000, "JPY") == "¥4,000"


def test_what_people_no_longer_write_is_shown_all_the_same():
    """A shop's integers are minor units by ISO 4217: these are 4,000 dinars, not 400,000."""
    assert show(400_000, "RSD") == "RSD4,000.00"
    assert show(400_000, "RSD", "de-DE") == "4.000,00\N{NO-BREAK SPACE}RSD"
    assert show(1_234_567, "IQD") == "IQD1,234.567"
    assert show(5, "LBP") == "LBP0.05"


@pytest.mark.parametrize("locale", ["he-IL", "ar-EG", "fa-IR", "ur-PK", "ar"])
def test_an_amount_holds_no_mark_that_would_be_shown_as_one(locale: str):
    shown = show(18_000, "USD", locale)

    assert clean(shown, 100) == shown
    assert "180" in shown or "\N{EXTENDED ARABIC-INDIC DIGIT ONE}" in shown
