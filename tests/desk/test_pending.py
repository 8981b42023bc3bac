"""A refund that the shop takes and calls pending: made, on its way, and later there or back."""

from typing import Any

import pytest
from django.db import Error, connection, transaction

from agents import telling
from agents.models import Speaker, Ticket
from approvals.services import is_still_granted
from audit.models import Event
from tests.desk.telling import about_refund
from tests.desk.world import lost, of, on_its_way, stuck, told
from tests.factories import make_caller, propose
from tests.tools.desk import find_out, lease, look, send
from tools import gateway, operations, reconcile, sending, settlement
from tools.clients.shapes import Receipt
from tools.models import AttemptOutcome, Operation, Reversal, State, Transit
from tools.outcome import of_look_up

pytestmark = pytest.mark.django_db


@pytest.fixture
def pending(buyer) -> Operation:
    """A refund of $40.00 that the shop has just taken; the ticket is open."""
    return taken(buyer)


def taken(buyer) -> Operation:
    operation = on_its_way(buyer)
    buyer.shop.fault("pending", times=1)
    assert send(operation).state == State.SUCCEEDED
    return of(operation)


def row(operation: Operation) -> dict[str, Any]:
    return dict(Operation.objects.filter(pk=operation.pk).values().get())


def state_of(operation: Operation, locale: str = "en") -> str:
    return telling.true_state([of(operation)], locale)


def test_it_has_succeeded_and_everybody_is_told_that_it_is_on_its_way(pending, buyer):
    (effect,) = buyer.shop.effects(idempotency_key=pending.idempotency_key)

    assert (pending.state, pending.reference) == (State.SUCCEEDED, effect["id"])
    assert pending.is_on_its_way
    result = operations.result(pending)
    assert (result["state"], result["pending"], result["message"]) == (
        "succeeded",
        True,
        operations.ON_ITS_WAY,
    )
    said = (
        f"The refund of $40.00 for order {pending.order_id} is on its way "
        f"(reference {pending.reference})."
    )
    assert state_of(pending) == said
    assert operations.in_words(pending, "en") == (
        f"A refund of $40.00 for order {pending.order_id} is on its way "
        f"(reference {pending.reference})"
    )
    assert f"ist unterwegs (Beleg {pending.reference})" in state_of(pending, "de")
    assert "ist unterwegs (Beleg" in operations.in_words(pending, "de")
    event = Event.objects.get(action="refund.succeeded")
    assert event.data["detail"] == pending.attempts.get().detail == "confirmed_pending"


def test_it_counts_as_paid(pending, buyer):
    order = look(buyer, pending.order_id)

    assert order.refunded == pending.amount
    assert isinstance(propose(make_caller(buyer.row), order), gateway.Refused)
    stale = order.model_copy(update={"refunded": 0})
    refused = propose(make_caller(buyer.row), stale)
    assert isinstance(refused, gateway.Refused)


def test_a_later_event_says_that_it_is_done(pending, teller):
    before = row(pending)
    document = about_refund(pending, id=pending.reference)

    assert teller.told(document) == "accepted"
    assert teller.told(document) == "accepted"

    assert f"is done (reference {pending.reference})" in state_of(pending)
    assert "pending" not in operations.result(of(pending))
    assert row(pending) == before
    assert Event.objects.filter(action="refund.arrived").count() == 1
    assert told(pending) == []


@pytest.mark.parametrize("changes", [{"amount": 1}, {"currency": "EUR"}, {"order_id": "9999"}])
def test_an_event_of_something_else_does_not(pending, teller, changes):
    teller.told(about_refund(pending, **changes))

    assert of(pending).is_on_its_way
    assert not Event.objects.filter(action="refund.arrived").exists()


@pytest.mark.parametrize("kind", ["failed", "reversed"])
def test_a_later_failure_opens_a_case_and_tells_the_customer(pending, teller, kind):
    before = row(pending)

    teller.told(about_refund(pending, kind, id=pending.reference, reason="account_closed"))

    assert Reversal.objects.get().operation == pending
    assert row(pending) == before
    assert not of(pending).is_on_its_way
    assert Ticket.objects.get(pk=pending.ticket_id).speaker == Speaker.STAFF
    assert "did not stay with you" in told(pending)[-1]
    assert "the money came back to the shop since" in state_of(pending)
    assert operations.result(of(pending))["message"] == operations.CAME_BACK


def test_money_that_arrived_may_still_come_back(pending, teller):
    teller.told(about_refund(pending, id=pending.reference))
    teller.told(about_refund(pending, "reversed", id=pending.reference))

    assert Reversal.objects.get().operation == pending
    assert "came back" in state_of(pending)


def test_a_lost_answer_is_found_pending_by_a_look(buyer):
    buyer.shop.fault("pending", times=1)
    operation = lost(buyer, "error_after")

    found = of(find_out(operation))

    assert (found.state, found.is_on_its_way) == (State.SUCCEEDED, True)
    assert len(buyer.shop.effects(idempotency_key=operation.idempotency_key)) == 1
    assert Event.objects.get(action="refund.succeeded").data["detail"] == "found_pending"


def test_a_look_by_a_person_settles_it_as_pending(buyer):
    buyer.shop.fault("pending", times=1)
    operation = stuck(buyer, "error_after")

    check = settlement.check_now(operation_id=operation.pk, by="staff:dana")

    assert check.showed == settlement.Showed.DONE
    operation = of(operation)
    assert (operation.state, operation.is_on_its_way) == (State.SUCCEEDED, True)
    assert "is on its way" in told(operation)[-1]


def begun(buyer):
    operation = on_its_way(buyer)
    order = look(buyer, operation.order_id)
    started, attempt = sending._begin(operation.pk, order, lease(), is_still_granted)
    assert attempt is not None
    buyer.shop.fault("pending", times=1)
    return started, attempt, sending.carrier_of(*sending.look_at_subject(operation))


def test_what_a_worker_that_lost_it_brings_home_is_pending_too(buyer):
    started, attempt, carrier = begun(buyer)
    reconcile._take_over(started.pk, lease(2))
    assert sending.transmit(started, attempt, carrier, lease(1)).state == State.UNKNOWN

    found = of(find_out(started, epoch=3))

    assert (found.state, found.is_on_its_way) == (State.SUCCEEDED, True)


def test_an_event_that_overtook_the_answer_is_the_later_word(buyer, teller):
    started, attempt, carrier = begun(buyer)
    teller.told(about_refund(started))

    done = of(sending.transmit(started, attempt, carrier, lease()))

    assert (done.state, done.is_on_its_way) == (State.SUCCEEDED, False)


@pytest.mark.parametrize("status", ["requires_action", "canceled", "Pending", "", None, 7])
def test_a_look_that_shows_another_status_is_for_a_person(buyer, status):
    operation = on_its_way(buyer)
    receipt = Receipt(
        id="re_1",
        kind="refund",
        order_id=operation.order_id,
        amount=operation.amount,
        currency=operation.currency,
        raw={"status": status},
    )

    assert of_look_up(operation, receipt).needs_person
    shown = of_look_up(operation, receipt.model_copy(update={"raw": {"status": "pending"}}))
    assert (shown.kind, shown.is_pending) == (AttemptOutcome.SUCCEEDED, True)


def refused(statement: str, *values) -> None:
    before = list(Transit.objects.values())
    with pytest.raises(Error), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, values)
    assert list(Transit.objects.values()) == before


def test_the_database_lets_money_arrive_once_and_only_of_a_refund_that_was_made(pending, buyer):
    arrive = "UPDATE tools_transit SET arrived_at = clock_timestamp()"
    refused("DELETE FROM tools_transit")
    refused("UPDATE tools_transit SET began_at = clock_timestamp()")
    unsent = on_its_way(buyer)
    begin = "INSERT INTO tools_transit (operation_id, began_at) VALUES (%s, clock_timestamp())"
    refused(begin, unsent.pk)
    with connection.cursor() as cursor:
        cursor.execute(arrive)
    refused(arrive)


def test_the_database_takes_no_other_status_for_the_shop_s_word(buyer):
    operation = stuck(buyer)
    effect = {
        "status": "requires_action", "reference": "re_1", "kind": "refund",
        "order_id": operation.order_id, "amount": operation.amount, "currency": "USD",
    }  # fmt: skip
    end = (
        "UPDATE tools_operation SET state = 'succeeded', reference = 're_1',"
        " finished_at = clock_timestamp() WHERE id = %s"
    )
    operation.observations.create(
        source="look_up", body={"effect": effect}, at=operation.created_at
    )

    refused(end, operation.pk)
    assert of(operation).state == State.NEEDS_PERSON

    effect |= {"status": "pending"}
    operation.observations.create(
        source="look_up", body={"effect": effect}, at=operation.created_at
    )
    with connection.cursor() as cursor:
        cursor.execute(end, [operation.pk])
    assert of(operation).state == State.SUCCEEDED
