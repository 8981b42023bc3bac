"""What /metrics tells of tools: how calls ended, and how long they took."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agents.models import Step, Task
from tests.factories import make_approved_operation, make_customer, make_task, make_ticket
from tools.models import Attempt


@pytest.fixture
def task(db) -> Task:
    return make_task(make_ticket(make_customer()))


def add_step(task: Task, n: int, *, seconds: float, **fields) -> None:
    now = timezone.now()
    details = {"kind": "tool", "tool": "find_orders", "status": "finished", "result": {}}
    times = {"planned_at": now, "started_at": now, "finished_at": now + timedelta(seconds=seconds)}
    Step.objects.create(task=task, n=n, **details | times | fields)


def told(client: Client) -> list[str]:
    return client.get("/metrics").content.decode().splitlines()


def test_tool_calls_are_told_by_how_they_ended(task: Task, client: Client):
    add_step(task, 1, seconds=0)
    add_step(task, 2, seconds=0)
    add_step(task, 3, seconds=0, error="not_found")
    add_step(task, 4, seconds=0, tool="refund_order", error="outside_window")
    add_step(task, 5, seconds=0, status="started", finished_at=None, result=None)

    lines = told(client)

    assert 'countersign_tool_calls_total{outcome="ok",tool="find_orders"} 2.0' in lines
    assert 'countersign_tool_calls_total{outcome="not_found",tool="find_orders"} 1.0' in lines
    assert 'countersign_tool_calls_total{outcome="outside_window",tool="refund_order"} 1.0' in lines


def test_a_name_that_the_model_made_up_is_no_label_of_its_own(task: Task, client: Client):
    add_step(task, 1, seconds=0, tool="transfer_everything", error="unknown_tool")
    add_step(task, 2, seconds=0, tool="sudo", error="unknown_tool")

    text = "\n".join(told(client))

    assert 'countersign_tool_calls_total{outcome="unknown_tool",tool="other"} 2.0' in text
    assert "transfer_everything" not in text
    assert "sudo" not in text


def test_how_long_calls_took_is_told_in_steps_of_time(task: Task, client: Client):
    for n, seconds in enumerate((0.05, 0.2, 2, 60), start=1):
        add_step(task, n, seconds=seconds)

    lines = told(client)

    for limit, count in (("0.1", 1), ("0.3", 2), ("1.0", 2), ("3.0", 3), ("30.0", 3), ("+Inf", 4)):
        line = f'countersign_tool_seconds_bucket{{le="{limit}",tool="find_orders"}} {count}.0'
        assert line in lines
    assert 'countersign_tool_seconds_sum{tool="find_orders"} 62.25' in lines


def test_the_time_that_people_took_is_no_time_of_a_send(client: Client, db):
    operation = make_approved_operation(make_customer())
    now = timezone.now()
    Attempt.objects.create(
        operation=operation,
        n=1,
        epoch=1,
        request_digest="0" * 64,
        started_at=now,
        finished_at=now + timedelta(seconds=0.5),
        outcome="refused",
    )
    task = make_task(make_ticket(operation.customer))
    add_step(task, 1, seconds=7200, tool="refund_order", operation=operation)

    lines = told(client)

    assert 'countersign_send_seconds_sum{kind="refund"} 0.5' in lines
    assert not [line for line in lines if line.startswith("countersign_tool_seconds_sum")]


def test_tasks_are_told_by_how_long_they_took(client: Client, db):
    now = timezone.now()
    make_task(
        make_ticket(make_customer()),
        created_at=now - timedelta(seconds=5),
        finished_at=now,
        status="handed_off",
    )

    lines = told(client)

    assert 'countersign_task_seconds_bucket{le="3.0",status="handed_off"} 0.0' in lines
    assert 'countersign_task_seconds_bucket{le="10.0",status="handed_off"} 1.0' in lines
