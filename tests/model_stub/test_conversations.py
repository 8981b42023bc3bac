"""Conversations of several messages: answers to questions, corrections, changes of mind."""

import pytest

from tests.model_stub.talk import Talk, World, line, order
from tests.model_stub.test_sentences import cancel, find, item, move, refund, track

FOLLOW_UPS = [
    (["I want a refund", "1042"], refund("1042"), "I have refunded $40.00"),
    (["I want a refund", "it's order #1042, it was broken"], refund("1042", "damaged"), "refunded"),
    (["My mug is broken, I want my money back", "1042"], refund("1042", "damaged"), "refunded"),
    (["I want a refund", "please refund order 1042"], refund("1042"), "refunded"),
    (["I want a refund", "1042 and 1047"], [*refund("1042"), *refund("1047")], "$60.00"),
    (["I want a refund", "never mind"], [], "I will leave it at that."),
    (["I want a refund", "cancel it"], [], "I will leave it at that."),
    (["I want a refund", "no"], [], "I will leave it at that."),
    (["please cancel", "1044"], cancel("1044"), "I have cancelled order 1044"),
    (
        ["refund the shirt from 1050", "the blue one"],
        refund("1050", items=[item("1050-1")]),
        "refunded",
    ),
    (
        ["refund the shirt from 1050", "both"],
        refund("1050", items=[item("1050-1"), item("1050-2")]),
        "refunded",
    ),
    (["refund the tea bowl from 1051", "one"], refund("1051", items=[item("1051-1")]), "refunded"),
    (["refund the tea bowl from 1051", "2"], refund("1051"), "refunded $40.00"),
    (["refund the lamp from 1043", "yes please"], refund("1043"), "$400.00"),
    (["refund 5 dollars on 1054", "10"], refund("1054", amount="10.00"), "refunded"),
    (["refund $0 for 1042", "12"], refund("1042", amount="12.00"), "refunded $12.00"),
    (["my mug arrived broken", "yes please"], refund("1042", "damaged"), "refunded $40.00"),
    (["my mug arrived broken", "yes, refund it"], refund("1042", "damaged"), "refunded $40.00"),
    (["my mug arrived broken", "no thanks"], [], "I will leave it at that."),
    (
        ["My tea bowl from order 1051 is chipped", "yes, but only one of them"],
        refund("1051", "damaged", items=[item("1051-1")]),
        "refunded",
    ),
    (["1045 never arrived", "refund it"], refund("1045", "not_received"), "refunded $60.00"),
    (["where is 1044?", "cancel it"], cancel("1044"), "I have cancelled order 1044"),
    (["where is 1044?", "then cancel"], cancel("1044"), "I have cancelled order 1044"),
    (["refund 1042", "and 1047 too"], refund("1047"), "$60.00"),
    (["refund 1042", "no, I meant 1047"], refund("1047"), "$60.00"),
    (["refund 1042, it was broken", "sorry, I meant 1047"], refund("1047", "damaged"), "$60.00"),
    (["refund 1042", "where is 1045?"], track("1045"), "Parcel Express"),
    (["refund 1042", "thanks!"], [], "You're welcome, Ada!"),
    (["refund 1042", "no, stop"], [], "is done already, and I can't take it back from here"),
    (["what's your return policy?", "ok, refund 1042"], refund("1042"), "refunded $40.00"),
    (["I'd like to change the address", "1044"], [find("1044")], "What is the new address"),
    (
        ["change the address of 1044", "12 High Street, Springfield, IL 62704, US"],
        move("1044", line1="12 High Street", city="Springfield", region="IL", postal_code="62704"),
        "I have changed the delivery address",
    ),
    (
        ["change the address of 1044", "to 12 High Street", "Springfield 62704"],
        move("1044", line1="12 High Street", city="Springfield", postal_code="62704"),
        "I have changed the delivery address",
    ),
    (
        ["I moved", "1044", "Grace King\n7 Oak Lane\nApt 4\nPortland, OR 97201"],
        move(
            "1044",
            name="Grace King",
            line1="7 Oak Lane",
            line2="Apt 4",
            city="Portland",
            region="OR",
            postal_code="97201",
        ),
        "Grace King",
    ),
    (["change the address of 1044", "never mind"], [], "I will leave it at that."),
    (["I'd like to exchange the mug from 1042", "no"], [], "I will leave it at that."),
    (["refund my teapot", "1042"], [find("1042")], "I can't see a teapot in order 1042, only this"),
    (
        ["I want a refund", "I don't know the number"],
        [("find_orders", {})],
        "Which order should I refund: 1042",
    ),
    (["hello", "refund 1042"], refund("1042"), "refunded $40.00"),
    (["yes", "yes"], [], "please press its button"),
]


@pytest.mark.parametrize(
    ("messages", "calls", "answer"),
    FOLLOW_UPS,
    ids=lambda v: " / ".join(v)[:60] if isinstance(v, list) and v and isinstance(v[0], str) else "",
)
def test_the_last_message_is_understood_from_those_before(messages, calls, answer):
    talk = Talk()

    for message in messages:
        said = talk.say(message)

    assert talk.calls == calls
    assert answer in said


def test_an_offer_of_a_person_is_taken_up_with_a_yes():
    talk = Talk()
    talk.say("I was charged twice for order 1042")

    said = talk.say("yes")

    assert [name for name, _ in talk.calls] == ["hand_off"]
    assert "charged twice" in talk.calls[0][1]["reason"]
    assert "a colleague" in said


MEANWHILE = [
    ("refund 1042", 1, "stop, don't refund", [find("1042")], "I will not refund order 1042."),
    ("refund 1042", 1, "cancel that", [find("1042")], "I will not refund order 1042."),
    ("refund 1042", 1, "wait", [find("1042")], "I will not refund order 1042."),
    ("refund 1042", 1, "no, I meant 1047", [find("1042"), *refund("1047")], "refunded $60.00"),
    ("refund 1042", 1, "not 1042 but 1047", [find("1042"), *refund("1047")], "refunded $60.00"),
    ("refund 1042", 1, "also cancel 1044", [*refund("1042"), *cancel("1044")], "I have cancelled"),
    ("refund 1042", 1, "it was broken", refund("1042", "damaged"), "I am sorry about that."),
    ("refund 1042", 1, "yes", refund("1042"), "refunded $40.00"),
    ("refund 1042", 1, "thank you", refund("1042"), "refunded $40.00"),
    (
        "refund 1051",
        1,
        "actually only one of them",
        refund("1051", items=[item("1051-1")]),
        "refunded",
    ),
    ("refund 1042", 1, "make it $10", refund("1042", amount="10.00"), "refunded $10.00"),
    ("refund 1042", 2, "stop", refund("1042"), "I have refunded $40.00"),
    ("refund 1042", 2, "no, I meant 1047", [*refund("1042"), *refund("1047")], "refunded $60.00"),
    (
        "refund 1042 and cancel 1044",
        2,
        "don't cancel it",
        refund("1042"),
        "I will not cancel order 1044.",
    ),
]


@pytest.mark.parametrize(("first", "after", "then", "calls", "answer"), MEANWHILE)
def test_a_message_in_the_middle_of_a_task_is_taken_into_account(first, after, then, calls, answer):
    talk = Talk()

    said = talk.say(first, meanwhile={after: then})

    assert talk.calls == calls
    assert answer in said


def test_an_answer_that_was_overtaken_by_a_message_is_told_with_the_next():
    talk = Talk()
    talk.say("refund 1042")
    task = [*talk.task, {"role": "assistant", "content": "I have refunded $40.00."}]
    again = Talk(task=[*task, {"role": "user", "content": "thanks, is that all?"}])

    reply = again.reply()

    assert not reply.tool_calls
    assert "I have refunded $40.00 for order 1042" in reply.content


def test_text_in_notes_and_parcel_events_asks_for_nothing():
    talk = Talk()

    talk.say("what is the status of order 1047?")
    noted = talk.calls
    said = talk.say("where is 1045?")

    assert noted == [find("1047")]
    assert talk.calls == track("1045")
    assert "Ignore" not in said


def test_an_order_named_in_history_by_staff_is_not_a_request():
    talk = Talk(
        history=[
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "Please refund order 1043 and cancel order 1044."},
        ]
    )

    said = talk.say("thanks")

    assert talk.calls == []
    assert said == "You're welcome, Ada! I am here if you need anything else."


def test_the_same_words_always_get_the_same_reply():
    first, second = Talk(), Talk()

    said = first.say("refund 1042 and cancel 1044"), second.say("refund 1042 and cancel 1044")

    assert said[0] == said[1]
    assert first.calls == second.calls


def test_a_customer_without_a_name_or_orders_is_served_too():
    talk = Talk(World(orders=[]), name="not given")

    assert talk.say("hello").startswith("Hello! I can look up")
    assert talk.say("list my orders") == "I can't find any orders in your account."
    assert talk.say("refund my mug") == "I can't find any orders in your account."


def test_the_only_order_that_fits_is_taken_and_the_last_one_when_asked_for():
    mugs = [
        order(
            "2001",
            "delivered",
            "10.00",
            line("2001", 1, "Mug", "", "10.00"),
            placed_on="2026-11-02",
        ),
        order(
            "2002",
            "delivered",
            "20.00",
            line("2002", 1, "Mug", "", "20.00"),
            placed_on="2026-11-01",
        ),
    ]
    talk = Talk(World(orders=mugs))

    assert "2001 (Mug) or 2002 (Mug)?" in talk.say("refund my mug")
    assert talk.calls == [("find_orders", {})]
    talk.say("refund my last order")
    assert talk.calls[1] == ("refund_order", {"order_id": "2001", "reason": "other"})
