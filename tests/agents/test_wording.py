"""What code says is there in every language, and claims nothing that is not so."""

import itertools
from string import Formatter
from typing import Any

import pytest

from agents import claims, form_words, order_words, wording
from agents.claims import OperationView, state, true_state
from tools import operations, seal
from tools.catalogue import close_ticket
from tools.language import LANGUAGES, known_locale, pick

KINDS = ("refund", "cancel", "change_address", "close_ticket")
NOT_DONE = ("awaiting_approval", "approved", "sending", "unknown", "needs_person", "denied",
            "expired", "superseded", "failed", "rejected")  # fmt: skip


def texts() -> dict[str, Any]:
    """Every text of every table, by the names of its module and constant."""
    found: dict[str, Any] = {}
    for module in (wording, form_words, order_words, state, seal, operations, close_ticket):
        for name, value in vars(module).items():
            if name.isupper() and isinstance(value, dict):
                found |= {f"{name}.{key}": text for key, text in value.items()}
            elif name.isupper() and isinstance(value, tuple):
                found[f"{module.__name__}.{name}"] = value
    return {name: text for name, text in found.items() if is_text(text)}


def is_text(value: Any) -> bool:
    """Not the tuples of something else, of states for instance."""
    return isinstance(value, tuple) and all(type(part) is str for part in value)


def test_every_text_is_there_in_every_language_with_the_same_gaps():
    assert len(texts()) > 50
    for name, text in texts().items():
        assert len(text) == len(LANGUAGES), name
        gaps = [sorted(gap for _, gap, _, _ in Formatter().parse(one) if gap) for one in text]
        assert gaps[0] == gaps[1], name
        assert text == ("", "") or text[0] != text[1], name


def speaks_of_what_was_made(name: str) -> bool:
    made = ("_DONE", "CAME_BACK", "_MADE", "_ON_ITS_WAY", "_MAIL_")
    return any(part in name for part in made)


@pytest.mark.parametrize("name", sorted(n for n in texts() if not speaks_of_what_was_made(n)))
def test_no_text_of_its_own_claims_a_change(name: str):
    for text in texts()[name]:
        assert claims.unproven(text, succeeded=frozenset()) <= known(name), text


def known(name: str) -> frozenset[str]:
    """What a looked-up state may say: an order is cancelled (by others, or before), a request is closed."""
    if name in {"_STATUS.cancelled", "_SHORT.cancelled", "_NOT_NEEDED.cancel"}:
        return frozenset({"cancel"})
    return frozenset({"close_ticket"}) if name == "HAND_OFF.mail_outcome_unknown" else frozenset()


@pytest.mark.parametrize(("locale", "kind"), list(itertools.product(("en", "de"), KINDS)))
def test_the_true_state_claims_what_is_done_and_nothing_else(locale: str, kind: str):
    done = true_state([OperationView(kind, "1042", "succeeded", reference="re_7")], locale)
    found = claims.unproven(done, succeeded=frozenset())
    assert found & {kind, "change"}, done
    assert claims.unproven(done, succeeded=frozenset({kind})) == frozenset()
    for status in NOT_DONE:
        for decided_by in ("customer", "staff"):
            told = true_state([OperationView(kind, "1042", status, decided_by=decided_by)], locale)
            assert claims.unproven(told, succeeded=frozenset()) == frozenset(), told


@pytest.mark.parametrize("locale", ["en", "de"])
@pytest.mark.parametrize("status", ["approved", "sending", "unknown", "needs_person"])
def test_an_open_outcome_is_never_denied(locale: str, status: str):
    for kind in KINDS:
        told = true_state([OperationView(kind, "1042", status)], locale)
        denied = claims.denied(told, open_or_unknown=frozenset({kind}), succeeded=frozenset())
        assert denied == frozenset(), told


@pytest.mark.parametrize(
    ("locale", "language", "as_known"),
    [
        ("de-AT", "de", "de_AT"),
        ("DE", "de", "de"),
        ("en_GB", "en", "en_GB"),
        ("pt-BR", "en", "pt_BR"),
        ("xx-YY", "en", "en_US"),
        ("", "en", "en_US"),
    ],
)
def test_a_locale_is_understood_as_far_as_it_can_be(locale: str, language: str, as_known: str):
    assert pick(("en", "de"), locale) == language
    assert known_locale(locale) == as_known
