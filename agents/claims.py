"""Is what a reply says true? Sentences that claim or deny a change, against what is proven.

A change is true only when an operation of its kind succeeded. This reads the reply sentence by
sentence and finds what it claims as done, and what it says did not happen. It is meant to err on
one side: a claim that is overlooked misleads a customer about money, a sentence that is taken for
a claim costs a template. When in doubt, it is a claim.

Pure: no Django, no I/O.
"""

import re
from collections.abc import Iterator

from agents.claim_words import (
    ADDRESS,
    ANY,
    CANCEL,
    CLOSE,
    EMAIL,
    ENGLISH,
    ENGLISH_ASIDE,
    FOREIGN,
    REFUND,
    WISHES,
    Pattern,
    Words,
    words_of,
)
from agents.denials import denied_here
from agents.sentences import PUNCTUATION, Word, ends_clause, is_negation, sentences, words
from agents.true_state import OperationView, true_state

__all__ = ["OperationView", "asks_for_secrets", "denied", "true_state", "unproven"]

_ORDER_WORD = re.compile(r"\border(?:s|\s+(?:number|no\.?))?\b|#", re.IGNORECASE)

_QUESTION = re.compile(
    r"^(?:\W|so|and|or|ok|okay|great|sorry|thanks|thank you|hi|hello|sure|well|also|but|then|"
    r"before that|in that case|just to check)*\b(?:do|does|did|would|could|can|shall|should|have|"
    r"has|had|is|are|was|were|may|might|will|what|when|where|which|who|whom|whose|why|how|want|"
    r"isn't|aren't|wasn't|weren't|haven't|hasn't|didn't|don't|won't|wouldn't|couldn't|shouldn't|"
    r"anything|any)\b"
)
_FIRST_PERSON_DONE = re.compile(
    r"\b(?:i've|we've|i have|we have|i just|we just|ich habe|wir haben|he|hemos|j'ai|nous avons|"
    r"ho|abbiamo|ik heb|we hebben)\b"
)
_AGENTS = words_of("i we i've we've i'm we're i'd we'd he she they they've colleague team")
_FOREIGN_AGENTS = words_of("ich wir j'ai nous he hemos ho abbiamo eu ik we")
_OTHERS = words_of("you you've you'd it they he she customer shop")
_AUXILIARIES = words_of("is are was were has have had been be being 's get gets got gotten")
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
    "dispatched got completed set"
)
_ORDER_IDS = re.compile(
    r"(?:\b(?:orders?|bestellung(?:en)?|pedidos?|commandes?|ordin[ei]|encomendas?|bestelling(?:en)?)"
    r"(?: (?:numbers?|nos?\.?|nr\.?|nummer|n[\u00ba\u00b0]))?|#) ?"
    r"(#?[a-z0-9_-]*\d[a-z0-9_-]*(?:(?:,| and| &| or| und| y| et| e| en|, and) #?[a-z0-9_-]*\d[a-z0-9_-]*)*)"
)
_CARRIED_OVER = re.compile(
    r"^(?:it|this|that|they|both|these|the order|the orders|this order|that order)\b"
)


def unproven(
    text: str,
    *,
    succeeded: frozenset[str],
    known_cancelled: frozenset[str] = frozenset(),
    known_refunded: frozenset[str] = frozenset(),
) -> frozenset[str]:
    """The kinds of change that a reply claims as done without a succeeded operation of that kind.

    `succeeded` are the kinds that truly happened in this ticket (a closure includes its e-mail).
    `known_cancelled` and `known_refunded` are orders that a look-up showed as such: a sentence
    about their state, naming them and nobody who did it, is a fact and no claim. The kind "change"
    stands for a claim that does not say of what ("Done!"); any succeeded operation proves it.
    """
    proven = set(succeeded)
    if CLOSE in succeeded:
        proven.add(EMAIL)
    if succeeded:
        proven.add(ANY)
    facts = {CANCEL: known_cancelled, REFUND: known_refunded}
    found: set[str] = set()
    named: frozenset[str] = frozenset()
    for sentence in sentences(text):
        here = _order_ids(sentence, known_cancelled | known_refunded)
        if here or not _CARRIED_OVER.match(sentence):
            named = here
        for kind, start in _claims(sentence):
            if kind not in proven and not _is_fact(sentence, start, named, facts.get(kind)):
                found.add(kind)
    return frozenset(found)


# --- Reading ----------------------------------------------------------------------------------


def _claims(sentence: str) -> Iterator[tuple[str, int]]:
    """Each kind that the sentence claims as done, with where the claiming verb begins."""
    asks = sentence.endswith("?") and not _FIRST_PERSON_DONE.search(sentence)
    said = words(sentence)
    if not (asks and _QUESTION.match(sentence)):
        for pattern in ENGLISH.claims:
            for match in pattern.regex.finditer(sentence):
                if not _is_taken_back(sentence, said, match, pattern):
                    yield pattern.kind, match.start("v")
    if not asks:
        for language in _languages(said):
            yield from _foreign_claims(sentence, said, language)


def _is_taken_back(sentence: str, said: list[Word], match: re.Match[str], pattern: Pattern) -> bool:
    """Whether something beside the verb makes it no claim: a not, an if, a can, a wish, a rule."""
    left = _left_of(said, match.start("v"))
    if _is_negated(left) or _is_negated(_left_of(said, match.start()), reach=2):
        return True
    if pattern.is_implied:
        return any(word.text in ENGLISH.conditions or word.text == "would" for word in said)
    return (
        _is_possible_only(left)
        or _is_conditional(left)
        or _is_wished(left)
        or _is_attributive(sentence, left, match, pattern.kind)
        or _is_general(sentence, left, match.start("v"))
        or _is_for_approval(sentence, match)
    )


def _left_of(said: list[Word], at: int) -> list[str]:
    """The words before a place, nearest first."""
    return [word.text for word in reversed(said) if word.start < at]


def _is_negated(left: list[str], reach: int = 5) -> bool:
    """A negation among the nearest words, with no other clause or subject between."""
    for word in left[:reach]:
        if is_negation(word):
            return True
        if ends_clause(word) or word in _AGENTS:
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
        agents = sum(item in _AGENTS for item in between)
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
        if ends_clause(word) or word in _AGENTS or word in _FINITE or word == "and":
            return False
    return False


def _is_attributive(sentence: str, left: list[str], match: re.Match[str], kind: str) -> bool:
    """ "refunded items", "a cancelled order", "the corrected address": no verb at all."""
    nearest = left[0] if left else ""
    if nearest in _AGENTS or nearest in _FINITE or nearest in {"just", "already", "now", "been"}:
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
    if set(left[:6]) & _AGENTS:
        return False
    relative = _RELATIVE.search(sentence[:at])
    if relative is not None:
        aux = set(relative["aux"].split())
        is_certain = relative["before"] in _CERTAIN or any(map(str.isdigit, relative["before"]))
        if not is_certain and (
            relative["that"] or not aux & {"was", "were", "has", "have", "been"}
        ):
            return True
    governing = next((word for word in left[:4] if word in _AUXILIARIES), "")
    if governing not in _PRESENT or _is_past(left):
        return False
    return bool(_STARTS_CONDITIONAL.match(sentence) or _POLICY.search(sentence))


def _is_past(left: list[str]) -> bool:
    return bool(
        {"has", "have", "had", "been", "was", "were", "just", "already", "now"} & set(left[:3])
    )


def _is_for_approval(sentence: str, match: re.Match[str]) -> bool:
    """Handing in a request is no effect: "I've sent the refund to a colleague for approval"."""
    if match["v"].strip() not in _SOFT:
        return False
    rest = sentence[match.end() :]
    is_request = "request" in match[0] or rest.startswith(" request")
    return is_request or _FOR_APPROVAL.match(sentence[match.end("v") :]) is not None


# --- Facts ------------------------------------------------------------------------------------


def _order_ids(sentence: str, known: frozenset[str]) -> frozenset[str]:
    """The orders that a sentence names, lower-case and without '#'."""
    named = {
        part.strip("#")
        for found in _ORDER_IDS.finditer(sentence)
        for part in re.findall(r"#?[a-z0-9_-]*\d[a-z0-9_-]*", found[1])
    }
    tokens = {word.strip("#.,;:()!?") for word in sentence.split()}
    return frozenset(named | (tokens & {order_id.lower() for order_id in known}))


def _is_fact(
    sentence: str, start: int, named: frozenset[str], known: frozenset[str] | None
) -> bool:
    """A looked-up state told of the orders it was seen on, with nobody said to have done it now."""
    if not known or not named or not named <= {order_id.lower() for order_id in known}:
        return False
    left = _left_of(words(sentence), start)
    if set(left) & _FOREIGN_AGENTS:
        return False
    for word in left:
        if word in _AGENTS:
            return False
        if word not in _AUXILIARIES | ENGLISH_ASIDE | {"just", "already"}:
            return True
    return True


# --- Other languages --------------------------------------------------------------------------


def _languages(said: list[Word]) -> list[Words]:
    """The languages that a sentence may be in: those most of its small words belong to."""
    scores = [sum(word.text in language.marks for word in said) for language in FOREIGN]
    best = max(scores)
    return [language for language, score in zip(FOREIGN, scores, strict=True) if score == best]


def _foreign_claims(sentence: str, said: list[Word], language: Words) -> Iterator[tuple[str, int]]:
    for pattern in language.claims:
        for match in pattern.regex.finditer(sentence):
            start = match.start("v")
            clause = list(_clause(said, start, language))
            if not any(
                word in language.negations or word in language.modals or word in language.conditions
                for word in clause
            ):
                yield pattern.kind, start


def _clause(said: list[Word], at: int, language: Words) -> Iterator[str]:
    """The words around a verb, both ways up to the end of its clause."""
    for side in (
        [word.text for word in reversed(said) if word.start < at][:8],
        [word.text for word in said if word.start >= at][:4],
    ):
        for word in side:
            if word in PUNCTUATION or word in language.breaks:
                break
            yield word


# --- Denials ----------------------------------------------------------------------------------


def denied(
    text: str, *, open_or_unknown: frozenset[str], succeeded: frozenset[str]
) -> frozenset[str]:
    """The kinds that a reply says did not happen although they did, or may have.

    `open_or_unknown` are the kinds with an operation that was granted and has no known outcome,
    `succeeded` those that happened. That the outcome is not known is not a denial, nor is that a
    thing will not be done twice.
    """
    found: set[str] = set()
    for sentence in sentences(text):
        if sentence.endswith("?") and _QUESTION.match(sentence):
            continue
        found |= denied_here(sentence, open_or_unknown, is_open=True)
        found |= denied_here(sentence, succeeded, is_open=False)
        said = words(sentence)
        for language in _languages(said):
            found |= _foreign_denials(sentence, said, language) & (open_or_unknown | succeeded)
    return frozenset(found)


def _foreign_denials(sentence: str, said: list[Word], language: Words) -> set[str]:
    return {
        pattern.kind
        for pattern in language.claims
        for match in pattern.regex.finditer(sentence)
        if any(word in language.negations for word in _clause(said, match.start("v"), language))
        and not any(
            word in language.conditions for word in _clause(said, match.start("v"), language)
        )
    }


# --- Secrets ----------------------------------------------------------------------------------

_SECRET = re.compile(
    r"\b(?:(?:credit |debit |bank |payment )?card(?:'s)?(?: |-)?(?:numbers?|details|info\w*|data)|"
    r"(?:card|account) (?:and )?(?:expiry|expiration)|expir(?:y|ation) date|"
    r"(?:digits|number) (?:of|on) (?:your|the) (?:credit |debit |bank )?card|"
    r"cvv2?|cvc2?|security code|card verification|pass ?words?|pass ?codes?|pass ?phrases?|"
    r"pin(?: code| number)?|one[- ]time (?:code|password)|otp|verification code|"
    r"(?:two|2)[- ]factor code|sms code|iban|sort code|routing number|"
    r"(?:bank )?account (?:number|details)|social security|ssn|login (?:details|data)|credentials)\b"
)
_FOREIGN_SECRET = re.compile(
    r"\b(?:kartennummer|kreditkarten(?:nummer|daten)|passwort|kennwort|prüfziffer|sicherheitscode|"
    r"kontonummer|número de (?:su |tu |la )?tarjeta|contraseña|código de seguridad|"
    r"numéro de (?:votre |la )?carte|mot de passe|cryptogramme|code de sécurité|"
    r"numero (?:della |di )?(?:tua |sua )?carta|codice di sicurezza|número do (?:seu )?cartão|senha|"
    r"kaartnummer|wachtwoord|beveiligingscode)\b"
)
_ASKING = re.compile(
    r"\b(?:send|give|share|provide|tell|enter|type|confirm|reply|respond|need|needed|require|"
    r"required|supply|verify|submit|write|what|which|please|could|can|would|let|include|message|"
    r"text|read|have|want|dictate|post|upload|attach|fill)\b"
)
_NOT_ASKING = re.compile(
    r"\b(?:never|not|n't|don't|cannot|can't|won't|without|no|nicht|nie|keine?|jamais|pas|nunca|"
    r"non|não|niet|geen)\b|n't\b"
)


_PARTS = re.compile(r"[,;:\u2013\u2014]|\bbut\b|\band (?=i\b|please|then|send|give)")


def asks_for_secrets(text: str) -> bool:
    """Whether a reply asks the customer for card data, a password or a code.

    A warning not to send them is no request.
    """
    return any(
        _asks_in_other_words(sentence) or _asks_in_english(sentence) for sentence in sentences(text)
    )


def _asks_in_other_words(sentence: str) -> bool:
    return bool(_FOREIGN_SECRET.search(sentence)) and not _NOT_ASKING.search(sentence)


def _asks_in_english(sentence: str) -> bool:
    if not (_ASKING.search(sentence) or sentence.endswith("?")):
        return False
    return any(
        _SECRET.search(part) and not _NOT_ASKING.search(part) for part in _PARTS.split(sentence)
    )
