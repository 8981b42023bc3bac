"""Readers of outside JSON: each takes one value and its place, and gives it back checked.

Used for catalogues, for the API's bodies and for the control door, so that one rule holds
everywhere. Every reader raises ShapeError, which says where and what.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

MAX_AMOUNT = 10**11
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

# ISO 3166-1 alpha-2, the officially assigned codes.
COUNTRIES = frozenset(
    re.findall(
        r"[A-Z]{2}",
        """
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR
    BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ
    EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW
    GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY
    KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV
    MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY
    QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG
    TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM
    ZW
    """,
    )
)
ADDRESS_LENGTHS = {
    "name": 120,
    "line1": 160,
    "line2": 160,
    "city": 120,
    "region": 120,
    "postal_code": 20,
    "country": 2,
}
ADDRESS_OPTIONAL = frozenset({"line2", "region"})


class ShapeError(ValueError):
    """A value that is not what it should be, with the place where it stands."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("the same name stands twice in one object")
    return names


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def parse_json(text: str | bytes) -> Any:
    """Strict JSON: no doubled names, no NaN or Infinity. Raises ValueError, never anything else."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError as exc:
        raise ValueError("the JSON is nested too deep") from exc


def shown(value: Any) -> str:
    """A value as an error message repeats it: JSON, cut short."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def an_object(value: Any, place: str, allowed: Mapping[str, bool]) -> dict[str, Any]:
    """A JSON object with known names; `allowed` maps each name to whether it must be there."""
    if not isinstance(value, dict):
        raise ShapeError(place, f"must be an object; got {shown(value)}")
    unknown = [name for name in value if name not in allowed]
    if unknown:
        known = ", ".join(allowed)
        raise ShapeError(place, f"has the unknown field {shown(unknown[0])}; it may have: {known}")
    missing = [name for name, required in allowed.items() if required and name not in value]
    if missing:
        raise ShapeError(place, f"lacks {shown(missing[0])}")
    return value


def a_list(value: Any, place: str, *, most: int = 100_000) -> list[Any]:
    """A JSON array of at most `most` items."""
    if not isinstance(value, list):
        raise ShapeError(place, f"must be a list; got {shown(value)}")
    if len(value) > most:
        raise ShapeError(place, f"may have at most {most} items; got {len(value)}")
    return value


def a_text(value: Any, place: str, *, most: int, empty: bool = False) -> str:
    """A string of printable characters (line breaks and tabs included)."""
    if not isinstance(value, str):
        raise ShapeError(place, f"must be a text; got {shown(value)}")
    if not empty and not value.strip():
        raise ShapeError(place, "must not be empty")
    if len(value) > most:
        raise ShapeError(place, f"may have at most {most} characters; got {len(value)}")
    if UNPRINTABLE.search(value):
        raise ShapeError(place, "has a control character")
    return value


def a_name(value: Any, place: str) -> str:
    """An id: letters, digits, dot, underscore and dash, at most 64 of them."""
    text = a_text(value, place, most=64)
    if not NAME.fullmatch(text):
        raise ShapeError(place, f"must be letters, digits, '.', '_' or '-'; got {shown(text)}")
    return text


def a_number(value: Any, place: str, *, least: int, most: int) -> int:
    """A whole number; true and false are none."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ShapeError(place, f"must be a whole number, {least} to {most}; got {shown(value)}")
    return value


def an_amount(value: Any, place: str) -> int:
    """An amount of money: a whole number of minor units (cents), 1 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_AMOUNT:
        raise ShapeError(
            place, f"must be a positive whole number of minor units; got {shown(value)}"
        )
    return value


def a_currency(value: Any, place: str) -> str:
    """An ISO 4217 code by its shape: three capital letters."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Z]{3}", value):
        raise ShapeError(place, f'must be a currency code such as "USD"; got {shown(value)}')
    return value


def a_choice(value: Any, place: str, choices: tuple[str, ...]) -> str:
    """One of a few texts."""
    if not isinstance(value, str) or value not in choices:
        raise ShapeError(place, f"must be one of {', '.join(choices)}; got {shown(value)}")
    return value


def an_address(value: Any, place: str) -> dict[str, str]:
    """A postal address, every field on one line; `line2` and `region` may be missing."""
    fields = {name: name not in ADDRESS_OPTIONAL for name in ADDRESS_LENGTHS}
    given = an_object(value, place, fields)
    address: dict[str, str] = {}
    for name, most in ADDRESS_LENGTHS.items():
        optional = name in ADDRESS_OPTIONAL
        text = a_text(given.get(name, ""), f"{place}.{name}", most=most, empty=optional)
        if CONTROL.search(text):
            raise ShapeError(f"{place}.{name}", "must be one line without control characters")
        address[name] = text.strip()
    if address["country"] not in COUNTRIES:
        raise ShapeError(f"{place}.country", 'must be an ISO 3166 code such as "US"')
    return address


def each(
    values: list[Any], place: str, read: Callable[[Any, str], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Read every item of a list, each at its own numbered place."""
    return [read(value, f"{place}[{n}]") for n, value in enumerate(values)]
