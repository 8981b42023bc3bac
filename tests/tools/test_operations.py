"""Operations before and after the wire: what is told of them, and to whom."""

import pytest
from django.utils import timezone

from tests.factories import (
    make_approved_operation,
    make_approver,
    make_customer,
    make_line,
    make_operation,
    make_order,
    make_shop,
    say_no,
    say_yes,
)
from tests.tools.desk import approved, send
from tools import operations, sending
from tools.models import Operation, State
from tools.operations import OperationStateError
from tools.signals import operation_moved

pytestmark = pytest.mark.django_db


def told(operation):
    return operations.result(sending.get(operation.pk))


def test_a_change_that_waits_is_told_as_waiting_and_never_as_done():
    operation = make_operation(make_customer(), make_order(id="1042"))

    assert told(operation) == {
        "operation": operation.idempotency_key,
        "kind": "refund",
        "order_id": "1042",
        "state": "awaiting_approval",
        "amount": "40.00",
        "currency": "USD",
        "message": "This is waiting for a yes.",
    }


def test_a_change_that_happened_is_told_with_the_shop_s_reference(buyer):
    sent = send(approved(buyer, buyer.order(4000)))

    assert told(sent) == {
        "operation": sent.idempotency_key,
        "kind": "refund",
        "order_id": sent.order_id,
        "state": "succeeded",
        "amount": "40.00",
        "currency": "USD",
        "reference": sent.reference,
    }


def test_an_unknown_outcome_is_told_as_being_checked_and_nothing_else(buyer):
    operation = approved(buyer, buyer.order(4000))
    buyer.shop.fault("error_after", scope={"path": "/refunds"}, times=1)
    send(operation)

    result = told(operation)

    assert result["message"] == "This is still being checked with the shop."
    assert result.keys().isdisjoint({"reference", "reason"})


def test_a_refusal_is_told_with_its_reason_and_who_decided():
    shop = make_shop()
    operation = make_operation(make_customer(shop), make_order(make_line(40_000)))
    say_yes(operation)
    say_no(operation, make_approver(shop), reason="Used.")

    result = told(operation)

    assert (result["state"], result["decided_by"], result["reason"]) == (
        "rejected",
        "staff",
        "Used.",
    )


def test_an_address_change_is_told_without_an_amount():
    operation = make_operation(make_customer(), tool="change_address")

    assert told(operation).keys().isdisjoint({"amount", "currency"})


def test_only_what_succeeded_counts_as_done_in_a_ticket(buyer):
    done = send(approved(buyer, buyer.order(4000)))
    waiting = make_operation(buyer.row)

    assert operations.succeeded_kinds(ticket_id=done.ticket_id) == {"refund"}
    assert operations.succeeded_kinds(ticket_id=waiting.ticket_id) == frozenset()


@pytest.mark.parametrize("change", ["grant", "reject", "expire", "supersede", "cancel"])
@pytest.mark.parametrize("state", ["sending", "rejected"])
def test_it_is_too_late_once_it_is_sent_or_has_ended(change, state):
    operation = make_approved_operation(make_customer())
    if state == "sending":
        Operation.objects.filter(pk=operation.pk).update(
            state="sending", first_sent_at=timezone.now()
        )
    else:
        say_no(operation)
    arguments = {
        "grant": {"role": "staff", "by": "staff:dana"},
        "reject": {"role": "staff", "by": "staff:dana", "reason": "x"},
        "expire": {},
        "supersede": {"reason": "x"},
        "cancel": {"by": "system", "reason": "x"},
    }[change]
    before = list(Operation.objects.values())

    with pytest.raises(OperationStateError) as caught:
        getattr(operations, change)(operation_id=operation.pk, now=timezone.now(), **arguments)

    assert caught.value.operation.state == state
    assert list(Operation.objects.values()) == before


def test_the_news_goes_out_only_after_the_commit(django_capture_on_commit_callbacks):
    operation = make_operation(make_customer())
    heard = []

    def listen(*, operation_id, task_id, **_):
        heard.append((operation_id, task_id))

    operation_moved.connect(listen)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            say_yes(operation)
            assert heard == []
    finally:
        operation_moved.disconnect(listen)

    assert heard == [(operation.pk, operation.task_id)]
    assert sending.get(operation.pk).state == State.APPROVED
