"""Recognise what the last answer asked for, so that a short reply can be understood."""

import re
from dataclasses import dataclass

from model_stub.planner import intents, slots

_LAST_SENTENCE = re.compile(r"[^.!?\n]*(?:\.\d[^.!?\n]*)*\?\s*$")
_KINDS = (
    (intents.HAND_OFF, r"\bcolleague\b|\bperson\b|\bhuman\b"),
    (
        intents.ADDRESS,
        r"\baddress\b|\bstreet\b|\bcity\b|\bpost\w* ?code\b|\bzip\b|\bdeliver\w* to\b",
    ),
    (intents.REFUND, r"\brefund\b|\bmoney back\b"),
    (intents.CANCEL, r"\bcancel\b"),
    (intents.CLOSE, r"\bclose\b"),
    (intents.TRACK, r"\btrack\b|\bparcel\b"),
    (intents.STATUS, r"\blook up\b|\bcheck\b|\bwhich order\b"),
)
_OFFER = re.compile(
    r"^\W*(?:would you like|do you want|shall i|should i|may i|can i|is it ok)\b", re.I
)
_ONE_ORDER = re.compile(r"\border\b", re.I)


@dataclass(frozen=True)
class Question:
    """What was asked: about which kind of request and order, and whether "yes" answers it."""

    kind: str
    order_id: str | None
    is_offer: bool
    wants_amount: bool = False


def asked(text: str) -> Question | None:
    """Return the question that a finished answer ends with, if it asks about a request."""
    match = _LAST_SENTENCE.search(text.strip())
    if match is None:
        return None
    sentence = match.group().strip()
    lowered = sentence.lower()
    kind = next((kind for kind, words in _KINDS if re.search(words, lowered)), None)
    if kind is None:
        return None
    ids = slots.order_ids(sentence)
    only = ids[0].id if len(ids) == 1 and not lowered.startswith("which order") else None
    return Question(kind, only, bool(_OFFER.search(sentence)), lowered.startswith("how much"))
