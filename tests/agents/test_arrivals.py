"""What a reply may say of a refund that the shop has taken and calls pending."""

import pytest

from agents import claims
from agents.claims import OperationView, true_state

NOTHING: frozenset[str] = frozenset()
REFUND = frozenset({"refund"})
SAYS_THAT_IT_IS_THERE = [
    "Your refund has been paid out.",
    "The money has arrived.",
    "The $40.00 has arrived in your account.",
    "Your refund is done.",
    "Your refund is complete.",
    "I've refunded $40.00 for order 1042.",
    "Order 1042 has been refunded.",
    "The money is back on your card.",
    "You've received your refund.",
    "Your refund was on its way and has arrived.",
    "$40.00 was credited to your account.",
    "All done!",
    "Das Geld ist auf Ihrem Konto eingegangen.",
    "Die Erstattung wurde ausgezahlt.",
    "Die Erstattung für Bestellung 1042 ist erledigt.",
    "Ich habe Ihnen 40,00 $ erstattet.",
    "He reembolsado su pedido.",
]
LEAVES_THAT_OPEN = [
    "The refund of $40.00 for order 1042 is on its way (reference re_1).",
    "Your refund is on its way.",
    "Your money is on its way back to your card.",
    "Your refund is on its way and has not arrived yet.",
    "The shop calls it pending: it is on its way.",
    "You should see the money in your account within five days.",
    "Die Erstattung von 40,00 $ für Bestellung 1042 ist unterwegs (Beleg re_1).",
    "Ihr Geld ist unterwegs, aber noch nicht angekommen.",
    "Order 1043 has been refunded.",
    "Order 1042 was delivered on Monday.",
]


def undelivered(text: str, on_its_way: frozenset[str] = frozenset({"1042"})) -> frozenset[str]:
    known = frozenset({"1042", "1043"})
    return claims.undelivered(text, on_its_way=on_its_way, known_orders=known)


@pytest.mark.parametrize("text", SAYS_THAT_IT_IS_THERE)
def test_money_on_its_way_is_not_said_to_be_there(text: str):
    assert undelivered(text) == REFUND
    assert undelivered(text, NOTHING) == NOTHING


@pytest.mark.parametrize("text", LEAVES_THAT_OPEN)
def test_that_it_is_on_its_way_may_be_said(text: str):
    assert undelivered(text) == NOTHING


@pytest.mark.parametrize("text", [*LEAVES_THAT_OPEN[:2], *LEAVES_THAT_OPEN[3:5]])
def test_to_say_so_is_no_denial(text: str):
    assert claims.denied(text, open_or_unknown=NOTHING, succeeded=REFUND) == NOTHING


@pytest.mark.parametrize("text", ["Your refund is on its way.", "Ihr Geld ist unterwegs."])
def test_without_a_refund_even_that_is_a_claim(text: str):
    assert claims.unproven(text, succeeded=NOTHING) == REFUND


@pytest.mark.parametrize(
    ("locale", "said"),
    [
        ("en", "The refund of $40.00 for order 1042 is on its way (reference re_1)."),
        ("de", "Die Erstattung von $40.00 für Bestellung 1042 ist unterwegs (Beleg re_1)."),
    ],
)
def test_the_state_in_code_s_words_says_on_its_way_and_passes_the_check(locale: str, said: str):
    view = OperationView(
        "refund", "1042", "succeeded", "$40.00", reference="re_1", is_on_its_way=True
    )

    assert true_state([view], locale) == said
    assert undelivered(said) == NOTHING
    assert claims.unproven(said, succeeded=REFUND) == NOTHING
