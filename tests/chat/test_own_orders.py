"""A customer's own orders to choose from: theirs alone, in their words, and never in the way."""

import asyncio
import json

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Customer
from accounts.services import revoke_delegation
from agents.chat import allowance
from agents.consumers import sockets
from agents.models import Message, Task
from tests.agents.desk import Desk
from tests.chat.client import Chat, Frame, in_thread
from tools.models import Operation, Switch

pytestmark = pytest.mark.asyncio
NBSP = "\N{NO-BREAK SPACE}"


async def ask_for_orders(chat: Chat) -> Frame:
    await chat.send(type="orders")
    return await chat.until(lambda frame: frame["type"] in {"orders", "error"})


async def numbers_of(token: str) -> set[str]:
    chat = Chat()
    await chat.hello(token)
    told = await ask_for_orders(chat)
    await chat.leave()
    return {order["order_id"] for order in told["orders"]}


async def test_the_newest_come_first_with_status_and_total_in_the_readers_words(
    desk: Desk, ada: str
):
    german, american = Chat(), Chat()
    await german.hello(ada, locale="de-DE")
    await american.hello(ada, locale="en-US")
    told = await ask_for_orders(german)
    same = await ask_for_orders(american)
    await german.leave()
    await american.leave()

    placed = {
        order["order_id"]: desk.shop.order(order["order_id"])["placed_at"]
        for order in told["orders"]
    }
    assert list(placed) == sorted(placed, key=lambda number: placed[number], reverse=True)
    by_number = {order["order_id"]: order for order in told["orders"]}
    assert by_number["1011"] == {
        "order_id": "1011",
        "status": "delivered",
        "status_text": "Geliefert",
        "total_text": f"88,00{NBSP}$",
        "items": [
            {
                "item_id": "1011-1",
                "title": "Bath towel",
                "variant": "white",
                "left": 3,
                "unit_text": f"22,00{NBSP}$",
            }
        ],
    }
    in_english = {order["order_id"]: order for order in same["orders"]}["1011"]
    assert (in_english["status_text"], in_english["total_text"]) == ("Delivered", "$88.00")
    assert told["has_more"] is False


async def test_everybody_sees_their_own(desk: Desk, ada: str, bob: str):
    adas, bobs = await numbers_of(ada), await numbers_of(bob)

    assert "1042" in adas
    assert "1048" in bobs
    assert adas & bobs == set()


async def test_looking_opens_nothing_and_is_no_step(desk: Desk, ada: str):
    await numbers_of(ada)

    assert await in_thread(Task.objects.count)() == 0
    assert await in_thread(Message.objects.count)() == 0


async def test_a_shop_that_is_away_is_told_of_and_nothing_waits_for_it(
    desk: Desk, ada: str, settings
):
    settings.SHOP_TIMEOUT = 1
    chat = Chat()
    await chat.hello(ada)
    await ask_for_orders(chat)
    desk.shop.fault("timeout_before", scope={"path": "/api/orders"}, ms=30_000)
    await chat.send(type="orders")
    await asyncio.sleep(0.2)
    await chat.send(type="tickets")

    first = await chat.until(lambda frame: frame["type"] in {"orders", "error", "tickets"})
    then = await chat.until(lambda frame: frame["type"] in {"orders", "error"})
    await chat.leave()

    assert first["type"] == "tickets"
    assert (then["for"], then["code"]) == ("orders", "shop-unavailable")


async def test_what_is_switched_off_is_not_looked_at(desk: Desk, ada: str):
    await in_thread(Switch.objects.create)(
        tool="find_orders", reason="Checking", changed_by="system", changed_at=timezone.now()
    )
    chat = Chat()
    await chat.hello(ada)
    desk.shop.forget_calls()

    told = await ask_for_orders(chat)
    await chat.leave()

    assert (told["type"], told["code"]) == ("error", "unavailable")
    assert [call for call in desk.shop.calls() if call["path"].startswith("/api")] == []


async def test_whoever_looks_all_the_time_is_asked_to_wait(desk: Desk, ada: str, monkeypatch):
    monkeypatch.setattr(allowance, "LOOKS_PER_MINUTE", 0)
    chat = Chat()
    await chat.hello(ada)
    desk.shop.forget_calls()

    told = await ask_for_orders(chat)
    await chat.leave()

    assert (told["type"], told["code"]) == ("error", "too-many-requests")
    assert [call for call in desk.shop.calls() if call["path"].startswith("/api")] == []


async def test_without_leave_to_act_nothing_is_shown(desk: Desk, ada: str):
    chat = Chat()
    await chat.hello(ada)
    customer = await in_thread(Customer.objects.get)(external_id="ada")
    await in_thread(revoke_delegation)(
        customer_id=customer.pk, reason="signed_out", actor="system", now=timezone.now()
    )
    desk.shop.forget_calls()

    await chat.send(type="orders")

    assert await chat.closed() == sockets.UNAUTHENTICATED
    assert [frame for frame in chat.frames if frame["type"] == "orders"] == []
    assert [call for call in desk.shop.calls() if call["path"].startswith("/api")] == []


async def test_without_a_socket_they_are_told_the_same(desk: Desk, ada: str, client: Client):
    chat = Chat()
    await chat.hello(ada, locale="de-DE")
    told = await ask_for_orders(chat)
    await chat.leave()

    answer = await in_thread(client.post)(
        "/widget/exchange",
        json.dumps({"locale": "de-DE", "frame": {"type": "orders"}}),
        content_type="application/json",
        headers={"Authorization": f"Bearer {ada}"},
    )

    assert [frame["type"] for frame in answer.json()["frames"]] == ["snapshot", "orders"]
    assert answer.json()["frames"][1] == told


async def test_single_lines_are_refunded_and_shown_as_sealed(desk: Desk, ada: str, settings):
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    chat = Chat()
    await chat.hello(ada)
    orders = {order["order_id"]: order for order in (await ask_for_orders(chat))["orders"]}
    tray = orders["1018"]["items"][-1]
    mug = orders["1018"]["items"][0]
    done = await chat.ask(
        type="form",
        tool="refund_order",
        arguments={
            "order_id": "1018",
            "items": [
                {"item_id": mug["item_id"], "quantity": 1},
                {"item_id": tray["item_id"], "quantity": 1},
            ],
            "reason": "wrong_item",
        },
        client_message_id="f-1",
    )
    task = await in_thread(Task.objects.get)(pk=done["task"])
    await in_thread(desk.work)(task)
    await chat.until(lambda frame: frame["type"] == "task" and frame["task"]["waits_for"])
    await chat.leave()

    assert chat.view.texts()[0] == (
        "Please refund order 1018\nOnly some items: 2\nReason: wrong item"
    )
    action = chat.view.only("action")
    assert action["title"] == "Refund $85.00 for order 1018"
    assert action["lines"] == [
        "1 \N{MULTIPLICATION SIGN} Stoneware mug (blue)",
        "1 \N{MULTIPLICATION SIGN} Oak serving tray",
    ]
    assert desk.shop.effects() == []


@pytest.mark.parametrize(
    ("order", "item", "quantity", "told"),
    [
        ("1018", "1018-1", 3, "These items are not left to refund on order 1018."),
        ("1018", "1042-1", 1, "These items are not left to refund on order 1018."),
        # Bob's order is as if it were not there, with its own lines too.
        ("1048", "1048-1", 1, "I can't find order 1048"),
        ("9999", "9999-1", 1, "I can't find order 9999"),
    ],
)
async def test_lines_are_those_of_the_order_and_the_order_is_their_own(
    desk: Desk, ada: str, settings, order: str, item: str, quantity: int, told: str
):
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    chat = Chat()
    await chat.hello(ada)
    arguments = {
        "order_id": order,
        "items": [{"item_id": item, "quantity": quantity}],
        "reason": "other",
    }
    done = await chat.ask(
        type="form", tool="refund_order", arguments=arguments, client_message_id="f-1"
    )
    task = await in_thread(Task.objects.get)(pk=done["task"])

    await in_thread(desk.work)(task)
    await chat.until(lambda frame: frame["type"] == "message" and frame["message"]["seq"] == 2)
    await chat.leave()

    assert chat.view.texts()[1].startswith(told)
    assert await in_thread(Operation.objects.count)() == 0
    assert desk.shop.effects() == []
