"""What a shop has kept long enough goes; what somebody or something still needs stays."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import Error, connection, transaction
from django.utils import timezone

from accounts import keeping
from accounts.models import Customer, Erasure, Shop
from agents import jobs
from agents.models import Message, Ticket
from agents.services import retention
from audit import services as audit
from audit.models import Event
from tests.audit.facts import tamper
from tests.crash import oracle
from tests.factories import (
    make_caller,
    make_customer,
    make_operation,
    make_shop,
    make_task,
    make_ticket,
    say_no,
)
from tools.models import Operation

pytestmark = pytest.mark.django_db

NOW = timezone.now()
OLD = NOW - timedelta(days=40)
Aged = Callable[..., Ticket]


@pytest.fixture
def shop() -> Shop:
    return make_shop(keep_texts_days=30)


@pytest.fixture
def ada(shop: Shop) -> Customer:
    return make_customer(shop, name="Ada Moreno", email="ada@example.com")


def aged(customer: Customer, at=OLD, **fields) -> Ticket:
    """A ticket with words of its own, here and in the trail, last changed at that moment."""
    ticket = make_ticket(customer, subject="wordcanary", **fields)
    Message.objects.create(ticket=ticket, seq=1, author="customer", text="wordcanary", at=at)
    with transaction.atomic():
        audit.record(
            actor=customer.actor, action="reply.replaced", subject=f"ticket:{ticket.pk}", at=at,
            shop_id=customer.shop_id, ticket_id=ticket.pk, customer=customer.external_id,
            personal="wordcanary",
        )  # fmt: skip
    Ticket.objects.filter(pk=ticket.pk).update(updated_at=at)
    return ticket


def refused_refund(ticket: Ticket) -> Operation:
    task = make_task(ticket, status="succeeded", outcome="refused", finished_at=OLD)
    caller = make_caller(ticket.customer, ticket_id=ticket.pk, task_id=task.pk)
    operation = make_operation(ticket.customer, caller=caller)
    say_no(operation, reason="wordcanary")
    Ticket.objects.filter(pk=ticket.pk).update(updated_at=OLD)
    return operation


def has_words(ticket: Ticket) -> bool:
    texts = [
        Ticket.objects.get(pk=ticket.pk).subject,
        *Message.objects.filter(ticket=ticket).values_list("text", flat=True),
        *[
            audit.read_personal(event) or ""
            for event in Event.objects.filter(ticket_id=ticket.pk, action="reply.replaced")
        ],
    ]
    found = {"wordcanary" in text for text in texts}
    assert len(found) == 1  # all of it or nothing
    return found.pop()


def test_a_ticket_whose_time_is_over_loses_its_words_and_keeps_its_facts(ada: Customer):
    ticket = aged(ada)
    operation = refused_refund(ticket)

    jobs.let_go()

    assert not has_words(ticket)
    after = Operation.objects.get(pk=operation.pk)
    assert (after.amount, after.state, after.digest) == (4000, "rejected", operation.digest)
    assert bytes(after.seal) == b""
    closed = Ticket.objects.get(pk=ticket.pk)
    assert (closed.status, closed.subject) == ("closed", "[erased]")
    event = Event.objects.get(action="texts.erased")
    assert (event.subject, event.actor) == (f"ticket:{ticket.pk}", "system")
    erasure = Erasure.objects.get()
    assert (erasure.cause, erasure.ticket_id) == ("retention", ticket.pk)


@pytest.mark.django_db(transaction=True)
def test_the_chain_holds_and_each_emptied_text_is_on_record(ada: Customer):
    aged(ada)
    call_command("audit_sealer", "--once")

    retention.let_go(now=NOW)

    call_command("audit_sealer", "--once")
    call_command("audit_verify")  # exits when it does not hold
    assert oracle.trail_faults() == []


def test_the_verifier_finds_a_text_that_was_emptied_without_a_record(ada: Customer):
    aged(ada)
    tamper("UPDATE audit_personal_text SET ciphertext = ''")
    call_command("audit_sealer", "--once")

    (fault,) = oracle.trail_faults()
    assert "emptied without a record" in str(fault)


def test_the_database_empties_no_text_that_the_trail_does_not_call_erased(ada: Customer):
    ticket = aged(ada)

    with (
        pytest.raises(Error, match="no erasure of event"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE audit_personal_text SET ciphertext = ''")

    assert has_words(ticket)


def test_newer_texts_of_the_same_customer_stay(ada: Customer):
    old, new = aged(ada), aged(ada, at=NOW - timedelta(days=29))

    assert retention.let_go(now=NOW) == 1

    assert not has_words(old)
    assert has_words(new)
    assert Customer.objects.get(pk=ada.pk).name == "Ada Moreno"


def test_with_the_last_ticket_the_name_goes_too(ada: Customer):
    aged(ada)

    retention.let_go(now=NOW)

    after = Customer.objects.get(pk=ada.pk)
    assert (after.name, after.email) == ("", "")


def test_other_shops_keep_theirs_for_their_own_time(ada: Customer):
    longer = aged(make_customer(make_shop(keep_texts_days=41)))
    for_ever = aged(make_customer(make_shop(keep_texts_days=0)), at=NOW - timedelta(days=4000))
    usual = aged(make_customer(make_shop()), at=NOW - timedelta(days=729))
    mine = aged(ada)

    assert retention.let_go(now=NOW) == 1

    assert [has_words(one) for one in (longer, for_ever, usual, mine)] == [True, True, True, False]


@pytest.mark.parametrize("of_ticket", [False, True])
def test_a_hold_keeps_what_is_due(ada: Customer, of_ticket: bool):
    ticket = aged(ada)
    hold = keeping.place_hold(
        customer_id=ada.pk,
        ticket_id=ticket.pk if of_ticket else None,
        reason="A letter",
        by="admin:root",
        now=NOW,
    )
    assert retention.let_go(now=NOW) == 0
    assert has_words(ticket)

    keeping.lift_hold(hold_id=hold.pk, by="admin:root", now=NOW)
    assert retention.let_go(now=NOW) == 1
    assert not has_words(ticket)


def test_a_hold_on_one_ticket_keeps_no_other(ada: Customer):
    held, other = aged(ada), aged(ada)
    keeping.place_hold(
        customer_id=ada.pk, ticket_id=held.pk, reason="A letter", by="admin:root", now=NOW
    )

    assert retention.let_go(now=NOW) == 1

    assert has_words(held)
    assert not has_words(other)


def test_what_is_under_way_stays(ada: Customer):
    working, asking = aged(ada), aged(ada)
    make_task(working)
    caller = make_caller(ada, ticket_id=asking.pk)
    make_operation(ada, caller=caller)
    Ticket.objects.filter(customer=ada).update(updated_at=OLD)

    assert retention.let_go(now=NOW) == 0

    assert has_words(working)
    assert has_words(asking)
    assert not Erasure.objects.exists()


def test_a_few_at_a_time_and_the_oldest_first(ada: Customer):
    ages = [aged(ada, at=OLD - timedelta(days=days)) for days in (1, 3, 2)]

    assert retention.let_go(now=NOW, limit=2) == 2
    assert [has_words(one) for one in ages] == [True, False, False]
    assert retention.let_go(now=NOW, limit=2) == 1
    assert retention.let_go(now=NOW, limit=2) == 0
    assert Event.objects.filter(action="texts.erased").count() == 3


def test_the_search_for_what_is_due_reads_no_other_shops_tickets(ada: Customer):
    elsewhere = make_customer(make_shop())
    Ticket.objects.bulk_create(
        Ticket(
            shop=elsewhere.shop,
            customer=elsewhere,
            subject="A parcel",
            opened_at=OLD,
            updated_at=OLD,
        )
        for _ in range(4000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE agents_ticket")
    plan = retention._due(ada.shop, NOW).order_by("updated_at").explain()

    assert "Seq Scan on agents_ticket" not in plan
