"""Two transactions in each other's way, for real: the one that PostgreSQL ends begins again, once."""

import json
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.test import Client

from agents.models import Message
from approvals.models import Approval
from audit.models import Event
from tests.agents.desk import Desk, reply
from tests.outages import Opponent, database_set
from tools import outages

pytestmark = pytest.mark.django_db(transaction=True)

ASKED = "My mug from order 1042 arrived broken, please refund it"


@pytest.fixture
def collisions(monkeypatch) -> list[str]:
    """The SQLSTATE of each collision that there was."""
    seen: list[str] = []

    def note(exc: OperationalError) -> bool:
        found = is_collision(exc)
        if found:
            seen.append(exc.__cause__.sqlstate)  # type: ignore[union-attr]
        return found

    is_collision = outages.is_collision
    monkeypatch.setattr(outages, "is_collision", note)
    return seen


def lock(table: str, pk: int) -> str:
    return f"SELECT 1 FROM {table} WHERE id = {pk} FOR UPDATE"  # noqa: S608 - of our own


def decided(action: str) -> int:
    return Event.objects.filter(action=action).count()


def test_a_decision_that_runs_into_a_deadlock_is_taken_once(desk: Desk, collisions):
    task = desk.work(desk.ask(ASKED))
    question = desk.question(task)

    with Opponent(
        lock("approvals_approval", question.pk), lock("tools_operation", question.operation_id)
    ):
        desk.decide(task, is_yes=True)

    assert collisions == ["40P01"]
    assert Approval.objects.get().status == "approved"
    assert decided("approval.granted") == 1
    desk.work(task)
    assert len(desk.shop.effects(order_id="1042")) == 1


def test_a_record_that_runs_into_a_deadlock_keeps_what_the_model_said(desk: Desk, collisions):
    """The call is over and paid for: only what is written of it begins again."""
    task = desk.ask("What can you do for me?")
    desk.model.control("DELETE", "calls")

    with Opponent(lock("agents_ticket", task.ticket_id), lock("agents_task", task.pk)):
        task = desk.advance(task)
    task = desk.work(task)

    assert collisions == ["40P01"]
    assert len(desk.model.calls()) == task.steps.filter(kind="model").count() == 1
    assert task.status == "succeeded"
    assert Message.objects.filter(author="agent").count() == 1
    assert reply(task)


def test_a_request_that_cannot_be_serialized_is_answered_all_the_same(desk: Desk, collisions):
    task = desk.work(desk.ask(ASKED))
    token = desk.shop.sign("ada")
    bump = f"UPDATE agents_task SET reason = reason WHERE id = {task.pk}"  # noqa: S608 - of our own

    with database_set("default_transaction_isolation", "repeatable read"), Opponent(bump):
        answer = Client().post(
            f"/v1/tasks/{task.pk}/cancel",
            data=json.dumps({}),
            content_type="application/json",
            headers={"Authorization": f"Bearer {token}"},
        )

    assert answer.status_code == 200
    assert collisions == ["40001"]
    assert answer.json()["status"] == "cancelled"
    assert decided("task.cancel_requested") == 1


def test_it_ends_after_a_few_tries_and_begins_no_callers_transaction_again(db, monkeypatch):
    monkeypatch.setattr(outages, "LONGEST_PAUSE", 0)
    tried: list[int] = []

    @outages.again_on_collision
    def collide() -> Any:
        tried.append(1)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("DO $$ BEGIN RAISE USING ERRCODE = 'serialization_failure'; END $$")

    with pytest.raises(OperationalError):
        collide()
    alone = len(tried)
    with pytest.raises(OperationalError), transaction.atomic():
        collide()

    assert (alone, len(tried) - alone) == (outages.TRIES, 1)


def test_what_is_no_collision_is_not_tried_again(db):
    tried: list[int] = []

    @outages.again_on_collision
    def fail() -> Any:
        tried.append(1)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("DO $$ BEGIN RAISE USING ERRCODE = 'disk_full'; END $$")

    with pytest.raises(OperationalError):
        fail()

    assert tried == [1]
