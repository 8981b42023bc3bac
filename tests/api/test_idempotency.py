"""Idempotency-Key: one answer for one key, whatever happens in between."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts.services import ShopUnavailableError
from agents.models import IdempotencyRecord, Message, Task
from tests.api.clients import Api, end, everything, problem

pytestmark = pytest.mark.django_db
MESSAGE = {"message": "Where is my parcel?", "ticket": "new"}


def test_the_same_request_again_gets_the_first_answer_and_makes_nothing(ada: Api):
    first = ada.post("/v1/tasks", MESSAGE, key='"one"')
    end(Task.objects.get())
    before = everything()

    again = ada.post("/v1/tasks", {"ticket": "new", "message": MESSAGE["message"]}, key='"one"')

    assert (again.status_code, again.json()) == (201, first.json())
    assert again["Location"] == first["Location"]
    assert (again["Idempotency-Replayed"], "Idempotency-Replayed" in first) == ("true", False)
    assert everything() == before


def test_without_a_key_nothing_is_taken(ada: Api):
    task = ada.ask()
    before = everything()

    for path in ("/v1/tasks", "/v1/runs", f"/v1/tasks/{task.pk}/messages"):
        body = {"goal": "Hi"} if path == "/v1/runs" else {"message": "Hi"}
        problem(ada.post(path, body, key=""), 400, "idempotency-key-missing")

    assert everything() == before


@pytest.mark.parametrize(
    "key",
    [
        '""',
        '"',
        '"open',
        '"a" "b"',
        '"a","b"',
        '"a\\b"',
        '"tab\there"',
        '"' + "x" * 256 + '"',
        "x" * 10_000,
        "with blank",
        '"caf\u00e9"',
        '"a\u0000b"',
        ":binary:=?",
    ],
)
def test_a_key_that_is_none_is_a_400(ada: Api, key: str):
    before = everything()

    problem(ada.post("/v1/tasks", MESSAGE, key=key), 400, "idempotency-key-malformed")

    assert everything() == before


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ('"8e03978e-40d5-43de-bc93-6894a57f9324"', "8e03978e-40d5-43de-bc93-6894a57f9324"),
        ("8e03978e-40d5-43de-bc93-6894a57f9324", "8e03978e-40d5-43de-bc93-6894a57f9324"),
        ('"a \\"quoted\\" \\\\ key"', 'a "quoted" \\ key'),
        ('"' + "x" * 255 + '"', "x" * 255),
    ],
)
def test_a_key_is_a_quoted_string_or_a_plain_token(ada: Api, sent: str, stored: str):
    assert ada.post("/v1/tasks", MESSAGE, key=sent).status_code == 201

    assert IdempotencyRecord.objects.get().key == stored


def test_a_key_stands_for_one_request(ada: Api):
    ada.post("/v1/tasks", MESSAGE, key='"one"')
    before = everything()

    other = ada.post("/v1/tasks", {**MESSAGE, "message": "Other"}, key='"one"')
    elsewhere = ada.post("/v1/runs", {"goal": MESSAGE["message"], "ticket": "new"}, key='"one"')

    problem(other, 422, "idempotency-key-reused")
    problem(elsewhere, 422, "idempotency-key-reused")
    assert everything() == before


def test_somebody_elses_key_is_another_key(ada: Api, bob: Api):
    mine = ada.post("/v1/tasks", MESSAGE, key='"one"').json()
    theirs = bob.post("/v1/tasks", MESSAGE, key='"one"').json()

    assert mine["id"] != theirs["id"]


def test_a_request_in_flight_is_not_taken_twice(ada: Api, monkeypatch):
    during: list[Any] = []

    def slow(**_: Any) -> None:
        if not during:
            during.append(None)
            during.append((ada.post("/v1/tasks", MESSAGE, key='"one"'), everything()))

    monkeypatch.setattr("agents.api.tasks.ensure_delegation", slow)

    answer = ada.post("/v1/tasks", MESSAGE, key='"one"')

    second, rows = during[1]
    problem(second, 409, "in-flight")
    assert second["Retry-After"] == "1"
    assert rows["Task"] == []
    assert answer.status_code == 201
    assert Task.objects.count() == 1


def _abandon(ada: Api, monkeypatch) -> None:
    """The process dies before the task is made: its record stays without an answer."""

    class PowerCutError(BaseException):
        pass

    def die(*_: Any, **__: Any) -> None:
        raise PowerCutError

    with monkeypatch.context() as patch:
        patch.setattr("agents.api.tasks.ensure_delegation", die)
        patch.setattr("agents.api.idempotency._forget", lambda _: None)
        with pytest.raises(PowerCutError):
            ada.post("/v1/tasks", MESSAGE, key='"one"')


@pytest.mark.parametrize("lease", [60, 7])
def test_after_a_crash_the_request_is_taken_over_once_it_is_surely_abandoned(
    ada: Api, monkeypatch, settings, lease
):
    settings.LEASE_SECONDS = lease
    _abandon(ada, monkeypatch)
    IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(seconds=lease - 3))
    problem(ada.post("/v1/tasks", MESSAGE, key='"one"'), 409, "in-flight")
    assert Task.objects.count() == 0
    IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(seconds=lease + 1))

    answer = ada.post("/v1/tasks", MESSAGE, key='"one"')

    assert answer.status_code == 201
    assert Task.objects.count() == 1
    assert ada.post("/v1/tasks", MESSAGE, key='"one"').json() == answer.json()


def test_a_slow_first_one_makes_nothing_once_it_was_taken_over(ada: Api, monkeypatch):
    answers: list[Any] = []

    def very_slow(**_: Any) -> None:
        if not answers:
            answers.append(None)
            IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(seconds=61))
            answers.append(ada.post("/v1/tasks", MESSAGE, key='"one"'))

    monkeypatch.setattr("agents.api.tasks.ensure_delegation", very_slow)

    late = ada.post("/v1/tasks", MESSAGE, key='"one"')

    assert answers[1].status_code == 201
    problem(late, 409, "in-flight")
    assert Task.objects.count() == Message.objects.count() == 1


def test_a_key_forgotten_after_a_day_still_makes_one_task(ada: Api):
    first = ada.post("/v1/tasks", MESSAGE, key='"one"').json()
    IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(hours=25))
    ada.ask("Something else")
    assert not IdempotencyRecord.objects.filter(key="one").exists()

    again = ada.post("/v1/tasks", MESSAGE, key='"one"')

    assert (again.status_code, again.json()["id"]) == (201, first["id"])
    assert Message.objects.filter(text=MESSAGE["message"]).count() == 1

    IdempotencyRecord.objects.filter(key="one").delete()
    other = ada.post("/v1/tasks", {"message": "Another text"}, key='"one"')
    problem(other, 422, "idempotency-key-reused")


def test_a_refusal_is_not_remembered_since_nothing_was_made(ada: Api, monkeypatch):
    def away(**_: Any) -> None:
        raise ShopUnavailableError("down")

    with monkeypatch.context() as patch:
        patch.setattr("agents.api.tasks.ensure_delegation", away)
        before = everything()
        refused = ada.post("/v1/tasks", MESSAGE, key='"one"')
        assert everything() == before

    problem(refused, 503, "shop-unavailable")
    assert refused["Retry-After"] == "5"
    assert ada.post("/v1/tasks", MESSAGE, key='"one"').status_code == 201


def test_the_task_and_the_record_of_its_answer_are_one_transaction(ada: Api, monkeypatch):
    def fail(*_: Any) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr("agents.api.idempotency._keep", fail)
    before = everything()

    answer = ada.post("/v1/tasks", MESSAGE, key='"one"')

    problem(answer, 500, "internal")
    assert everything() == before


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_makes_the_task(ada: Api):
    answers: list[Any] = []

    def send() -> None:
        try:
            answers.append(Api(headers=ada.headers).post("/v1/tasks", MESSAGE, key='"one"'))
        finally:
            connection.close()

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert Task.objects.count() == Message.objects.count() == 1
    assert {answer.status_code for answer in answers} <= {201, 409}
    made = [answer.json()["id"] for answer in answers if answer.status_code == 201]
    assert set(made) == {Task.objects.get().pk}
