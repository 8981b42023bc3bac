"""What a reply says did not happen, where it did or may have."""

import re

from agents.claims.english import ENGLISH
from agents.claims.patterns import ADDRESS, CANCEL, CLOSE, EMAIL, REFUND, words_of
from agents.claims.sentences import Word, ends_clause, is_negation, words

# What is denied when it stands behind a "not".
_ABOUT = {
    REFUND: re.compile(r"refund\w*|reimburs\w*|repa(?:id|y\w*)|credit(?:ed|ing)?|payout"),
    CANCEL: re.compile(r"cancel\w*"),
    ADDRESS: re.compile(r"address(?:es)?|redirect\w*|re-?rout\w*|destination"),
    CLOSE: re.compile(r"clos(?:e|ed|ing)|closure"),
    EMAIL: re.compile(r"e-?mail\w*"),
}
_MONEY = re.compile(r"\b(?:money|payment|amount)\b|[$€£]\s?\d")
_HAPPENED = words_of(
    "processed issued completed complete made sent happen happened succeed succeeded work worked "
    "go gone went executed done changed updated corrected confirmed approved granted returned "
    "successful through placed applied back paid given able possible carried initiated finalised "
    "finalized cancelled canceled refunded closed emailed e-mailed"
)
_FELL_THROUGH = words_of(
    "failed fails failing declined refused rejected denied unsuccessful impossible blocked bounced "
    "unchanged"
)
_UNSURE = re.compile(
    r"confirm\w*|know\w*|sure|certain|clear|tell|say|word|answer|news|information|idea|hear|heard|"
    r"result|outcome|whether|see|worry|forget|hesitate|need|want|promise|guarantee|visible"
)
_AGAIN = re.compile(
    r"\b(?:again|twice|another|more than|once more|second|two times|double|duplicate|anew|further)\b"
)
_NOTHING = re.compile(
    r"\b(?:nothing (?:(?:was|is|has been|has|got|could be)(?: yet)? (?:changed|done|sent|refunded|"
    r"cancell?ed|processed|paid back|paid|made|carried out|happened|updated|executed|returned)|"
    r"happened|changed)\b|"
    r"no changes? (?:was|were|has|have|could|is|are)\b|"
    r"(?:it|that|this|which) (?:has )?(?:failed|did not|didn't|has not|hasn't|was not|wasn't|"
    r"could not|couldn't) ?(?:been )?(?:work\w*|go through|gone through|happen\w*|succeed\w*|"
    r"successful|done|possible|be done|be completed|be processed|completed|processed)?\b)"
)
_NOT_NEEDED = re.compile(
    r"\bno (?:\w+ ){1,2}(?:(?:is|are|was|were|has been) )?(?:needed|necessary|required|due)\b"
)
_UNDONE = re.compile(
    r"\brefund\b[^.?!,;\n]{0,40}\b(?:was|is|has been|got)\b[^.?!,;\n]{0,12}"
    r"\b(?:cancell?ed|withdrawn|stopped|reversed|voided)\b"
)
_NOTHING_ELSE = re.compile(r"\b(?:nothing else|nothing more|no other changes?)\b")
_STILL = {
    CANCEL: re.compile(
        r"\border\b[^.?!,;\n]{0,40}\b(?:(?:remains|is still|stays)\b[^.?!,;\n]{0,15}\b(?:active|open|"
        r"as it)|will still (?:be )?(?:ship|sent|deliver|arriv|go|come))"
    ),
    ADDRESS: re.compile(
        r"\b(?:still|remains?|stays?)\b[^.?!,;\n]{0,40}\b(?:old|previous|original|same|former) "
        r"address|\baddress\b(?! change)[^.?!,;\n]{0,40}\b(?:is still|still is|remains|stays)\b(?! being)"
    ),
    REFUND: _UNDONE,
}


def denied_here(sentence: str, kinds: frozenset[str], *, is_open: bool) -> set[str]:
    """The kinds that an English sentence says did not happen.

    "I can't refund this" speaks of what is possible: it denies only what `is_open`.
    """
    if any(rule.search(sentence) for rule in (_AGAIN, _NOT_NEEDED, _NOTHING_ELSE)):
        return set()
    found = {kind for kind in kinds if _NOTHING.search(sentence)}
    found |= {kind for kind in kinds if kind in _STILL and _STILL[kind].search(sentence)}
    said = words(sentence)
    for at, word in enumerate(said):
        if not (is_negation(word.text) or word.text in _FELL_THROUGH):
            continue
        if word.text in {"cannot", "can't"} and not is_open:
            continue
        if _is_conditional(said[:at]):
            continue
        found |= {kind for kind in kinds if _denies(kind, sentence, said, at)}
    return found


def _denies(kind: str, sentence: str, said: list[Word], at: int) -> bool:
    """Whether the negation at this word is about this kind, and about its having happened."""
    after = _clause([word.text for word in said[at + 1 : at + 8]])
    before = _clause([word.text for word in reversed(said[max(at - 9, 0) : at])])
    for distance, word in enumerate(after):
        if _UNSURE.fullmatch(word):
            return False
        if _ABOUT[kind].fullmatch(word):
            return distance < 6
    is_about = any(_ABOUT[kind].fullmatch(word) for word in before)
    if not is_about and not (kind == REFUND and _MONEY.search(sentence)):
        return False
    if said[at].text in _FELL_THROUGH:
        return not any(is_negation(word) for word in before)
    return any(word in _HAPPENED for word in after)


def _clause(side: list[str]) -> list[str]:
    """The words up to the end of the clause; a relative "that" or "which" does not end it."""
    kept: list[str] = []
    for word in side:
        if ends_clause(word):
            break
        kept.append(word)
    return kept


def _is_conditional(before: list[Word]) -> bool:
    for word in reversed(before[-8:]):
        if ends_clause(word.text):
            return False
        if word.text in ENGLISH.conditions:
            return True
    return False
