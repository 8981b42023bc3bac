"""Two at once: row locks decide, the operation's before the approval's."""

import threading
import time
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Role
from approvals import services
from approvals.models import Approval, ApprovalStatus
from approvals.services import (
    AlreadyDecidedError,
    ExpiredError,
    SupersededError,
    by_customer,
    by_staff,
)
from audit.models import Event
from tests.factories import (
    make_approver,
    make_customer,
    make_line,
    make_operation,
    make_order,
    make_shop,
    say_yes,
)
from tools import operations, sending
from tools.models import Operation, State

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(*works):
    """Run all of them as nearly at once as threads can; gives what each returned or raised."""
    barrier = threading.Barrier(len(works))
    outcomes: list[Any] = [None] * len(works)

    def run(n, work):
        barrier.wait()
        try:
            outcomes[n] = work()
        except Exception as exc:  # noqa: BLE001 - the outcome, whatever it is
            outcomes[n] = exc
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=item) for item in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def decider_of(approval, user=None):
    customer = approval.operation.customer
    return by_staff(user) if user else by_customer(customer_id=customer.pk, actor=customer.actor)


def answering(approval, *, is_yes, user=None):
    decider = decider_of(approval, user)

    def work():
        return services.decide(
            approval_id=approval.pk,
            decider=decider,
            is_yes=is_yes,
            digest=approval.digest,
            reason="" if is_yes else "No.",
        )

    return work


def large_waiting_for_staff():
    shop = make_shop()
    operation = make_operation(make_customer(shop), make_order(make_line(40_000)))
    say_yes(operation)
    asked = Approval.objects.select_related("operation__customer").get(
        operation=operation, role=Role.STAFF
    )
    return operation, asked, shop


def test_two_staff_who_decide_opposite_at_once_are_decided_once():
    for _ in range(3):
        operation, asked, shop = large_waiting_for_staff()
        dana, erin = make_approver(shop), make_approver(shop)

        outcomes = at_once(
            answering(asked, is_yes=True, user=dana), answering(asked, is_yes=False, user=erin)
        )

        (lost,) = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        assert isinstance(lost, AlreadyDecidedError)
        decided = Approval.objects.get(pk=asked.pk)
        state = sending.get(operation.pk).state
        assert (decided.status, state) in {
            (ApprovalStatus.APPROVED, State.APPROVED),
            (ApprovalStatus.REJECTED, State.REJECTED),
        }
        decisions = Event.objects.filter(
            subject=f"approval:{asked.public_id}",
            action__in=["approval.granted", "approval.rejected"],
        )
        assert decisions.count() == 1


def test_of_two_staff_who_both_say_yes_at_once_one_is_the_first_and_the_second_is_asked_still():
    for _ in range(3):
        shop = make_shop(second_limit=30_000)
        operation = make_operation(make_customer(shop), make_order(make_line(40_000)))
        say_yes(operation)
        asked = Approval.objects.get(operation=operation, role=Role.STAFF)
        people = [make_approver(shop), make_approver(shop)]

        outcomes = at_once(*[answering(asked, is_yes=True, user=person) for person in people])

        (lost,) = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        assert isinstance(lost, AlreadyDecidedError)
        after = sending.get(operation.pk)
        assert (after.state, after.granted_roles) == (
            State.AWAITING_APPROVAL,
            ["customer", "staff"],
        )
        second = Approval.objects.get(operation=operation, role=Role.SECOND_STAFF)
        assert second.status == ApprovalStatus.OPEN


def test_of_a_yes_and_a_no_to_the_second_question_at_once_one_counts():
    for _ in range(3):
        shop = make_shop(second_limit=30_000)
        operation = make_operation(make_customer(shop), make_order(make_line(40_000)))
        say_yes(operation)
        say_yes(operation, make_approver(shop))
        asked = Approval.objects.get(operation=operation, role=Role.SECOND_STAFF)
        dana, erin = make_approver(shop), make_approver(shop)

        outcomes = at_once(
            answering(asked, is_yes=True, user=dana), answering(asked, is_yes=False, user=erin)
        )

        (lost,) = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        assert isinstance(lost, AlreadyDecidedError)
        decided = Approval.objects.get(pk=asked.pk)
        assert (decided.status, sending.get(operation.pk).state) in {
            (ApprovalStatus.APPROVED, State.APPROVED),
            (ApprovalStatus.REJECTED, State.REJECTED),
        }


def test_a_double_click_is_one_decision():
    operation = make_operation(make_customer(), make_order())
    asked = Approval.objects.select_related("operation__customer").get(operation=operation)

    outcomes = at_once(*[answering(asked, is_yes=True)] * 4)

    assert {outcome.status for outcome in outcomes} == {ApprovalStatus.APPROVED}
    assert Event.objects.filter(action="approval.granted").count() == 1
    assert Event.objects.filter(action="refund.granted").count() == 1


def test_a_yes_and_an_expiry_in_the_same_instant_are_decided_once():
    customer = make_customer(make_shop(customer_approval_seconds=1))
    for _ in range(4):
        make_operation(customer, make_order(make_line(1000)))
    asked = list(Approval.objects.select_related("operation__customer").order_by("id"))
    works = []
    for approval in asked:
        works += [answering(approval, is_yes=True), partial(services._expire, approval.pk)]
    time.sleep((asked[1].expires_at - timezone.now()).total_seconds())

    outcomes = at_once(*works)
    services.expire_due()

    for n, approval in enumerate(asked):
        answered, expired = outcomes[2 * n : 2 * n + 2]
        stands = (
            Approval.objects.get(pk=approval.pk).status,
            sending.get(approval.operation_id).state,
        )
        if isinstance(answered, ExpiredError):
            assert stands == (ApprovalStatus.EXPIRED, State.EXPIRED)
        else:
            assert answered.status == ApprovalStatus.APPROVED
            assert expired is False
            assert stands == (ApprovalStatus.APPROVED, State.APPROVED)


def test_two_sweeps_expire_a_question_once(monkeypatch):
    operation = make_operation(make_customer(), make_order())
    asked = Approval.objects.get(operation=operation)
    monkeypatch.setattr(services, "database_now", lambda: asked.expires_at)

    outcomes = at_once(*[lambda: services._expire(asked.pk)] * 3)

    assert sorted(outcomes) == [False, False, True]
    assert Event.objects.filter(action="approval.expired").count() == 1
    assert sending.get(operation.pk).state == State.EXPIRED


def test_a_yes_taken_back_as_it_is_being_sent_is_decided_once():
    for _ in range(3):
        operation = make_operation(make_customer(), make_order())
        say_yes(operation)
        asked = Approval.objects.select_related("operation__customer").get(operation=operation)

        def begin(operation=operation):
            with transaction.atomic():
                row = operations.lock(operation.pk)
                if row.state != State.APPROVED:
                    return False
                row.start(epoch=1, at=timezone.now())
                row.save(update_fields=["state", "epoch", "first_sent_at"])
                return True

        taken_back, is_sending = at_once(answering(asked, is_yes=False), begin)

        state = sending.get(operation.pk).state
        if is_sending:
            assert isinstance(taken_back, AlreadyDecidedError)
            assert state == State.SENDING
        else:
            assert state == State.REJECTED


def test_a_yes_to_what_is_withdrawn_at_the_same_moment_is_decided_once():
    for _ in range(3):
        operation = make_operation(make_customer(), make_order())
        asked = Approval.objects.select_related("operation__customer").get(operation=operation)

        yes, _ = at_once(
            answering(asked, is_yes=True),
            lambda operation=operation: services.withdraw(
                operation_id=operation.pk, by="customer:x", reason="Stop."
            ),
        )

        assert sending.get(operation.pk).state == State.CANCELLED
        assert isinstance(yes, SupersededError | Approval)
        assert Operation.objects.get(pk=operation.pk).finished_at is not None


@pytest.mark.parametrize("is_yes", [True, False])
def test_rows_are_locked_parents_first_and_before_any_change(is_yes):
    operation = make_operation(make_customer(), make_order())
    asked = Approval.objects.select_related("operation__customer").get(operation=operation)

    with CaptureQueriesContext(connection) as captured:
        answering(asked, is_yes=is_yes)()

    statements = [query["sql"] for query in captured]
    locks = [
        (n, "approvals_approval" if 'FROM "approvals_approval"' in sql else "tools_operation")
        for n, sql in enumerate(statements)
        if "FOR UPDATE" in sql
    ]
    first_write = next(
        n for n, sql in enumerate(statements) if sql.startswith(("UPDATE", "INSERT"))
    )
    assert [table for _, table in locks[:2]] == ["tools_operation", "approvals_approval"]
    assert locks[1][0] < first_write


def test_an_expiry_locks_parents_first_and_before_any_change(monkeypatch):
    operation = make_operation(make_customer(), make_order())
    asked = Approval.objects.get(operation=operation)
    monkeypatch.setattr(services, "database_now", lambda: asked.expires_at)

    with CaptureQueriesContext(connection) as captured:
        services._expire(asked.pk)

    statements = [query["sql"] for query in captured]
    locks = [n for n, sql in enumerate(statements) if "FOR UPDATE" in sql]
    first_write = next(
        n for n, sql in enumerate(statements) if sql.startswith(("UPDATE", "INSERT"))
    )
    assert '"tools_operation"' in statements[locks[0]]
    assert '"approvals_approval"' in statements[locks[1]]
    assert locks[1] < first_write
