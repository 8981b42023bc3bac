"""How many decimals a currency's minor unit makes, by ISO 4217: what a shop's integers mean.

Babel knows how many of them people still write, which for some currencies is less: the Serbian
dinar has 100 para, and 400000 of them are 4,000 dinars, not 400,000.
"""

from copy import copy
from decimal import Decimal

from babel import Locale
from babel.numbers import format_currency, get_currency_precision

# Where Babel's own count is another than that of ISO 4217.
_BY_THE_STANDARD = {
    "IQD": 3,
    **dict.fromkeys(
        ("AFN", "ALL", "IRR", "KPW", "LAK", "LBP", "MGA", "MMK", "RSD", "SLL", "SOS", "SYP", "YER"),
        2,
    ),
}


def precision(currency: str) -> int:
    """Decimals of the currency's minor unit: 2 for USD and RSD, 0 for JPY, 3 for KWD."""
    return _BY_THE_STANDARD.get(currency, get_currency_precision(currency))


def show(amount: int, currency: str, locale: str) -> str:
    """An amount in minor units for people, with all of its decimals; `locale` is one that Babel knows."""
    places = precision(currency)
    value = Decimal(amount).scaleb(-places)
    if places == get_currency_precision(currency):
        return format_currency(value, currency, locale=locale)
    pattern = copy(Locale.parse(locale).currency_formats["standard"])
    pattern.frac_prec = (places, places)
    return str(pattern.apply(value, locale, currency=currency, currency_digits=False))
