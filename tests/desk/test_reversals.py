"""Money that comes back: a case for staff, told to the customer, and no new history."""

import pytest

from agents.models import Speaker, Ticket, TicketStatus
from approvals.services import is_still_granted
from audit.models import Event
from tests.desk.telling import about_refund, everything
from tests.desk.world import approver, of, on_its_way, stuck, told
from tests.factories import (
    make_approved_operation,
    make_approver,
    make_caller,
    make_shop,
    propose,
)
from tests.tools.desk import call, lease, look
from tools import gateway, operations, reversals, sending, settlement, unresolved
from tools.explain import why_staff
from tools.models import Operation, Reversal, State

pytestmark = pytest.mark.django_db


@pytest.fixture
def paid(buyer):
    """A refund that a look found to have been made; its task has ended, its ticket is closed."""
    operation = stuck(buyer, "error_after")
    settlement.check_now(operation_id=operation.pk, by="staff:dana")
    operation = of(operation)
    assert operation.state == State.SUCCEEDED
    Ticket.objects.filter(pk=operation.ticket_id).update(
        status=TicketStatus.CLOSED, closed_at=operation.finished_at, closed_by="task-1-step-9"
    )
    return operation


@pytest.mark.parametrize("kind", ["reversed", "failed"])
def test_a_case_is_opened_and_history_stays(paid, teller, kind):
    before = Operation.objects.filter(pk=paid.pk).values().get()

    document = about_refund(paid, kind, id=paid.reference, reason="account_closed")
    assert teller.told(document) == "accepted"

    assert Operation.objects.filter(pk=paid.pk).values().get() == before
    case = Reversal.objects.get()
    assert case.event is not None
    assert (case.operation, case.event.kind, case.reason) == (
        paid,
        f"refund.{kind}",
        "account_closed",
    )
    event = Event.objects.get(action="refund.reversed")
    assert event.actor == f"shop:{teller.shop.slug}"
    assert event.data == {"event": case.event.event_id, "type": f"refund.{kind}"}


def test_staff_have_the_ticket_again_and_the_customer_is_told(paid, teller):
    teller.told(about_refund(paid, "reversed"))

    ticket = Ticket.objects.get(pk=paid.ticket_id)
    assert (ticket.status, ticket.speaker, ticket.closed_by) == ("open", Speaker.STAFF, "")
    assert ticket.closed_at is None
    text = told(paid)[-1]
    assert f"the refund of $40.00 for order {paid.order_id} did not stay with you" in text
    assert Event.objects.filter(action="ticket.reopened", ticket_id=ticket.pk).count() == 1


def test_money_that_came_back_is_left_to_refund_again(paid, buyer, teller):
    buyer.shop.reverse(paid.reference)
    order = look(buyer, paid.order_id)
    assert order.refunded == 0
    assert isinstance(propose(make_caller(buyer.row), order), gateway.Refused)

    teller.told(about_refund(paid, "reversed", id=paid.reference))

    assert isinstance(propose(make_caller(buyer.row), order), gateway.Accepted)


def test_a_refund_of_an_order_whose_money_came_back_is_not_made_without_staff(paid, buyer, teller):
    buyer.shop.reverse(paid.reference)
    teller.told(about_refund(paid, "reversed", id=paid.reference))
    close(paid, approver(paid))  # "sent by bank transfer instead"

    decided = propose(make_caller(buyer.row), look(buyer, paid.order_id))

    assert isinstance(decided, gateway.Accepted)
    assert decided.operation.required_roles == ["customer", "staff"]
    other = propose(make_caller(buyer.row), look(buyer, buyer.order(1000)))
    assert isinstance(other, gateway.Accepted)
    assert other.operation.required_roles == ["customer"]


def test_what_came_back_after_the_yes_asks_staff_before_anything_is_sent(paid, buyer, teller):
    order = look(buyer, buyer.order(1000, 2000))
    ours = make_caller(buyer.row, ticket_id=paid.ticket_id)
    first = make_approved_operation(buyer.row, order, caller=ours, items=[item(order, 0)])
    done = sending.send(operation_id=first.pk, lease=lease(), still_granted=is_still_granted)
    order = look(buyer, order.id)
    second = make_approved_operation(buyer.row, order, amount="5.00")
    teller.told(about_refund(done, "reversed", id=done.reference))

    sent = sending.send(operation_id=second.pk, lease=lease(), still_granted=is_still_granted)

    assert (sent.state, sent.reason) == (State.SUPERSEDED, "policy_changed")
    assert buyer.shop.effects(idempotency_key=second.idempotency_key) == []


def item(order, at):
    return {"item_id": order.lines[at].id, "quantity": 1}


def test_why_staff_are_asked_is_said(paid, buyer, teller):
    teller.told(about_refund(paid, "reversed", id=paid.reference))
    buyer.shop.reverse(paid.reference)

    asked = call(buyer, "refund_order", {"order_id": paid.order_id, "reason": "damaged"})

    assert isinstance(asked, gateway.Accepted)
    assert why_staff([asked.operation]) == {
        asked.operation.pk: "An earlier refund of this order came back to the shop"
    }


def test_an_open_ticket_goes_to_staff_without_being_reopened(paid, teller):
    Ticket.objects.update(status="open", closed_at=None, closed_by="")

    teller.told(about_refund(paid, "reversed"))

    assert Ticket.objects.get(pk=paid.ticket_id).speaker == Speaker.STAFF
    assert not Event.objects.filter(action="ticket.reopened").exists()
    assert Event.objects.filter(action="ticket.handed_to_staff").count() == 1


def test_told_twice_it_is_one_case(paid, teller):
    teller.told(about_refund(paid, "reversed"))
    messages = told(paid)

    assert teller.told(about_refund(paid, "failed")) == "accepted"

    assert Reversal.objects.count() == 1
    assert told(paid) == messages
    assert Event.objects.filter(action="refund.reversed").count() == 1


def test_the_shops_own_id_is_enough_to_find_it(paid, teller):
    document = about_refund(paid, "reversed", id=paid.reference, idempotency_key=None)

    assert teller.told(document) == "accepted"
    assert Reversal.objects.get().operation == paid


def test_another_shop_s_word_opens_nothing(paid, teller):
    other = type(teller).of(make_shop())

    assert other.told(about_refund(paid, "reversed", id=paid.reference)) == "unmatched"
    assert not Reversal.objects.exists()


def test_money_that_came_back_before_we_knew_that_it_had_gone(buyer, teller):
    operation = stuck(buyer, "error_after")
    teller.told(about_refund(operation, "reversed"))
    assert not Reversal.objects.exists()

    settlement.propose(
        operation_id=operation.pk,
        user_id=approver(operation).pk,
        outcome=State.SUCCEEDED,
        reference="re_books",
        evidence="It went out and came back.",
    )

    assert of(operation).state == State.SUCCEEDED
    assert Reversal.objects.get().operation == operation
    (text,) = told(operation)
    assert "did not stay with you" in text


def test_money_that_came_back_while_the_answer_was_on_its_way(buyer, teller):
    operation = on_its_way(buyer)
    order = look(buyer, operation.order_id)
    started, attempt = sending._begin(operation.pk, order, lease(), is_still_granted)
    assert attempt is not None
    teller.told(about_refund(operation, "reversed"))
    assert not Reversal.objects.exists()

    carrier = sending.carrier_of(*sending.look_at_subject(operation))
    done = sending.transmit(started, attempt, carrier, lease())

    assert done.state == State.SUCCEEDED
    assert Reversal.objects.get().operation == operation
    assert "did not stay with you" in told(operation)[-1]


def test_the_model_and_the_customer_hear_of_it_as_it_is(paid, teller):
    assert "message" not in operations.result(paid)
    teller.told(about_refund(paid, "reversed"))

    assert operations.result(of(paid))["message"] == operations.CAME_BACK
    assert of(paid).came_back


# --- Closing the case ------------------------------------------------------------------------------


def close(operation, user, note="Sent by bank transfer instead, 12 March."):
    return reversals.close_case(operation_id=operation.pk, user_id=user.pk, note=note)


def test_an_approver_closes_it_with_what_was_done(paid, teller):
    teller.told(about_refund(paid, "reversed"))
    dana = approver(paid)

    case = close(paid, dana)

    assert (case.closed_by, case.note) == (dana.actor, "Sent by bank transfer instead, 12 March.")
    assert list(unresolved.list_open_cases(shop_id=None)) == []
    event = Event.objects.get(action="refund.case_closed")
    assert event.personal_digest is not None


def refused(act):
    before = everything(), list(Reversal.objects.values())
    with pytest.raises(reversals.CaseError):
        act()
    assert (everything(), list(Reversal.objects.values())) == before


def test_a_case_is_closed_once_by_somebody_with_the_right_and_with_a_note(paid, teller):
    refused(lambda: close(paid, approver(paid)))
    teller.told(about_refund(paid, "reversed"))

    refused(lambda: close(paid, make_approver(make_shop())))
    refused(lambda: close(paid, approver(paid, is_approver=False)))
    for note in ("", " \n", "x" * 2001):
        refused(lambda note=note: close(paid, approver(paid), note))
    close(paid, approver(paid))
    refused(lambda: close(paid, approver(paid)))


def test_open_cases_are_listed_for_their_shop_alone(paid, teller):
    teller.told(about_refund(paid, "reversed"))

    assert [case.operation for case in unresolved.list_open_cases(shop_id=paid.shop_id)] == [paid]
    assert list(unresolved.list_open_cases(shop_id=make_shop().pk)) == []
