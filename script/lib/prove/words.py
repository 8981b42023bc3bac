"""What a text claims about changes: read independently of the product's own claim check.

It knows the sentences of the pretend model and of the product's templates. A sentence that it
cannot read claims nothing here; one that it reads must be true in the shop's ledger.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_ORDER = re.compile(r"\border #?(\w+)", re.IGNORECASE)
_REFERENCE = re.compile(r"\b(?:re|ch)_[0-9a-f]+\b")
_MONEY = re.compile(r"\$(\d[\d,]*\.\d{2})")
# Talk about what could or will be done claims nothing.
_NO_CLAIM = re.compile(
    r"\?|\b(?:will|would|can|can't|could you|may|once|if|still being checked|waiting for|just say so)\b",
    re.IGNORECASE,
)
_DENIED = {
    "refund": re.compile(r"not refunded|could not refund|refund\b.*\bwas not made", re.IGNORECASE),
    "cancel": re.compile(
        r"not cancelled|could not cancel|cancellation\b.*\bwas not made", re.IGNORECASE
    ),
    "change_address": re.compile(
        r"address\b.*\bnot changed|could not change the address|address change\b.*\bwas not made",
        re.IGNORECASE,
    ),
}
_DONE = {
    "refund": re.compile(
        r"\b(?:have|has been|been|was|is) (?:already )?refunded|\brefund\b.*\bis done\b",
        re.IGNORECASE,
    ),
    "cancel": re.compile(
        r"\b(?:have|has been|been|is|as) cancelled|\bcancellation\b.*\bis done\b", re.IGNORECASE
    ),
    "change_address": re.compile(
        r"\bhave changed the (?:delivery )?address|address has been changed"
        r"|\baddress change\b.*\bis done\b",
        re.IGNORECASE,
    ),
}


@dataclass(frozen=True)
class Claim:
    """A sentence that says that a change was made (`is_done`), or that it was not."""

    kind: str
    is_done: bool
    sentence: str
    order_id: str = ""
    reference: str = ""
    amount: int | None = None


def claims(text: str) -> list[Claim]:
    """Every claim that a text makes, in its order."""
    return [claim for sentence in _SENTENCE.split(text) for claim in _claims_in(sentence)]


def _claims_in(sentence: str) -> Iterator[Claim]:
    for kind in _DONE:
        denied = _DENIED[kind].search(sentence) is not None
        done = _DONE[kind].search(sentence) is not None and not _NO_CLAIM.search(sentence)
        if denied or done:
            yield Claim(
                kind=kind,
                is_done=not denied,
                sentence=sentence,
                order_id=_first(_ORDER, sentence),
                reference=_first(_REFERENCE, sentence),
                amount=_cents(sentence),
            )


def _first(pattern: re.Pattern[str], sentence: str) -> str:
    found = pattern.search(sentence)
    return found.group(found.lastindex or 0) if found else ""


def _cents(sentence: str) -> int | None:
    found = _MONEY.search(sentence)
    return int(found[1].replace(",", "").replace(".", "")) if found else None
