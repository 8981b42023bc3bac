"""What stands beside a claiming verb and makes it no claim: a not, an if, a can, a wish, a rule."""

import re

from agents.claims.english import ENGLISH, ENGLISH_ASIDE, WISHES
from agents.claims.patterns import ADDRESS, ANY, CANCEL, REFUND, Pattern, words_of
from agents.claims.sentences import Word, ends_clause, is_negation

AGENTS = words_of("i we i've we've i'm we're i'd we'd he she they they've colleague team")
_OTHERS = words_of("you you've you'd it they he she customer shop")
AUXILIARIES = words_of("is are was were has have had been be being 's get gets got gotten")
_FINITE = words_of("is are was were has have had 've i've we've they've")
_PRESENT = frozenset({"is", "are", "gets", "get"})
_TIMES = frozenset({"after", "before", "when", "whenever", "once"})
_PERFECT = words_of("is are has have 's i've we've you've it's gets get been be 've")
_PRETERITE = frozenset({"was", "were", "had", "did"})
_OFFERED = frozenset({"be", "like", "love", "have"})

_STARTS_CONDITIONAL = re.compile(
    r"^(?:\W|and|so|but|please note that|note that)*\b(?:if|once|when|whenever|unless|until|after|"
    r"before)\b"
)
_POLICY = re.compile(r"\b(?:polic(?:y|ies)|terms|rules?|according to)\b")
_RELATIVE = re.compile(
    r"(?P<before>\S*) ?\b(?:(?:orders|items|purchases|goods|products|payments|refunds|tickets|"
    r"parcels|amounts|cancellations|returns)|(?<=any |ach |ery )(?:order|item|purchase|product)|"
    r"(?<=an )(?:order|item)|(?<=\ba )(?:purchase|product)|anything|everything)"
    r"(?P<that> (?:that|which))?(?P<aux>(?: (?:is|are|was|were|has|have|been|already|usually|"
    r"normally|always|then|only|generally|typically|automatically))*) ?$"
)
_BARE_PLURAL = re.compile(
    r"^(?:(?!your|these|those|both|the|my|all|two|three|\d)\w+ )?(?:orders|items|purchases|goods|products|"
    r"payments|refunds|returns|shipping costs|parcels)\b(?: (?!and\b)[a-z]+){0,4} (?:are|is)"
    r"(?: usually| normally| always| then| only| generally| typically| automatically)* ?$"
)
_CERTAIN = words_of("your these those both the my all two three four five his her their our")
_ATTRIBUTIVE = re.compile(
    r"^(?: (?:or|and) \w+)? (?:order|item|amount|purchase|goods|product|parcel|ticket|payment)s?\b"
    r"(?! (?:#|\d|number))"
)
_FOR_APPROVAL = re.compile(
    r"^[^.;!?]{0,60}\b(?:for (?:your |their |a |an )?(?:approval|review|confirmation|yes|ok)|"
    r"to (?:a|an|our|the|my|one of our|another) (?:colleagues?|staff|team|person|human|supervisor|"
    r"manager|agent|specialist|support))\b"
)
_SOFT = words_of(
    "submitted sent made placed registered started initiated logged entered recorded forwarded "
    "dispatched queued"
)


def is_taken_back(sentence: str, said: list[Word], match: re.Match[str], pattern: Pattern) -> bool:
    """Whether something beside the verb makes it no claim: a not, an if, a can, a wish, a rule."""
    left = left_of(said, match.start("v"))
    if _is_negated(left) or _is_negated(left_of(said, match.start()), reach=2):
        return True
    if pattern.is_implied:
        return any(word.text in ENGLISH.conditions or word.text == "would" for word in said)
    return (
        _is_possible_only(left)
        or _is_conditional(left)
        or _is_wished(left)
        or _is_attributive(sentence, left, match, pattern.kind)
        or (pattern.kind != ANY and _is_general(sentence, left, match.start("v")))
        or _is_for_approval(sentence, match)
    )


def left_of(said: list[Word], at: int) -> list[str]:
    """The words before a place, nearest first."""
    return [word.text for word in reversed(said) if word.start < at]


def _is_negated(left: list[str], reach: int = 5) -> bool:
    """A negation among the nearest words, with no other clause or subject between."""
    for word in left[:reach]:
        if is_negation(word):
            return True
        if ends_clause(word) or word in AGENTS:
            return False
    return False


def _is_possible_only(left: list[str]) -> bool:
    """ "can be refunded", "to be cancelled", "would then have been changed"."""
    for at, word in enumerate(left):
        nearer = left[at - 1] if at else ""
        if word in ENGLISH.modals or word.endswith("'ll"):
            return not (word == "should" and {"now", "already"} & set(left[:at]))
        if word.endswith("'d") and nearer in _OFFERED:
            return True
        if word == "to" and nearer in {"be", "get"}:
            return True
        if word in {"and", "or"} or (
            word.endswith("ed") and left[at - 1 : at] in (["and"], ["or"])
        ):
            continue
        if word not in ENGLISH_ASIDE:
            return False
    return False


def _is_conditional(left: list[str]) -> bool:
    """ "once it is refunded", "if the order was cancelled", but not "when I cancelled it"."""
    for at, word in enumerate(left[:9]):
        if ends_clause(word):
            return False
        if word not in ENGLISH.conditions:
            continue
        between = left[:at]
        if not between or between[-1].endswith("ing"):
            return False
        agents = sum(item in AGENTS for item in between)
        if agents > 1 or (agents and set(between) & _OTHERS):
            return False
        if word in _TIMES:
            return not set(between) & _PRETERITE and bool(set(between) & _PERFECT)
        return True
    return False


def _is_wished(left: list[str]) -> bool:
    """ "you want it refunded", "to have it cancelled"; not "the refund you asked for was"."""
    if left and left[0] in _FINITE:
        return False
    for at, word in enumerate(left[:6]):
        further = left[at + 1] if at + 1 < len(left) else ""
        if word in {"have", "get", "having", "getting"} and (
            further == "to" or further in ENGLISH.modals or further.endswith("'ll")
        ):
            return True
        if word in WISHES:
            return True
        if ends_clause(word) or word in AGENTS or word in _FINITE or word == "and":
            return False
    return False


def _is_attributive(sentence: str, left: list[str], match: re.Match[str], kind: str) -> bool:
    """ "refunded items", "a cancelled order", "the corrected address": no verb at all."""
    nearest = left[0] if left else ""
    if nearest in AGENTS or nearest in _FINITE or nearest in {"just", "already", "now", "been"}:
        return False
    rest = sentence[match.end("v") :]
    if kind == ADDRESS:
        return nearest in {"the", "your", "a", "an", "this", "that", "new"} and bool(
            re.match(r" (?:\w+ )?(?:address|details|destination)", rest)
        )
    if nearest in {"the", "your", "this", "that", "successfully", "and"}:
        return False
    return kind in (REFUND, CANCEL) and bool(_ATTRIBUTIVE.match(rest))


def _is_general(sentence: str, left: list[str], at: int) -> bool:
    """A rule and not an event: "orders that were cancelled", "if ..., your money is refunded"."""
    if set(left[:6]) & AGENTS:
        return False
    if _BARE_PLURAL.search(sentence[:at]):
        return True
    relative = _RELATIVE.search(sentence[:at])
    if relative is not None:
        aux = set(relative["aux"].split())
        is_certain = relative["before"] in _CERTAIN or any(map(str.isdigit, relative["before"]))
        if not is_certain and (
            relative["that"] or not aux & {"was", "were", "has", "have", "been"}
        ):
            return True
    governing = next((word for word in left[:4] if word in AUXILIARIES), "")
    if governing not in _PRESENT or _is_past(left):
        return False
    return bool(_STARTS_CONDITIONAL.match(sentence) or _POLICY.search(sentence))


def _is_past(left: list[str]) -> bool:
    return bool(
        {"has", "have", "had", "been", "was", "were", "just", "already", "now"} & set(left[:3])
    )


def _is_for_approval(sentence: str, match: re.Match[str]) -> bool:
    """Handing in a request is no effect: "I've sent the refund to a colleague for approval"."""
    if match["v"].strip() not in _SOFT | {"set up"}:
        return False
    rest = sentence[match.end() :]
    is_request = "request" in match[0] or rest.startswith(" request")
    return is_request or _FOR_APPROVAL.match(sentence[match.end("v") :]) is not None
