"""Is what a reply says true? Sentences that claim or deny a change, against what is proven.

A change is true only when an operation of its kind succeeded. This reads the reply sentence by
sentence and finds what it claims as done, and what it says did not happen. It is meant to err on
one side: a claim that is overlooked misleads a customer about money, a sentence that is taken for
a claim costs a template. When in doubt, it is a claim.

Pure: no Django, no I/O.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.claims.arrivals import arrivals, is_coming
from agents.claims.asking import asks_for_secrets
from agents.claims.denials import denied_here
from agents.claims.english import ENGLISH
from agents.claims.facts import CARRIED_OVER, is_fact, order_ids
from agents.claims.foreign import foreign_claims, foreign_denials, languages
from agents.claims.guards import is_taken_back
from agents.claims.patterns import ANY, CANCEL, CLOSE, EMAIL, REFUND
from agents.claims.sentences import sentences, words
from agents.claims.state import OperationView, true_state

__all__ = [
    "Deed",
    "OperationView",
    "asks_for_secrets",
    "denied",
    "misplaced",
    "true_state",
    "undelivered",
    "unproven",
]

# A sum of money as replies write it: "$40.00", "40.00 EUR".
_SUM = re.compile(r"(?<![\d.])\d{1,7}\.\d{2}(?!\d)")

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


@dataclass(frozen=True)
class Deed:
    """A change that truly happened. `amount` is its number alone, like "40.00", or ""."""

    kind: str
    order_id: str
    amount: str = ""


def misplaced(
    text: str,
    *,
    deeds: Sequence[Deed],
    known_orders: frozenset[str],
    cancelled_elsewhere: frozenset[str] = frozenset(),
) -> frozenset[str]:
    """The kinds that happened, but that a sentence claims of another order or for another sum.

    `known_orders` are the orders that this conversation has seen. A sentence that names none of
    them and no sum claims nothing more than its kind. `cancelled_elsewhere` are orders that somebody
    else has cancelled: that one of them is cancelled is a fact, that we did it is not.
    """
    found: set[str] = set()
    for sentence in sentences(text):
        named = order_ids(sentence, known_orders)
        sums = frozenset(_SUM.findall(sentence))
        for kind, start in _claims(sentence):
            if kind == CANCEL and is_fact(sentence, start, named, cancelled_elsewhere):
                continue
            done = [deed for deed in deeds if deed.kind == kind]
            orders = {deed.order_id for deed in done}
            amounts = {deed.amount for deed in done}
            if done and named and not named & orders:
                found.add(kind)
            if done and kind == REFUND and sums and not sums & amounts:
                found.add(kind)
    return frozenset(found)


def undelivered(
    text: str, *, on_its_way: frozenset[str], known_orders: frozenset[str]
) -> frozenset[str]:
    """REFUND where a sentence says more of money that is on its way than that it is.

    `on_its_way` are the orders whose refund the shop calls pending. A sentence that names other
    orders alone, of `known_orders`, is about those.
    """
    for sentence in sentences(text) if on_its_way else ():
        named = order_ids(sentence, known_orders) & known_orders
        if named and not named & on_its_way:
            continue
        claimed = any(kind in (REFUND, ANY) for kind, _ in _claims(sentence))
        if (claimed and not is_coming(sentence)) or any(arrivals(sentence, words(sentence))):
            return frozenset({REFUND})
    return frozenset()


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
        here = order_ids(sentence, known_cancelled | known_refunded)
        if here or not CARRIED_OVER.match(sentence):
            named = here
        for kind, start in _claims(sentence):
            if kind not in proven and not is_fact(sentence, start, named, facts.get(kind)):
                found.add(kind)
    return frozenset(found)


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
        for language in languages(said):
            found |= foreign_denials(sentence, said, language) & (open_or_unknown | succeeded)
    return frozenset(found)


def _claims(sentence: str) -> Iterator[tuple[str, int]]:
    """Each kind that the sentence claims as done, with where the claiming verb begins."""
    asks = sentence.endswith("?") and not _FIRST_PERSON_DONE.search(sentence)
    said = words(sentence)
    if not (asks and _QUESTION.match(sentence)):
        for pattern in ENGLISH.claims:
            for match in pattern.regex.finditer(sentence):
                if not is_taken_back(sentence, said, match, pattern):
                    yield pattern.kind, match.start("v")
    if not asks:
        for language in languages(said):
            yield from foreign_claims(sentence, said, language)
