"""Closing a ticket: one approved e-mail, one closing, and never a second mail by itself."""

from collections.abc import Iterator
from email import message_from_bytes, policy

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.models import User
from agents import runner, services
from agents.models import Task, Ticket
from audit.models import Event
from tests.agents.desk import Desk, claim, operation, reply, steps
from tests.postbox import Postbox, run_postbox
from tools import reconcile
from tools.models import Operation
from tools.seal import open_seal
from tools.sending import Lease


@pytest.fixture
def postbox(desk: Desk, settings) -> Iterator[Postbox]:
    with run_postbox() as box:
        settings.SMTP_URL = box.url
        yield box


def refunded(desk: Desk) -> Task:
    return desk.done("Please refund order 1042")


def asked(desk: Desk) -> Task:
    """A refund was made, and the customer now asks to close the conversation."""
    ticket_id = refunded(desk).ticket_id
    task = desk.ask("That's all, please close this", ticket_id=ticket_id, opens_new_ticket=False)
    task = desk.work(task)
    assert task.status == "waiting_approval", reply(task)
    return task


def closing(task: Task) -> Operation:
    return operation(task)


def ticket(task: Task) -> Ticket:
    return Ticket.objects.get(pk=task.ticket_id)


def test_the_e_mail_is_exactly_what_was_approved_and_tells_what_happened(
    desk: Desk, postbox: Postbox
):
    task = asked(desk)
    content = open_seal(closing(task).seal, closing(task).digest)
    assert ticket(task).status == "open"
    assert postbox.taken == []

    task = desk.say_yes(task)

    assert (task.status, task.outcome) == ("succeeded", "done")
    (envelope,) = postbox.taken
    mail = message_from_bytes(envelope.content, policy=policy.default)
    body = mail.get_body()
    assert body is not None
    assert envelope.rcpt_tos == [content["request"]["recipient"]] == ["ada@example.com"]
    assert mail["Message-ID"] == closing(task).reference
    assert closing(task).idempotency_key in str(mail["Message-ID"])
    assert body.get_content().replace("\r\n", "\n") == content["request"]["text"]
    assert "Refunded $40.00 for order 1042" in content["request"]["text"]
    assert (ticket(task).status, ticket(task).closed_by) == (
        "closed",
        closing(task).idempotency_key,
    )
    closed = Event.objects.get(action="ticket.closed", ticket_id=task.ticket_id)
    assert closed.data == {"closure": closing(task).idempotency_key}


def test_whoever_speaks_german_is_told_in_german(desk: Desk, postbox: Postbox):
    done = desk.done("Please refund order 1042")
    Ticket.objects.filter(pk=done.ticket_id).update(locale="de-AT")
    task = desk.ask(
        "That's all, please close this", ticket_id=done.ticket_id, opens_new_ticket=False
    )
    task = desk.work(task)
    content = open_seal(closing(task).seal, closing(task).digest)

    task = desk.say_yes(task)

    reference = operation(done).reference
    assert content["request"]["subject"] == (
        f"Ihre Anfrage an {task.shop.name} ist beendet (Nr. {task.ticket_id})"
    )
    assert content["request"]["text"].splitlines() == [
        "Guten Tag,",
        "",
        f"Ihre Anfrage Nr. {task.ticket_id} ist beendet. Das wurde getan:",
        f"- $\N{NO-BREAK SPACE}40,00 für Bestellung 1042 erstattet (Beleg {reference})",
        "",
        "Wenn etwas fehlt, schreiben Sie uns einfach wieder im Chat.",
        "",
        task.shop.name,
    ]
    (envelope,) = postbox.taken
    mail = message_from_bytes(envelope.content, policy=policy.default)
    body = mail.get_body()
    assert body is not None
    assert mail["Subject"] == content["request"]["subject"]
    assert body.get_content().replace("\r\n", "\n") == content["request"]["text"]


def test_another_language_meanwhile_supersedes_the_closing(desk: Desk, postbox: Postbox):
    task = asked(desk)
    Ticket.objects.filter(pk=task.ticket_id).update(locale="de")

    task = desk.work(desk.decide(task, is_yes=True))

    assert Operation.objects.get(task_id=task.pk, step_n=2).state == "superseded"
    assert ticket(task).status == "open"
    assert postbox.taken == []


def test_a_no_leaves_the_ticket_open_and_sends_nothing(desk: Desk, postbox: Postbox):
    task = desk.say_no(asked(desk))

    assert task.status == "succeeded"
    assert ticket(task).status == "open"
    assert postbox.taken == []


def test_a_closed_ticket_takes_no_message_and_a_new_one_opens(desk: Desk, postbox: Postbox):
    task = desk.say_yes(asked(desk))

    with pytest.raises(services.TicketClosedError):
        desk.submit("hello", ticket_id=task.ticket_id)
    assert desk.submit("hello").ticket.pk != task.ticket_id


def test_what_the_customer_writes_meanwhile_supersedes_the_closing(desk: Desk, postbox: Postbox):
    task = asked(desk)
    desk.submit("One more thing", ticket_id=task.ticket_id)

    task = desk.decide(task, is_yes=True)
    task = desk.work(task)

    assert Operation.objects.get(task_id=task.pk, step_n=2).state == "superseded"
    assert ticket(task).status == "open"
    assert postbox.taken == []


def test_a_mail_server_that_is_away_holds_the_closing_back_and_it_goes_on_later(
    desk: Desk, settings
):
    with run_postbox() as box:
        settings.SMTP_URL = box.url
        task = asked(desk)
    task = desk.say_yes(task)
    assert closing(task).state == "approved"
    assert ticket(task).status == "open"

    with run_postbox() as box:
        settings.SMTP_URL = box.url
        task = desk.wake(task)
        assert len(box.taken) == 1

    assert (task.status, closing(task).state) == ("succeeded", "succeeded")
    assert ticket(task).status == "closed"


def test_what_the_customer_writes_while_it_is_held_back_supersedes_the_closing(
    desk: Desk, settings
):
    with run_postbox() as box:
        settings.SMTP_URL = box.url
        task = asked(desk)
    task = desk.say_yes(task)
    desk.submit("One more thing", ticket_id=task.ticket_id)

    with run_postbox() as box:
        settings.SMTP_URL = box.url
        desk.wake(task)

    assert box.taken == []
    assert Operation.objects.get(task_id=task.pk, step_n=2).state == "superseded"
    assert ticket(task).status == "open"


def test_a_refused_recipient_is_told_and_nothing_is_sent_again(desk: Desk, postbox: Postbox):
    postbox.refuse_recipient = "550 no such mailbox"

    task = desk.say_yes(asked(desk))

    assert closing(task).state == "failed"
    assert postbox.taken == []
    assert "e-mailed" not in reply(task)
    assert ticket(task).status == "open"
    told = Event.objects.filter(action__startswith="ticket.", ticket_id=task.ticket_id)
    assert list(told.order_by("pk").values_list("action", flat=True)) == [
        "ticket.opened",
        "ticket.closed",
        "ticket.reopened",
    ]


def test_an_unknown_mail_is_never_sent_again_and_a_person_is_called(desk: Desk, postbox: Postbox):
    postbox.hold = 2.5
    task = desk.say_yes(asked(desk))
    assert closing(task).state == "unknown"

    task = desk.wake(task)

    assert (task.status, task.reason) == ("handed_off", "mail_outcome_unknown")
    assert closing(task).state == "needs_person"
    assert "not be sent twice" in reply(task)
    assert len(postbox.taken) == 1
    assert ticket(task).status == "closed"


def test_a_worker_lost_after_the_mail_sends_no_second_one(desk: Desk, postbox: Postbox):
    task = desk.decide(asked(desk), is_yes=True)
    held = claim(task)
    runner.run(held)
    assert len(postbox.taken) == 1
    Task.objects.filter(pk=task.pk).update(lease_until=timezone.now())

    task = desk.work(task)

    assert (task.status, closing(task).state) == ("succeeded", "succeeded")
    assert len(postbox.taken) == 1


def test_a_conversation_whose_refund_is_still_being_checked_is_not_closed(
    desk: Desk, postbox: Postbox
):
    task = desk.decide(desk.work(desk.ask("Please refund order 1042")), is_yes=True)
    desk.shop.fault("timeout_after", scope={"path": "/refunds"}, times=1)
    task = desk.work(task)
    lease = Lease(epoch=task.epoch, ends_at=0)
    reconcile.hand_over(operation_id=operation(task).pk, lease=lease, why="nobody looks")
    task = desk.wake(task)
    assert (task.status, operation(task).state) == ("handed_off", "needs_person")
    staff = User.objects.get(username="staff")
    services.take_over(ticket_id=task.ticket_id, user=staff, now=timezone.now())
    services.give_back(ticket_id=task.ticket_id, user=staff, now=timezone.now())

    later = desk.ask(
        "That's all, please close this", ticket_id=task.ticket_id, opens_new_ticket=False
    )
    later = desk.work(later)

    assert steps(later)[1].error == "another_change_in_progress"
    assert not Operation.objects.filter(task_id=later.pk).exists()
    assert ticket(later).status == "open"
    assert postbox.taken == []


@pytest.mark.parametrize("email", ["", "ada@example.com\r\nBcc: evil@example.com", "a@b, c@d"])
def test_no_address_or_an_odd_one_is_refused(desk: Desk, postbox: Postbox, email: str):
    done = refunded(desk)
    done.customer.email = email
    done.customer.save(update_fields=["email"])
    task = services.submit(
        customer_id=done.customer_id,
        text="That's all, please close this",
        client_message_id="close",
        now=timezone.now(),
        ticket_id=done.ticket_id,
    ).task
    assert task is not None

    task = desk.work(task)

    assert not Operation.objects.filter(task_id=task.pk).exists()
    assert steps(task)[1].error == "bad_address"
    assert postbox.taken == []


def test_a_shop_without_mail_offers_no_closing(desk: Desk, settings):
    settings.SMTP_URL = ""
    done = refunded(desk)
    task = desk.ask("please close this", ticket_id=done.ticket_id, opens_new_ticket=False)

    task = desk.work(task)

    assert steps(task)[1].error == "tool_off"
    assert ticket(task).status == "open"


def test_the_database_holds_one_open_closing_per_ticket(desk: Desk, postbox: Postbox):
    task = asked(desk)
    twin = closing(task)
    twin.pk = None
    twin.idempotency_key = "task-0-step-0"
    twin.step_n = 99

    with pytest.raises(IntegrityError), transaction.atomic():
        twin.save(force_insert=True)
