"""Evidence that does not fit how a change has ended: for the desk, and the customer hears of it."""

import pytest

from agents import proofs, telling
from agents.models import Speaker, Ticket
from approvals.services import is_still_granted
from audit.models import Event
from tests.desk.telling import about_change, about_refund
from tests.desk.world import approver, of, on_its_way, stuck, told
from tests.factories import make_caller, make_order, propose
from tests.tools.desk import call, lease, look, send
from tools import gateway, inquiries, operations, policy, reconcile, sending, settlement, unresolved
from tools.clock import database_now
from tools.explain import why_staff
from tools.models import Inquiry, Operation, State

pytestmark = pytest.mark.django_db


def settled(operation: Operation, outcome: State, reference: str = "") -> Operation:
    settlement.propose(
        operation_id=operation.pk,
        user_id=approver(operation).pk,
        outcome=outcome,
        reference=reference,
        evidence="The shop's books say so.",
    )
    operation = of(operation)
    assert operation.state == outcome
    return operation


def row(operation: Operation) -> dict[str, object]:
    return dict(Operation.objects.filter(pk=operation.pk).values().get())


def test_what_was_said_to_have_failed_and_the_shop_tells_of_is_for_staff_again(buyer, teller):
    operation = settled(stuck(buyer), State.FAILED)
    Ticket.objects.update(speaker=Speaker.AGENT)
    before = row(operation)

    assert teller.told(about_refund(operation)) == "accepted"

    assert row(operation) == before
    assert Inquiry.objects.get().kind == "contradicted"
    assert Event.objects.get(action="refund.contradicted").data["source"] == "webhook"
    assert list(unresolved.list_asked_about(shop_id=operation.shop_id)) == [operation]
    assert Ticket.objects.get(pk=operation.ticket_id).speaker == Speaker.STAFF
    assert "it was made after all" in told(operation)[-1]
    said = told(operation)
    teller.told(about_refund(operation))
    assert (Inquiry.objects.count(), told(operation)) == (1, said)


def test_from_then_on_nobody_says_that_it_was_not_made(buyer, teller):
    operation = settled(stuck(buyer), State.FAILED)
    assert "was not made" in telling.true_state([of(operation)], "en")
    teller.told(about_refund(operation))
    operation = of(operation)

    assert "the shop says now that it was" in telling.true_state([operation], "en")
    assert "der Shop sagt jetzt" in telling.true_state([operation], "de")
    assert operations.result(operation)["message"] == operations.AFTER_ALL
    facts = proofs.gather(operation.ticket_id)
    assert facts.faults("Your refund was not made.").denied
    assert facts.faults("Your refund has been made.").unproven


def test_it_counts_toward_the_limit_of_the_day(buyer, teller):
    operation = settled(stuck(buyer, price=6000), State.FAILED)
    now = database_now()

    def total():
        return policy.get_rolling_total(
            customer_id=buyer.row.pk, shop=operation.shop, now=now, before_id=None
        )

    assert total() == 0
    teller.told(about_refund(operation))
    assert total() == 6000
    decided = propose(make_caller(buyer.row), make_order())
    assert isinstance(decided, gateway.Accepted)


@pytest.mark.parametrize("tool", ["cancel_order", "change_address"])
def test_changes_without_money_are_asked_about_too(buyer, teller, tool):
    operation = settled(stuck(buyer, tool=tool), State.FAILED)

    teller.told(about_change(operation))

    assert Inquiry.objects.get().operation == operation
    assert "it was made after all" in told(operation)[-1]


def test_an_answer_that_a_worker_brings_home_after_the_end_is_heard(buyer):
    operation = on_its_way(buyer)
    order = look(buyer, operation.order_id)
    started, attempt = sending._begin(operation.pk, order, lease(), is_still_granted)
    assert attempt is not None
    carrier = sending.carrier_of(*sending.look_at_subject(operation))
    reconcile.hand_over(operation_id=operation.pk, lease=lease(9), why="step_keeps_failing")
    settled(operation, State.FAILED)

    done = sending.transmit(started, attempt, carrier, lease())

    assert done.state == State.FAILED
    assert Event.objects.get(action="refund.contradicted").data["source"] == "stale_worker"
    assert "it was made after all" in told(operation)[-1]


def test_money_that_came_back_does_not_contradict_that_it_was_not_made(buyer, teller):
    operation = settled(stuck(buyer), State.FAILED)

    teller.told(about_refund(operation, "reversed"))

    assert not Inquiry.objects.exists()


def test_a_second_refund_under_one_key_is_for_the_desk_alone(buyer, teller):
    operation = on_its_way(buyer)
    send(operation)
    operation = of(operation)

    teller.told(about_refund(operation, id=operation.reference))
    assert not Inquiry.objects.exists()
    teller.told(about_refund(operation, id="re_second"))

    assert Inquiry.objects.get().operation == operation
    assert Event.objects.get(action="refund.contradicted").data["reference"] == "re_second"
    assert told(operation) == []
    assert "is done" in telling.true_state([of(operation)], "en")


def test_a_reference_that_a_person_gave_is_no_other_refund(buyer, teller):
    operation = settled(stuck(buyer), State.SUCCEEDED, "page 7 of the books")

    teller.told(about_refund(operation))

    assert not Inquiry.objects.exists()


def test_an_approver_takes_it_off_the_desk(buyer, teller):
    operation = settled(stuck(buyer), State.FAILED)
    teller.told(about_refund(operation))

    inquiries.close(
        operation_id=operation.pk, user_id=approver(operation).pk, note="Paid, in fact."
    )

    assert unresolved.count_for_people(shop_id=None) == 0
    assert of(operation).is_contradicted


def test_of_an_order_refunded_after_all_nothing_is_refunded_before_that_is_cleared_up(
    buyer, teller
):
    """The shop's events say it sooner than its orders show it."""
    operation = settled(stuck(buyer), State.FAILED)
    teller.told(about_refund(operation))
    before = Operation.objects.count()

    decided = propose(make_caller(buyer.row), look(buyer, operation.order_id), amount="5.00")

    assert isinstance(decided, gateway.Refused)
    assert decided.error == "another_change_in_progress"
    assert Operation.objects.count() == before


def test_afterwards_staff_are_asked_about_every_further_refund_of_it(buyer, teller):
    operation = settled(stuck(buyer), State.FAILED)
    teller.told(about_refund(operation))
    inquiries.close(
        operation_id=operation.pk, user_id=approver(operation).pk, note="Their mistake."
    )

    asked = {"order_id": operation.order_id, "amount": "5.00", "reason": "damaged"}
    decided = call(buyer, "refund_order", asked)

    assert isinstance(decided, gateway.Accepted)
    assert decided.operation.required_roles == ["customer", "staff"]
    assert why_staff([decided.operation]) == {
        decided.operation.pk: "The shop contradicts how an earlier change of this order ended"
    }
