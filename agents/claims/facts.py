"""Sentences that tell the looked-up state of an order, and claim no deed."""

import re

from agents.claims.english import ENGLISH_ASIDE
from agents.claims.guards import AGENTS, AUXILIARIES, left_of
from agents.claims.patterns import words_of
from agents.claims.sentences import words

_ORDER_IDS = re.compile(
    r"(?:\b(?:orders?|bestellung(?:en)?|pedidos?|commandes?|ordin[ei]|encomendas?|bestelling(?:en)?)"
    r"(?: (?:numbers?|nos?\.?|nr\.?|nummer|n[\u00ba\u00b0]))?|#) ?"
    r"(#?[a-z0-9_-]*\d[a-z0-9_-]*(?:(?:,| and| &| or| und| y| et| e| en|, and) #?[a-z0-9_-]*\d[a-z0-9_-]*)*)"
)
_FOREIGN_AGENTS = words_of("ich wir j'ai nous he hemos ho abbiamo eu ik we")
CARRIED_OVER = re.compile(
    r"^(?:it|this|that|they|both|these|the order|the orders|this order|that order)\b"
)


def order_ids(sentence: str, known: frozenset[str]) -> frozenset[str]:
    """The orders that a sentence names, lower-case and without '#'."""
    named = {
        part.strip("#")
        for found in _ORDER_IDS.finditer(sentence)
        for part in re.findall(r"#?[a-z0-9_-]*\d[a-z0-9_-]*", found[1])
    }
    tokens = {word.strip("#.,;:()!?") for word in sentence.split()}
    return frozenset(named | (tokens & {order_id.lower() for order_id in known}))


def is_fact(sentence: str, start: int, named: frozenset[str], known: frozenset[str] | None) -> bool:
    """A looked-up state told of the orders it was seen on, with nobody said to have done it now."""
    if not known or not named or not named <= {order_id.lower() for order_id in known}:
        return False
    left = left_of(words(sentence), start)
    if set(left) & _FOREIGN_AGENTS:
        return False
    for word in left:
        if word in AGENTS:
            return False
        if word not in AUXILIARIES | ENGLISH_ASIDE | {"just", "already"}:
            return True
    return True
