"""Customers, staff and the shop together: nobody is told more, or less, than what has happened."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Shop, User
from agents import record, runner, services
from agents.models import Message, Ticket
from audit.models import Event
from tests.agents.conftest import desk, model_process
from tests.agents.desk import Desk, claim, operation, reply
from tests.desk.telling import Teller, about_refund
from tools import reconcile, settlement
from tools.models import Operation, State

__all__ = ["desk", "model_process"]

pytestmark = pytest.mark.django_db


def lose_the_answer(desk: Desk, monkeypatch):
    """A refund that the shop has made while we heard nothing, and that nobody could look up in time."""
    monkeypatch.setattr(reconcile, "GIVE_UP_AFTER", timedelta(0))
    desk.shop.fault("error_after", scope={"path": "/refunds"}, times=1)
    desk.shop.fault("error_before", scope={"path": "/effects"})
    task = desk.say_yes(desk.work(desk.ask("Please refund order 1042")))
    assert operation(task).state == State.UNKNOWN
    return task


def test_what_a_person_settles_reaches_the_customer_of_a_task_long_over(desk: Desk, monkeypatch):
    task = desk.wake(lose_the_answer(desk, monkeypatch))
    assert (task.status, operation(task).state) == ("handed_off", "needs_person")
    assert "can't confirm yet" in reply(task)
    staff = User.objects.get(username="staff")

    settlement.propose(
        operation_id=operation(task).pk,
        user_id=staff.pk,
        outcome=State.SUCCEEDED,
        reference="re_books",
        evidence="The shop's books of today.",
    )

    assert "is done (reference re_books)" in reply(task)
    assert [effect["amount"] for effect in desk.shop.effects()] == [4000]


def test_a_task_that_is_just_ending_tells_what_was_settled_meanwhile(desk: Desk, monkeypatch):
    task = lose_the_answer(desk, monkeypatch)
    type(task).objects.filter(pk=task.pk).update(wake_at=timezone.now())
    held = claim(task)
    outcome = runner.run(held)
    assert operation(task).state == State.NEEDS_PERSON
    desk.shop.clear_faults()

    settlement.check_now(operation_id=operation(task).pk, by="staff:staff")
    assert Message.objects.filter(ticket=task.ticket, author="agent").count() == 0
    record.record(held, outcome)
    task = desk.work(task)

    assert (task.status, task.outcome) == ("succeeded", "done")
    assert operation(task).reference in reply(task)
    assert Message.objects.filter(ticket=task.ticket, author="agent").count() == 1


def test_an_event_of_the_shop_settles_it_before_anybody_is_asked(desk: Desk, monkeypatch):
    task = lose_the_answer(desk, monkeypatch)
    Teller.of(Shop.objects.get(slug="demo")).told(about_refund(operation(task)))

    task = desk.wake(task)

    assert (task.status, task.outcome) == ("succeeded", "done")
    assert "$40.00" in reply(task)
    assert len(desk.shop.effects()) == 1


def test_nobody_boasts_of_money_that_came_back(desk: Desk, settings):
    task = desk.done("Please refund order 1042")
    Teller.of(Shop.objects.get(slug="demo")).told(
        about_refund(operation(task), "reversed", id=operation(task).reference)
    )
    assert Ticket.objects.get(pk=task.ticket_id).speaker == "staff"
    services.give_back(
        ticket_id=task.ticket_id, user=User.objects.get(username="staff"), now=timezone.now()
    )
    settings.MODEL = desk.model.script(
        "boast", [{"content": "I have refunded $40.00 for order 1042."}]
    )

    again = desk.submit("And is it done?", ticket_id=task.ticket_id).task
    assert again is not None
    again = desk.work(again)

    assert reply(again) == (
        "The refund of $40.00 for order 1042 was made, but the money came back to the shop since. "
        "A colleague takes care of it."
    )
    assert Event.objects.filter(task_id=again.pk, action="reply.replaced").count() == 1
    assert Operation.objects.get().state == State.SUCCEEDED


def test_nobody_boasts_of_money_that_is_on_its_way(desk: Desk, settings):
    desk.shop.fault("pending", times=1)
    task = desk.done("Please refund order 1042")
    reference = operation(task).reference
    assert f"is on its way (reference {reference})" in reply(task)
    settings.MODEL = desk.model.script("paid", [{"content": "Your refund has been paid out."}])

    def asked_again():
        again = desk.submit("Is it there?", ticket_id=task.ticket_id, opens_new_ticket=False).task
        assert again is not None
        return desk.work(again)

    assert reply(asked_again()) == (
        f"The refund of $40.00 for order 1042 is on its way (reference {reference})."
    )
    assert Event.objects.filter(action="reply.replaced").count() == 1
    Teller.of(Shop.objects.get(slug="demo")).told(about_refund(operation(task), id=reference))

    assert reply(asked_again()) == "Your refund has been paid out."


def test_nobody_boasts_of_it_in_another_ticket_either(desk: Desk, settings):
    desk.shop.fault("pending", times=1)
    task = desk.done("Please refund order 1042")
    reference = operation(task).reference
    call = {"name": "find_orders", "arguments": {"order_id": "1042", "status": None}}
    said = "Your refund of $40.00 for order 1042 has been paid out."
    settings.MODEL = desk.model.script(
        "elsewhere",
        [{"tool_calls": [call]}, {"content": said}, {"tool_calls": [call]}, {"content": said}],
    )

    other = desk.done("Is my money for order 1042 there?")

    assert other.ticket_id != task.ticket_id
    assert reply(other) == (
        f"The refund of $40.00 for order 1042 is on its way (reference {reference})."
    )
    Teller.of(Shop.objects.get(slug="demo")).told(about_refund(operation(task), id=reference))
    assert reply(desk.done("And now, for order 1042?")) == said
