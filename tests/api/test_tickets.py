"""The customer's conversations."""

import pytest
from django.utils import timezone

from agents import services
from agents.api import tickets
from agents.models import Ticket
from tests.accounts.factories import make_user
from tests.api.clients import Api, end, problem

pytestmark = pytest.mark.django_db


def test_conversations_are_listed_newest_first_in_pages(ada: Api):
    mine = [ada.ask(f"Question {n}").ticket_id for n in range(3)]

    first = ada.get("/v1/tickets?limit=2").json()
    second = ada.get(f"/v1/tickets?limit=2&cursor={first['next_cursor']}").json()

    assert [each["id"] for each in first["tickets"]] == mine[:0:-1]
    assert [each["id"] for each in second["tickets"]] == mine[:1]
    assert second["next_cursor"] is None
    assert first["tickets"][0]["subject"] == "Question 2"


def test_a_conversation_is_read_from_where_one_stopped(ada: Api, signer):
    task = end(ada.ask("First"))
    user = make_user(signer.shop, first_name="Dana", last_name="Reyes")
    services.take_over(ticket_id=task.ticket_id, user=user, now=timezone.now())
    services.reply_as_staff(ticket_id=task.ticket_id, user=user, text="Second", now=timezone.now())

    whole = ada.get(f"/v1/tickets/{task.ticket_id}").json()
    rest = ada.get(f"/v1/tickets/{task.ticket_id}?after=1").json()

    assert [(m["seq"], m["author"], m["text"]) for m in whole["messages"]] == [
        (1, "customer", "First"),
        (2, "staff", "Second"),
    ]
    assert rest["messages"] == whole["messages"][1:]
    assert rest["messages"][0]["author_name"] == "Dana Reyes"
    assert (whole["speaker"], whole["has_more"]) == ("staff", False)


def test_a_long_conversation_comes_in_parts(ada: Api, monkeypatch):
    monkeypatch.setattr(tickets, "MAX_MESSAGES", 2)
    task = ada.ask("1")
    for n in (2, 3):
        ada.post(f"/v1/tasks/{task.pk}/messages", {"message": str(n)})

    first = ada.get(f"/v1/tickets/{task.ticket_id}").json()
    second = ada.get(f"/v1/tickets/{task.ticket_id}?after=2").json()

    assert ([m["text"] for m in first["messages"]], first["has_more"]) == (["1", "2"], True)
    assert ([m["text"] for m in second["messages"]], second["has_more"]) == (["3"], False)


@pytest.mark.parametrize("after", ["-1", "x", "", "1.5", "²", "9" * 10])
def test_the_number_of_a_message_is_one(ada: Api, after: str):
    ticket = ada.ask().ticket_id

    problem(ada.get(f"/v1/tickets/{ticket}?after={after}"), 400, "bad-page")


def test_a_closed_conversation_can_still_be_read(ada: Api):
    ticket = end(ada.ask("Bye")).ticket_id
    Ticket.objects.update(status="closed", closed_at=timezone.now())

    body = ada.get(f"/v1/tickets/{ticket}").json()

    assert (body["status"], body["messages"][0]["text"]) == ("closed", "Bye")
    assert body["closed_at"]
