"""The database is full, read-only or out of connections: nothing new happens, and later all goes on."""

import json
from typing import Any

import pytest
from django.db import InternalError
from django.test import Client

from agents import services
from agents.models import Message, Task
from tests.agents.desk import Desk, reply
from tests.api.clients import everything, problem
from tests.chat.client import Chat, in_thread
from tests.outages import commits_fail, database_set, no_connection_left
from tools.models import Operation

pytestmark = pytest.mark.django_db(transaction=True)

ASKED = "My mug from order 1042 arrived broken, please refund it"


def post(token: str, path: str, body: dict[str, Any], key: str = "1") -> Any:
    return Client(raise_request_exception=False).post(
        path,
        data=json.dumps(body),
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}", "Idempotency-Key": f'"{key}"'},
    )


def get(token: str, path: str) -> Any:
    client = Client(raise_request_exception=False)
    return client.get(path, headers={"Authorization": f"Bearer {token}"})


def refused(answer: Any) -> None:
    problem(answer, 503, "unavailable")
    assert 1 <= int(answer["Retry-After"]) <= 60


@pytest.fixture
def ada(desk: Desk) -> str:
    """Her token; she has been here before, so that the shop need not be asked."""
    desk.sign_in("ada")
    return desk.shop.sign("ada")


def test_a_read_only_database_takes_no_request_and_answers_reads(desk: Desk, ada: str):
    task = desk.work(desk.ask(ASKED))
    question = desk.question(task)
    yes = {"decision": "yes", "digest": question.digest}
    decide = f"/v1/tasks/{task.pk}/approvals/{task.steps.count()}"
    before = everything()

    with database_set("default_transaction_read_only", "on"):
        refused(post(ada, "/v1/tasks", {"message": "Hi"}))
        refused(post(ada, f"/v1/tasks/{task.pk}/messages", {"message": "Hi"}))
        refused(post(ada, f"/v1/tasks/{task.pk}/cancel", {}))
        refused(post(ada, decide, yes))
        assert get(ada, f"/v1/tasks/{task.pk}").status_code == 200

    assert everything() == before
    assert post(ada, decide, yes).status_code == 200
    assert post(ada, "/v1/tasks", {"message": "Hi"}).status_code == 200


def test_nothing_is_sent_while_it_cannot_be_written_down(desk: Desk, ada: str):
    task = desk.decide(desk.work(desk.ask(ASKED)), is_yes=True)
    desk.shop.forget_calls()
    before = everything()

    with database_set("default_transaction_read_only", "on"):
        for _ in range(3):
            with pytest.raises(InternalError):
                services.advance(task_ids=[task.pk])

    assert everything() == before
    assert desk.shop.calls() == []
    assert desk.shop.effects(order_id="1042") == []
    services.sweep()
    task = desk.work(task)
    assert len(desk.shop.effects(order_id="1042")) == 1
    assert Operation.objects.get().state == "succeeded"
    assert task.status == "succeeded"
    assert "refund" in reply(task)


@pytest.mark.parametrize("code", ["disk_full", "serialization_failure"])
def test_what_has_to_be_written_before_a_send_is_not_so_nothing_is_sent(desk: Desk, code: str):
    """The claim still finds room. No send is begun again by itself: the task comes to it again."""
    task = desk.decide(desk.work(desk.ask(ASKED)), is_yes=True)
    desk.shop.forget_calls()

    with commits_fail("tools_attempt", code=code):
        task = desk.advance(task)

    assert writes(desk) == []
    assert Operation.objects.get().state == "approved"
    assert task.is_live
    task = desk.wake(task)
    assert len(desk.shop.effects(order_id="1042")) == 1
    assert task.status == "succeeded"


@pytest.mark.parametrize("code", ["disk_full", "serialization_failure"])
def test_an_outcome_that_cannot_be_written_is_looked_up_and_not_sent_again(desk: Desk, code: str):
    task = desk.decide(desk.work(desk.ask(ASKED)), is_yes=True)
    desk.shop.forget_calls()

    with commits_fail("tools_attempt", "UPDATE", code):
        task = desk.advance(task)

    assert len(writes(desk)) == 1
    assert Operation.objects.get().state == "sending"
    task = desk.wake(task)
    assert len(writes(desk)) == 1
    assert len(desk.shop.effects(order_id="1042")) == 1
    assert Operation.objects.get().state == "succeeded"


def writes(desk: Desk) -> list[dict[str, Any]]:
    return [
        call
        for call in desk.shop.calls()
        if call["method"] == "POST" and "/refunds" in call["path"]
    ]


def test_a_full_disk_takes_no_message(desk: Desk, ada: str):
    before = everything()

    with commits_fail("agents_message"):
        refused(post(ada, "/v1/tasks", {"message": "Hi"}))

    assert everything() == before
    assert post(ada, "/v1/tasks", {"message": "Hi"}).status_code == 201


def test_without_a_connection_left_a_request_is_told_to_come_again(desk: Desk, ada: str):
    before = everything()

    with no_connection_left():
        refused(get(ada, "/v1/tasks"))
        refused(post(ada, "/v1/tasks", {"message": "Hi"}))

    assert everything() == before
    assert get(ada, "/v1/tasks").status_code == 200


@pytest.mark.asyncio
async def test_a_chat_is_told_that_it_did_not_work_and_goes_on(desk: Desk):
    token = await in_thread(desk.shop.sign)("ada")
    await in_thread(desk.sign_in)("ada")
    chat = Chat()
    await chat.hello(token, ticket="new")
    full = commits_fail("agents_message")

    await in_thread(full.__enter__)()
    told = await chat.ask(type="say", text="Hi", client_message_id="m-1")
    await in_thread(full.__exit__)(None, None, None)
    nothing = await in_thread(Message.objects.count)(), await in_thread(Task.objects.count)()
    again = await chat.ask(type="say", text="Hi", client_message_id="m-1")
    await chat.leave()

    assert (told["type"], told["for"], told["ref"]) == ("error", "say", "m-1")
    assert told["code"] == "unavailable"
    assert nothing == (0, 0)
    assert again["type"] == "done"
