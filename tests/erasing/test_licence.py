"""What the database lets an erasure do, whatever code asks it to."""

import itertools

import pytest
from django.db import Error, connection, transaction
from django.utils import timezone

from accounts import keeping
from accounts.models import Customer, ErasedTicket, Erasure, ErasureCause
from agents.casework import Note
from agents.models import Message, Step, StepKind, StepStatus, Task, Ticket
from agents.services.erasure import erase_customer
from approvals.models import Approval
from tests.factories import (
    make_caller,
    make_customer,
    make_operation,
    make_order,
    make_shop,
    make_task,
    make_ticket,
    make_user,
    say_no,
)
from tools.models import Operation, Verdict

pytestmark = pytest.mark.django_db

NOW = timezone.now()
_task_ids = itertools.count(2 * 10**9)


@pytest.fixture
def customer() -> Customer:
    return make_customer(make_shop())


@pytest.fixture
def ticket(customer: Customer) -> Ticket:
    """A case of words: what was said, looked up, refused and why."""
    ticket = make_ticket(customer, last_seq=1)
    task = make_task(
        ticket, pk=next(_task_ids), steps_planned=1, status="succeeded", outcome="answered",
        finished_at=NOW,
    )  # fmt: skip
    Message.objects.create(ticket=ticket, seq=1, author="customer", text="My words", at=NOW)
    Step.objects.create(
        task=task, n=1, kind=StepKind.TOOL, status=StepStatus.FINISHED, tool="find_orders",
        arguments='{"status": "words"}', result={"note": "words"}, planned_at=NOW, finished_at=NOW,
    )  # fmt: skip
    operation = make_operation(
        customer,
        make_order(),
        caller=make_caller(customer, ticket_id=ticket.pk, task_id=task.pk),
    )
    say_no(operation, reason="words of refusal")
    Verdict.objects.create(
        shop=ticket.shop, customer=customer, task_id=task.pk, step_n=1, tool="find_orders",
        gate="shape", rule="fits", finding="allow", inputs={"said": "words"}, policy_version=1, at=NOW,
    )  # fmt: skip
    author = make_user(ticket.shop)
    Note.objects.create(ticket=ticket, author=author, text="words among staff", at=NOW)
    return ticket


def license(ticket: Ticket) -> Erasure:
    erasure = Erasure.objects.create(
        shop=ticket.shop, customer=ticket.customer, cause=ErasureCause.ASKED,
        asked_by="admin:root", asked_at=NOW,
    )  # fmt: skip
    keeping.license_tickets(erasure, [ticket.pk], now=NOW)
    return erasure


def refused(statement: str, *values: int) -> str:
    """The database's own words about a statement that it refuses."""
    with (
        pytest.raises(Error) as caught,
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement, values)
    return str(caught.value)


# One way to take each kind of word away, with a fact that must not change beside it.
ERASE = {
    "agents_message": ("text = '[erased]'", "author = 'agent'"),
    "agents_step": ("arguments = '', result = '{\"erased\": true}'", "cost = 7"),
    "tools_operation": ("seal = '', intent = '', reason = ''", "amount = 1"),
    "tools_verdict": ("inputs = '{}'", "finding = 'deny'"),
    "approvals_approval": ("reason = '[erased]', decision_id = ''", "decided_by = 'staff:eve'"),
}


@pytest.mark.parametrize("table", ERASE)
def test_no_word_goes_without_an_erasure_on_record(ticket: Ticket, table: str):
    words, _ = ERASE[table]

    assert "no erasure of ticket" in refused(f"UPDATE {table} SET {words}")  # noqa: S608


@pytest.mark.parametrize("table", ERASE)
def test_an_erasure_changes_no_fact(ticket: Ticket, table: str):
    license(ticket)
    words, fact = ERASE[table]

    message = refused(f"UPDATE {table} SET {words}, {fact}")  # noqa: S608

    assert "takes words away and changes nothing else" in message


@pytest.mark.parametrize("table", ERASE)
def test_a_licence_lets_no_other_words_be_put_there(ticket: Ticket, table: str):
    license(ticket)
    words, _ = ERASE[table]
    other = (
        words.replace("[erased]", "other words")
        .replace("''", "'other words'")
        .replace('{"erased": true}', '{"other": 1}')
        .replace("'{}'", "'{\"other\": 1}'")
    )

    assert refused(f"UPDATE {table} SET {other}")  # noqa: S608


def test_a_ticket_loses_its_subject_only_on_record_and_only_when_it_is_closed(ticket: Ticket):
    assert "no erasure of ticket" in refused("UPDATE agents_ticket SET subject = '[erased]'")
    license(ticket)

    assert "takes words away" in refused("UPDATE agents_ticket SET subject = '[erased]'")


def test_an_erased_ticket_never_changes_again(ticket: Ticket):
    erase_customer(
        customer_id=ticket.customer_id, cause=ErasureCause.ASKED, by="admin:root", now=NOW
    )

    assert "takes words away" in refused("UPDATE agents_ticket SET last_seq = 9")
    assert "takes words away" in refused("UPDATE agents_ticket SET subject = 'My words'")


def test_whoever_writes_the_mark_themselves_is_served_like_everybody(customer: Customer):
    ticket = make_ticket(customer, subject="[erased]")

    Ticket.objects.filter(pk=ticket.pk).update(last_seq=3)
    assert Ticket.objects.get(pk=ticket.pk).last_seq == 3

    erasure = erase_customer(
        customer_id=customer.pk, cause=ErasureCause.ASKED, by="admin:root", now=NOW
    )
    assert erasure.done_at is not None
    assert Ticket.objects.get(pk=ticket.pk).status == "closed"


def insert(ticket_id: int, erasure_id: int) -> str:
    return refused(
        "INSERT INTO accounts_erasedticket VALUES (%s, now(), %s)", ticket_id, erasure_id
    )


def test_no_licence_for_another_customer_s_ticket(ticket: Ticket):
    other = make_ticket(make_customer(ticket.shop))
    erasure = Erasure.objects.create(
        shop=ticket.shop, customer=ticket.customer, cause="asked", asked_by="admin:x", asked_at=NOW
    )

    assert "is not what erasure" in insert(other.pk, erasure.pk)


def test_no_licence_for_another_ticket_than_the_one_whose_time_is_over(ticket: Ticket):
    other = make_ticket(ticket.customer)
    erasure = Erasure.objects.create(
        shop=ticket.shop, customer=ticket.customer, ticket_id=ticket.pk, cause="retention",
        asked_by="system", asked_at=NOW,
    )  # fmt: skip

    assert "is not what erasure" in insert(other.pk, erasure.pk)


def test_no_licence_from_an_erasure_that_is_done(ticket: Ticket):
    erasure = erase_customer(
        customer_id=ticket.customer_id, cause=ErasureCause.ASKED, by="admin:root", now=NOW
    )
    again = make_ticket(ticket.customer)

    assert "is not what erasure" in insert(again.pk, erasure.pk)


def test_no_licence_under_a_hold(ticket: Ticket):
    erasure = Erasure.objects.create(
        shop=ticket.shop, customer=ticket.customer, cause="asked", asked_by="admin:x", asked_at=NOW
    )
    keeping.place_hold(
        customer_id=ticket.customer_id,
        ticket_id=ticket.pk,
        reason="A letter",
        by="admin:x",
        now=NOW,
    )

    assert "is on hold" in insert(ticket.pk, erasure.pk)


def test_no_licence_while_something_is_under_way(customer: Customer):
    ticket = make_ticket(customer)
    task = make_task(ticket)
    erasure = Erasure.objects.create(
        shop=ticket.shop, customer=customer, cause="asked", asked_by="admin:x", asked_at=NOW
    )
    assert "is under way" in insert(ticket.pk, erasure.pk)

    Task.objects.filter(pk=task.pk).update(status="cancelled", finished_at=NOW)
    make_operation(
        customer, caller=make_caller(customer, ticket_id=ticket.pk, task_id=next(_task_ids))
    )
    assert "is under way" in insert(ticket.pk, erasure.pk)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accounts_erasedticket SET erased_at = now()",
        "DELETE FROM accounts_erasedticket",
        "DELETE FROM accounts_erasure",
        "UPDATE accounts_erasure SET asked_by = 'admin:eve'",
    ],
)
def test_what_is_erased_stays_erased_and_on_record(ticket: Ticket, statement: str):
    license(ticket)

    assert refused(statement)
    assert ErasedTicket.objects.get().ticket_id == ticket.pk


def test_a_hold_cannot_be_removed_or_reworded(ticket: Ticket):
    keeping.place_hold(customer_id=ticket.customer_id, reason="A letter", by="admin:x", now=NOW)

    assert "never deleted" in refused("DELETE FROM accounts_hold")
    assert "says what it said" in refused("UPDATE accounts_hold SET reason = '[erased]'")
    assert "says what it said" in refused("UPDATE accounts_hold SET placed_by = 'admin:eve'")


def test_everything_of_a_case_is_erased_at_once(ticket: Ticket):
    erase_customer(
        customer_id=ticket.customer_id, cause=ErasureCause.ASKED, by="admin:root", now=NOW
    )

    operation = Operation.objects.get(ticket_id=ticket.pk)
    assert (bytes(operation.seal), operation.intent, operation.reason) == (b"", "", "")
    assert len(operation.digest) == 64
    assert Message.objects.get(ticket=ticket).text == "[erased]"
    assert Note.objects.get(ticket=ticket).text == "[erased]"
    assert Step.objects.get(task__ticket=ticket).result == {"erased": True}
    assert Verdict.objects.get(rule="fits").inputs == {}
    assert Approval.objects.get(operation=operation).reason == "[erased]"
