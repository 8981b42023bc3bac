"""Money: integers in minor units beside an ISO 4217 code; decimals only at the edges."""

import re
from decimal import Decimal

from audit import currencies
from tools.language import known_locale

# Plain digits only: Decimal would also take '1_000', full-width digits, blanks and exponents.
_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,9})(?:\.([0-9]{1,3}))?")

# The marks of direction that some locales put in: around it stand words of ours, which read from the
# left, and whoever shows texts of others makes such marks visible.
_NO_MARKS = dict.fromkeys(map(ord, "\u061c\u200e\u200f"))


class AmountError(ValueError):
    """The text is not an amount in this currency."""


def parse_amount(text: str, currency: str) -> int:
    """ "40.00" in USD is 4000.

    Raises AmountError for anything but a plain positive decimal with all of the currency's decimals:
    "40" leaves open whether dollars or cents are meant, "40.005" is no sum of cents.
    """
    written = _DECIMAL.fullmatch(text)
    precision = currencies.precision(currency)
    if written is None or len(written[2] or "") != precision:
        raise AmountError(
            f"an amount in {currency} is written like {to_decimal_text(4000, currency)}"
        )
    minor = int(written[1] + (written[2] or ""))
    if minor == 0:
        raise AmountError("an amount is more than nothing")
    return minor


def to_decimal_text(amount: int, currency: str) -> str:
    """4000 in USD is "40.00": for machines, no grouping and no sign of the currency."""
    precision = currencies.precision(currency)
    return f"{Decimal(amount).scaleb(-precision):.{precision}f}"


def show(amount: int, currency: str, locale: str = "en_US") -> str:
    """4000 in USD is "$40.00": for people, in the locale's own way."""
    return currencies.show(amount, currency, known_locale(locale)).translate(_NO_MARKS)
