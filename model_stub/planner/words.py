"""Plain text tools shared by the rules: normalising, stems, number words, safe quoting."""

import re
import unicodedata

_INVISIBLE = re.compile(
    "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-"})
_NUMBER_ABBREVIATION = re.compile(r"\b(?:no|nr|num)\.\s*(?=#?\d)", re.IGNORECASE)
_GLUED_NUMBERS = re.compile(r"(?<=\b\d{4})[,/&+](?=#?\d{4})")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_UNSAFE = re.compile(r"[^\w \-.,:;/()&+#'!?%$\u20ac\u00a3]")

NUMBERS = {
    "a single": 1, "single": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
    "seven": 7, "eight": 8, "nine": 9, "ten": 10,
}  # fmt: skip


def normalised(text: str) -> str:
    """Return text in one spelling: NFKC, straight quotes, no invisible characters."""
    text = unicodedata.normalize("NFKC", text.encode("utf-8", "ignore").decode("utf-8"))
    text = _INVISIBLE.sub("", text).translate(_QUOTES)
    text = _NUMBER_ABBREVIATION.sub("number ", text)
    text = _GLUED_NUMBERS.sub(", ", text)
    return re.sub(r"[ \t\r\f\v]+", " ", text).strip()


def tokens(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(text.lower())


def stem(word: str) -> str:
    """Return a word without its plural ending: mugs, boxes, glasses, candies."""
    for ending, rest in (
        ("ies", "y"),
        ("sses", "ss"),
        ("xes", "x"),
        ("shes", "sh"),
        ("ches", "ch"),
    ):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word[: -len(ending)] + rest
    if word.endswith("s") and not word.endswith(("ss", "us", "'s")) and len(word) > 3:
        return word[:-1]
    return word.removesuffix("'s")


def number(word: str) -> int | None:
    """Return the small number a word or up to two digits stand for."""
    if word.isascii() and word.isdigit() and len(word) <= 2:
        return int(word)
    return NUMBERS.get(word)


def plain(value: object, limit: int = 80) -> str:
    """Return somebody else's text for use inside a sentence: one line, plain characters, cut.

    Texts of the shop, of carriers and of staff are data; what could act as markup is dropped.
    """
    text = value if isinstance(value, str) else ""
    text = " ".join(_UNSAFE.sub(" ", _INVISIBLE.sub("", text)).split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "\u2026"
