"""Choose lines of an order from the customer's words: "the blue one", "one of the two mugs"."""

import re
from dataclasses import dataclass, field
from typing import Any

from model_stub.planner import slots
from model_stub.planner.words import number, stem, tokens

_GENERIC = frozenset({
    "a", "an", "the", "my", "your", "our", "his", "her", "this", "that", "these", "those",
    "it", "its", "them", "they", "is", "are", "was", "were", "be", "been", "and", "or",
    "of", "for", "from", "in", "on", "at", "to", "with", "without", "by", "me", "i", "you",
    "we", "please", "refund", "return", "money", "back", "order", "item", "items",
    "product", "thing", "things", "parcel", "package", "want", "would", "like", "need",
    "get", "give", "send", "can", "could", "just", "only", "actually", "all", "both",
    "everything", "whole", "full", "rest", "other", "one", "ones", "two", "three", "four",
    "five", "six", "seven", "eight", "nine", "ten", "no", "not", "but", "so", "as", "too",
    "very", "arrived", "broken", "damaged", "set", "pack", "size", "new", "colour", "color",
    "piece", "pieces", "single", "cancel", "last", "latest", "newest", "recent", "previous",
    "first", "second", "third", "half",
})  # fmt: skip
_WHOLE = re.compile(
    r"\b(?:everything|the whole (?:order|thing|lot)|whole order|entire order|full refund|all of (?:it|them)|"
    r"in full|all items|the lot)\b",
    re.I,
)
_CHOICE = re.compile(r"\bthe (\w+) ones?\b", re.I)
_NAMED = re.compile(
    r"\b(?:refund|return|back|for|cancel)(?:\s+me)?(?:\s+(?:only|just))?(?:\s+for)?\s+(?:the|my|a|an|one|two|\d{1,2})\s+"
    r"((?:[a-z-]+\s+){0,2}?[a-z-]+)(?=\s+(?:from|in|of|on)\b|\s*$)"
    r"|\bmy\s+((?:[a-z-]+\s+){0,2}?[a-z-]+)\s+(?:from|in|of)\s+(?:my\s+)?order\b",
    re.I,
)
_SOME = re.compile(
    r"\b(?:only|just)\s+(one|two|three|four|five|\d)\b|\b(one|two|three|four|five|\d)\s+of\b", re.I
)
_BARE_COUNT = re.compile(
    r"(?:(?:no|actually|sorry|yes|oh|just|only|make (?:it|that))[, ]+)*"
    r"(one|two|three|four|five|six|seven|eight|nine|ten|\d{1,2}|both|all|each)"
    r"(?: of (?:them|those|these|the \w+))?(?:,? please)?[.! ]*",
    re.I,
)
_LAST = re.compile(
    r"\b(?:last|latest|newest|most recent|recent)\b(?: \w+)? (?:order|one|purchase)\b", re.I
)
_OWN_ORDER = re.compile(r"\bmy (?:order|parcel|package|delivery|purchase|shipment)\b", re.I)
_UNSURE = re.compile(
    r"\b(?:don't|do not|can't|cannot) (?:know|remember|recall|find)\b|\bnot sure\b|\bno idea\b|\bwhich (?:orders|ones)\b",
    re.I,
)


@dataclass(frozen=True)
class Choice:
    """What to act on. Empty `lines` means the whole order; `unsure` asks the customer back.

    `unsure` is `which` (several lines fit), `how_many` (of `lines[0]`) or `none` (no line fits).
    """

    lines: list[tuple[dict[str, Any], int]] = field(default_factory=list)
    unsure: str | None = None
    wanted: str = ""


def choose(text: str, lines: list[dict[str, Any]]) -> Choice | None:
    """Return the lines of an order that a text means; None when it speaks of none.

    Lines that were refunded whole are not offered again.
    """
    left = [line for line in lines if remaining(line) > 0]
    choice = _choose(slots.without_order_ids(text), left, all_lines=lines)
    return None if choice is None else _whole_if_all(choice, left)


def remaining(line: dict[str, Any]) -> int:
    """Return how many of a line are not refunded yet."""
    return _whole(line.get("quantity"), 1) - _whole(line.get("refunded_quantity"), 0)


def _whole(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def words_of(line: dict[str, Any]) -> set[str]:
    """Return the words that name a line: its title and variant."""
    words = tokens(f"{line.get('title', '')} {line.get('variant') or ''}")
    return {stem(word) for word in words} - _GENERIC


def mentions(text: str, line: dict[str, Any]) -> int:
    """Return how many words of a line a text uses."""
    said = {stem(word) for word in tokens(slots.without_order_ids(text))}
    return len(said & words_of(line))


def bare_count(text: str) -> int | None:
    """Return the number in a text that is nothing but a number of things; 0 means all of them."""
    match = _BARE_COUNT.fullmatch(text.strip())
    if match is None:
        return None
    word = match.group(1).lower()
    return 0 if word in ("both", "all", "each") else number(word)


def counted(choice: Choice, lines: list[dict[str, Any]], count: int | None) -> Choice:
    """Return the choice with a number of things that was given apart from it (0: all of them)."""
    if count is None or choice.unsure == "none" or (choice.unsure == "which" and count != 0):
        return choice
    left = [line for line in lines if remaining(line) > 0]
    chosen = [line for line, _ in choice.lines] or left
    if count == 0:
        return _whole_if_all(Choice([(line, remaining(line)) for line in chosen]), left)
    if len(chosen) == 1:
        return _whole_if_all(Choice([(chosen[0], count)]), left)
    return Choice([(line, 0) for line in chosen], unsure="which")


def is_detail(text: str) -> bool:
    """Tell whether a short text narrows a request down, whatever the order holds."""
    return bool(_CHOICE.search(text) or _SOME.search(text) or _WHOLE.search(text))


def names_something(text: str) -> bool:
    """Tell whether a text names a thing that may be an item."""
    return bool(_named(text) or _CHOICE.search(text))


def asks_for_last(text: str) -> bool:
    """Tell whether the words mean the newest order."""
    return bool(_LAST.search(text))


def wants_lookup(text: str) -> bool:
    """Tell whether the order can be looked for: an own order, an item, or "I don't know"."""
    return bool(
        _OWN_ORDER.search(text) or _LAST.search(text) or _UNSURE.search(text) or _named(text)
    ) or bool(
        re.search(
            r"\b(?:my|the) (?!money\b|refund\b|address\b|card\b|order\b|delivery address\b)[a-z]{3,}",
            text,
            re.I,
        )
    )


def _named(text: str) -> str | None:
    """The noun of a phrase like "refund the mug from …", when it is not a word for any order."""
    match = _NAMED.search(slots.without_order_ids(text).strip(" .!?"))
    if match is None:
        return None
    phrase = (match.group(1) or match.group(2)).lower()
    words = [word for word in tokens(phrase) if stem(word) not in _GENERIC and not number(word)]
    return " ".join(words) or None


def _choose(
    text: str, left: list[dict[str, Any]], *, all_lines: list[dict[str, Any]]
) -> Choice | None:
    if _WHOLE.search(text):
        return Choice()
    picked: dict[str, tuple[dict[str, Any], int]] = {}
    for phrase in re.split(r"\band\b|,|\bplus\b", text.lower()):
        choice = _from_phrase(phrase, left)
        if choice is None:
            continue
        if choice.unsure:
            return choice
        picked |= {str(line["item_id"]): (line, count) for line, count in choice.lines}
    if picked:
        return Choice(list(picked.values()))
    return _from_hints(text, left, all_lines)


def _from_phrase(phrase: str, left: list[dict[str, Any]]) -> Choice | None:
    scores = [(mentions(phrase, line), line) for line in left]
    best = max((score for score, _ in scores), default=0)
    if best == 0:
        return None
    lines = [line for score, line in scores if score == best]
    count, plural = _count(phrase, lines)
    plural = plural or (len(lines) > 1 and count == sum(map(remaining, lines)))
    if len(lines) > 1 and not plural:
        return Choice([(line, 0) for line in lines], unsure="which")
    if len(lines) > 1:
        return Choice([(line, remaining(line)) for line in lines])
    line = lines[0]
    if count is not None:
        return Choice([(line, count)])
    if remaining(line) == 1 or plural:
        return Choice([(line, remaining(line))])
    return Choice([(line, 0)], unsure="how_many")


def _count(phrase: str, lines: list[dict[str, Any]]) -> tuple[int | None, bool]:
    """Return the number named for the lines, and whether all of them are meant."""
    names = set().union(*(words_of(line) for line in lines))
    words = tokens(phrase)
    found: int | None = None
    for at, word in enumerate(words):
        amount = number(word)
        following = words[at + 1 : at + 4]
        before = words[at - 1] if at else ""
        of_group = following[:1] == ["of"]
        if amount and (
            of_group or before in ("only", "just") or any(stem(w) in names for w in following)
        ):
            found = amount
            break
    plural = any(w in ("both", "all", "every") for w in words) or any(
        w != stem(w) and stem(w) in names for w in words
    )
    return found, plural and found is None


def _from_hints(
    text: str, left: list[dict[str, Any]], all_lines: list[dict[str, Any]]
) -> Choice | None:
    """Hints that name no line by its words: "only one of them", "the green one", "the lamp"."""
    some = _SOME.search(text)
    if some:
        count = number((some.group(1) or some.group(2)).lower()) or 1
        if len(left) == 1:
            return Choice([(left[0], count)])
        return Choice([(line, 0) for line in left], unsure="which")
    wanted = _CHOICE.search(text)
    ordinal = (
        {"first": 0, "second": 1, "third": 2, "last": -1}.get(wanted.group(1).lower())
        if wanted
        else None
    )
    if ordinal is not None and -len(left) <= ordinal < len(left):
        return Choice([(left[ordinal], remaining(left[ordinal]))])
    name = wanted.group(1) if wanted else _named(text)
    if name is None or stem(name) in _GENERIC or any(mentions(name, line) for line in all_lines):
        return None
    return Choice([(line, 0) for line in left], unsure="none", wanted=name)


def _whole_if_all(choice: Choice, left: list[dict[str, Any]]) -> Choice:
    """Choosing every unit that is left is choosing the whole order."""
    chosen = {str(line["item_id"]): count for line, count in choice.lines}
    rest = {str(line["item_id"]): remaining(line) for line in left}
    return Choice() if chosen == rest and not choice.unsure else choice
