"""Above the second limit two different members of staff say yes, each as far as their right reaches."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import Error, connection, transaction
from django.utils import timezone

from accounts.models import Role, Shop, User
from approvals import services
from approvals.entitlement import Bar
from approvals.models import Approval, ApprovalStatus
from approvals.services import AlreadyDecidedError, NotAllowedError, by_staff
from audit.models import Event
from tests.factories import (
    make_approval,
    make_approver,
    make_customer,
    make_line,
    make_operation,
    make_order,
    make_shop,
    say_no,
    say_yes,
)
from tests.tools.desk import approved, look, send, shop_writes
from tools import sending
from tools.models import Operation, State

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop() -> Shop:
    return make_shop(second_limit=50_000)


@pytest.fixture
def dana(shop: Shop) -> User:
    return make_approver(shop, email="dana@example.com")


@pytest.fixture
def erin(shop: Shop) -> User:
    return make_approver(shop, email="erin@example.com")


@pytest.fixture
def large(shop: Shop) -> Operation:
    """A refund over the second limit that its customer has said yes to."""
    operation = make_operation(make_customer(shop), make_order(make_line(60_000)))
    say_yes(operation)
    return operation


def question(operation: Operation, role: Role = Role.STAFF) -> Approval:
    return Approval.objects.get(operation=operation, role=role)


def stands(operation: Operation) -> Any:
    """All that a decision could change."""
    return (
        Operation.objects.filter(pk=operation.pk).values().get(),
        list(Approval.objects.filter(operation=operation).order_by("id").values()),
        Event.objects.count(),
    )


def assert_barred(operation: Operation, user: User, bar: Bar, *, is_yes: bool = True) -> None:
    """They are refused for this reason, and nothing is written."""
    before = stands(operation)

    with pytest.raises(NotAllowedError) as refused:
        (say_yes if is_yes else say_no)(operation, user)

    assert refused.value.bar == bar
    assert stands(operation) == before


# --- Two people -----------------------------------------------------------------------------------


def test_the_second_is_asked_after_the_first_and_only_then_it_may_be_sent(large, dana, erin):
    assert list(large.approvals.values_list("role", flat=True)) == ["customer", "staff"]

    say_yes(large, dana)
    assert sending.get(large.pk).state == State.AWAITING_APPROVAL
    assert question(large, Role.SECOND_STAFF).status == ApprovalStatus.OPEN

    say_yes(large, erin)
    settled = sending.get(large.pk)
    assert settled.state == State.APPROVED
    assert set(settled.granted_roles) == {"customer", "staff", "second_staff"}
    assert services.is_still_granted(settled)
    people = [question(large, role).decided_by_user_id for role in (Role.STAFF, Role.SECOND_STAFF)]
    assert people == [dana.pk, erin.pk]


@pytest.mark.parametrize("is_yes", [True, False])
def test_whoever_was_the_first_is_not_the_second(large, dana, is_yes):
    say_yes(large, dana)

    assert_barred(large, dana, Bar.SAME_PERSON, is_yes=is_yes)


def test_nor_by_a_second_account_of_the_same_address(large, dana, shop):
    double = make_approver(shop, email=" Dana@Example.com")
    say_yes(large, dana)

    assert_barred(large, double, Bar.SAME_PERSON)


def test_the_same_click_of_the_first_sent_again_is_their_first_answer(large, dana):
    decided = say_yes(large, dana)
    before = stands(large)

    again = services.decide(
        approval_id=decided.pk, decider=by_staff(dana), is_yes=True, digest=large.digest
    )

    assert (again.pk, again.status) == (decided.pk, ApprovalStatus.APPROVED)
    assert stands(large) == before


def test_a_no_of_the_second_ends_it_and_the_customer_hears_that_staff_said_no(large, dana, erin):
    say_yes(large, dana)
    say_no(large, erin, reason="Not this one.")

    ended = sending.get(large.pk)
    assert (ended.state, ended.decided_by_role) == (State.REJECTED, "staff")
    assert question(large).status == ApprovalStatus.APPROVED
    assert question(large, Role.SECOND_STAFF).status == ApprovalStatus.REJECTED


def test_a_no_of_the_first_asks_nobody_else(large, dana):
    say_no(large, dana, reason="Not this one.")

    assert sending.get(large.pk).state == State.REJECTED
    assert not Approval.objects.filter(role=Role.SECOND_STAFF).exists()


def test_a_second_no_needs_a_reason_too(large, dana, erin):
    say_yes(large, dana)
    before = stands(large)

    with pytest.raises(services.ReasonNeededError):
        say_no(large, erin, reason=" ")

    assert stands(large) == before


def test_the_first_of_two_has_half_of_the_time_that_is_left(large, dana):
    first = question(large)
    halves = (first.expires_at - first.asked_at, large.expires_at - first.expires_at)
    assert abs(halves[0] - halves[1]) <= timedelta(microseconds=1)  # of an odd number of them

    say_yes(large, dana)
    assert question(large, Role.SECOND_STAFF).expires_at == large.expires_at


def test_a_question_to_the_second_that_runs_out_ends_it(dana):
    shop = make_shop(second_limit=50_000, staff_approval_seconds=1, customer_approval_seconds=1)
    operation = make_operation(make_customer(shop), make_order(make_line(60_000)))
    say_yes(operation)
    say_yes(operation, make_approver(shop))
    asked = question(operation, Role.SECOND_STAFF)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_sleep(GREATEST(0, extract(epoch FROM %s - clock_timestamp())))",
            [asked.expires_at],
        )

    with pytest.raises(services.ExpiredError):
        say_yes(operation, make_approver(shop))
    assert services.expire_due() == 1

    ended = sending.get(operation.pk)
    assert (ended.state, ended.granted_roles) == (State.EXPIRED, ["customer", "staff"])
    assert question(operation, Role.SECOND_STAFF).status == ApprovalStatus.EXPIRED


def test_the_customer_who_takes_it_back_withdraws_the_second_question(large, dana):
    say_yes(large, dana)
    customers = question(large, Role.CUSTOMER)

    say_no(large, approval_id=customers.pk)

    assert sending.get(large.pk).state == State.REJECTED
    assert question(large, Role.SECOND_STAFF).status == ApprovalStatus.WITHDRAWN


def test_one_who_comes_second_to_the_first_question_is_told_so(large, dana, erin):
    first = question(large)
    say_yes(large, dana)
    before = stands(large)

    with pytest.raises(AlreadyDecidedError):
        services.decide(
            approval_id=first.pk,
            decider=by_staff(erin),
            is_yes=False,
            digest=large.digest,
            reason="x",
        )

    assert stands(large) == before


# --- What a right reaches to ----------------------------------------------------------------------


def test_above_their_sum_they_may_say_no_and_not_yes(large, shop):
    narrow = make_approver(shop, approve_up_to=59_999)

    assert_barred(large, narrow, Bar.TOO_MUCH)

    say_no(large, narrow)
    assert sending.get(large.pk).state == State.REJECTED


def test_exactly_their_sum_is_theirs_to_approve(large, shop):
    say_yes(large, make_approver(shop, approve_up_to=60_000))

    assert question(large).status == ApprovalStatus.APPROVED


@pytest.mark.parametrize("is_yes", [True, False])
def test_another_kind_of_change_is_not_theirs_to_decide(large, shop, is_yes):
    other = make_approver(shop, approve_kinds=["cancel"])

    assert_barred(large, other, Bar.OTHER_KIND, is_yes=is_yes)


@pytest.mark.parametrize("kinds", [None, [], ["cancel", "refund"]], ids=str)
def test_without_kinds_or_with_this_one_it_is_theirs(large, shop, kinds):
    say_yes(large, make_approver(shop, approve_kinds=kinds))

    assert question(large).status == ApprovalStatus.APPROVED


def test_the_second_needs_a_right_that_reaches_to_it_as_well(large, dana, shop):
    say_yes(large, dana)

    assert_barred(large, make_approver(shop, approve_up_to=50_000), Bar.TOO_MUCH)
    assert_barred(large, make_approver(make_shop()), Bar.NO_RIGHT)


@pytest.mark.parametrize(
    "change",
    [
        {"is_approver": False},
        {"is_active": False},
        {"approve_up_to": 59_999},
        {"approve_kinds": ["cancel"]},
    ],
    ids=str,
)
@pytest.mark.parametrize("which", ["first", "second"])
def test_a_right_taken_away_before_the_send_voids_the_yes(large, dana, erin, which, change):
    say_yes(large, dana)
    say_yes(large, erin)
    assert services.is_still_granted(sending.get(large.pk))

    User.objects.filter(pk=(dana if which == "first" else erin).pk).update(**change)

    assert not services.is_still_granted(sending.get(large.pk))


def test_two_who_turn_out_to_be_one_are_not_two_at_the_send(large, dana, erin):
    say_yes(large, dana)
    say_yes(large, erin)

    User.objects.filter(pk=erin.pk).update(email=dana.email)

    assert not services.is_still_granted(sending.get(large.pk))


# --- The send -------------------------------------------------------------------------------------


def with_second_limit(buyer: Any, limit: int) -> None:
    Shop.objects.filter(pk=buyer.row.shop_id).update(second_limit=limit)
    buyer.row.refresh_from_db()


def test_with_both_yeses_it_goes_out_once(buyer):
    with_second_limit(buyer, 50_000)
    operation = approved(buyer, buyer.order(60_000))

    assert send(operation).state == State.SUCCEEDED
    assert len(shop_writes(buyer)) == 1


@pytest.mark.parametrize("role", [Role.STAFF, Role.SECOND_STAFF])
def test_of_two_yeses_neither_is_one_once_its_right_is_gone(buyer, role):
    with_second_limit(buyer, 50_000)
    operation = approved(buyer, buyer.order(60_000))
    decided = question(operation, role)
    assert decided.decided_by_user_id is not None
    User.objects.filter(pk=decided.decided_by_user_id).update(approve_up_to=100)

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.SUPERSEDED, "approval_no_longer_valid")
    assert shop_writes(buyer) == []


def test_a_second_limit_that_comes_after_the_yeses_asks_anew(buyer):
    operation = approved(buyer, buyer.order(60_000))
    assert operation.required_roles == ["customer", "staff"]
    with_second_limit(buyer, 50_000)

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.SUPERSEDED, "policy_changed")
    assert shop_writes(buyer) == []
    again = make_operation(buyer.row, look(buyer, operation.order_id))
    assert again.required_roles == ["customer", "staff", "second_staff"]


# --- The database ---------------------------------------------------------------------------------


def refused(statement: str, *values: Any) -> str:
    """The database's own words about a statement that it refuses."""
    before = list(Approval.objects.order_by("id").values())
    with pytest.raises(Error) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, values)
    assert list(Approval.objects.order_by("id").values()) == before
    return str(caught.value)


DECIDE = (
    "UPDATE approvals_approval SET status = %s, decided_by = 'x', decided_at = now(),"
    " decided_by_user_id = %s, reason = %s WHERE id = %s"
)


@pytest.mark.parametrize(("status", "reason"), [("approved", ""), ("rejected", "No.")])
def test_one_person_does_not_answer_twice_by_any_hand(large, dana, status, reason):
    say_yes(large, dana)
    asked = question(large, Role.SECOND_STAFF)

    words = refused(DECIDE, status, dana.pk, reason, asked.pk)

    assert "approval_two_staff_are_two_people" in words


@pytest.mark.parametrize(
    ("status", "user_id", "constraint"),
    [
        ("approved", None, "approval_staff_decision_has_user"),
        ("rejected", 1, "approval_rejection_by_staff_has_reason"),
    ],
)
def test_the_second_answers_as_somebody_and_says_why_too(large, dana, status, user_id, constraint):
    say_yes(large, dana)
    asked = question(large, Role.SECOND_STAFF)

    assert constraint in refused(DECIDE, status, user_id, "", asked.pk)


@pytest.mark.parametrize(
    ("assignment", "guard"),
    [
        ("state = 'approved'", "operation_approved_means_granted"),
        ("state = 'sending', first_sent_at = now()", "cannot go from awaiting_approval to sending"),
        ("granted_roles = required_roles, state = 'approved'", "no approval behind it"),
        ("required_roles = granted_roles, state = 'approved'", "what was sealed"),
    ],
)
def test_without_the_second_yes_nothing_is_approved_or_sent_by_any_hand(
    large, dana, assignment, guard
):
    say_yes(large, dana)

    assert guard in refused(
        f"UPDATE tools_operation SET {assignment} WHERE id = %s",  # noqa: S608
        large.pk,
    )
    stands_still = sending.get(large.pk)
    assert (stands_still.state, stands_still.granted_roles) == (
        State.AWAITING_APPROVAL,
        ["customer", "staff"],
    )


def test_two_of_staff_are_required_only_where_one_is(large):
    now = timezone.now()
    row: dict[str, Any] = {**Operation.objects.filter(pk=large.pk).values().get()} | {
        "required_roles": ["customer", "second_staff"],
        "granted_roles": [],
        "state": "awaiting_approval",
        "idempotency_key": "another",
        "order_id": "another",
        "step_n": 99,
        "created_at": now,
        "expires_at": now + timedelta(hours=1),
    }
    del row["id"]

    with pytest.raises(Error, match="operation_second_staff_after_staff"), transaction.atomic():
        Operation.objects.create(**row)

    assert Operation.objects.count() == 1


def test_a_role_is_asked_once_also_the_second(large, dana):
    say_yes(large, dana)

    with pytest.raises(Error, match="approval_one_per_role"):
        make_approval(large, Role.SECOND_STAFF)
