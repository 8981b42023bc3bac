"""Erasing a customer of whom something is under way, and whom somebody has put on hold."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import Sum
from django.utils import timezone

from accounts import keeping
from accounts.identity import IdentityError, refuse_unwelcome
from accounts.models import Customer, Delegation, ErasureCause, Hold
from agents import jobs
from agents.models import Task, Ticket
from agents.services.erasure import erase_customer, finish_erasures
from approvals.models import Approval
from audit.models import Event
from tests.desk.telling import Teller, about_refund, everything
from tests.desk.world import approver, of, on_its_way, stuck
from tests.factories import make_caller, make_operation, make_task, make_ticket
from tests.shop_floor import Buyer, delegate
from tests.tools.desk import look, writes
from tools import settlement
from tools.models import Observation, Operation, Settlement, State
from tools.seal import BrokenSealError, open_seal

pytestmark = pytest.mark.django_db


def erase(buyer: Buyer):
    return erase_customer(
        customer_id=buyer.row.pk, cause=ErasureCause.ASKED, by="admin:root", now=timezone.now()
    )


def asked(buyer: Buyer) -> Operation:
    """A refund that waits for its customer's yes."""
    ticket = make_ticket(buyer.row)
    task = make_task(ticket, steps_planned=1)
    operation = make_operation(
        buyer.row,
        look(buyer, buyer.order(4000)),
        caller=make_caller(buyer.row, ticket_id=ticket.pk, task_id=task.pk),
    )
    Task.objects.filter(pk=task.pk).update(operation=operation, status="waiting_approval")
    return operation


def settle(operation: Operation) -> None:
    settlement.propose(
        operation_id=operation.pk,
        user_id=approver(operation).pk,
        outcome=State.SUCCEEDED,
        reference="re_books",
        evidence="evidencecanary in the books",
    )


def words_of(operation: Operation) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT concat(o::text, (SELECT string_agg(s::text, ' ') FROM tools_settlement s"
            " WHERE s.operation_id = o.id)) FROM tools_operation o WHERE id = %s",
            [operation.pk],
        )
        return str(cursor.fetchone()[0])


def test_what_nobody_has_sent_is_taken_back_and_then_everything_is_erased(buyer):
    operation = asked(buyer)

    erasure = erase(buyer)

    assert erasure.done_at is not None
    after = of(operation)
    assert (after.state, bytes(after.seal), after.amount) == (State.CANCELLED, b"", 4000)
    assert Approval.objects.get(operation=operation).status == "withdrawn"
    assert Task.objects.get(pk=operation.task_id).status == "cancelled"
    assert Ticket.objects.get(pk=operation.ticket_id).subject == "[erased]"
    assert writes(buyer, operation) == []


def test_an_approved_change_is_not_sent_any_more(buyer):
    operation = on_its_way(buyer)

    assert erase(buyer).done_at is not None

    assert of(operation).state == State.CANCELLED
    assert writes(buyer, operation) == []


def test_an_erasure_waits_for_what_was_sent_and_is_finished_after_it(buyer):
    operation = stuck(buyer)
    subject = Ticket.objects.get(pk=operation.ticket_id).subject

    erasure = erase(buyer)

    assert erasure.done_at is None
    assert finish_erasures(now=timezone.now()) == 0
    assert Ticket.objects.get(pk=operation.ticket_id).subject == subject
    assert open_seal(of(operation).seal, operation.digest)["order"] == operation.order_id
    assert Delegation.objects.get(customer=buyer.row).revoked_at is None  # looking up needs it

    settle(operation)
    jobs.erase()

    after = of(operation)
    assert (after.state, after.amount, after.reference) == (State.SUCCEEDED, 4000, "re_books")
    assert "evidencecanary" not in words_of(operation)
    assert Settlement.objects.get(operation=operation).evidence == "[erased]"
    with pytest.raises(BrokenSealError):
        open_seal(after.seal, after.digest)


def test_nobody_signs_in_as_a_customer_who_is_being_erased(buyer):
    stuck(buyer)
    erase(buyer)
    later = timezone.now() + timedelta(minutes=5)

    with pytest.raises(IdentityError) as caught:
        refuse_unwelcome(Customer.objects.get(pk=buyer.row.pk), later)

    assert caught.value.code == "erasing"


def test_a_token_from_before_the_erasure_brings_nothing_back(buyer):
    issued_at = timezone.now() - timedelta(seconds=5)

    erase(buyer)

    customer = Customer.objects.get(pk=buyer.row.pk)
    assert (customer.name, customer.email) == ("", "")
    with pytest.raises(IdentityError) as caught:
        refuse_unwelcome(customer, issued_at)
    assert caught.value.code == "signed_out"
    refuse_unwelcome(customer, timezone.now() + timedelta(seconds=5))  # who comes back is welcome


def test_the_shop_is_told_and_the_tokens_are_gone(buyer):
    erase(buyer)

    delegation = Delegation.objects.get(customer=buyer.row)
    assert delegation.revoked_reason == "erased"
    assert bytes(delegation.access_token_encrypted) == b""
    assert bytes(delegation.refresh_token_encrypted) == b""


def test_asking_twice_is_one_erasure(buyer):
    stuck(buyer)

    assert erase(buyer).pk == erase(buyer).pk

    assert Event.objects.filter(action="erasure.asked").count() == 1


def test_a_customer_who_came_back_is_erased_again_with_the_new_words_only(buyer):
    first = asked(buyer)
    erase(buyer)
    delegate(buyer.row, buyer.shop)
    again = asked(buyer)

    erasure = erase(buyer)

    assert [row.ticket_id for row in erasure.tickets.all()] == [again.ticket_id]
    assert bytes(of(again).seal) == b""
    assert of(first).state == State.CANCELLED


def test_the_24_hour_total_outlives_the_words(buyer):
    operation = stuck(buyer)
    settle(operation)
    mine = Operation.objects.filter(customer=buyer.row, kind="refund", state=State.SUCCEEDED)
    before = mine.aggregate(total=Sum("amount"))

    erase(buyer)

    assert mine.aggregate(total=Sum("amount")) == before == {"total": 4000}


def test_another_customer_s_words_stay(new_buyer):
    ada, bob = new_buyer(), new_buyer()
    asked(ada)
    theirs = asked(bob)

    erase(ada)

    assert of(theirs).state == State.AWAITING_APPROVAL
    assert open_seal(of(theirs).seal, theirs.digest)["customer"] == bob.row.external_id
    assert Customer.objects.get(pk=bob.row.pk).name == bob.row.name


def test_what_the_shop_tells_after_an_erasure_is_kept_without_its_words(buyer, shop_row):
    operation = stuck(buyer)
    settle(operation)
    erase(buyer)

    event = about_refund(operation, "reversed", id="re_books", reason="reasoncanary closed account")
    Teller.of(shop_row).told(event)

    (seen,) = Observation.objects.filter(operation=operation, source="webhook")
    assert "reasoncanary" not in str(seen.body)
    assert Ticket.objects.get(pk=operation.ticket_id).status == "closed"


# --- Holds --------------------------------------------------------------------------------------


def place(buyer: Buyer, ticket_id: int | None = None) -> Hold:
    return keeping.place_hold(
        customer_id=buyer.row.pk,
        ticket_id=ticket_id,
        reason="holdcanary: a letter of their lawyer",
        by="admin:root",
        now=timezone.now(),
    )


@pytest.mark.parametrize("of_ticket", [False, True])
def test_a_hold_stops_an_erasure_and_nothing_is_written(buyer, of_ticket):
    operation = asked(buyer)
    place(buyer, operation.ticket_id if of_ticket else None)
    before = everything()

    with pytest.raises(keeping.HeldError):
        erase(buyer)

    assert everything() == before
    assert of(operation).state == State.AWAITING_APPROVAL


def test_a_hold_stops_an_erasure_that_waits_and_lifting_it_lets_it_go_on(buyer):
    operation = stuck(buyer)
    erase(buyer)
    hold = place(buyer)
    settle(operation)

    assert finish_erasures(now=timezone.now()) == 0
    assert bytes(of(operation).seal) != b""

    keeping.lift_hold(hold_id=hold.pk, by="admin:root", now=timezone.now())
    assert finish_erasures(now=timezone.now()) == 1
    assert bytes(of(operation).seal) == b""
    assert Hold.objects.get(pk=hold.pk).reason == "[erased]"


def test_a_hold_says_who_and_why_on_the_trail(buyer):
    hold = place(buyer)
    keeping.lift_hold(hold_id=hold.pk, by="admin:other", now=timezone.now())

    events = Event.objects.filter(subject=f"hold:{hold.pk}").order_by("pk")
    assert [(event.action, event.actor) for event in events] == [
        ("hold.placed", "admin:root"),
        ("hold.lifted", "admin:other"),
    ]


def test_a_hold_is_placed_once_and_lifted_once(buyer):
    hold = place(buyer)
    with pytest.raises(keeping.HoldExistsError):
        place(buyer)
    keeping.lift_hold(hold_id=hold.pk, by="admin:root", now=timezone.now())
    before = everything()

    with pytest.raises(keeping.HoldOverError):
        keeping.lift_hold(hold_id=hold.pk, by="admin:root", now=timezone.now())

    assert everything() == before
    assert Hold.objects.count() == 1


@pytest.mark.parametrize("reason", ["", "  ", "x" * 301])
def test_a_hold_needs_a_reason(buyer, reason):
    with pytest.raises(keeping.ReasonMissingError):
        keeping.place_hold(
            customer_id=buyer.row.pk, reason=reason, by="admin:root", now=timezone.now()
        )
    assert not Hold.objects.exists()
