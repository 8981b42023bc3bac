"""Every result of a tool is told truly: what happened, what did not, what is not known yet."""

import re

import pytest

from tests.model_stub.talk import Talk, World, called
from tests.model_stub.test_sentences import cancel, find, item, refund

# An effect said to have happened. What is denied ("was not refunded") does not match.
CLAIM = re.compile(r"\bI have (?:refunded|cancelled|changed|closed|e-mailed)\b")


def op(state, **more):
    """Return the result of a refund in a state."""
    return {
        "operation": "task-1-step-4",
        "kind": "refund",
        "order_id": "1042",
        "state": state,
        "amount": "40.00",
        "currency": "USD",
    } | more


STATES = [
    (op("failed"), "I am sorry, I could not refund order 1042: the shop did not accept it."),
    (op("failed", reason="already_done"), "There is nothing left to refund on order 1042"),
    (op("expired"), "was not answered in time, so order 1042 was not refunded."),
    (op("cancelled"), "did not go ahead, so order 1042 was not refunded."),
    (op("needs_person"), "is still being checked, now by a colleague."),
    (op("awaiting_approval"), "The refund for order 1042 is waiting for approval."),
    (op("sending"), "The refund for order 1042 is still being checked."),
    (op("unknown"), "The refund for order 1042 is still being checked."),
    (op("approved"), "The refund for order 1042 is still being checked."),
    (op("never heard of"), "The refund for order 1042 is still being checked."),
    ({"surprise": True}, "The refund for order 1042 is still being checked."),
    (op("denied"), "I could not refund order 1042: our rules do not allow it."),
    (
        op("rejected", decided_by="customer"),
        "You said no to the refund for order 1042, so order 1042 was not refunded.",
    ),
    (
        op("rejected", decided_by="staff", reason="It was used for a year"),
        (
            "Our staff said no to the refund for order 1042, so order 1042 was not refunded. "
            "The reason given: It was used for a year."
        ),
    ),
]


@pytest.mark.parametrize(("result", "answer"), STATES)
def test_a_refund_that_did_not_succeed_is_told_as_it_is_and_not_tried_again(result, answer):
    talk = Talk(World({"refund_order": result}))

    said = talk.say("refund 1042")

    assert talk.calls == refund("1042")
    assert answer in said
    assert not CLAIM.search(said)


ERRORS = {
    "not_found": "I can't find order 1042 in your account. Please check the number.",
    "order_state": "I could not refund order 1042. It is on its way.",
    "already_refunded": "There is nothing left to refund on order 1042, so I did not ask again.",
    "over_captured": "that is more than is left of what was paid for it",
    "outside_window": "I could not refund order 1042. It is on its way.",
    "bad_arguments": "I did not get the details right",
    "bad_line": "does not have those items in that number",
    "currency_mismatch": "the order was paid in another currency",
    "another_change_in_progress": "another change to it is still in progress",
    "one_action_at_a_time": "another action has to be finished first",
    "already_rejected": "this was declined before, so I have not raised it again",
    "rate_limited": "Please try again in a few minutes.",
    "tool_off": "I can't give refunds here at the moment. A colleague can help",
    "not_offered": "I can't give refunds here at the moment.",
    "unknown_tool": "I can't give refunds here at the moment.",
    "unavailable": "the shop's system does not answer just now",
    "something_new": "the shop's system does not answer just now",
}


@pytest.mark.parametrize(("code", "answer"), ERRORS.items())
def test_each_refusal_has_its_own_sentence_and_is_not_tried_again(code, answer):
    refusal = {"error": code, "message": "It is on its way."}
    talk = Talk(World({"refund_order": refusal}))

    said = talk.say("refund 1042")

    assert talk.calls == refund("1042")
    assert answer in said
    assert not CLAIM.search(said)


@pytest.mark.parametrize(
    ("message", "tool", "result", "answer"),
    [
        ("cancel 1044", "cancel_order", op("failed"), "I could not cancel order 1044"),
        ("cancel 1044", "cancel_order", op("expired"), "order 1044 was not cancelled"),
        (
            "cancel 1042",
            "cancel_order",
            {"error": "order_state", "message": "Order 1042 has been delivered."},
            (
                "I could not cancel order 1042. Order 1042 has been delivered. "
                "If something is wrong with it, I can ask for a refund: just say so."
            ),
        ),
        (
            "refund 1044",
            "refund_order",
            {"error": "order_state", "message": "Order 1044 has not been shipped."},
            (
                "I could not refund order 1044. Order 1044 has not been shipped. "
                "I can cancel it for you instead: just say so."
            ),
        ),
        (
            "send 1044 to 12 High Street, Springfield, IL 62704",
            "change_address",
            op("rejected", decided_by="customer"),
            "the address of order 1044 was not changed",
        ),
        (
            "send 1044 to 12 High Street, Springfield, IL 62704",
            "change_address",
            {"error": "bad_address", "message": "We do not deliver there"},
            "We do not deliver there. Please send me the whole address again.",
        ),
        ("close this ticket", "close_ticket", op("expired"), "this ticket was not closed"),
        (
            "I need a person",
            "hand_off",
            {"error": "unavailable"},
            "I could not reach a colleague: the shop's system does not answer",
        ),
        ("where is 1045", "track_parcel", {"error": "not_found"}, "There is no tracking for it."),
        ("where is 1045", "track_parcel", {"error": "unavailable"}, "I could not track order 1045"),
        ("refund 1042", "find_orders", {"error": "unavailable"}, "I could not look up your orders"),
        (
            "list my orders",
            "find_orders",
            {"error": "rate_limited"},
            "I could not look up your orders",
        ),
        (
            "do you ship to Mars?",
            "search_policy",
            {"passages": []},
            "I can't find anything about that in our policies, so I don't want to guess.",
        ),
        (
            "any return policy?",
            "search_policy",
            {"error": "unavailable"},
            "I could not look that up",
        ),
    ],
)
def test_other_tools_results_are_told_as_they_are(message, tool, result, answer):
    talk = Talk(World({tool: result}))

    said = talk.say(message)

    assert answer in said
    assert not CLAIM.search(said)


def test_an_order_that_changed_meanwhile_is_looked_at_again_and_proposed_once_more():
    talk = Talk(World({"refund_order": [op("superseded"), op("succeeded", reference="re_9")]}))

    said = talk.say("refund 1042")

    assert talk.calls == [*refund("1042"), *refund("1042")]
    assert said == "I have refunded $40.00 for order 1042 (reference re_9)."


def test_an_order_that_changes_every_time_is_given_up_after_the_second():
    talk = Talk(World({"refund_order": op("superseded")}))

    said = talk.say("refund 1042")

    assert talk.calls == [*refund("1042"), *refund("1042")]
    assert "so order 1042 was not refunded. Please ask me again in a moment." in said


def test_what_was_rejected_is_not_proposed_again_in_the_same_form():
    talk = Talk(World({"refund_order": op("rejected", decided_by="customer")}))

    said = talk.say("refund 1042", meanwhile={2: "refund 1042 please!"})

    assert [name for name, _ in talk.calls].count("refund_order") == 1
    assert "You said no to the refund for order 1042" in said


def test_a_rejected_action_may_be_proposed_in_another_form():
    results = [op("rejected", decided_by="customer"), op("succeeded", amount="20.00")]
    talk = Talk(World({"refund_order": results}))

    said = talk.say("refund 1051", meanwhile={2: "actually only one of them"})

    assert talk.calls == [*refund("1051"), *refund("1051", items=[item("1051-1")])]
    assert "I have refunded $20.00" in said


def test_of_several_requests_each_is_told_for_itself():
    talk = Talk(World({"refund_order": op("unknown")}))

    said = talk.say("refund 1042 and cancel 1044")

    assert talk.calls == [*refund("1042"), *cancel("1044")]
    assert "The refund for order 1042 is still being checked." in said
    assert "I have cancelled order 1044" in said


@pytest.mark.parametrize(
    ("message", "offered", "answer"),
    [
        ("refund 1042", ("find_orders",), "I can't give refunds here at the moment."),
        ("cancel 1044", ("find_orders",), "I can't cancel orders here at the moment."),
        ("where is 1045?", ("hand_off",), "I can't track parcels here at the moment."),
        ("status of order 1045", ("hand_off",), "I can't look up orders here at the moment."),
        ("what's your return policy?", ("find_orders",), "I can't look up our policies here"),
        ("I want a human", ("find_orders",), "I can't reach a colleague from here at the moment."),
        ("close this ticket", ("find_orders",), "I can't close tickets here at the moment."),
    ],
)
def test_a_tool_that_is_not_offered_is_never_called(message, offered, answer):
    talk = Talk(World(offered=offered))

    said = talk.say(message)

    assert not {name for name, _ in talk.calls} - set(offered)
    assert answer in said


def test_a_refund_without_a_lookup_tool_is_still_proposed():
    talk = Talk(World(offered=("refund_order",)))

    talk.say("refund 1042")

    assert talk.calls == [("refund_order", {"order_id": "1042", "reason": "other"})]


def test_a_result_that_is_no_json_counts_as_unavailable():
    talk = Talk()
    talk.task = [
        {"role": "user", "content": "refund 1042"},
        called("find_orders", {"order_id": "1042"}),
        {"role": "tool", "tool_call_id": "call_1", "content": "<html>gateway timeout</html>"},
    ]

    reply = talk.reply()

    assert not reply.tool_calls
    assert "I could not look up your orders" in reply.content


def test_foreign_text_in_results_reaches_the_customer_as_plain_words_only():
    tracking = World().run("track_parcel", {"order_id": "1045"}) | {
        "carrier": "<script>alert(1)</script>",
        "events": [
            {"at": "2026-11-29T14:05:00Z", "place": "![x](https://evil.example/a)", "text": ""}
        ],
    }
    talk = Talk(World({"track_parcel": tracking}))

    said = talk.say("where is 1045?")

    assert "<" not in said
    assert "](" not in said
    assert find("1045") in talk.calls
