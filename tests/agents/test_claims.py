"""Which sentences are claims: a large table, both ways."""

import time

import pytest

from agents import claims
from tests.agents.claim_table import (
    CLAIMED,
    DENIED,
    FOREIGN,
    FOREIGN_NOT_CLAIMED,
    NOT_CLAIMED,
    NOT_DENIED,
)

NOTHING: frozenset[str] = frozenset()


def _rows(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(kind, sentence) for kind, sentences in table.items() for sentence in sentences]


@pytest.mark.parametrize(("kind", "sentence"), _rows(CLAIMED) + _rows(FOREIGN))
def test_a_claim_without_its_operation_is_unproven(kind, sentence):
    assert kind in claims.unproven(sentence, succeeded=NOTHING)


@pytest.mark.parametrize(("kind", "sentence"), _rows(CLAIMED) + _rows(FOREIGN))
def test_a_claim_with_its_operation_is_proven(kind, sentence):
    everything = frozenset({"refund", "cancel", "change_address", "close_ticket", "email"})

    assert claims.unproven(sentence, succeeded=everything) == NOTHING


@pytest.mark.parametrize("sentence", NOT_CLAIMED + FOREIGN_NOT_CLAIMED)
def test_a_sentence_that_claims_nothing_passes(sentence):
    assert claims.unproven(sentence, succeeded=NOTHING) == NOTHING


@pytest.mark.parametrize(("kind", "sentence"), _rows(DENIED))
def test_a_denial_of_what_may_have_happened_is_found(kind, sentence):
    assert claims.denied(sentence, open_or_unknown=frozenset({kind}), succeeded=NOTHING) == {kind}


@pytest.mark.parametrize(("kind", "sentence"), _rows(DENIED))
def test_a_denial_of_what_happened_is_found(kind, sentence):
    assert claims.denied(sentence, open_or_unknown=NOTHING, succeeded=frozenset({kind})) == {kind}


@pytest.mark.parametrize(("kind", "sentence"), _rows(DENIED))
def test_a_denial_of_what_did_not_happen_is_the_truth(kind, sentence):
    assert claims.denied(sentence, open_or_unknown=NOTHING, succeeded=NOTHING) == NOTHING


@pytest.mark.parametrize("sentence", NOT_DENIED)
def test_a_sentence_that_denies_nothing_passes(sentence):
    kinds = frozenset({"refund", "cancel", "change_address", "close_ticket", "email"})

    assert claims.denied(sentence, open_or_unknown=kinds, succeeded=NOTHING) == NOTHING
    assert claims.denied(sentence, open_or_unknown=NOTHING, succeeded=kinds) == NOTHING


def test_what_is_impossible_is_no_denial_of_what_happened():
    sentence = "Order 1043 can't be refunded because it is too old."

    assert (
        claims.denied(sentence, open_or_unknown=NOTHING, succeeded=frozenset({"refund"})) == NOTHING
    )
    assert claims.denied(sentence, open_or_unknown=frozenset({"refund"}), succeeded=NOTHING) == {
        "refund"
    }


# --- Facts ------------------------------------------------------------------------------------

FACTS = [
    "Order 1031 was cancelled.",
    "Order #1031 is cancelled.",
    "Order 1031 was cancelled on 3 July 2026.",
    "I see that order 1031 has been cancelled.",
    "I can't cancel order 1031 because it is already cancelled.",
    "Orders 1031 and 1032 were cancelled.",
    "I found order 1031. It was cancelled on 3 July.",
    "1031: one mug, $40.00, cancelled",
    "Die Bestellung 1031 wurde storniert.",
]

NO_FACTS = [
    "I've cancelled order 1031.",
    "I have just cancelled order 1031 for you.",
    "Order 1040 was cancelled.",
    "Orders 1031 and 1040 were cancelled.",
    "Your order was cancelled.",
    "I found order 1040. It was cancelled.",
    "Order 1031 is in your list. Your other order was cancelled too.",
    "Ich habe die Bestellung 1031 storniert.",
]


@pytest.mark.parametrize("text", FACTS)
def test_a_looked_up_state_is_a_fact(text):
    known = frozenset({"1031", "1032"})

    assert claims.unproven(text, succeeded=NOTHING) == {"cancel"}
    assert claims.unproven(text, succeeded=NOTHING, known_cancelled=known) == NOTHING


@pytest.mark.parametrize("text", NO_FACTS)
def test_a_looked_up_state_does_not_prove_a_deed_or_another_order(text):
    known = frozenset({"1031", "1032"})

    assert claims.unproven(text, succeeded=NOTHING, known_cancelled=known) == {"cancel"}


def test_a_looked_up_refund_is_a_fact_of_its_order_alone():
    known = frozenset({"A-77"})

    told = claims.unproven("Order A-77 was refunded.", succeeded=NOTHING, known_refunded=known)
    other = claims.unproven("Order A-78 was refunded.", succeeded=NOTHING, known_refunded=known)

    assert told == NOTHING
    assert other == {"refund"}


def test_a_refund_proves_no_cancellation():
    text = "I've refunded order 1042 and cancelled order 1043."

    assert claims.unproven(text, succeeded=frozenset({"refund"})) == {"cancel"}


def test_a_closure_proves_its_email():
    text = "I've closed the ticket and sent you a confirmation email."

    assert claims.unproven(text, succeeded=frozenset({"close_ticket"})) == NOTHING


def test_one_claim_in_a_long_reply_is_found():
    text = (
        "Hello Dana, thanks for waiting. Order 1042 was delivered on 3 July. Sorry that the mug is "
        "broken!\n- Stoneware mug, blue\n- Your refund of $40.00 has been processed\n"
        "Would you like anything else?"
    )

    assert claims.unproven(text, succeeded=NOTHING) == {"refund"}


def test_an_empty_reply_claims_nothing():
    assert claims.unproven("", succeeded=NOTHING) == NOTHING
    assert claims.denied("", open_or_unknown=frozenset({"refund"}), succeeded=NOTHING) == NOTHING


# --- Secrets ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Please send me your card number.",
        "Could you tell me the CVV?",
        "What is your password?",
        "I need the last four digits of your card.",
        "To go on, reply with the security code on the back.",
        "Please confirm your credit card details.",
        "Enter the one-time code that you received.",
        "Your card number, please.",
        "Please share your IBAN so that I can refund you.",
        "Can you give me your PIN?",
        "Bitte nennen Sie mir Ihre Kartennummer.",
        "Envíeme su contraseña.",
        "Quel est votre mot de passe ?",
    ],
)
def test_asking_for_secrets_is_found(text):
    assert claims.asks_for_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "Please don't send me your card number.",
        "I never need your password.",
        "Never share your CVV with anyone.",
        "The refund goes back to the card that you paid with.",
        "Please tell me your order number.",
        "Please tell me your new address.",
        "I can't take card numbers here.",
        "Bitte senden Sie mir nie Ihr Passwort.",
        "The code of the parcel is 1Z999.",
        "",
    ],
)
def test_other_texts_ask_for_no_secret(text):
    assert not claims.asks_for_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "refund " * 600,
        "not " * 1_000 + "refunded",
        "the money is " * 300,
        "$40.00, " * 500,
        "your address is now now now " * 150,
        "order 1042, 1043, " * 230,
        "a" * 4_000,
        "." * 4_000,
        "once if when " * 300 + "it is refunded and cancelled",
    ],
)
def test_the_longest_text_is_read_in_a_moment(text):
    began = time.process_time()
    claims.unproven(text, succeeded=NOTHING, known_cancelled=frozenset({"1042"}))
    claims.denied(text, open_or_unknown=frozenset({"refund"}), succeeded=NOTHING)
    claims.asks_for_secrets(text)

    assert time.process_time() - began < 1.0


DEEDS = [claims.Deed("refund", "1042", "40.00"), claims.Deed("cancel", "1044")]
SEEN = frozenset({"1042", "1043", "1044", "1045"})


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("I have refunded $40.00 for order 1042.", set()),
        ("Order 1043 has been refunded.", {"refund"}),
        ("I've refunded $400.00.", {"refund"}),
        ("I have refunded $400.00 for order 1042.", {"refund"}),
        ("I have refunded $40.00 of the $400.00 for order 1042.", set()),
        ("I have cancelled order 1044.", set()),
        ("I have cancelled order 1045.", {"cancel"}),
        ("I have refunded it.", set()),
        ("Orders 1042 and 1044 are done: 1042 was refunded, and 1044 was cancelled.", set()),
        ("Order 1043 costs $400.00.", set()),
    ],
)
def test_a_deed_is_proven_for_its_own_order_and_sum(text: str, kinds: set[str]):
    assert claims.misplaced(text, deeds=DEEDS, known_orders=SEEN) == kinds


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Order 1045 was cancelled already.", set()),
        ("Order 1045 had been cancelled elsewhere already, and I cancelled order 1044.", set()),
        ("Bestellung 1045 war schon storniert worden.", set()),
        ("I have cancelled order 1045.", {"cancel"}),
        ("We cancelled order 1045 for you.", {"cancel"}),
        ("Ich habe die Bestellung 1045 storniert.", {"cancel"}),
        ("Order 1043 was cancelled.", {"cancel"}),
    ],
)
def test_an_order_cancelled_elsewhere_is_told_beside_our_own_and_never_as_ours(
    text: str, kinds: set[str]
):
    """Order 1044 was cancelled by us, 1045 by somebody else."""
    elsewhere = frozenset({"1045"})

    found = claims.unproven(text, succeeded=frozenset({"cancel"}), known_cancelled=elsewhere)
    found |= claims.misplaced(text, deeds=DEEDS, known_orders=SEEN, cancelled_elsewhere=elsewhere)

    assert found == kinds
