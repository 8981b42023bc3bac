"""Read a postal address out of a message: one line or several, whole or in part."""

import re
from dataclasses import dataclass

from model_stub.planner.countries import CODES, country

Address = dict[str, str]
REQUIRED = ("name", "line1", "city", "postal_code", "country")

_KINDS = (
    "street|st|road|rd|avenue|ave|lane|ln|drive|dr|court|ct|way|place|pl|square|sq|boulevard|blvd|"
    "terrace|close|crescent|row|hill|parkway|highway|hwy|broadway|circle|gardens|grove|mews|quay|"
    "walk|alley|wharf|green|view"
)
_PLAIN_WORD = r"(?!(?:to|for|of|and|is|please|address|from|dollars?|bucks|x)\b)[^\W\d_][\w.'-]*"
_STREETS = tuple(
    re.compile(pattern, flags)
    for pattern, flags in (
        (
            rf"\b\d{{1,5}}[a-z]?(?:[-/]\d+[a-z]?)?,?\s+(?:{_PLAIN_WORD}\s+){{0,4}}?(?:{_KINDS})\b\.?",
            re.I,
        ),
        (r"\b\d{1,4}\w?,?\s+(?:rue|avenue|boulevard|place|quai|chemin|all\u00e9e)\s+[^,\n]+", re.I),
        (
            (
                r"\b(?:(?-i:[A-Z])[\w.'-]*\s){0,2}[\w.'-]*"
                r"(?:stra\u00dfe|strasse|str\.|weg|platz|allee|gasse|ring|damm|ufer|straat|gracht|laan|plein|kade)"
                r"\s+\d{1,4}\s?[a-z]?\b"
            ),
            re.I,
        ),
        (
            r"\b(?:calle|via|rua|avenida|plaza|viale|piazza)\s+(?:[^\W\d_][\w.'-]*,?\s+){1,4}\d{1,4}\b",
            re.I,
        ),
        (r"\bp\.?\s?o\.?\s?box\s+\d+\b", re.I),
        (r"\b\d{1,5}[A-Za-z]?\s+(?:[A-Z][\w.'-]*)(?:\s+[A-Z][\w.'-]*){0,4}(?=\s*[,\n])", 0),
    )
)
_END = re.compile(
    r"\s*[,.;!?]?\s*\b(?:please|pls|thanks|thank you|thx|instead|asap)\b"
    r"|[;!?]|\.\s*$|\n\s*\n"
    r"|\.\s+(?=(?:and|also|then|i|my|it|the|can|could|where|refund|cancel|that|what|order)\b)"
    r"|,?\s+(?:and|then|also|but)\s+(?=(?:\w+\s+){0,2}?(?:cancel|refund|where|track|close|tell|change|"
    r"also|i|what|when|can|my|order|send)\b)",
    re.I,
)
_UNIT = re.compile(
    r"\b(?:(?:apartment|apt|flat|unit|suite|ste|floor|fl|room|rm|building|bldg)\b\.?\s?#?\s?\w+"
    r"|\d+(?:st|nd|rd|th)\s+floor)|(?<!\w)#\s?\d\w*|\bc/o\s+[^,\n]+",
    re.I,
)
_POSTAL = re.compile(
    r"\b(?:[A-Z]{1,2}\d[A-Z\d]?\s?\d[A-Z]{2}|[A-Z]\d[A-Z]\s?\d[A-Z]\d|\d{5}(?:-\d{4})?|\d{4}\s?[A-Z]{2}"
    r"|\d{3}\s\d{2}|\d{2}-\d{3}|\d{4}-\d{3}|\d{3}-\d{4}|\d{4,6})\b",
    re.I,
)
_BRITISH = re.compile(r"[A-Z]{1,2}\d[A-Z\d]?\s?\d[A-Z]{2}", re.I)
_CANADIAN = re.compile(r"[A-Z]\d[A-Z]\s?\d[A-Z]\d", re.I)
_STATE = re.compile(r"\b[A-Z]{2,3}\b$")
_NAME_BEFORE = re.compile(
    r"(?:^|\b(?:to|is|at|for|address)\b:?\s+|[:\n]\s*)"
    r"((?:[A-Z][\w.'-]*)(?:\s+[A-Z][\w.'-]*){0,3})\s*[,\n]\s*$"
)
_NOT_NAMES = frozenset({
    "hi", "hello", "hey", "dear", "please", "thanks", "ship", "send", "deliver", "order",
    "yes", "no", "ok",
})  # fmt: skip
_LABELS = {
    "name": r"(?:full )?name|recipient",
    "line1": r"street(?: address)?|line ?1",
    "line2": r"line ?2|apartment|unit",
    "city": r"city|town",
    "postal_code": r"zip(?: ?code)?|post ?code|postal code",
    "region": r"state|region|province|county",
    "country": r"country",
}
_LABELLED = {
    field: re.compile(rf"\b(?:{names})\s*(?:is\b|:|=)\s*([^,;\n]+)", re.I)
    for field, names in _LABELS.items()
}


@dataclass(frozen=True)
class Found:
    """An address in a message and the part of the message that it takes up."""

    address: Address
    start: int
    end: int


def find(text: str) -> Found | None:
    """Return the address in a message that names a street; None when it names none.

    What the message does not say stays out of the address; nothing is made up, save the country
    where the form of the postal code tells it.
    """
    street = _street(text)
    if street is None:
        return None
    stop = _END.search(text, street.end())
    end = stop.start() if stop else len(text)
    address: Address = {"line1": " ".join(street.group().replace("\n", " ").split()).rstrip(",")}
    start = _take_front(text[: street.start()], address)
    _take_rest(_parts(text[street.end() : end]), address)
    _take_labels(text, address)
    return Found(_finished(address), start, end)


def parse_more(text: str, missing: tuple[str, ...]) -> Address:
    """Return the fields in an answer to a question for the missing ones: "62704", "in Springfield".

    An answer that cannot be taken apart is the first missing field, when only one is missing.
    """
    found = find(text)
    if found is not None:
        return found.address
    address: Address = {}
    _take_labels(text, address)
    if not address:
        stop = _END.search(text)
        body = re.sub(r"^\s*(?:it'?s|it is|that's|in|to|at|the|yes|is)\s+", "", text, flags=re.I)
        body = body[: stop.start()] if stop and body == text else body.strip(" .!")
        if len(missing) == 1 and missing[0] in ("name", "line1", "city"):
            return _finished({missing[0]: body}) if _wordlike(body) else {}
        _take_rest(_parts(body), address)
        if not {"postal_code", "country"} & set(address):
            address = {}
    return _finished(address)


def missing_fields(address: Address) -> tuple[str, ...]:
    """Return the required fields an address lacks, in the order people write them."""
    return tuple(field for field in REQUIRED if not address.get(field))


def _wordlike(text: str) -> bool:
    return 1 < len(text) <= 80 and any(char.isalpha() for char in text) and "?" not in text


def _street(text: str) -> re.Match[str] | None:
    found = [match for match in (pattern.search(text) for pattern in _STREETS) if match]
    return min(found, key=lambda match: (match.start(), -match.end())) if found else None


def _take_front(before: str, address: Address) -> int:
    """Take a unit and a name written before the street; return where the address begins."""
    start = len(before)
    unit = re.search(rf"({_UNIT.pattern})\s*[,\n]?\s*$", before, re.I)
    if unit:
        address["line2"] = unit.group(1)
        start = unit.start()
    name = _NAME_BEFORE.search(before[:start])
    if name and name.group(1).split()[0].lower() not in _NOT_NAMES:
        address["name"] = " ".join(name.group(1).split())
        start = name.start(1)
    return start


def _parts(text: str) -> list[str]:
    parts = (part.strip(" .\t") for part in re.split(r"[,\n]", text))
    return [part for part in parts if part]


def _take_rest(parts: list[str], address: Address) -> None:
    """Take unit, city, region, postal code and country from the parts after the street."""
    for part in parts:
        unit = _UNIT.search(part)
        if unit and "line2" not in address:
            address["line2"] = unit.group()
            part = (part[: unit.start()] + part[unit.end() :]).strip(" ,")
        _take_part(part, address)


def _take_part(part: str, address: Address) -> None:
    # "IL" and "CA" are states where a city is known and no country yet could follow alone.
    if "country" not in address:
        part = _take_country(part, address)
    if "postal_code" not in address:
        part = _take_postal(part, address)
    if not part:
        return
    state = _STATE.search(part)
    if state and "region" not in address and ("city" in address or state.start() > 0):
        address["region"] = state.group()
        part = part[: state.start()].strip(" ,")
    if not part:
        return
    for field in ("city", "region", "line2"):
        if field not in address:
            address[field] = part
            return


def _take_country(part: str, address: Address) -> str:
    code = country(part)
    ambiguous = code is not None and part in CODES and "postal_code" not in address
    if code is not None and not ambiguous:
        address["country"] = code
        return ""
    words = part.split()
    for size in (4, 3, 2, 1):
        tail = " ".join(words[-size:])
        code = country(tail) if len(words) > size else None
        before = " ".join(words[:-size])
        if code is not None and (tail not in CODES or re.search(r"\d", before)):
            address["country"] = code
            return before
    return part


def _take_postal(part: str, address: Address) -> str:
    match = _POSTAL.search(part)
    if match is None:
        return part
    address["postal_code"] = match.group().upper()
    return " ".join((part[: match.start()] + " " + part[match.end() :]).split()).strip(" ,")


def _take_labels(text: str, address: Address) -> None:
    for field, pattern in _LABELLED.items():
        match = pattern.search(text)
        if match:
            value = match.group(1).strip(" .")
            address[field] = (country(value) or value) if field == "country" else value


def _finished(address: Address) -> Address:
    postal = address.get("postal_code", "")
    if "country" not in address and postal:
        if _BRITISH.fullmatch(postal):
            address["country"] = "GB"
        elif _CANADIAN.fullmatch(postal):
            address["country"] = "CA"
    return {field: value for field, value in address.items() if value}
