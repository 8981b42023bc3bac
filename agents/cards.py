"""Payment card numbers in what customers write: found, and hidden before anything keeps them. Pure.

A number is a card's when its length is one that its issuer gives out, its beginning is that issuer's,
and its check digit fits (Luhn, ISO/IEC 7812). Order, parcel and telephone numbers hardly ever do all
three; what hangs on a letter, a `#` or a `+` is never looked at.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SHORTEST, LONGEST = 13, 19

_BETWEEN = "[ \t\u00a0\u2007\u2009\u202f.\\-\u2010-\u2015]{1,3}"
_RUN = re.compile(rf"(?<![\w#+.,])\d+(?:{_BETWEEN}\d+)*")
_GROUP = re.compile(r"\d+")

# First and last beginning of each issuer's numbers, both of one length, and how long they are.
_ISSUERS: tuple[tuple[int, int, frozenset[int]], ...] = (
    (4, 4, frozenset({13, 16, 18, 19})),  # Visa
    (51, 55, frozenset({16})),  # Mastercard
    (2221, 2720, frozenset({16})),
    (34, 34, frozenset({15})),  # American Express
    (37, 37, frozenset({15})),
    (6011, 6011, frozenset({16, 17, 18, 19})),  # Discover
    (644, 659, frozenset({16, 17, 18, 19})),
    (300, 305, frozenset({14, 16, 17, 18, 19})),  # Diners Club
    (36, 36, frozenset({14, 16, 17, 18, 19})),
    (38, 39, frozenset({14, 16, 17, 18, 19})),
    (3528, 3589, frozenset({16, 17, 18, 19})),  # JCB
    (62, 62, frozenset({16, 17, 18, 19})),  # UnionPay
    (5018, 5018, frozenset(range(13, 20))),  # Maestro
    (5020, 5020, frozenset(range(13, 20))),
    (5038, 5038, frozenset(range(13, 20))),
    (5893, 5893, frozenset(range(13, 20))),
    (6304, 6304, frozenset(range(13, 20))),
    (6759, 6763, frozenset(range(13, 20))),
    (2200, 2204, frozenset({16, 17, 18, 19})),  # Mir
)
# How people write a card among other numbers; alone, any grouping will do.
_WRITTEN = frozenset({(4, 6, 5), (4, 6, 4), (8, 8), (6, 13)})


@dataclass(frozen=True)
class Taken:
    """A text as it may be kept, and how many card numbers were hidden in it."""

    text: str
    hidden: int


def hide_cards(text: str) -> Taken:
    """The text with each card number as four dots and its last four digits."""
    pieces: list[str] = []
    at = hidden = 0
    for run in _RUN.finditer(text):
        for start, end in _cards_in(run):
            digits = _digits(text[start:end])
            pieces += [text[at:start], f"•••• {digits[-4:]}"]
            at = end
            hidden += 1
    return Taken("".join([*pieces, text[at:]]), hidden)


def is_card(digits: str) -> bool:
    """Could a card have this number?"""
    if not SHORTEST <= len(digits) <= LONGEST or not _luhn(digits):
        return False
    return any(
        len(digits) in lengths and first <= int(digits[: len(str(first))]) <= last
        for first, last, lengths in _ISSUERS
    )


def _cards_in(run: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Where the cards are in a run of digits with nothing but blanks, dots and dashes between."""
    groups = [
        (run.start() + found.start(), run.start() + found.end())
        for found in _GROUP.finditer(run[0])
    ]
    first = 0
    while first < len(groups):
        last = _card_from(run, groups, first)
        if last is None:
            first += 1
            continue
        yield groups[first][0], groups[last][1]
        first = last + 1


def _card_from(run: re.Match[str], groups: Sequence[tuple[int, int]], first: int) -> int | None:
    """The last group of the longest card that begins with this group; None when none does."""
    found = None
    digits = ""
    for last in range(first, len(groups)):
        start, end = groups[last]
        digits += _digits(run.string[start:end])
        if len(digits) > LONGEST:
            break
        is_alone = first == 0 and last == len(groups) - 1
        if is_card(digits) and (is_alone or _is_written_so(groups[first : last + 1])):
            found = last
    return found


def _is_written_so(groups: Sequence[tuple[int, int]]) -> bool:
    sizes = tuple(end - start for start, end in groups)
    in_fours = all(size == 4 for size in sizes[:-1]) and sizes[-1] <= 4
    return len(sizes) == 1 or in_fours or sizes in _WRITTEN


def _digits(text: str) -> str:
    """Plain digits, whichever script they were typed in."""
    return "".join(str(int(char)) for char in text if char.isdecimal())


def _luhn(digits: str) -> bool:
    total = 0
    for place, char in enumerate(reversed(digits)):
        value = int(char) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0
