"""What code says of operations, and that it agrees with what code believes of replies."""

from typing import Any

import pytest

from agents import claims
from agents.claims import OperationView, true_state

REFUND: dict[str, Any] = {"kind": "refund", "order_id": "1042", "amount_text": "$40.00"}


@pytest.mark.parametrize(
    ("state", "more", "told"),
    [
        ("succeeded", {"reference": "re_7"}, "is done (reference re_7)."),
        ("awaiting_approval", {}, "is waiting for a yes. Nothing has been sent yet."),
        ("approved", {}, "has its yes and goes to the shop next. It is not confirmed yet."),
        ("sending", {}, "is with the shop now. It is not confirmed yet."),
        ("unknown", {}, "is still being checked with the shop. It will not be sent twice."),
        (
            "needs_person",
            {},
            "is still being checked, now by a colleague. It will not be sent twice.",
        ),
        ("rejected", {"decided_by": "customer"}, "was not made: you said no."),
        (
            "rejected",
            {"decided_by": "staff", "reason": "Worn."},
            'was not made: the shop\'s staff said no. Their reason: "Worn."',
        ),
        ("rejected", {"decided_by": "staff"}, "was not made: the shop's staff said no."),
        ("expired", {}, "was not made: nobody said yes in time."),
        ("superseded", {}, "was not made: the order changed in the meantime."),
        (
            "superseded",
            {"reason": "policy_changed"},
            "was not made: by the shop's rules it has to be decided differently by now.",
        ),
        (
            "superseded",
            {"reason": "approval_no_longer_valid"},
            "was not made: a yes that it needs is not valid any more.",
        ),
        (
            "expired",
            {"reason": "not_sent_in_time"},
            "was not made: it could not be sent to the shop while its yes was good.",
        ),
        ("cancelled", {}, "was not made: it was withdrawn before it was sent."),
        (
            "cancelled",
            {"reason": "access_revoked"},
            "was not made: the shop no longer lets us act for you.",
        ),
        ("failed", {"reason": "over_captured"}, "was not made: the shop refused it."),
        (
            "failed",
            {"reason": "already_done"},
            "was not made: nothing is left to refund on the order.",
        ),
        ("something_new", {}, "is still being checked."),
    ],
)
def test_each_state_has_its_sentence(state, more, told):
    operation = OperationView(**REFUND, state=state, **more)

    assert true_state([operation]) == f"The refund of $40.00 for order 1042 {told}"


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("refund", "The refund for order 7 is done."),
        ("cancel", "The cancellation for order 7 is done."),
        ("change_address", "The address change for order 7 is done."),
        ("close_ticket", "The closing of this conversation for order 7 is done."),
        ("something_new", "The change for order 7 is done."),
    ],
)
def test_each_kind_has_its_name(kind, told):
    assert true_state([OperationView(kind=kind, order_id="7", state="succeeded")]) == told


def test_without_an_operation_nothing_has_changed():
    assert true_state([]) == "Nothing has been changed so far."


def test_a_try_that_came_to_nothing_makes_room_for_the_next_one():
    old = OperationView(**REFUND, state="superseded")
    new = OperationView(**REFUND, state="unknown")

    assert true_state([old, new]) == true_state([new])


def test_a_success_is_told_beside_what_came_later():
    done = OperationView(**REFUND, state="succeeded", reference="re_7")
    refused = OperationView(**REFUND, state="failed")

    assert true_state([done, refused]).splitlines() == [true_state([done]), true_state([refused])]


def test_the_newest_six_are_told():
    many = [OperationView("cancel", str(number), "succeeded") for number in range(9)]

    lines = true_state(many).splitlines()

    assert lines == [f"The cancellation for order {n} is done." for n in range(3, 9)]


def test_a_reason_from_staff_is_cut_and_shown_with_its_odd_characters():
    view = OperationView(
        **REFUND, state="rejected", decided_by="staff", reason="no\u202e\n" + "x" * 900
    )

    told = true_state([view])

    assert "no[U+202E] x" in told
    assert len(told) < 320


@pytest.mark.parametrize("kind", ["refund", "cancel", "change_address"])
@pytest.mark.parametrize("state", ["awaiting_approval", "approved", "sending", "unknown", "failed"])
def test_what_code_says_of_an_open_operation_is_neither_a_claim_nor_a_denial(kind, state):
    amount = "$40.00" if kind == "refund" else ""
    told = true_state([OperationView(kind, "1042", state, amount)])
    undecided = frozenset({kind}) if state in {"approved", "sending", "unknown"} else frozenset()

    assert claims.unproven(told, succeeded=frozenset()) == frozenset()
    assert claims.denied(told, open_or_unknown=undecided, succeeded=frozenset()) == frozenset()


@pytest.mark.parametrize(
    ("locale", "told"),
    [
        (
            "en",
            (
                "The cancellation for order 1044 was not needed: the order had been cancelled elsewhere "
                "already."
            ),
        ),
        (
            "de",
            (
                "Die Stornierung für Bestellung 1044 war nicht nötig: Die Bestellung war schon anderswo "
                "storniert worden."
            ),
        ),
    ],
)
def test_an_order_cancelled_elsewhere_is_told_as_that_and_as_no_deed_of_ours(locale, told):
    view = OperationView("cancel", "1044", "failed", reason="already_done")

    assert true_state([view], locale) == told
    elsewhere = frozenset({"1044"})
    assert not claims.unproven(told, succeeded=frozenset(), known_cancelled=elsewhere)
    assert not claims.denied(told, open_or_unknown=frozenset(), succeeded=frozenset())


@pytest.mark.parametrize("locale", ["en", "de"])
def test_a_refund_with_nothing_left_to_refund_claims_none(locale):
    view = OperationView(**REFUND, state="failed", reason="already_done")
    told = true_state([view], locale)

    assert not claims.unproven(told, succeeded=frozenset())


@pytest.mark.parametrize("kind", ["refund", "cancel", "change_address"])
def test_what_code_says_of_a_success_would_be_a_claim_without_it(kind):
    told = true_state([OperationView(kind, "1042", "succeeded")])

    assert claims.unproven(told, succeeded=frozenset()) == {kind}
