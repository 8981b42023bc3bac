"""What a language table is made of."""

import re
from dataclasses import dataclass

REFUND, CANCEL, ADDRESS, CLOSE, EMAIL = (
    "refund",
    "cancel",
    "change_address",
    "close_ticket",
    "email",
)
# "Done!", "your request has been processed": something was done, and no word says what.
ANY = "change"

KINDS = (REFUND, CANCEL, ADDRESS, CLOSE, EMAIL)


@dataclass(frozen=True)
class Pattern:
    """One way to claim one kind."""

    kind: str
    regex: re.Pattern[str]
    is_implied: bool = False


@dataclass(frozen=True)
class Words:
    """A language: its claims, and the words that take a claim back.

    `marks` are frequent small words by which a sentence of this language is recognised.
    """

    claims: tuple[Pattern, ...]
    marks: frozenset[str]
    negations: frozenset[str]
    modals: frozenset[str]
    conditions: frozenset[str]
    breaks: frozenset[str]


def patterns(kind: str, *regexes: str, is_implied: bool = False) -> tuple[Pattern, ...]:
    """The ways to claim one kind. Each regex has a group `v` around the word that asserts."""
    return tuple(Pattern(kind, re.compile(regex), is_implied) for regex in regexes)


def words_of(words: str) -> frozenset[str]:
    """The set of words in a text."""
    return frozenset(words.split())
