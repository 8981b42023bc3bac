"""A step that is not tried again leaves no change behind that nobody looks after."""

from datetime import timedelta

import pytest

from agents import runner
from agents.models import Task
from tests.agents.desk import Desk, claim, operation
from tools import reconcile, sending
from tools.clock import database_now
from tools.models import State

pytestmark = pytest.mark.django_db


def lose(task: Task, times: int) -> None:
    """Workers that claim the task and never come back."""
    for _ in range(times):
        claim(task)
        Task.objects.filter(pk=task.pk).update(lease_until=database_now() - timedelta(seconds=1))


def approved(desk: Desk) -> Task:
    return desk.decide(desk.work(desk.ask("Please refund order 1042")), is_yes=True)


def test_a_change_that_may_have_been_sent_goes_to_a_person(desk: Desk):
    task = approved(desk)
    desk.shop.fault("timeout_after", scope={"path": "/refunds"}, times=1)
    runner.run(claim(task))  # and dies before it records the step
    assert operation(task).state == State.UNKNOWN
    Task.objects.filter(pk=task.pk).update(lease_until=database_now() - timedelta(seconds=1))
    lose(task, runner.MAX_LOST - 1)

    task = desk.work(task)

    assert (task.status, task.reason) == ("handed_off", "step_keeps_failing")
    left = operation(task)
    assert (left.state, left.reason) == (State.NEEDS_PERSON, "step_keeps_failing")
    assert len(desk.shop.effects()) == 1


def test_a_try_that_was_never_finished_is_closed_with_it(desk: Desk, monkeypatch):
    task = approved(desk)
    held = claim(task)
    monkeypatch.setattr(sending, "_over_the_wire", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        runner.run(held)
    assert operation(task).state == State.SENDING

    reconcile.hand_over(operation_id=operation(task).pk, lease=held.lease, why="x")

    left = operation(task)
    assert (left.state, left.epoch) == (State.NEEDS_PERSON, held.lease.epoch)
    assert left.attempts.get().detail == "worker_lost"
    assert desk.shop.effects() == []


def test_a_change_that_was_never_sent_is_withdrawn(desk: Desk):
    task = approved(desk)
    lose(task, runner.MAX_LOST)

    task = desk.work(task)

    assert (task.status, task.reason) == ("handed_off", "step_keeps_failing")
    left = operation(task)
    assert (left.state, left.reason) == (State.CANCELLED, "step_keeps_failing")
    assert desk.shop.effects() == []


def test_a_change_that_is_decided_stays_as_it_is(desk: Desk):
    task = approved(desk)
    runner.run(claim(task))
    assert operation(task).state == State.SUCCEEDED
    Task.objects.filter(pk=task.pk).update(lease_until=database_now() - timedelta(seconds=1))
    lose(task, runner.MAX_LOST - 1)

    task = desk.work(task)

    assert task.status == "handed_off"
    assert operation(task).state == State.SUCCEEDED
    assert len(desk.shop.effects()) == 1


def test_an_older_lease_hands_nothing_over(desk: Desk):
    task = approved(desk)
    old = claim(task)
    desk.shop.fault("timeout_after", scope={"path": "/refunds"}, times=1)
    Task.objects.filter(pk=task.pk).update(lease_until=database_now() - timedelta(seconds=1))
    runner.run(claim(task))

    reconcile.hand_over(operation_id=operation(task).pk, lease=old.lease, why="x")

    assert operation(task).state == State.UNKNOWN
