"""Starting tasks and saying more, looking at them, cancelling them."""

from typing import Any

import pytest
from django.utils import timezone
from kombu.exceptions import OperationalError

from agents import services, store
from agents.models import Message, Task, Ticket
from agents.wording import CARD_HIDDEN
from approvals.models import Approval
from audit.models import Event
from tests.accounts.factories import make_user
from tests.api.clients import Api, end, everything, problem, wait_for_yes

pytestmark = pytest.mark.django_db


def test_a_message_starts_a_task_and_the_answer_says_where_it_is(ada: Api):
    answer = ada.post("/v1/tasks", {"message": "Where is my parcel?"})

    assert answer.status_code == 201
    task = Task.objects.get()
    assert answer["Location"] == f"/v1/tasks/{task.pk}"
    assert answer["Cache-Control"] == "no-store"
    body = answer.json()
    assert body["id"] == task.pk
    assert body["ticket"] == task.ticket_id
    assert (body["status"], body["outcome"], body["reply"]) == ("queued", "", "")
    assert [step["n"] for step in body["steps"]] == [1]
    assert (body["action"], body["operations"]) == (None, [])
    assert task.customer == ada.row
    assert ada.get(answer["Location"]).json() == body


def test_with_the_broker_away_a_task_is_taken_all_the_same(
    ada: Api, monkeypatch, settings, django_capture_on_commit_callbacks
):
    """Nobody could be told of it: the row is enough, and the sweep finds it."""
    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    tried: list[object] = []

    class Away:
        def apply_async(self, **_: object) -> None:
            tried.append(self)
            raise OperationalError("connection refused")

    monkeypatch.setattr("agents.dispatch.signature", lambda *_, **__: Away())

    with django_capture_on_commit_callbacks(execute=True):
        answer = ada.post("/v1/tasks", {"message": "Where is my parcel?"})

    assert (answer.status_code, len(tried)) == (201, 1)
    (held,) = store.claim([answer.json()["id"]])
    assert held.request == "Where is my parcel?"


def test_a_message_joins_the_task_under_way(ada: Api):
    first = ada.post("/v1/tasks", {"message": "Please refund order 1042"}).json()

    answer = ada.post("/v1/tasks", {"message": "It arrived broken"})

    assert answer.status_code == 200
    assert answer.json()["id"] == first["id"]
    assert Task.objects.count() == 1
    assert list(Message.objects.values_list("task_id", "text")) == [
        (None, "Please refund order 1042"),
        (first["id"], "It arrived broken"),
    ]


@pytest.mark.parametrize(
    ("path", "field"),
    [("/v1/tasks", "message"), ("/v1/runs", "goal"), ("/v1/tasks/{id}/messages", "message")],
)
def test_a_card_number_is_hidden_at_every_door(ada: Api, path: str, field: str):
    first = ada.post("/v1/tasks", {"message": "Refund order 1042"}).json()

    answer = ada.post(path.format(id=first["id"]), {field: "My card is 4111-1111-1111-1111"})

    assert answer.status_code in {200, 201}, answer.content
    texts = list(Message.objects.order_by("seq").values_list("text", flat=True))
    assert texts == ["Refund order 1042", "My card is •••• 1111", CARD_HIDDEN[0]]


def test_a_message_can_open_a_conversation_of_its_own(ada: Api):
    first = ada.post("/v1/tasks", {"message": "Refund order 1042"}).json()

    answer = ada.post("/v1/tasks", {"message": "Cancel order 1044", "ticket": "new"})

    assert answer.status_code == 201
    assert answer.json()["ticket"] != first["ticket"]


def test_a_message_goes_to_the_conversation_it_names(ada: Api):
    first = end(ada.ask("Refund order 1042"))
    ada.ask("Cancel order 1044")

    answer = ada.post("/v1/tasks", {"message": "And order 1047?", "ticket": first.ticket_id})

    assert answer.status_code == 201
    assert answer.json()["ticket"] == first.ticket_id


def test_where_staff_speak_a_message_starts_no_task(ada: Api, signer):
    task = end(ada.ask())
    services.take_over(ticket_id=task.ticket_id, user=make_user(signer.shop), now=timezone.now())

    answer = ada.post("/v1/tasks", {"message": "Hello?", "ticket": task.ticket_id})

    assert answer.status_code == 202
    assert answer.json()["id"] == task.ticket_id
    assert (answer.json()["speaker"], answer.json()["last_seq"]) == ("staff", 2)
    assert "Location" not in answer
    assert Task.objects.count() == 1
    assert Message.objects.filter(ticket=task.ticket_id).count() == 2


def test_another_customers_conversation_is_not_there(ada: Api, bob: Api):
    ticket = bob.ask().ticket_id
    before = everything()

    foreign = ada.post("/v1/tasks", {"message": "Hi", "ticket": ticket})
    unknown = ada.post("/v1/tasks", {"message": "Hi", "ticket": 10**15})

    assert _same(problem(foreign, 404, "not-found"), problem(unknown, 404, "not-found"))
    assert everything() == before


def test_a_closed_conversation_takes_no_message(ada: Api):
    task = end(ada.ask())
    Ticket.objects.update(status="closed", closed_at=timezone.now())
    before = everything()

    answer = ada.post("/v1/tasks", {"message": "Hi", "ticket": task.ticket_id})

    problem(answer, 409, "ticket-closed")
    assert everything() == before


def test_more_open_tasks_than_the_shop_allows_are_refused_with_the_open_one(ada: Api, signer):
    signer.shop.max_open_tasks_per_customer = 1
    signer.shop.save(update_fields=["max_open_tasks_per_customer"])
    task = ada.ask()
    before = everything()

    answer = ada.post("/v1/tasks", {"message": "Another", "ticket": "new"})

    assert problem(answer, 409, "too-many-open-tasks")["task"] == task.pk
    assert everything() == before


def test_a_customer_in_a_hurry_waits_and_the_others_do_not(ada: Api, bob: Api, signer):
    signer.shop.tasks_per_minute_per_customer = 2
    signer.shop.save(update_fields=["tasks_per_minute_per_customer"])
    for _ in range(2):
        end(ada.ask())
    before = everything()

    answer = ada.post("/v1/tasks", {"message": "Again", "ticket": "new"})

    problem(answer, 429, "too-many-requests")
    assert 1 <= int(answer["Retry-After"]) <= 61
    assert everything() == before
    assert bob.ask().customer == bob.row


def test_saying_more_goes_to_the_tasks_conversation(ada: Api):
    task = ada.ask("Refund order 1042")
    ada.ask("Cancel order 1044")

    answer = ada.post(f"/v1/tasks/{task.pk}/messages", {"message": "It arrived broken"})

    assert answer.status_code == 200
    assert answer.json()["id"] == task.pk
    assert Message.objects.get(text="It arrived broken").task == task


def test_saying_more_after_the_end_starts_the_next_task_there(ada: Api):
    task = end(ada.ask("Refund order 1042"))

    answer = ada.post(f"/v1/tasks/{task.pk}/messages", {"message": "Thanks, and 1047?"})

    assert answer.status_code == 201
    assert answer.json()["ticket"] == task.ticket_id
    assert answer.json()["id"] != task.pk
    assert answer["Location"] == f"/v1/tasks/{answer.json()['id']}"


def test_cancelling_ends_the_task_and_withdraws_its_question(ada: Api):
    approval = wait_for_yes(task := ada.ask())

    answer = ada.post(f"/v1/tasks/{task.pk}/cancel")

    assert answer.status_code == 200
    assert answer.json()["status"] == "cancelled"
    assert [each["state"] for each in answer.json()["operations"]] == ["cancelled"]
    assert Approval.objects.get(pk=approval.pk).status == "withdrawn"
    assert Event.objects.filter(action="task.cancel_requested", actor="customer:ada").count() == 1


def test_cancelling_again_changes_nothing(ada: Api):
    task = ada.ask()
    first = ada.post(f"/v1/tasks/{task.pk}/cancel").json()
    before = everything()

    again = ada.post(f"/v1/tasks/{task.pk}/cancel")

    assert (again.status_code, again.json()) == (200, first)
    assert everything() == before


def test_cancel_needs_no_body_at_all(ada: Api):
    task = ada.ask()

    answer = ada.client.generic("POST", f"/v1/tasks/{task.pk}/cancel", headers=ada.headers)

    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")


def test_a_waiting_action_is_shown_with_all_that_is_needed_to_answer(ada: Api):
    approval = wait_for_yes(task := ada.ask())

    action = ada.get(f"/v1/tasks/{task.pk}").json()["action"]

    assert action["step"] == 2
    assert (action["role"], action["status"]) == ("customer", "open")
    assert action["digest"] == approval.digest
    assert (action["amount"], action["currency"], action["amount_text"]) == (4000, "USD", "$40.00")
    assert action["kind"] == "refund"


def test_tasks_are_listed_newest_first_in_pages_that_meet(ada: Api, bob: Api):
    mine = [end(ada.ask(f"Question {n}")).pk for n in range(5)]
    bob.ask()

    pages, cursor = [], ""
    for _ in range(3):
        answer = ada.get(f"/v1/tasks?limit=2{cursor}").json()
        pages.append([task["id"] for task in answer["tasks"]])
        cursor = f"&cursor={answer['next_cursor']}"

    mine.reverse()
    assert pages == [mine[:2], mine[2:4], mine[4:]]
    assert answer["next_cursor"] is None


def test_tasks_of_one_conversation_are_listed(ada: Api):
    task = end(ada.ask())
    end(ada.ask())
    ada.post("/v1/tasks", {"message": "More", "ticket": task.ticket_id})

    found = ada.get(f"/v1/tasks?ticket={task.ticket_id}").json()["tasks"]

    assert len(found) == 2
    assert {each["ticket"] for each in found} == {task.ticket_id}


def test_staff_read_the_tasks_of_their_shop_and_admins_of_every_shop(
    ada: Api, eve: Api, staff: Api, other_staff: Api, auditor: Api, admin_api: Api
):
    here, there = ada.ask().pk, eve.ask().pk

    seen = {
        name: [task["id"] for task in api.get("/v1/tasks").json()["tasks"]]
        for name, api in {
            "staff": staff,
            "other": other_staff,
            "auditor": auditor,
            "admin": admin_api,
        }.items()
    }

    assert seen == {"staff": [here], "other": [there], "auditor": [here], "admin": [there, here]}
    assert staff.get(f"/v1/tasks/{here}").json()["id"] == here
    problem(staff.get(f"/v1/tasks/{there}"), 404, "not-found")


@pytest.mark.parametrize("path", ["", "/{id}/messages", "/{id}/cancel"])
def test_staff_do_not_speak_or_cancel_in_a_customers_name(ada: Api, staff: Api, path: str):
    task = ada.ask()
    before = everything()

    answer = staff.post("/v1/tasks" + path.format(id=task.pk), {"message": "Hi"})

    problem(answer, 403, "forbidden")
    assert everything() == before


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Equal but for what names the request."""
    return {**one, "request_id": "", "instance": ""} == {**other, "request_id": "", "instance": ""}
