"""Who may say how an operation ended, when, and with what evidence; and what the shop has to say."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts import services as accounts
from accounts.models import Role, Shop, User
from agents.models import Task, Ticket
from audit.models import Event
from tests.desk.telling import Teller, about_refund, everything
from tests.desk.world import approver, lost, of, stuck, told
from tests.factories import make_approver, make_shop, make_user
from tests.tools.desk import find_out, writes
from tests.two_people import loosen
from tools import settlement
from tools.clients.shop import ShopClient
from tools.models import Settlement, State
from tools.settlement import Showed

pytestmark = pytest.mark.django_db

OVER = 40_000


def propose(operation, user, outcome=State.SUCCEEDED, **changes):
    fields = {"reference": "re_books", "evidence": "Line 7 of the shop's books of today."}
    return settlement.propose(
        operation_id=operation.pk, user_id=user.pk, outcome=outcome, **fields | changes
    )


def refused(error, act, *arguments, **options):
    """The act is refused by this error, and nothing was written."""
    before = everything(), list(Settlement.objects.order_by("pk").values())
    with pytest.raises(error) as caught:
        act(*arguments, **options)
    assert (everything(), list(Settlement.objects.order_by("pk").values())) == before
    return caught.value


# --- Below the limit one person's word is enough --------------------------------------------------


def test_a_person_settles_it_as_done_and_the_customer_is_told(buyer):
    operation = stuck(buyer)
    dana = approver(operation)

    propose(operation, dana)

    after = of(operation)
    assert (after.state, after.reference) == (State.SUCCEEDED, "re_books")
    assert after.finished_at is not None
    (text,) = told(operation)
    assert text == (
        "A colleague has checked this with the shop.\n"
        f"The refund of $40.00 for order {operation.order_id} is done (reference re_books)."
    )
    row = Settlement.objects.get()
    assert (row.status, row.proposed_by, row.confirmed_by) == ("settled", dana.actor, "")
    assert len(writes(buyer, operation)) == 1


def test_a_person_settles_it_as_not_done_and_the_order_is_open_to_changes_again(buyer):
    operation = stuck(buyer)

    propose(operation, approver(operation), State.FAILED, reference="")

    after = of(operation)
    assert (after.state, after.reason, after.reference) == ("failed", "settled_by_staff", "")
    (text,) = told(operation)
    assert text.endswith("was not made: a colleague has checked it with the shop.")
    assert buyer.shop.effects(order_id=operation.order_id) == []


def test_who_said_what_is_on_the_trail_and_the_words_are_beside_it(buyer):
    operation = stuck(buyer)
    dana = approver(operation)
    propose(operation, dana)

    mine = Event.objects.filter(actor=dana.actor).order_by("pk")
    assert [event.action for event in mine] == ["refund.settlement_proposed", "refund.succeeded"]
    said, ended = mine
    assert said.data == {
        "settlement": Settlement.objects.get().pk,
        "outcome": "succeeded",
        "needs_second": False,
    }
    assert said.personal_digest is not None
    assert "books" not in str(said.data)
    assert ended.data["people"] == [dana.actor]


def test_the_second_persons_word_is_on_the_trail_in_their_own_name(buyer):
    operation = stuck(buyer, price=OVER)
    dana, erin = approver(operation), approver(operation)
    row = propose(operation, dana)

    settlement.confirm(settlement_id=row.pk, user_id=erin.pk)

    theirs = Event.objects.filter(actor=erin.actor).order_by("pk")
    assert [event.action for event in theirs] == ["refund.settlement_confirmed", "refund.succeeded"]
    said, ended = theirs
    assert said.data == {"settlement": row.pk, "outcome": "succeeded", "needs_second": True}
    assert ended.data["people"] == [dana.actor, erin.actor]


def test_who_turned_a_proposal_down_is_on_the_trail_and_why_beside_it(buyer):
    operation = stuck(buyer, price=OVER)
    row = propose(operation, approver(operation))
    erin = approver(operation)

    settlement.turn_down(settlement_id=row.pk, user_id=erin.pk, reason="The books say otherwise.")

    event = Event.objects.get(actor=erin.actor)
    assert event.action == "refund.settlement_turned_down"
    assert event.data["settlement"] == row.pk
    assert event.personal_digest is not None
    assert "books" not in str(event.data)


@pytest.mark.parametrize("act", ["confirm", "turn down"])
def test_a_second_word_that_cannot_be_recorded_is_none(buyer, monkeypatch, act):
    operation = stuck(buyer, price=OVER)
    row = propose(operation, approver(operation))
    erin = approver(operation)
    monkeypatch.setattr("tools.operations.audit.record", lambda **_: 1 / 0)

    if act == "confirm":
        refused(ZeroDivisionError, settlement.confirm, settlement_id=row.pk, user_id=erin.pk)
    else:
        refused(
            ZeroDivisionError,
            settlement.turn_down,
            settlement_id=row.pk,
            user_id=erin.pk,
            reason="No.",
        )
    assert of(operation).state == State.NEEDS_PERSON


def test_the_task_that_was_handed_off_stays_as_it_ended(buyer):
    operation = stuck(buyer)
    before = Task.objects.filter(pk=operation.task_id).values().get()

    propose(operation, approver(operation))

    assert Task.objects.filter(pk=operation.task_id).values().get() == before


# --- Over the limit it takes two -------------------------------------------------------------------


def test_over_the_limit_the_first_word_settles_nothing(buyer):
    operation = stuck(buyer, price=OVER)

    row = propose(operation, approver(operation))

    assert (row.status, row.needs_second) == ("open", True)
    assert of(operation).state == State.NEEDS_PERSON
    assert told(operation) == []


def test_a_second_person_settles_what_the_first_one_wrote(buyer):
    operation = stuck(buyer, price=OVER)
    dana, erin = approver(operation), approver(operation)
    row = propose(operation, dana)

    settlement.confirm(settlement_id=row.pk, user_id=erin.pk)

    row.refresh_from_db(fields=["confirmed_by", "ended_by"])
    assert (row.confirmed_by, row.ended_by) == (erin.actor, erin.actor)
    assert of(operation).state == State.SUCCEEDED
    assert len(told(operation)) == 1
    ended = Event.objects.get(action="refund.succeeded")
    assert ended.data["people"] == [dana.actor, erin.actor]


def test_nobody_is_two_people(buyer):
    operation = stuck(buyer, price=OVER)
    dana = approver(operation)
    row = propose(operation, dana)

    refused(settlement.SamePersonError, settlement.confirm, settlement_id=row.pk, user_id=dana.pk)
    refused(settlement.AlreadyProposedError, propose, operation, dana)


def test_a_second_account_of_the_same_address_is_no_second_person(buyer):
    operation = stuck(buyer, price=OVER)
    dana = approver(operation, email="dana@example.com")
    row = propose(operation, dana)
    twin = approver(operation, email=" Dana@Example.com")

    refused(settlement.SamePersonError, settlement.confirm, settlement_id=row.pk, user_id=twin.pk)


@pytest.mark.parametrize("reach", [{"approve_up_to": OVER - 1}, {"approve_kinds": ["cancel"]}])
def test_whoever_may_not_agree_to_it_may_not_say_how_it_ended(buyer, reach):
    operation = stuck(buyer, price=OVER)
    row = propose(operation, approver(operation))
    short = approver(operation, **reach)

    refused(settlement.NotAllowedError, settlement.confirm, settlement_id=row.pk, user_id=short.pk)
    settlement.turn_down(
        settlement_id=row.pk, user_id=approver(operation).pk, reason="Somebody else's turn."
    )
    refused(settlement.NotAllowedError, propose, operation, short)
    assert of(operation).state == State.NEEDS_PERSON


def test_what_staff_had_to_countersign_takes_two_whatever_the_limit_is_now(buyer):
    operation = stuck(buyer, price=OVER)
    loosen(operation.shop, staff_limit=10**6)

    assert propose(operation, approver(operation)).needs_second


def test_a_limit_lowered_since_asks_for_two(buyer):
    operation = stuck(buyer)
    Shop.objects.update(staff_limit=3999)

    assert propose(operation, approver(operation)).needs_second


def test_exactly_the_limit_takes_one(buyer):
    operation = stuck(buyer, price=10_000)

    assert not propose(operation, approver(operation)).needs_second


def test_a_second_person_may_turn_it_down_and_somebody_may_say_it_better(buyer):
    operation = stuck(buyer, price=OVER)
    dana, erin = approver(operation), approver(operation)
    row = propose(operation, dana)

    settlement.turn_down(settlement_id=row.pk, user_id=erin.pk, reason="That is another order.")

    row.refresh_from_db(fields=["reason"])
    assert row.reason == "That is another order."
    assert of(operation).state == State.NEEDS_PERSON
    refused(settlement.NotProposedError, settlement.confirm, settlement_id=row.pk, user_id=erin.pk)
    again = propose(operation, erin, State.FAILED)
    settlement.confirm(settlement_id=again.pk, user_id=dana.pk)
    assert of(operation).state == State.FAILED


def test_turning_down_needs_its_reason(buyer):
    operation = stuck(buyer, price=OVER)
    dana = approver(operation)
    row = propose(operation, dana)

    refused(
        settlement.EvidenceNeededError,
        settlement.turn_down,
        settlement_id=row.pk,
        user_id=dana.pk,
        reason=" ",
    )


@pytest.mark.django_db(transaction=True)
def test_of_two_second_persons_at_once_one_settles_it(buyer):
    operation = stuck(buyer, price=OVER)
    row = propose(operation, approver(operation))
    others = [approver(operation) for _ in range(3)]
    gate = threading.Barrier(3)
    ends: list[str] = []

    def answer(user: User) -> None:
        gate.wait()
        try:
            settlement.confirm(settlement_id=row.pk, user_id=user.pk)
            ends.append("settled")
        except settlement.SettlementError as exc:
            ends.append(type(exc).__name__)
        connection.close()

    threads = [threading.Thread(target=answer, args=(user,)) for user in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(ends) == ["NotProposedError", "NotProposedError", "settled"]
    assert len(told(operation)) == 1
    assert Event.objects.filter(action="refund.succeeded").count() == 1


# --- Who may ---------------------------------------------------------------------------------------


def nobody_of(operation, kind):
    shop = operation.shop
    match kind:
        case "staff":
            return make_user(shop)
        case "auditor":
            return make_user(shop, role=Role.AUDITOR)
        case "admin_without_the_right":
            return make_user(None, role=Role.ADMIN)
        case "switched_off":
            return make_approver(shop, is_active=False)
        case "another_shop":
            return make_approver(make_shop())
        case _:
            operation.customer.email = "ada@example.com"
            operation.customer.save()
            return make_approver(shop, email="Ada@Example.com ")


KINDS = [
    "staff",
    "auditor",
    "admin_without_the_right",
    "switched_off",
    "another_shop",
    "the_customer",
]


@pytest.mark.parametrize("kind", KINDS)
def test_whoever_has_no_right_to_settles_nothing(buyer, kind):
    operation = stuck(buyer, price=OVER)
    row = propose(operation, approver(operation))
    user = nobody_of(operation, kind)

    refused(settlement.NotAllowedError, propose, operation, user)
    refused(settlement.NotAllowedError, settlement.confirm, settlement_id=row.pk, user_id=user.pk)
    refused(
        settlement.NotAllowedError,
        settlement.turn_down,
        settlement_id=row.pk,
        user_id=user.pk,
        reason="No.",
    )


def test_an_admin_of_every_shop_with_the_right_may(buyer):
    operation = stuck(buyer)

    propose(operation, make_approver(None))

    assert of(operation).state == State.SUCCEEDED


def test_a_right_taken_away_before_the_second_word_counts_no_more(buyer):
    operation = stuck(buyer, price=OVER)
    row = propose(operation, approver(operation))
    erin = approver(operation)
    User.objects.filter(pk=erin.pk).update(is_approver=False)

    refused(settlement.NotAllowedError, settlement.confirm, settlement_id=row.pk, user_id=erin.pk)


# --- When, and with what ---------------------------------------------------------------------------


def test_what_is_still_being_reconciled_is_not_settled_by_a_person(buyer):
    operation = lost(buyer)

    refused(settlement.WrongStateError, propose, operation, approver(operation))


@pytest.mark.parametrize("outcome", [State.SUCCEEDED, State.FAILED])
def test_what_has_ended_is_not_settled_again(buyer, outcome):
    operation = stuck(buyer)
    propose(operation, approver(operation), outcome)

    for other in (State.SUCCEEDED, State.FAILED):
        refused(settlement.WrongStateError, propose, operation, approver(operation), other)


@pytest.mark.parametrize(
    "changes",
    [
        {"evidence": ""},
        {"evidence": " \n "},
        {"evidence": "x" * 2001},
        {"reference": ""},
        {"reference": "  "},
    ],
)
def test_nothing_is_settled_without_its_evidence(buyer, changes):
    operation = stuck(buyer)

    refused(settlement.EvidenceNeededError, propose, operation, approver(operation), **changes)


def test_nobody_says_it_failed_against_what_the_shop_has_told(buyer):
    operation = stuck(buyer, "error_after")
    Teller.of(buyer.row.shop).told(about_refund(operation))

    refused(settlement.ContradictedError, propose, operation, approver(operation), State.FAILED)


def test_money_that_came_back_may_be_said_to_have_failed(buyer):
    operation = stuck(buyer, "error_after")
    teller = Teller.of(buyer.row.shop)
    teller.told(about_refund(operation))
    teller.told(about_refund(operation, "reversed"))

    propose(operation, approver(operation), State.FAILED)

    assert of(operation).state == State.FAILED


def test_nobody_says_it_failed_against_a_receipt_that_came_home_late(buyer):
    operation = stuck(buyer, "error_after")
    operation.observations.create(
        source="stale_worker",
        body={"outcome": "succeeded", "reference": "re_1"},
        at=timezone.now(),
    )

    refused(settlement.ContradictedError, propose, operation, approver(operation), State.FAILED)


# --- Asking the shop now ---------------------------------------------------------------------------


def check(operation, by="staff:dana"):
    return settlement.check_now(operation_id=operation.pk, by=by)


def test_a_look_that_finds_the_effect_settles_it(buyer):
    operation = stuck(buyer, "error_after")

    found = check(operation)

    (effect,) = buyer.shop.effects(order_id=operation.order_id)
    assert found.showed == Showed.DONE
    assert (of(operation).state, of(operation).reference) == (State.SUCCEEDED, effect["id"])
    (text,) = told(operation)
    assert effect["id"] in text
    look = operation.observations.get()
    assert (look.source, look.body["found"], look.body["by"]) == ("look_up", True, "staff:dana")
    assert [event.actor for event in Event.objects.filter(action="refund.observed")] == [
        "staff:dana"
    ]
    assert not Settlement.objects.exists()


def test_a_look_that_finds_nothing_is_kept_and_settles_nothing(buyer):
    operation = stuck(buyer)

    assert check(operation).showed == Showed.NOTHING

    assert of(operation).state == State.NEEDS_PERSON
    assert operation.observations.get().body["found"] is False
    assert told(operation) == []
    assert len(writes(buyer, operation)) == 1


@pytest.mark.parametrize("tool", ["cancel_order", "change_address"])
def test_other_changes_are_found_as_well(buyer, tool):
    operation = stuck(buyer, "error_after", tool=tool)

    assert check(operation).showed == Showed.DONE
    assert of(operation).state == State.SUCCEEDED


def test_a_shop_that_does_not_answer_settles_nothing(buyer):
    operation = stuck(buyer, "error_after")
    buyer.shop.fault("error_before", scope={"path": "/effects"})

    assert check(operation).showed == Showed.NO_ANSWER

    assert of(operation).state == State.NEEDS_PERSON
    assert operation.observations.get().body["trouble"] == "UnavailableError"


def test_leave_taken_back_is_no_answer_either(buyer):
    operation = stuck(buyer, "error_after")
    accounts.revoke_delegation(
        customer_id=buyer.row.pk, reason="signed_out", actor="customer:x", now=timezone.now()
    )

    assert check(operation).showed == Showed.NO_ANSWER


def test_what_the_shop_has_told_is_enough_where_it_does_not_answer(buyer):
    operation = stuck(buyer, "error_after")
    Teller.of(buyer.row.shop).told(about_refund(operation))
    buyer.shop.fault("error_before", scope={"path": "/effects"})

    assert check(operation).showed == Showed.DONE
    assert of(operation).reference == "re_told"


def test_what_the_shop_has_told_is_not_enough_where_it_does_not_fit(buyer):
    operation = stuck(buyer, "error_after")
    Teller.of(buyer.row.shop).told(about_refund(operation, amount=1))
    buyer.shop.fault("error_before", scope={"path": "/effects"})

    assert check(operation).showed == Showed.NO_ANSWER
    assert of(operation).state == State.NEEDS_PERSON


def test_an_effect_that_was_taken_back_settles_nothing(buyer):
    operation = stuck(buyer, "error_after")
    (effect,) = buyer.shop.effects(order_id=operation.order_id)
    buyer.shop.reverse(effect["id"])

    assert check(operation).showed == Showed.TAKEN_BACK
    assert of(operation).state == State.NEEDS_PERSON


def test_an_effect_of_another_amount_settles_nothing(buyer):
    operation = stuck(buyer)
    client = ShopClient(buyer.shop.url, accounts.access_token(customer_id=buyer.row.pk), 5)
    body = b'{"amount":1,"currency":"USD","lines":[],"reason":"other"}'
    client.refund(operation.order_id, body, operation.idempotency_key)

    assert check(operation).showed == Showed.SOMETHING_ELSE
    assert of(operation).state == State.NEEDS_PERSON
    assert told(operation) == []


def test_what_was_proposed_ends_when_the_shop_shows_what_happened(buyer):
    operation = stuck(buyer, "error_after", price=OVER)
    erin = approver(operation)
    row = propose(operation, approver(operation), State.FAILED, reference="")

    check(operation)

    assert of(operation).state == State.SUCCEEDED
    row = Settlement.objects.get()
    assert (row.status, row.ended_by, row.reason) == (
        "turned_down",
        "system",
        "The shop has shown it.",
    )
    refused(settlement.NotProposedError, settlement.confirm, settlement_id=row.pk, user_id=erin.pk)


def test_an_unknown_outcome_is_settled_by_a_look_and_its_task_tells_it(
    buyer, django_capture_on_commit_callbacks
):
    operation = lost(buyer, "error_after", wake_at=timezone.now() + timedelta(minutes=5))

    with django_capture_on_commit_callbacks(execute=True):
        assert check(operation).showed == Showed.DONE

    assert told(operation) == []
    task = Task.objects.get(pk=operation.task_id)
    assert task.wake_at is not None
    assert task.wake_at <= timezone.now()
    assert find_out(operation).state == State.SUCCEEDED


def test_a_send_under_way_is_not_looked_up(buyer):
    operation = lost(buyer)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tools_operation SET state = 'sending'")

    refused(settlement.WrongStateError, check, operation)


def test_what_has_ended_is_not_looked_up(buyer):
    operation = stuck(buyer)
    propose(operation, approver(operation))
    calls = len(buyer.shop.calls())

    refused(settlement.WrongStateError, check, operation)
    assert len(buyer.shop.calls()) == calls


def test_the_ticket_s_version_rises_with_what_is_told(buyer):
    operation = stuck(buyer)
    before = Ticket.objects.get(pk=operation.ticket_id)

    propose(operation, approver(operation))

    after = Ticket.objects.get(pk=operation.ticket_id)
    assert (after.last_seq, after.version) == (before.last_seq + 1, before.version + 1)
