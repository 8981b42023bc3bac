"""Sentences that say of money on its way that it is there."""

import re
from collections.abc import Iterator
from dataclasses import replace

from agents.claims.english import ENGLISH
from agents.claims.foreign import GERMAN, foreign_claims
from agents.claims.guards import is_taken_back
from agents.claims.patterns import REFUND, patterns
from agents.claims.sentences import Word

_NEAR = r"(?:[^.?!;:\n]|[.,:](?=\d)){0,60}?"
_MONEY = (
    r"(?:\b(?:refund|reimbursement|repayment|money|amount|payment|funds|it|that)\b|"
    r"[$€£¥]\s?\d[\d.,]*|\d[\d.,]*\s?(?:dollars?|euros?|pounds?|usd|eur|gbp|[$€£]))"
)
_PLACE = r"(?:card|account|bank|paypal|wallet)"
_ARRIVED = replace(
    ENGLISH,
    claims=patterns(
        REFUND,
        rf"{_MONEY}{_NEAR}\b(?P<v>arrived|landed|paid(?: out| back)?|credited|deposited|"
        r"completed?|done|finali[sz]ed|settled|cleared|reached you|come through|gone through|"
        r"went through|came through)\b",
        rf"{_MONEY}{_NEAR}\b(?P<v>(?:is|are) (?:now |already |back )?(?:there\b|with you|"
        rf"(?:in|on) (?:your|the) {_PLACE}))",
        rf"\byou(?:'ve| have) (?:now |already )?(?P<v>received|got|gotten)\b{_NEAR}{_MONEY}",
        rf"\b(?P<v>paid out|deposited|credited)\b{_NEAR}{_MONEY}",
    ),
)
_ANGEKOMMEN = replace(
    GERMAN,
    claims=patterns(
        REFUND,
        r"\b(?P<v>angekommen|eingegangen|eingetroffen|ausgezahlt|ausbezahlt|gutgeschrieben\w*|"
        r"erledigt|abgeschlossen|(?:auf|bei) (?:ihrem|ihnen|deinem|dir)(?: konto)? da)\b",
    ),
)
# What may be said of a refund while its money is on its way.
_COMING = re.compile(
    r"\b(?:on (?:its|the|their) way|under ?way|pending|in transit|being processed|in progress|"
    r"(?:will|should|'ll|expect|can take|may take|takes)\b|reference|unterwegs|auf dem weg|"
    r"wird|werden|beleg|en camino|en route|en cours|in arrivo|a caminho|onderweg)"
)


def is_coming(sentence: str) -> bool:
    """Does a sentence that speaks of a refund leave open that its money is there?"""
    return _COMING.search(sentence) is not None


def arrivals(sentence: str, said: list[Word]) -> Iterator[str]:
    """The words by which a sentence says that money is there."""
    for pattern in _ARRIVED.claims:
        for match in pattern.regex.finditer(sentence):
            if not is_taken_back(sentence, said, match, pattern):
                yield match["v"]
    for _, start in foreign_claims(sentence, said, _ANGEKOMMEN):
        yield sentence[start:]
