"""Forms in the chat: done without a model, refused before anything is written when filled in badly."""

import pytest

from agents.models import Message, Task, Ticket
from tests.agents.desk import Desk
from tests.chat.client import Chat, in_thread

pytestmark = pytest.mark.asyncio


async def test_a_form_is_shown_asked_about_and_receipted_with_the_model_away(
    desk: Desk, ada: str, settings
):
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    chat = Chat()
    await chat.hello(ada, locale="de-DE")
    form = {
        "type": "form",
        "tool": "refund_order",
        "arguments": {"order_id": "1042", "reason": "damaged"},
        "client_message_id": "f-1",
    }

    done = await chat.ask(**form)
    again = await chat.ask(**form)
    task = await in_thread(Task.objects.get)(pk=done["task"])
    await in_thread(desk.work)(task)
    await chat.until(lambda frame: frame["type"] == "task" and frame["task"]["waits_for"])
    action = chat.view.only("action")
    await chat.ask(
        type="decide",
        task=task.pk,
        step=action["step"],
        digest=action["digest"],
        decision="yes",
        decision_id="d-1",
    )
    await in_thread(desk.work)(task)
    await chat.until(lambda frame: frame["type"] == "message" and frame["message"]["seq"] == 2)
    await chat.leave()

    assert (done["type"], done["for"], done["ref"]) == ("done", "form", "f-1")
    assert again == done
    assert action["title"] == "Erstattung von 40,00\N{NO-BREAK SPACE}$ für Bestellung 1042"
    assert chat.view.only("receipt")["amount_text"] == "40,00\N{NO-BREAK SPACE}$"
    assert chat.view.texts() == [
        "Bitte erstatten Sie Bestellung 1042\nGrund: beschädigt angekommen",
        (
            "Die Erstattung von 40,00\N{NO-BREAK SPACE}$ für Bestellung 1042 ist erledigt "
            f"(Beleg {chat.view.only('receipt')['reference']})."
        ),
    ]
    assert [effect["amount"] for effect in desk.shop.effects(order_id="1042")] == [4000]


async def test_a_form_that_is_not_filled_in_is_refused_field_by_field(desk: Desk, ada: str):
    chat = Chat()
    await chat.hello(ada)

    refused = await chat.ask(
        type="form",
        tool="change_address",
        arguments={"order_id": "1044", "address": {"name": "Ada"}},
        client_message_id="f-1",
    )
    stranger = await chat.ask(
        type="form",
        tool="close_ticket",
        arguments={"resolution": "x"},
        client_message_id="f-2",
    )
    await chat.leave()

    assert (refused["type"], refused["code"], refused["ref"]) == ("error", "bad-form", "f-1")
    assert {"address.line1", "address.city", "address.country"} <= set(refused["faults"])
    assert stranger["code"] == "bad-form"
    assert await in_thread(Ticket.objects.count)() == 0
    assert await in_thread(Message.objects.count)() == 0


async def test_a_reader_sees_the_cards_in_their_own_language(desk: Desk, bob: str):
    task = await in_thread(desk.ask)(
        "Please cancel order 1048, I no longer need it", customer="bob", locale="en-US"
    )
    await in_thread(desk.work)(task)
    german, british = Chat(), Chat()
    await german.hello(bob, ticket=task.ticket_id, locale="de-AT")
    await british.hello(bob, ticket=task.ticket_id, locale="en-GB")
    await german.leave()
    await british.leave()

    assert german.view.only("action")["title"] == "Bestellung 1048 stornieren"
    assert british.view.only("action")["title"] == "Cancel order 1048"
    assert german.view.only("action")["digest"] == british.view.only("action")["digest"]
