"""What the chat does not let happen, and that nothing has happened then."""

import asyncio
import json
import time
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Customer, Shop, WidgetKey
from accounts.services import block_customer, revoke_delegation
from agents.chat import allowance
from agents.consumers import sockets
from agents.models import Message, Task
from approvals.models import Approval
from tests.accounts.factories import Signer, make_shop
from tests.agents.desk import Desk
from tests.api.clients import everything
from tests.chat.client import Chat, in_thread

pytestmark = pytest.mark.asyncio

ODD_FRAMES = [
    "not json",
    "[]",
    "null",
    '{"type": "ping", "type": "ping"}',
    '{"type": "say", "text": NaN, "client_message_id": "m"}',
    '{"type": "say", "text": "  ", "client_message_id": "m"}',
    '{"type": "say", "text": "\\u0000", "client_message_id": "m"}',
    '{"type": "say", "text": "\\ud800", "client_message_id": "m"}',
    '{"type": "say", "text": "Hello", "client_message_id": ""}',
    '{"type": "say", "text": "Hello", "client_message_id": "m", "customer": "bob"}',
    json.dumps({"type": "say", "text": "a" * 4001, "client_message_id": "m"}),
    '{"type": "cancel", "task": true}',
    '{"type": "cancel", "task": -1}',
    '{"type": "open", "ticket": "1"}',
    '{"type": "doorbell"}',
    '{"type": "hello", "token": "x"}',
    '{"a":' * 50 + "1" + "}" * 50,
]


def _wait_for_yes(desk: Desk, text: str, customer: str = "ada") -> tuple[Task, Approval]:
    task = desk.work(desk.ask(text, customer=customer))
    return task, desk.question(task)


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://127.0.0.1:8000.evil.example",
        "http://evil.example",
        "https://127.0.0.1:8000",
        "http://127.0.0.1:8001",
        "http://127.0.0.1:8000/",
        "http://user@127.0.0.1:8000",
    ],
)
async def test_another_page_is_refused_at_the_handshake(origin: str):
    accepted, _ = await Chat(origin=origin).connect()

    assert not accepted


async def test_a_client_that_names_no_page_is_refused():
    chat = Chat()
    chat.headers.clear()

    accepted, _ = await chat.connect()

    assert not accepted


@pytest.mark.parametrize("path", ["/ws/", "/ws/chat", "/ws/chat/1", "/"])
async def test_there_is_no_other_address(path: str):
    assert not (await Chat().connect(path))[0]


async def test_the_protocol_is_named_and_no_other_is_spoken():
    chat = Chat()

    assert await chat.connect(protocols=("chat.v9", "chat.v1")) == (True, "chat.v1")
    await chat.leave()
    assert not (await Chat().connect(protocols=("chat.v9",)))[0]


async def test_neither_a_cookie_nor_an_address_lets_anybody_in(desk: Desk, ada: str, monkeypatch):
    monkeypatch.setattr(sockets, "HELLO_SECONDS", 0.3)
    chat = Chat(cookie=f"countersign_session={ada}", authorization=f"Bearer {ada}")
    await chat.connect(f"/ws/chat/?token={ada}")

    code = await chat.closed()

    assert code == 4401
    assert chat.frames == []


@pytest.mark.parametrize("first", [{"type": "ping"}, {"type": "say", "text": "Hello"}, {}])
async def test_the_first_frame_is_a_hello(desk: Desk, first: dict[str, str]):
    chat = Chat()
    await chat.connect()
    await chat.send(**first)

    assert await chat.closed() in {4400, 4401}


async def test_a_token_that_proves_nothing_changes_nothing(desk: Desk, ada: str):
    head, body, signature = ada.split(".")
    stranger = await in_thread(lambda: Signer(make_shop()))()
    before = await in_thread(everything)()
    bad = [
        "",
        "x",
        f"{head}.{body}.",
        f"{head}.{body}.{signature[::-1]}",
        f"{head}.{body[:-4]}AAAA.{signature}",
        desk.shop.sign("ada", claims={"aud": "somebody"}),
        desk.shop.sign("ada", claims={"iss": stranger.shop.identity_issuer}),
        desk.shop.sign("ada", expires_in=-60),
    ]

    codes = []
    for token in bad:
        chat = Chat()
        await chat.connect()
        await chat.send(type="hello", token=token)
        codes.append(await chat.closed())

    assert codes == [4401] * len(bad)
    assert await in_thread(everything)() == before


async def test_a_token_of_another_shop_does_not_fit_the_widget(desk: Desk, ada: str):
    await in_thread(lambda: WidgetKey.objects.create(shop=make_shop(), key="other"))()
    for key in ("other", "none"):
        chat = Chat()
        await chat.connect()
        await chat.send(type="hello", token=ada, key=key)

        assert await chat.closed() == 4401
        assert chat.frames == []


async def test_what_is_somebody_elses_is_not_there(desk: Desk, ada: str, bob: str):
    task, approval = await in_thread(_wait_for_yes)(desk, "Please cancel order 1048", "bob")
    chat = Chat()
    await chat.hello(ada)
    await in_thread(desk.sign_in)("ada")
    decision = {"step": 1, "digest": approval.digest, "decision": "yes", "decision_id": "d"}
    steps = [step.n for step in await in_thread(lambda: list(task.steps.all()))()]
    before = await in_thread(everything)()

    answers = []
    for ticket, number in ((task.ticket_id, task.pk), (10**9, 10**9)):
        answers.append(
            [
                await chat.ask(type="open", ticket=ticket),
                await chat.ask(type="say", text="Hello", client_message_id="m", ticket=ticket),
                await chat.ask(type="cancel", task=number),
                *[
                    await chat.ask(type="decide", task=number, **decision | {"step": step})
                    for step in steps
                ],
            ]
        )
    await chat.leave()
    late = Chat()
    shown = await late.hello(ada, ticket=task.ticket_id, after={"message": 0})
    await late.leave()

    assert answers[0] == answers[1]
    assert {answer["code"] for answer in answers[0]} == {"not-found"}
    assert (shown["ticket"], shown["messages"]) == (None, [])
    assert await in_thread(everything)() == before


async def test_a_decision_is_checked_here_as_it_is_everywhere(desk: Desk, ada: str):
    task, approval = await in_thread(_wait_for_yes)(desk, "Please refund order 1043, it broke")
    chat = Chat()
    await chat.hello(ada)
    step = chat.view.only("action")["step"]
    decide = {
        "type": "decide",
        "task": task.pk,
        "step": step,
        "digest": approval.digest,
        "decision": "yes",
        "decision_id": "d-1",
    }
    before = await in_thread(everything)()

    other_bytes = await chat.ask(**decide | {"digest": "0" * 64})
    other_step = await chat.ask(**decide | {"step": step + 1})
    typed = [await chat.ask(**decide | {"decision": word}) for word in ("YES", "approve", True)]
    assert await in_thread(everything)() == before
    assert other_bytes["code"] == "superseded"
    assert other_step["code"] == "not-found"
    assert {answer["code"] for answer in typed} == {"bad-frame"}

    yes = await chat.ask(**decide)
    again = await chat.ask(**decide)
    await chat.leave()
    assert (yes["status"], again["status"]) == ("approved", "approved")


async def test_an_answer_that_comes_too_late_is_told_so(desk: Desk, ada: str):
    await in_thread(Shop.objects.update)(customer_approval_seconds=1)
    task, approval = await in_thread(_wait_for_yes)(desk, "Please refund order 1043, it broke")
    chat = Chat()
    await chat.hello(ada)
    step = chat.view.only("action")["step"]
    await asyncio.sleep(1.1)

    late = await chat.ask(
        type="decide",
        task=task.pk,
        step=step,
        digest=approval.digest,
        decision="yes",
        decision_id="d-1",
    )
    await chat.leave()

    assert (late["for"], late["ref"], late["code"]) == ("decide", "d-1", "expired")
    assert (await in_thread(Approval.objects.get)(pk=approval.pk)).status == "open"


async def test_a_typed_yes_is_a_message_and_nothing_more(desk: Desk, ada: str):
    task, approval = await in_thread(_wait_for_yes)(desk, "Please refund order 1043, it broke")
    chat = Chat()
    await chat.hello(ada)

    await chat.ask(type="say", text="yes", client_message_id="m-2")
    await in_thread(desk.work)(task)
    await chat.leave()

    assert (await in_thread(Approval.objects.get)(pk=approval.pk)).status == "open"
    assert desk.shop.effects(order_id="1043") == []


async def test_an_odd_frame_is_answered_and_the_chat_goes_on(desk: Desk, ada: str):
    chat = Chat()
    await chat.hello(ada)

    answers = []
    for text in ODD_FRAMES:
        await chat.send_text(text)
        answers.append(await chat.take())
        await asyncio.sleep(0.06)  # within the frames allowed in a second
    # Whoever sent it as one of several has to know which it was.
    named = await chat.ask(type="say", text="\u0085", client_message_id="m-1")
    pong = await chat.ask(type="ping")
    await chat.leave()

    assert (named["code"], named["for"], named["ref"]) == ("bad-frame", "say", "m-1")
    assert [(item["type"], item["code"]) for item in answers] == [
        ("error", "bad-frame") for _ in ODD_FRAMES
    ]
    assert pong == {"type": "pong"}
    assert await in_thread(Message.objects.count)() == 0


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"bytes": b"{}"}, 1003),
        ({"text": '{"type": "ping"}' + " " * 65_536}, 1009),
        ({"text": '"' + "\u20ac" * 22_000 + '"'}, 1009),
    ],
)
async def test_a_frame_of_the_wrong_kind_or_size_ends_the_socket(
    desk: Desk, ada: str, event: dict[str, Any], code: int
):
    chat = Chat()
    await chat.hello(ada)
    await chat.wire.send_input({"type": "websocket.receive", **event})

    assert await chat.closed() == code


async def test_a_flood_ends_the_socket(desk: Desk, ada: str):
    chat = Chat()
    await chat.hello(ada)
    for _ in range(60):
        await chat.send(type="ping")

    assert await chat.closed() == 1008
    assert len(chat.frames) <= 40


async def test_whoever_asks_for_more_than_they_can_read_is_let_go(
    desk: Desk, ada: str, monkeypatch
):
    monkeypatch.setattr(sockets, "BYTES_AT_ONCE", 20_000)
    monkeypatch.setattr(sockets, "BYTES_PER_SECOND", 1)
    task = await in_thread(desk.ask)("x" * 3000)
    chat = Chat()
    await chat.hello(ada, ticket=task.ticket_id)
    for _ in range(10):
        await chat.send(type="open", ticket=task.ticket_id)

    assert await chat.closed() == 4408
    assert 3000 < sum(len(json.dumps(frame)) for frame in chat.frames) <= 20_000


async def test_a_customer_has_five_sockets_and_no_sixth(desk: Desk, ada: str, bob: str):
    chats = [Chat() for _ in range(allowance.MAX_SOCKETS)]
    for chat in chats:
        await chat.hello(ada)
    sixth = Chat()
    await sixth.connect()
    await sixth.send(type="hello", token=ada)

    assert await sixth.closed() == 4429
    assert sixth.frames == []
    others = Chat()
    await others.hello(bob)
    await chats.pop().leave()
    again = Chat()
    await again.hello(ada)
    for chat in (*chats, others, again):
        await chat.leave()


async def test_an_expired_token_hears_nothing_until_it_is_renewed(desk: Desk, ada: str):
    chat = Chat()
    await chat.hello(desk.shop.sign("ada", expires_in=2))
    told = await chat.until(lambda frame: frame["type"] == "auth_expired")
    task = await in_thread(desk.ask)("Where is my order 1045?")
    opened = await chat.ask(type="open", ticket=task.ticket_id)
    say = await chat.ask(type="say", text="Hello", client_message_id="m-1")
    heard = list(chat.frames)

    renewed = await chat.ask(type="token", token=ada)
    shown = await chat.ask(type="open", ticket=task.ticket_id)
    await chat.leave()

    assert told["renew_within"] == 60
    assert (opened["code"], say["code"]) == ("unauthenticated", "unauthenticated")
    assert {frame["type"] for frame in heard} == {"snapshot", "auth_expired", "error"}
    assert (renewed["type"], renewed["for"]) == ("done", "token")
    assert heard[0]["expires_in"] <= 2 < renewed["expires_in"]
    assert [item["text"] for item in shown["messages"]] == ["Where is my order 1045?"]


async def test_a_token_that_is_not_renewed_ends_the_socket(desk: Desk, monkeypatch):
    monkeypatch.setattr(sockets, "RENEW_SECONDS", 0.5)
    chat = Chat()
    await chat.hello(desk.shop.sign("ada", expires_in=1))

    assert await chat.closed() == 4401


async def test_a_bad_renewal_leaves_things_as_they_are(desk: Desk, ada: str):
    chat = Chat()
    await chat.hello(ada)

    bad = await chat.ask(type="token", token=ada[:-8])
    pong = await chat.ask(type="ping")
    await chat.leave()

    assert bad["code"] == "unauthenticated"
    assert pong == {"type": "pong"}


async def test_another_customer_needs_a_socket_of_their_own(desk: Desk, ada: str, bob: str):
    chat = Chat()
    await chat.hello(ada)
    await chat.send(type="token", token=bob)

    assert await chat.closed() == 4403
    assert [frame["type"] for frame in chat.frames] == ["snapshot"]


async def _customer(desk: Desk) -> int:
    row = await in_thread(Customer.objects.get)(external_id="ada")
    return int(row.pk)


async def test_a_blocked_customer_is_out_at_once(desk: Desk, ada: str, monkeypatch):
    monkeypatch.setattr(sockets, "LOOK_SECONDS", 60)
    chat = Chat()
    await chat.hello(ada)
    await asyncio.sleep(0.3)  # the doorbell is up
    customer_id = await _customer(desk)

    started = time.monotonic()
    await in_thread(block_customer)(
        customer_id=customer_id, reason="test", actor="staff:dana", now=timezone.now()
    )

    assert await chat.closed() == 4401
    assert time.monotonic() - started < 5


async def test_a_signed_out_customer_is_out_soon_even_if_no_bell_rings(
    desk: Desk, ada: str, monkeypatch
):
    chat = Chat()
    await chat.hello(ada)
    customer_id = await _customer(desk)
    monkeypatch.setattr("agents.consumers.doorbell._ring", lambda _group: None)

    await in_thread(revoke_delegation)(
        customer_id=customer_id, reason="signed_out", actor="customer:ada", now=timezone.now()
    )

    assert await chat.closed() == 4401
    late = Chat()
    await late.connect()
    await late.send(type="hello", token=ada)
    assert await late.closed() == 4401


async def test_what_is_said_after_signing_out_is_not_taken(desk: Desk, ada: str, monkeypatch):
    """Nobody has noticed yet: no bell has rung, and the socket has not looked again."""
    monkeypatch.setattr(sockets, "LOOK_SECONDS", 60)
    chat = Chat()
    await chat.hello(ada)
    customer_id = await _customer(desk)
    monkeypatch.setattr("agents.consumers.doorbell._ring", lambda _group: None)
    await in_thread(revoke_delegation)(
        customer_id=customer_id, reason="signed_out", actor="customer:ada", now=timezone.now()
    )
    before = await in_thread(everything)()

    await chat.send(type="say", text="Please refund order 1042", client_message_id="m-1")

    assert await chat.closed() == 4401
    assert await in_thread(everything)() == before
    assert await in_thread(Message.objects.count)() == 0


async def test_an_odd_position_is_refused(desk: Desk, ada: str):
    odd: list[dict[str, Any]] = [
        {"message": -1},
        {"message": "1"},
        {"message": 1.5},
        {"message": 10**19},
        {"event": 7},
    ]
    for after in odd:
        chat = Chat()
        await chat.connect()
        await chat.send(type="hello", token=ada, after=after)

        assert await chat.closed() == 4400
        assert [frame["code"] for frame in chat.frames] == ["bad-frame"]


async def test_a_position_in_the_future_misses_nothing_that_comes(desk: Desk, ada: str):
    task = await in_thread(desk.ask)("Where is my order 1045?")
    chat = Chat()
    shown = await chat.hello(ada, ticket=task.ticket_id, after={"message": 999, "event": "9:9.9"})

    await in_thread(desk.work)(task)
    told = await chat.until(lambda frame: frame["type"] == "message")
    await chat.leave()

    assert shown["messages"] == []
    assert told["message"]["seq"] == 2


async def test_a_shop_that_cannot_be_reached_is_told_of_and_nothing_is_kept(
    desk: Desk, monkeypatch
):
    desk.shop.fault("error_before", scope={"path": "/oauth/token"}, status=503)
    chat = Chat()
    await chat.hello(desk.shop.sign("cleo"))
    say = {"type": "say", "text": "Where is my parcel?", "client_message_id": "m-1"}

    down = await chat.ask(**say)
    kept = await in_thread(Message.objects.count)()
    desk.shop.clear_faults()
    up = await chat.ask(**say)
    await chat.leave()

    assert (down["type"], down["code"], down["ref"]) == ("error", "shop-unavailable", "m-1")
    assert kept == 0
    assert up["type"] == "done"
