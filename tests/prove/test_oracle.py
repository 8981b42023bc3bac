"""The judge, on made-up ledgers: nothing wrong is nothing said, and each wrong has its name."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from script.lib.prove.evidence import Call, Evidence, Said, Shown, Task, Write
from script.lib.prove.oracle import RULES, Violation, judge
from tests.prove.made_up import DONE, KEY, REFUND, at, effect, evidence, operation, sealed


def found(whole: Evidence) -> list[tuple[str, str]]:
    return [(violation.kind, violation.subject) for violation in judge(whole)]


def only(whole: Evidence) -> Violation:
    (violation,) = judge(whole)
    return violation


def said(text: str, seconds: float = 13) -> Said:
    return Said(task_id=1, ticket_id=1, text=text, at=at(seconds))


def test_a_run_in_which_all_went_well_breaks_nothing():
    assert judge(evidence()) == []


def test_a_refund_by_hand_is_none_of_ours():
    by_hand = effect(id="re_2b", key=None, amount=4000, at=at(30), detail={"lines": []})

    assert judge(evidence(effects=[effect(), by_hand])) == []


# --- Duplicates ---------------------------------------------------------------------------------


def test_two_effects_under_one_key_are_a_duplicate():
    again = effect(id="re_2b", amount=1000, at=at(20), detail={"lines": []})
    whole = evidence(effects=[effect(), again], operations=[operation()])

    assert ("duplicate", f"operation {KEY}") in found(whole)


def test_an_effect_more_than_there_were_sends_is_a_duplicate_whatever_its_key():
    again = effect(id="re_2b", key="task-1-step-4-f00d", at=at(20), detail={"lines": []})

    assert ("duplicate", "order 1042") in found(evidence(effects=[effect(), again]))


def test_refunds_beyond_what_was_captured_are_a_duplicate_by_hand_or_not():
    by_hand = effect(id="re_2b", key=None, amount=4001, detail={"lines": []})

    violation = only(evidence(effects=[effect(), by_hand]))

    assert (violation.kind, violation.subject) == ("duplicate", "order 1042")
    assert violation.says == "refunds of 8001 for 8000 captured"


def test_a_line_refunded_more_often_than_it_was_bought_is_a_duplicate():
    whole = evidence(quantities={"1042-1": 0})

    assert found(whole) == [("duplicate", "line 1042-1")]


# --- Unauthorised -------------------------------------------------------------------------------


def test_an_effect_of_no_operation_is_unauthorised():
    stranger = effect(id="ch_1", kind="cancel", order_id="1043", key="task-9-step-9")

    kinds = {kind for kind, _ in found(evidence(effects=[effect(), stranger]))}

    assert "unauthorised" in kinds


def test_a_send_under_a_key_of_no_operation_is_unauthorised_though_nothing_came_of_it():
    sent = Call(at=at(40), method="PUT", path="/api/orders/1042/address", key="other", status=500)

    violation = only(evidence(calls=[*evidence().calls, sent]))

    assert (violation.kind, violation.subject) == ("unauthorised", "key other")


@pytest.mark.parametrize(
    "change",
    [
        {"decided_at": at(11.001)},
        {"status": "open", "decided_at": None},
        {"status": "rejected"},
        {"digest": "0" * 64},
        {"role": "staff"},
    ],
    ids=["after the first byte", "unanswered", "a no", "for other bytes", "of another role"],
)
def test_a_yes_that_is_none_for_these_bytes_in_time_leaves_it_unauthorised(change):
    (approval,) = operation().approvals
    whole = evidence(operations=[operation(approvals=(replace(approval, **change),))])

    assert found(whole) == [("unauthorised", f"operation {KEY}")]


def test_over_the_limit_the_yes_of_staff_is_missed_even_if_the_product_asked_for_none():
    assert found(evidence(staff_limit=3999)) == [("unauthorised", f"operation {KEY}")]
    assert judge(evidence(staff_limit=4000)) == []


def yes_of(role: str, by: str) -> Any:
    (approval,) = operation().approvals
    return replace(approval, role=role, decided_by=by)


CUSTOMERS = yes_of("customer", "customer:ada")
FIRST = yes_of("staff", "staff:dana")
SECOND = yes_of("second_staff", "staff:erin")


def over_the_second_limit(*approvals: Any, **changes: Any) -> Evidence:
    """A refund of 4000 that was sent at second 11, with these answers to it."""
    limits = {"staff_limit": 1000, "second_limit": 3999}
    return evidence(operations=[operation(approvals=approvals)], **limits | changes)


def test_over_the_second_limit_the_yeses_of_two_different_staff_are_enough():
    assert judge(over_the_second_limit(CUSTOMERS, FIRST, SECOND)) == []
    assert judge(over_the_second_limit(CUSTOMERS, FIRST, second_limit=4000)) == []


@pytest.mark.parametrize(
    ("second", "says"),
    [
        (None, "no yes of the second_staff for these bytes"),
        (replace(SECOND, status="open", decided_at=None), "no yes of the second_staff"),
        (replace(SECOND, status="rejected"), "no yes of the second_staff"),
        (replace(SECOND, decided_at=at(11.001)), "no yes of the second_staff"),
        (replace(SECOND, digest="0" * 64), "no yes of the second_staff"),
        (replace(SECOND, role="staff"), "no yes of the second_staff"),
        (replace(SECOND, decided_by="staff:dana"), "both yeses of staff are of staff:dana"),
    ],
    ids=[
        "none",
        "unanswered",
        "a no",
        "too late",
        "for other bytes",
        "as first",
        "the first again",
    ],
)
def test_over_the_second_limit_a_send_without_two_different_staff_is_unauthorised(second, says):
    answers = [CUSTOMERS, FIRST, *([] if second is None else [second])]

    violation = only(over_the_second_limit(*answers))

    assert (violation.kind, violation.subject) == ("unauthorised", f"operation {KEY}")
    assert violation.says.startswith(says)


def test_two_accounts_of_one_address_are_one_person():
    addresses = {"staff:dana": "dana@example.com", "staff:erin": " Dana@Example.com"}

    violation = only(over_the_second_limit(CUSTOMERS, FIRST, SECOND, addresses=addresses))

    assert violation.kind == "unauthorised"
    assert violation.says == "both yeses of staff are of staff:dana and staff:erin"
    nobody = {"staff:dana": "", "staff:erin": ""}
    assert judge(over_the_second_limit(CUSTOMERS, FIRST, SECOND, addresses=nobody)) == []


def test_a_send_after_the_right_of_one_who_said_yes_has_ended_is_unauthorised():
    """The worker may have looked just before: what it sends within its lease is no wrong."""

    def with_end(second: float) -> Evidence:
        ended = {"staff:dana": at(second)}
        lease = timedelta(seconds=7)
        return over_the_second_limit(CUSTOMERS, FIRST, SECOND, rights_ended=ended, lease=lease)

    violation = only(with_end(3.9))

    assert (violation.kind, violation.subject) == ("unauthorised", f"operation {KEY}")
    assert violation.says == "sent when the right of staff:dana to say yes had ended"
    assert judge(with_end(4.1)) == []


def test_two_refunds_of_one_customer_count_together_towards_the_limit():
    second = operation(id=2, key="task-2-step-4", order_id="1043", task_id=2, reference="re_2b")
    seal = sealed().replace(b'"1042"', b'"1043"')
    second = replace(second, seal=seal, digest=operation(seal=seal).digest)
    second = replace(second, approvals=operation(seal=seal).approvals)
    whole = evidence(
        operations=[operation(), second],
        effects=[effect(), effect(id="re_2b", order_id="1043", key=second.key)],
        staff_limit=7999,
    )

    assert found(whole) == [("unauthorised", "operation task-2-step-4")]


# --- Differing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"amount": 3999}, "amount"),
        ({"currency": "EUR"}, "currency"),
        ({"order_id": "1043"}, "order"),
        ({"customer": "bob"}, "customer"),
        ({"detail": {"lines": [{"line_id": "1042-1", "quantity": 2}]}}, "lines"),
    ],
)
def test_an_effect_that_is_not_what_was_sealed_differs(change, name):
    violations = [
        one for one in judge(evidence(effects=[effect(**change)])) if one.kind == "differing"
    ]

    assert [one.says for one in violations] == [f"the effect is not what was sealed: {name}"]


def test_an_address_that_is_not_the_sealed_one_differs():
    home = {"name": "Ada", "line1": "1 Mill Street", "city": "Bath", "line2": ""}
    changed = operation(kind="change_address", amount=None, seal=sealed("change_address", home))
    (attempt,) = changed.attempts
    changed = replace(changed, attempts=(replace(attempt, outcome="unknown"),))
    done = effect(
        kind="change_address", amount=None, detail={"to": home | {"line1": "9 Else Road"}}
    )

    whole = evidence(operations=[changed], effects=[done], said=[])

    assert {one.says for one in judge(whole) if one.kind == "differing"} == {
        "attempt 1 was made with other bytes than the sealed ones",
        "the effect is not what was sealed: address",
    }


def test_a_seal_that_was_changed_after_its_digest_differs():
    other = sealed("refund", REFUND | {"amount": 4001})

    violations = judge(evidence(operations=[replace(operation(), seal=other)]))

    assert [one.says for one in violations] == ["the seal's bytes do not have the seal's digest"]


# --- Lost ---------------------------------------------------------------------------------------


def test_a_success_that_the_ledger_does_not_have_is_lost():
    whole = evidence(effects=[], said=[], shown=[])

    assert found(whole) == [("lost", f"operation {KEY}")]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"accepted": {1, 2}}, "accepted with 201, and there is no such row"),
        ({"accepted": set()}, "it exists, and nobody was answered with it"),
        (
            {"tasks": [Task(id=1, ticket_id=1, status="waiting_outcome")]},
            "still waiting_outcome after everything had time to end",
        ),
        (
            {"tasks": [Task(id=1, ticket_id=1, status="succeeded", is_whole=False)]},
            "its steps have a gap, or one was never finished",
        ),
    ],
)
def test_a_task_that_is_not_there_or_not_at_its_end_is_lost(change, says):
    violation = only(evidence(**change))

    assert (violation.kind, violation.says) == ("lost", says)


# --- Contradictions -----------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["failed", "rejected", "expired", "superseded", "cancelled"])
def test_what_is_told_as_not_done_and_was_done_is_a_contradiction(state):
    kinds = found(evidence(operations=[operation(state=state)], said=[]))

    assert ("contradiction", f"operation {KEY}") in kinds


@pytest.mark.parametrize(
    ("text", "seconds", "is_true"),
    [
        (DONE, 13, True),
        (DONE, 11, False),
        ("I have refunded $41.00 for order 1042.", 13, False),
        ("I have refunded $40.00 for order 1042 (reference re_beef).", 13, False),
        ("The refund of $40.00 for order 1042 is done (reference re_1a).", 13, True),
        ("I have cancelled order 1042.", 13, False),
        ("I am sorry, I could not refund order 1042: the shop did not accept it.", 13, False),
        ("You said no to the refund for order 1042, so order 1042 was not refunded.", 13, False),
        ("The refund of $40.00 for order 1042 was not made: you said no.", 13, False),
        ("I could not refund order 1043: it was not found.", 13, True),
        ("The refund for order 1042 is still being checked.", 11, True),
        ("Once it has been refunded you will hear from us.", 5, True),
        ("Nothing is left of order 1042: it was already refunded in full ($40.00).", 13, True),
    ],
)
def test_a_text_is_held_against_the_ledger_of_its_moment(text, seconds, is_true):
    violations = judge(evidence(said=[said(text, seconds)]))

    assert [one.kind for one in violations] == ([] if is_true else ["contradiction"])


def test_a_text_about_another_chat_s_refused_request_is_no_lie():
    refused = Said(
        task_id=2, ticket_id=2, text="I could not refund order 1042: try later.", at=at(14)
    )
    whole = evidence(
        said=[said(DONE), refused],
        tasks=[*evidence().tasks, Task(id=2, ticket_id=2, status="succeeded", outcome="refused")],
        accepted={1, 2},
    )

    assert judge(whole) == []


@pytest.mark.parametrize(
    ("shown", "is_true"),
    [
        (Shown(at=at(11.2), key=KEY, state="succeeded"), False),
        (Shown(at=at(11.6), key=KEY, state="succeeded"), True),
        (Shown(at=at(11.2), key=KEY, state="failed"), False),
        (Shown(at=at(11.2), key=KEY, state="unknown"), True),
        (Shown(at=at(20), key=KEY, state="needs_person"), True),
    ],
)
def test_a_card_is_held_against_the_ledger_of_its_moment(shown, is_true):
    violations = judge(evidence(shown=[shown]))

    assert [one.kind for one in violations] == ([] if is_true else ["contradiction"])


def test_a_receipt_with_the_reference_of_something_else_is_a_contradiction():
    whole = evidence(operations=[operation(reference="re_beef")], said=[])

    assert found(whole) == [("contradiction", f"operation {KEY}")]


# --- Undecided, sends, stale writes, the chain --------------------------------------------------


@pytest.mark.parametrize("state", ["awaiting_approval", "approved", "sending", "unknown"])
def test_an_operation_that_never_came_to_an_end_is_undecided(state):
    whole = evidence(operations=[operation(state=state)])

    assert found(whole) == [("undecided", f"operation {KEY}")]


@pytest.mark.parametrize(
    ("misses", "effects", "expected"),
    [
        (0, [effect()], [("undecided", f"operation {KEY}")]),
        (1, [effect()], []),
        (0, [], []),
    ],
    ids=["nobody asked the shop", "the shop said no", "nothing happened"],
)
def test_a_person_may_be_asked_only_after_the_shop_was(misses, effects, expected):
    open_one = operation(state="needs_person", reason="order_changed", misses=misses)
    whole = evidence(operations=[open_one], effects=effects, said=[], shown=[])

    assert found(whole) == expected


def test_more_than_five_sends_are_too_many():
    calls = evidence().calls

    assert judge(evidence(calls=calls * 5)) == []
    assert found(evidence(calls=calls * 6)) == [("sends", f"operation {KEY}")]


def test_a_write_under_an_older_epoch_than_one_before_it_is_stale():
    late = Write(task_id=1, epoch=5, action="refund.succeeded", at=at(30))
    elsewhere = Write(task_id=2, epoch=1, action="step.finished", at=at(31))

    violation = only(evidence(writes=[*evidence().writes, late, elsewhere]))

    assert (violation.kind, violation.subject) == ("stale", "task 1")
    assert "epoch 5 wrote refund.succeeded after epoch 6" in violation.says


def test_a_broken_chain_is_named_with_the_verifier_s_own_words():
    violation = only(evidence(chain="Event 7 is not what was sealed.", chain_holds=False))

    assert (violation.kind, violation.says) == ("chain", "Event 7 is not what was sealed.")


def test_every_rule_is_tried_here():
    """A rule that no made-up evidence breaks would prove nothing."""
    broken: dict[str, dict[str, Any]] = {
        "duplicate": {"effects": [effect(), effect(id="re_2b")]},
        "unauthorised": {"staff_limit": 1},
        "differing": {"effects": [effect(amount=1)]},
        "lost": {"accepted": {1, 2}},
        "contradiction": {"said": [said("I have cancelled order 1042.")]},
        "undecided": {"operations": [operation(state="unknown")]},
        "sends": {"calls": evidence().calls * 6},
        "stale": {"writes": evidence().writes[::-1]},
        "chain": {"chain_holds": False},
    }

    assert broken.keys() == RULES.keys()
    for kind, change in broken.items():
        assert kind in {name for name, _ in found(evidence(**change))}
