"""A reply as sentences and words, in one plain form, for the code that judges what it says."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from agents.claims.english import ENGLISH

PUNCTUATION = frozenset(",;:()\u2013\u2014")

_TOKEN = re.compile(r"[^\W_]+(?:['\-][^\W_]+)*|[$€£#]|[,;:()\u2013\u2014]")
_STOP = re.compile(
    r"(?<=[.!?\u2026\u3002\uff01\uff1f])[\"')\]]*\s+|\n+|(?<=[a-z]{3}[.!?])(?=[A-Z])"
)
# Phrases whose words would be misread one by one.
_REPHRASED = (
    ("as soon as", "once"),
    ("in case", "if"),
    ("provided that", "if"),
    ("as long as", "if"),
    ("can not", "cannot"),
    ("no longer", "nolonger"),
    ("not only", "notonly"),
    ("not just", "notonly"),
    ("went wrong", "failed"),
    ("gone wrong", "failed"),
    ("no problem", "okay"),
    ("no worries", "okay"),
)
# Letters of other scripts that pass for Latin ones inside a Latin word.
_LOOK_ALIKES = str.maketrans("аеорсухіѕԁјһոցɡαοενι", "aeopcyxisdjhnggaoevi")


@dataclass(frozen=True)
class Word:
    """A word or a mark of punctuation, and where it begins."""

    text: str
    start: int


def sentences(text: str) -> Iterator[str]:
    """Lower-case sentences in plain characters: look-alikes, marks and zero widths undone."""
    text = unicodedata.normalize("NFKC", text)
    text = "".join(char for char in text if unicodedata.category(char) not in ("Cf", "Mn"))
    text = re.sub(r"[\u2018\u2019\u02bc\u00b4`]", "'", text)
    text = re.sub(r"[*_~]+", "", text)
    for sentence in _STOP.split(text):
        plain = re.sub(r"\s+", " ", sentence.strip(' \t-\u2022>"')).lower()
        plain = re.sub(r"\S+", lambda found: _latin(found[0]), plain)
        for phrase, word in _REPHRASED:
            plain = re.sub(rf"\b{phrase}\b", word, plain)
        if plain:
            yield plain


def _latin(word: str) -> str:
    if word.isascii() or not re.search(r"[a-z]", word):
        return word
    return word.translate(_LOOK_ALIKES)


def words(sentence: str) -> list[Word]:
    """The words of a sentence in their order, punctuation that ends a clause among them."""
    return [Word(found[0], found.start()) for found in _TOKEN.finditer(sentence)]


def is_negation(word: str) -> bool:
    return word in ENGLISH.negations or word.endswith("n't")


def ends_clause(word: str) -> bool:
    return word in PUNCTUATION or word in ENGLISH.breaks
