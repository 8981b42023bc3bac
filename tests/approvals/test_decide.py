"""Who may say yes to what, once, for exactly the bytes that will be sent."""

import time
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import Role, User
from approvals import services
from approvals.models import Approval, ApprovalStatus
from approvals.selectors import get_of_step, list_of_operation, list_open_for_staff
from approvals.services import (
    AlreadyDecidedError,
    DecisionError,
    ExpiredError,
    NotAllowedError,
    ReasonNeededError,
    SupersededError,
    by_customer,
    by_staff,
)
from audit.models import Event
from audit.services import read_personal
from tests.factories import (
    make_approver,
    make_customer,
    make_line,
    make_operation,
    make_order,
    make_shop,
    make_user,
    say_no,
    say_yes,
)
from tools import operations, sending
from tools.models import Operation, State

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop():
    return make_shop()


@pytest.fixture
def customer(shop):
    return make_customer(shop, email="ada@example.com")


@pytest.fixture
def small(customer):
    """A refund that its customer alone is asked about."""
    return make_operation(customer, make_order(make_line(4000)))


@pytest.fixture
def large(customer):
    """A refund that staff are asked about after its customer."""
    return make_operation(customer, make_order(make_line(40_000)))


def question(operation, role=Role.CUSTOMER):
    return Approval.objects.get(operation=operation, role=role)


def owner(operation):
    return by_customer(customer_id=operation.customer_id, actor=operation.customer.actor)


def decide(approval, decider, *, is_yes=True, **fields):
    return services.decide(
        **{
            "approval_id": approval.pk,
            "decider": decider,
            "is_yes": is_yes,
            "digest": approval.digest,
            "reason": "" if is_yes else "No.",
        }
        | fields
    )


def stands(operation):
    """All that a decision may change, to see that one did not."""
    fresh = sending.get(operation.pk)
    approvals = list(Approval.objects.filter(operation=operation).order_by("id").values())
    return fresh.state, fresh.granted_roles, approvals, Event.objects.count()


def assert_refused(error, operation, approval, decider, **fields):
    before = stands(operation)
    with pytest.raises(error) as caught:
        decide(approval, decider, **fields)
    assert type(caught.value) is error
    assert caught.value.approval == approval
    assert stands(operation) == before


# --- Yes and no ---------------------------------------------------------------------------------


def test_the_customer_s_yes_approves_a_small_refund(small, customer):
    approval = say_yes(small, decision_id="click-1")

    assert (approval.status, approval.decided_by) == (ApprovalStatus.APPROVED, customer.actor)
    assert approval.decision_id == "click-1"
    operation = sending.get(small.pk)
    assert (operation.state, operation.granted_roles) == (State.APPROVED, ["customer"])
    assert not Approval.objects.filter(role=Role.STAFF).exists()


def test_staff_are_asked_about_a_large_refund_only_after_the_customer_s_yes(large, shop):
    assert list(list_open_for_staff(shop_id=shop.pk)) == []

    say_yes(large)

    asked = question(large, Role.STAFF)
    assert list(list_open_for_staff(shop_id=shop.pk)) == [asked]
    assert asked.digest == large.digest
    assert asked.expires_at == large.expires_at
    assert sending.get(large.pk).state == State.AWAITING_APPROVAL


def test_a_large_refund_is_approved_by_both(large, shop):
    dana = make_approver(shop)
    say_yes(large)
    approval = say_yes(large, dana)

    assert (approval.decided_by, approval.decided_by_user_id) == (dana.actor, dana.pk)
    operation = sending.get(large.pk)
    assert (operation.state, operation.granted_roles) == (State.APPROVED, ["customer", "staff"])


def test_the_customer_s_no_ends_it_and_staff_are_never_asked(large):
    say_no(large, reason="I changed my mind.")

    operation = sending.get(large.pk)
    assert (operation.state, operation.decided_by_role) == (State.REJECTED, "customer")
    assert operation.reason == "I changed my mind."
    assert not Approval.objects.filter(role=Role.STAFF).exists()


def test_staff_s_no_ends_it_with_the_reason_for_the_customer(large, shop):
    say_yes(large)
    say_no(large, make_approver(shop), reason="The chair was used.")

    operation = sending.get(large.pk)
    assert (operation.state, operation.decided_by_role) == (State.REJECTED, "staff")
    assert operations.result(operation)["reason"] == "The chair was used."


@pytest.mark.parametrize("reason", ["", "   "])
def test_staff_cannot_say_no_without_saying_why(large, shop, reason):
    say_yes(large)
    dana = by_staff(make_approver(shop))

    assert_refused(
        ReasonNeededError, large, question(large, Role.STAFF), dana, is_yes=False, reason=reason
    )


def test_a_customer_need_not_say_why(small):
    assert say_no(small, reason="").status == ApprovalStatus.REJECTED


# --- Who ----------------------------------------------------------------------------------------


def test_another_customer_cannot_answer(small, shop):
    stranger = make_customer(shop)
    decider = by_customer(customer_id=stranger.pk, actor=stranger.actor)

    assert_refused(NotAllowedError, small, question(small), decider)


def test_a_customer_of_the_same_name_at_another_shop_cannot_answer(small):
    namesake = make_customer(make_shop(), external_id=small.customer.external_id)
    decider = by_customer(customer_id=namesake.pk, actor=namesake.actor)

    assert_refused(NotAllowedError, small, question(small), decider)


def test_staff_cannot_answer_for_the_customer(small, shop):
    assert_refused(NotAllowedError, small, question(small), by_staff(make_approver(shop)))


def test_the_customer_cannot_answer_for_staff(large):
    say_yes(large)

    assert_refused(NotAllowedError, large, question(large, Role.STAFF), owner(large))


@pytest.mark.parametrize(
    "fields",
    [
        {"is_approver": False},
        {"role": Role.AUDITOR, "is_approver": False},
        {"is_approver": True, "is_active": False},
        {"is_approver": True, "email": "ADA@example.com "},
    ],
)
def test_staff_without_the_right_cannot_countersign(large, shop, fields):
    say_yes(large)
    decider = by_staff(make_user(shop, **fields))

    assert_refused(NotAllowedError, large, question(large, Role.STAFF), decider)


def test_staff_of_another_shop_cannot_countersign(large):
    say_yes(large)
    decider = by_staff(make_approver(make_shop()))

    assert_refused(NotAllowedError, large, question(large, Role.STAFF), decider)


def test_an_admin_of_all_shops_who_is_an_approver_can_countersign(large):
    say_yes(large)

    assert say_yes(large, make_approver(None)).status == ApprovalStatus.APPROVED


def test_a_right_lost_since_signing_in_does_not_count(large, shop):
    say_yes(large)
    dana = make_approver(shop)
    decider = by_staff(dana)
    User.objects.filter(pk=dana.pk).update(is_approver=False)

    assert_refused(NotAllowedError, large, question(large, Role.STAFF), decider)


# --- What ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("digest", ["", "0" * 64, "x"])
def test_a_yes_to_other_bytes_is_no_yes(small, digest):
    assert_refused(SupersededError, small, question(small), owner(small), digest=digest)


def test_a_yes_to_one_operation_is_none_to_another(customer, small):
    other = make_operation(customer, make_order(make_line(4000)))

    assert_refused(SupersededError, other, question(other), owner(other), digest=small.digest)


def test_a_digest_in_capitals_is_not_the_digest(small):
    assert_refused(
        SupersededError, small, question(small), owner(small), digest=small.digest.upper()
    )


@pytest.mark.parametrize("end", ["cancel", "supersede", "expire"])
def test_what_has_ended_cannot_be_said_yes_to(small, end):
    now = timezone.now()
    match end:
        case "cancel":
            operations.cancel(operation_id=small.pk, by="system", reason="x", now=now)
        case "supersede":
            operations.supersede(operation_id=small.pk, reason="x", now=now)
        case _:
            operations.expire(operation_id=small.pk, now=now)

    assert_refused(SupersededError, small, question(small), owner(small))


# --- When ---------------------------------------------------------------------------------------


def test_an_answer_after_its_time_is_refused_by_the_database_s_clock(customer, shop):
    shop.customer_approval_seconds = 1
    shop.save()
    customer.shop = shop
    operation = make_operation(customer, make_order())
    time.sleep(1.05)

    assert_refused(ExpiredError, operation, question(operation), owner(operation))
    assert services.expire_due() == 1
    assert_refused(ExpiredError, operation, question(operation), owner(operation))
    assert sending.get(operation.pk).state == State.EXPIRED


def test_an_answer_in_the_very_instant_of_expiry_is_too_late(small, monkeypatch):
    approval = question(small)
    monkeypatch.setattr(services, "database_now", lambda: approval.expires_at)

    assert_refused(ExpiredError, small, approval, owner(small))


def test_an_answer_in_the_last_microsecond_counts(small, monkeypatch):
    approval = question(small)
    last = approval.expires_at - timedelta(microseconds=1)
    monkeypatch.setattr(services, "database_now", lambda: last)

    assert say_yes(small).status == ApprovalStatus.APPROVED


def test_a_worker_s_wrong_clock_decides_nothing(small, monkeypatch):
    future = timezone.now() + timedelta(days=365)
    monkeypatch.setattr("django.utils.timezone.now", lambda: future)

    assert say_yes(small).status == ApprovalStatus.APPROVED


def test_nothing_expires_before_its_time(small):
    assert services.expire_due() == 0
    assert question(small).status == ApprovalStatus.OPEN


def test_the_customer_has_the_customer_s_time_and_staff_the_rest(large, shop):
    seconds = (large.expires_at - large.created_at).total_seconds()
    asked = question(large)

    assert seconds == shop.customer_approval_seconds + shop.staff_approval_seconds
    assert (asked.expires_at - asked.asked_at).total_seconds() == shop.customer_approval_seconds


# --- Again --------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_yes", [True, False])
def test_the_same_answer_again_is_the_first_answer(small, is_yes):
    first = decide(question(small), owner(small), is_yes=is_yes, decision_id="one")
    before = stands(small)

    again = decide(question(small), owner(small), is_yes=is_yes, decision_id="two")

    assert (again.pk, again.status, again.decided_at) == (first.pk, first.status, first.decided_at)
    assert again.decision_id == "one"
    assert stands(small) == before


def test_the_same_click_sent_twice_is_one_decision_whatever_it_says_now(small):
    decide(question(small), owner(small), is_yes=True, decision_id="click")
    before = stands(small)

    again = decide(question(small), owner(small), is_yes=False, decision_id="click")

    assert again.status == ApprovalStatus.APPROVED
    assert stands(small) == before


def test_a_no_stays_a_no(small):
    say_no(small)

    assert_refused(AlreadyDecidedError, small, question(small), owner(small), is_yes=True)


def test_the_second_of_two_staff_is_told_who_was_first(large, shop):
    dana, erin = make_approver(shop), make_approver(shop)
    say_yes(large)
    say_yes(large, dana)

    for is_yes in (True, False):
        assert_refused(
            AlreadyDecidedError,
            large,
            question(large, Role.STAFF),
            by_staff(erin),
            is_yes=is_yes,
        )
    assert question(large, Role.STAFF).decided_by == dana.actor


def test_staff_cannot_take_a_yes_back(large, shop):
    dana = make_approver(shop)
    say_yes(large)
    say_yes(large, dana)

    assert_refused(
        AlreadyDecidedError, large, question(large, Role.STAFF), by_staff(dana), is_yes=False
    )


# --- Taken back ---------------------------------------------------------------------------------


def test_a_customer_takes_a_yes_back_before_anything_is_sent(small):
    say_yes(small)

    say_no(small)

    operation = sending.get(small.pk)
    assert (operation.state, operation.decided_by_role) == (State.REJECTED, "customer")
    assert question(small).status == ApprovalStatus.APPROVED
    assert Event.objects.filter(action="approval.taken_back").count() == 1


def test_taking_it_back_ends_the_question_to_staff(large):
    say_yes(large)

    say_no(large)

    assert question(large, Role.STAFF).status == ApprovalStatus.WITHDRAWN
    assert sending.get(large.pk).state == State.REJECTED


def test_taking_it_back_twice_is_taking_it_back_once(small):
    say_yes(small)
    say_no(small)
    before = stands(small)

    say_no(small)

    assert stands(small) == before


@pytest.mark.parametrize("state", ["sending", "unknown"])
def test_what_is_being_sent_cannot_be_taken_back(small, state):
    say_yes(small)
    Operation.objects.filter(pk=small.pk).update(state="sending", first_sent_at=timezone.now())
    if state == "unknown":
        Operation.objects.filter(pk=small.pk).update(state=state)

    assert_refused(AlreadyDecidedError, small, question(small), owner(small), is_yes=False)


def test_a_withdrawn_operation_asks_nobody_any_more(large, shop):
    say_yes(large)
    cancelled = services.withdraw(operation_id=large.pk, by="customer:ada", reason="Stopped.")

    assert cancelled.state == State.CANCELLED
    assert question(large, Role.STAFF).status == ApprovalStatus.WITHDRAWN
    event = Event.objects.get(action="approval.withdrawn")
    assert event.subject == f"approval:{question(large, Role.STAFF).public_id}"
    assert event.actor == "customer:ada"
    assert_refused(
        SupersededError, large, question(large, Role.STAFF), by_staff(make_approver(shop))
    )
    with pytest.raises(operations.OperationStateError):
        services.withdraw(operation_id=large.pk, by="customer:ada", reason="Again.")


# --- On record ----------------------------------------------------------------------------------


def test_questions_and_answers_are_recorded_with_the_change(large, shop):
    dana = make_approver(shop)
    say_yes(large)
    say_yes(large, dana)

    events = Event.objects.filter(action__startswith="approval.").order_by("id")
    assert list(events.values_list("action", "actor", "data__role")) == [
        ("approval.requested", "agent", "customer"),
        ("approval.granted", large.customer.actor, "customer"),
        ("approval.requested", "agent", "staff"),
        ("approval.granted", dana.actor, "staff"),
    ]
    assert {event.data["digest"] for event in events} == {large.digest}


def test_a_reason_is_kept_beside_the_chain_and_not_in_it(small):
    say_no(small, reason="CANARY: my address is 12 Larkspur Lane")

    event = Event.objects.get(action="approval.rejected")
    assert read_personal(event) == "CANARY: my address is 12 Larkspur Lane"
    assert not Event.objects.filter(data__icontains="CANARY").exists()


def test_a_decision_that_cannot_be_recorded_is_not_made(small, monkeypatch):
    def fail(**_):
        raise RuntimeError("the trail cannot be written")

    monkeypatch.setattr("approvals.services.audit.record", fail)
    before = stands(small)

    with pytest.raises(RuntimeError):
        decide(question(small), owner(small))

    assert stands(small) == before


# --- Before a send ------------------------------------------------------------------------------


def test_a_grant_holds_while_the_people_behind_it_may_grant_it(large, shop):
    dana = make_approver(shop)
    say_yes(large)
    assert not services.is_still_granted(sending.get(large.pk))
    say_yes(large, dana)
    assert services.is_still_granted(sending.get(large.pk))

    User.objects.filter(pk=dana.pk).update(role=Role.AUDITOR, is_approver=False)
    assert not services.is_still_granted(sending.get(large.pk))


@pytest.mark.django_db(transaction=True)
def test_a_yes_to_other_bytes_grants_nothing_even_if_somebody_wrote_it_in(small):
    say_yes(small)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE approvals_approval DISABLE TRIGGER approval_guard")
        Approval.objects.filter(operation=small).update(digest="0" * 64)
        cursor.execute("ALTER TABLE approvals_approval ENABLE TRIGGER approval_guard")

    assert not services.is_still_granted(sending.get(small.pk))


def test_questions_are_found_by_operation_and_step(large):
    say_yes(large)

    assert [a.role for a in list_of_operation(operation_id=large.pk)] == ["customer", "staff"]
    found = get_of_step(task_id=large.task_id, step_n=large.step_n, role=Role.STAFF)
    assert found == question(large, Role.STAFF)
    assert get_of_step(task_id=large.task_id, step_n=99, role=Role.STAFF) is None


def test_staff_see_the_questions_of_their_own_shop_oldest_deadline_first(shop):
    first, second = (
        make_operation(make_customer(shop), make_order(make_line(40_000))) for _ in range(2)
    )
    elsewhere = make_operation(make_customer(), make_order(make_line(40_000)))
    for operation in (second, first, elsewhere):
        say_yes(operation)

    assert [a.operation for a in list_open_for_staff(shop_id=shop.pk)] == [first, second]
    assert list_open_for_staff(shop_id=None).count() == 3


def test_every_refusal_is_a_decision_error():
    for error in (
        AlreadyDecidedError,
        ExpiredError,
        NotAllowedError,
        ReasonNeededError,
        SupersededError,
    ):
        assert issubclass(error, DecisionError)
