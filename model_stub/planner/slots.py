"""Find the details in a customer's English: order numbers, amounts, reasons."""

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

_EXPLICIT = re.compile(
    r"\borders?\s*(?:(?:number|nr|num|no|id)\b\s*)?[:#]?\s*#?\s?([A-Z]{0,3}\d{3,10})\b(?![.,-]\d)"
    r"|(?<![\w#])#\s?([A-Z]{0,3}\d{1,10})\b"
    r"|\bnumber\s+#?(\d{3,10})\b",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"(?<![\w$\u20ac\u00a3#.,/+-])(\d{4,8})(?![\w%/]|[.,-]\d|\s?(?:dollars?|bucks|usd|eur|euros?|gbp|pounds?"
    r"|[$\u20ac\u00a3](?!\s?\d)))",
    re.IGNORECASE,
)
_YEAR_BEFORE = re.compile(
    r"\b(?:in|since|until|by|of|during|year|jan\w*|feb\w*|mar\w*|apr\w*|may|june?|july?|aug\w*|"
    r"sep\w*|oct\w*|nov\w*|dec\w*)\s$",
    re.IGNORECASE,
)
_NOT_THIS = re.compile(
    r"\b(?:not|isn't|wasn't|rather than|instead of)\s+(?:for\s+)?(?:order\s*)?#?$"
)

_CURRENCIES = {
    "$": "USD",
    "usd": "USD",
    "\u20ac": "EUR",
    "eur": "EUR",
    "\u00a3": "GBP",
    "gbp": "GBP",
}
_NUMBER = r"(-?\d{1,3}(?:,\d{3})+(?:\.\d{1,2})?|-?\d+(?:\.\d{1,2})?)"
_AMOUNT = re.compile(
    rf"(?P<sign>-?[$\u20ac\u00a3]|\b(?:usd|eur|gbp)\b)\s?{_NUMBER}(?![\d.]*\d)"
    rf"|(?<![\w.,]){_NUMBER}\s?(?P<unit>dollars?|bucks|usd|eur|euros?|gbp|pounds?|quid|[$\u20ac\u00a3])(?!\w)",
    re.IGNORECASE,
)
_BARE_AMOUNT = re.compile(
    r"\brefund\s+(?:me\s+)?(?:only\s+|just\s+)?(?:of\s+)?(\d{1,3}|\d+\.\d{2})"
    r"(?=\s*(?:$|[.,!?](?!\d)|for\b|on\b|from\b|of\s+(?:my\s+)?order|back\b|please\b))",
    re.IGNORECASE,
)
_PAID = re.compile(
    r"\b(?:paid|pay|costs?|spent|worth|charged|price\w*|was|were|bought)\W+(?:\w+\W+){0,2}$"
)
_FRACTION = re.compile(
    r"\b(?:(half)(?! of them)|(\d{1,3})\s?(?:%|percent\b|per cent\b))", re.IGNORECASE
)


@dataclass(frozen=True)
class Amount:
    """A sum the customer named: `value` in major units and a currency if one was named; or
    `percent` of what the order cost."""

    value: Decimal | None = None
    currency: str | None = None
    percent: int | None = None

    def of(self, total: Decimal) -> Decimal:
        """Return the sum, for an order of that total, with as many decimals as the total has."""
        unit = Decimal(1).scaleb(total.as_tuple().exponent if total.is_finite() else 0)  # type: ignore[arg-type]
        value = total * (self.percent or 0) / 100 if self.value is None else self.value
        return value.quantize(unit, ROUND_HALF_UP) if self.value is None else value


@dataclass(frozen=True)
class OrderId:
    """An order number and where it stands in the text."""

    id: str
    start: int
    end: int


def order_ids(text: str) -> list[OrderId]:
    """Return the order numbers in a text, in order, each once; denied ones ("not 1042") left out."""
    spans = [(m.lastindex or 1, m) for m in _EXPLICIT.finditer(text)]
    taken = [match.span() for _, match in spans]
    for match in _BARE.finditer(text):
        inside = any(start <= match.start(1) < end for start, end in taken)
        if not inside and not _is_year(text, match):
            spans.append((1, match))
    found: dict[str, OrderId] = {}
    for group, match in sorted(spans, key=lambda span: span[1].start()):
        if not _NOT_THIS.search(text[: match.start()].lower()):
            name = match.group(group).upper()
            found.setdefault(name, OrderId(name, match.start(), match.end()))
    return list(found.values())


def _is_year(text: str, match: re.Match[str]) -> bool:
    digits = match.group(1)
    return (
        digits[:2] in ("19", "20")
        and len(digits) == 4
        and bool(_YEAR_BEFORE.search(text[: match.start()]))
    )


def without_order_ids(text: str) -> str:
    """Return the text with its order numbers blanked out."""
    for found in reversed(order_ids(text)):
        text = text[: found.start] + " " + text[found.end :]
    return text


def amount(text: str) -> Amount | None:
    """Return the sum asked for: the last one that is not what the customer says to have paid."""
    found: list[tuple[int, Amount, bool]] = []
    for match in _AMOUNT.finditer(text):
        sign, unit = match.group("sign"), match.group("unit")
        digits = match.group(2) if sign else match.group(3)
        negative = "-" if (sign or "").startswith("-") else ""
        value = Decimal(negative + digits.replace(",", ""))
        paid = bool(_PAID.search(text[: match.start()].lower()))
        found.append((match.start(), Amount(value, _currency(sign or unit)), paid))
    if not found:
        bare = _BARE_AMOUNT.search(text)
        if bare:
            return Amount(Decimal(bare.group(1)))
        fraction = _FRACTION.search(text)
        if fraction:
            return Amount(percent=50 if fraction.group(1) else int(fraction.group(2)))
        return None
    wanted = [item for item in found if not item[2]]
    return wanted[-1][1] if wanted else None


def _currency(sign: str) -> str | None:
    sign = sign.lower().strip("-")
    if sign in ("dollar", "dollars", "bucks"):
        return "USD"
    if sign.startswith("euro"):
        return "EUR"
    if sign in ("pound", "pounds", "quid"):
        return "GBP"
    return _CURRENCIES.get(sign)


_FINE = re.compile(
    r"\b(?:not|isn't|wasn't|aren't|never)\s+(?:\w+\s+)?(?:broken|damaged|faulty|defective|wrong)\b"
)
_REFUND_REASONS = (
    (
        "not_received",
        (
            r"never\s+(?:\w+\s+)?(?:arrived|came|got|received|showed|turned|delivered|reached)"
            r"|(?:did not|didn't|has not|hasn't|have not|haven't|not)\s+(?:\w+\s+){0,2}"
            r"(?:arrived?|received?|come|got|get|shown? up|turned? up|been delivered|delivered)\b"
            r"|\bmissing\b|\blost\b|\bstolen\b"
        ),
    ),
    (
        "wrong_item",
        (
            r"\bwrong\s+(?!address|order|number|street|name)\w+|not what i (?:ordered|bought)"
            r"|(?:sent|got|received) (?:me )?(?:a|the|something) (?:different|wrong|other|else)"
            r"|different (?:item|product|colou?r|size|model)"
        ),
    ),
    (
        "not_as_described",
        (
            r"not as (?:described|advertised|shown|pictured|expected)"
            r"|(?:doesn't|does not|didn't|did not|don't) (?:look|match|fit)"
            r"|different (?:from|than|to) (?:the |what )?(?:picture|photo|description|website|advertised)"
            r"|misleading|(?:poor|bad|terrible|low) quality|too (?:small|big|large|tight|loose|short|long)\b"
        ),
    ),
    (
        "damaged",
        (
            r"\bbroken?\b|\bbroke\b|damag|\bcrack|\bchip(?:ped|s)?\b|shatter|smash|scratch|\bdent(?:ed|s)?\b"
            r"|\btorn\b|\bripped\b|fault|defect|(?:doesn't|does not|not|stopped|didn't) work"
            r"|dead on arrival|\bleak|\bstain|\bbent\b|in pieces|\bsnapped\b|\bdamage"
        ),
    ),
    (
        "changed_mind",
        (
            r"chang\w* (?:of |my )?mind|(?:don't|do not|no longer) (?:\w+ )?(?:want|need|like)"
            r"|by (?:mistake|accident)|accident|didn't mean|cheaper|not for me|\bregret|unwanted"
            r"|changed my mind"
        ),
    ),
)
_CANCEL_REASONS = (
    (
        "ordered_by_mistake",
        r"mistake|accident|wrong (?!address)\w+|didn't mean|did not mean|\btwice\b|duplicate",
    ),
    (
        "no_longer_needed",
        (
            r"(?:no longer|don't|do not|doesn't|won't) (?:\w+ )?(?:need|want)|not need|unneeded"
            r"|chang\w* (?:of |my )?mind|cheaper|no need|any\s?more"
        ),
    ),
)


def refund_reason(text: str) -> str | None:
    """Return the reason code for a refund that the words speak of, if any."""
    return _reason(text, _REFUND_REASONS)


def cancel_reason(text: str) -> str | None:
    """Return the reason code for a cancellation that the words speak of, if any."""
    return _reason(text, _CANCEL_REASONS)


def _reason(text: str, table: tuple[tuple[str, str], ...]) -> str | None:
    text = _FINE.sub(" ", text.lower())
    for code, pattern in table:
        if re.search(pattern, text):
            return code
    return None
