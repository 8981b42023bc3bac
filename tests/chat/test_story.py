"""The chat from a customer's side: ask, watch, say yes, keep a receipt."""

import asyncio

import pytest
from channels.layers import channel_layers
from django.utils import timezone

from accounts.models import User
from agents import services
from agents.models import Message, Task, Ticket, TicketStatus
from agents.wording import CARD_HIDDEN
from tests.agents.desk import Desk
from tests.chat.client import Chat, View, in_thread
from tools.models import Operation, Transit

pytestmark = pytest.mark.asyncio


async def _asked(chat: Chat, text: str, **fields) -> Task:
    done = await chat.ask(type="say", text=text, client_message_id="m-1", **fields)
    assert done["type"] == "done", done
    task: Task = await in_thread(Task.objects.get)(pk=done["task"])
    return task


async def test_a_refund_is_shown_asked_about_and_receipted(desk: Desk, ada: str):
    chat = Chat()
    shown = await chat.hello(ada, key="demo")
    task = await _asked(chat, "My mug from order 1042 arrived broken, please refund it")
    await in_thread(desk.work)(task)
    await chat.until(lambda frame: frame["type"] == "task" and frame["task"]["waits_for"])
    action = chat.view.only("action")

    done = await chat.ask(
        type="decide",
        task=task.pk,
        step=action["step"],
        digest=action["digest"],
        decision="yes",
        decision_id="d-1",
    )
    await in_thread(desk.work)(task)
    await chat.until(
        lambda frame: frame["type"] == "message" and "refund" in frame["message"]["text"]
    )
    await chat.leave()

    assert shown["shop"] == {"name": "Juniper & Clay"}
    assert shown["ticket"] is None
    assert action["title"] == "Refund $40.00 for order 1042"
    assert action["lines"] == ["1 \N{MULTIPLICATION SIGN} Stoneware mug (blue)"]
    assert (done["type"], done["status"]) == ("done", "approved")
    receipt = chat.view.only("receipt")
    effect = desk.shop.effects(idempotency_key=f"task-{task.pk}-step-{action['step']}")
    assert [(item["order_id"], item["amount"]) for item in effect] == [("1042", 4000)]
    assert (receipt["order_id"], receipt["amount_text"]) == ("1042", "$40.00")
    assert receipt["reference"].startswith("re_")
    assert chat.view.items["action"][(task.pk, action["step"])]["status"] == "approved"
    assert chat.view.items["task"][task.pk]["is_live"] is False
    assert [item["author"] for item in chat.view.items["message"].values()] == ["customer", "agent"]


async def test_whoever_comes_back_after_any_frame_sees_all_of_it_once(desk: Desk, bob: str):
    watcher = Chat()
    await watcher.hello(bob)
    task = await _asked(watcher, "Please cancel order 1048, I no longer need it")
    await in_thread(desk.work)(task)
    await watcher.until(lambda frame: frame["type"] == "task" and frame["task"]["waits_for"])
    action = watcher.view.only("action")
    await watcher.ask(
        type="decide",
        task=task.pk,
        step=action["step"],
        digest=action["digest"],
        decision="yes",
        decision_id="d-1",
    )
    await in_thread(desk.work)(task)
    await watcher.until(lambda frame: frame["type"] == "message" and frame["message"]["seq"] == 2)
    await watcher.leave()
    whole = watcher.view

    for cut in range(len(watcher.frames)):
        known = View()
        for frame in watcher.frames[: cut + 1]:
            known.apply(frame)
        ticket = known.ticket["id"] if known.ticket else None
        late = Chat(known)
        await late.hello(bob, ticket=ticket, after=known.after())
        await late.leave()

        assert known.items == whole.items, f"after frame {cut}"
        assert known.ticket == whole.ticket
        assert known.seqs == [1, 2]
        assert len(known.events) == len(set(known.events))


async def test_steps_name_the_order_that_is_being_looked_up(desk: Desk, ada: str):
    chat = Chat()
    await chat.hello(ada)
    task = await _asked(chat, "Where is my order 1045?")
    await in_thread(desk.work)(task)
    await chat.until(lambda frame: frame["type"] == "message" and frame["message"]["seq"] == 2)
    await chat.leave()

    tools = [step for step in chat.view.items["step"].values() if step["tool"]]
    assert [(step["tool"], step["about"]) for step in tools][-1] == ("track_parcel", "1045")


async def test_with_redis_away_everything_still_comes(desk: Desk, ada: str, monkeypatch):
    def refuse(*_args, **_options):
        raise ConnectionRefusedError

    layer = channel_layers["default"]
    for name in ("new_channel", "group_add", "group_send", "receive"):
        monkeypatch.setattr(layer, name, refuse)
    chat = Chat()
    await chat.hello(ada)
    task = await _asked(chat, "Where is my order 1045?")
    await in_thread(desk.work)(task)

    told = await chat.until(
        lambda frame: frame["type"] == "message" and frame["message"]["seq"] == 2
    )
    await chat.leave()

    assert told["message"]["author"] == "agent"


async def test_the_same_message_sent_again_is_one_message(desk: Desk, ada: str):
    chat = Chat()
    await chat.hello(ada)
    say = {"type": "say", "text": "Where is my order 1045?", "client_message_id": "m-1"}

    first = await chat.ask(**say)
    again = await chat.ask(**say)
    other = await chat.ask(**say | {"text": "Something else"})
    await chat.leave()

    assert again == first
    assert (other["type"], other["code"]) == ("error", "message-id-reused")
    assert await in_thread(Message.objects.count)() == 1
    assert chat.view.seqs == [1]


async def test_a_message_in_mid_task_joins_it_and_a_new_conversation_does_not(desk: Desk, ada: str):
    chat = Chat()
    await chat.hello(ada)
    task = await _asked(chat, "Please refund order 1043, the chair arrived broken")

    joined = await chat.ask(type="say", text="It was the leg.", client_message_id="m-2")
    apart = await chat.ask(
        type="say", text="Where is my order 1045?", client_message_id="m-3", ticket="new"
    )
    listed = await chat.ask(type="tickets")
    back = await chat.ask(type="open", ticket=task.ticket_id)
    await chat.leave()

    assert joined["task"] == task.pk
    assert apart["ticket"] != task.ticket_id
    assert [item["id"] for item in listed["tickets"]] == [apart["ticket"], task.ticket_id]
    assert [item["text"] for item in back["messages"]][-1] == "It was the leg."


async def test_a_person_can_be_asked_for_and_staff_are_heard(desk: Desk, ada: str):
    chat = Chat()
    await chat.hello(ada)

    done = await chat.ask(type="person")
    task = await in_thread(Task.objects.get)(ticket_id=done["ticket"])
    await in_thread(desk.work)(task)
    await chat.until(lambda frame: frame["type"] == "task" and not frame["task"]["is_live"])
    await chat.leave()

    assert chat.view.items["task"][task.pk]["status"] == "handed_off"
    assert chat.view.ticket is not None
    assert chat.view.ticket["speaker"] == "staff"


async def test_asking_twice_for_a_person_is_asking_once(desk: Desk, ada: str):
    """At once, in two windows, and when staff have it already; not after they gave it back."""
    one, other = Chat(), Chat()
    await one.hello(ada, ticket="new")
    await other.hello(ada, ticket="new")
    wishes = [await chat.ask(type="person") for chat in (one, one, other)]
    task = await in_thread(Task.objects.get)()
    await in_thread(desk.work)(task)
    wishes += [await chat.ask(type="person") for chat in (one, other)]
    said = await in_thread(_said_by_customer)(task.ticket_id)
    await in_thread(_give_back)(task.ticket_id)
    later = await one.ask(type="person")
    await one.leave()
    await other.leave()

    assert {wish["ticket"] for wish in wishes} == {task.ticket_id}
    assert {wish["type"] for wish in wishes} == {"done"}
    assert said == 1
    assert later["ticket"] == task.ticket_id
    assert await in_thread(_said_by_customer)(task.ticket_id) == 2


def _said_by_customer(ticket_id: int) -> int:
    return Message.objects.filter(ticket_id=ticket_id, author="customer").count()


def _give_back(ticket_id: int) -> None:
    staff = User.objects.get(username="staff")
    services.give_back(ticket_id=ticket_id, user=staff, now=timezone.now())


async def test_a_closed_conversation_is_gone_on_with_in_another(desk: Desk, ada: str):
    task = await in_thread(desk.done)("Where is my order 1045?")
    now = timezone.now()
    await in_thread(Ticket.objects.update)(status=TicketStatus.CLOSED, closed_at=now)
    chat = Chat()
    shown = await chat.hello(ada, ticket=task.ticket_id)

    refused = await chat.ask(type="say", text="Thanks", client_message_id="m-1")
    again = await chat.ask(type="say", text="Thanks", client_message_id="m-1", ticket="new")
    await chat.ask(type="open", ticket=task.ticket_id)
    person = await chat.ask(type="person")
    await chat.leave()

    assert shown["ticket"]["status"] == "closed"
    assert (refused["type"], refused["code"]) == ("error", "ticket-closed")
    assert again["type"] == person["type"] == "done"
    assert again["ticket"] == person["ticket"] != task.ticket_id


async def test_a_card_number_comes_back_hidden_and_the_customer_is_told(desk: Desk, ada: str):
    chat = Chat()
    await chat.hello(ada)

    task = await _asked(chat, "Refund order 1042, card 4111 1111 1111 1111")
    while len(chat.view.texts()) < 2:
        await chat.take()
    await chat.leave()

    assert chat.view.texts() == ["Refund order 1042, card •••• 1111", CARD_HIDDEN[0]]
    ticket = await in_thread(Ticket.objects.get)(pk=task.ticket_id)
    assert "4111" not in ticket.subject


async def test_a_task_can_be_stopped(desk: Desk, ada: str):
    chat = Chat()
    await chat.hello(ada)
    task = await _asked(chat, "Please refund order 1043, the chair arrived broken")
    await in_thread(desk.work)(task)
    await chat.until(lambda frame: frame["type"] == "action")

    done = await chat.ask(type="cancel", task=task.pk)
    await chat.until(lambda frame: frame["type"] == "message" and frame["message"]["seq"] == 2)
    await chat.leave()

    assert (done["type"], done["status"]) == ("done", "cancelled")
    operation = await in_thread(Operation.objects.get)(task_id=task.pk)
    assert operation.state == "cancelled"
    assert desk.shop.effects(order_id="1043") == []


async def test_an_idle_socket_holds_no_database_connection(desk: Desk, ada: str):
    chats = [Chat() for _ in range(3)]
    for chat in chats:
        await chat.hello(ada)
    await asyncio.sleep(0.7)  # one look at least

    idle = await in_thread(_connections_in_use)()
    for chat in chats:
        await chat.leave()

    assert idle == 2  # of the test itself, and of the one that asks


def _connections_in_use() -> int:
    from django.db import connection  # noqa: PLC0415

    Ticket.objects.exists()
    stats = connection.pool.get_stats()  # type: ignore[attr-defined]
    return int(stats["pool_size"] - stats["pool_available"])


async def test_a_receipt_says_whether_the_money_is_still_on_its_way(desk: Desk, ada: str):
    desk.shop.fault("pending", times=1)
    await in_thread(desk.done)("Please refund order 1042")
    chat = Chat()

    first = await chat.hello(ada, key="demo")
    await chat.leave()
    await in_thread(Transit.objects.update)(arrived_at=timezone.now())
    chat = Chat()
    second = await chat.hello(ada, key="demo")
    await chat.leave()

    assert [receipt["pending"] for receipt in first["receipts"]] == [True]
    assert [receipt["pending"] for receipt in second["receipts"]] == [False]


async def test_whoever_has_the_chat_open_sees_that_the_money_has_arrived(desk: Desk, ada: str):
    desk.shop.fault("pending", times=1)
    await in_thread(desk.done)("Please refund order 1042")
    chat = Chat()
    await chat.hello(ada, key="demo")
    before = chat.view.only("receipt")

    await in_thread(Transit.objects.update)(arrived_at=timezone.now())
    told = await chat.until(lambda frame: frame["type"] == "receipt", seconds=5)
    await chat.leave()

    assert (before["pending"], told["receipt"]["pending"]) == (True, False)
