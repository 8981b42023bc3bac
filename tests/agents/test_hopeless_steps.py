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


def sent_and_lost(desk: Desk, times: int) -> Task:
    """A refund that the shop has made, whose workers all died before they could record the step."""
    task = approved(desk)
    desk.shop.fault("timeout_after", scope={"path": "/refunds"}, times=1)
    runner.run(claim(task))
    assert operation(task).state == State.UNKNOWN
    Task.objects.filter(pk=task.pk).update(lease_until=database_now() - timedelta(seconds=1))
    lose(task, times - 1)
    return task


def look_ups(desk: Desk) -> int:
    return sum(1 for call in desk.shop.calls() if "/effects" in call["path"])


def test_a_change_that_the_shop_shows_is_done_however_many_workers_it_cost(desk: Desk):
    task = sent_and_lost(desk, runner.MAX_LOST)

    task = desk.work(task)

    assert task.status == "succeeded"
    assert operation(task).state == State.SUCCEEDED
    assert len(desk.shop.effects()) == 1
    assert operation(task).attempts.count() == 1


@pytest.mark.parametrize(
    ("fault", "misses"),
    [({"fault": "lookup_lag", "seconds": 600}, 1), ({"fault": "error_before"}, 0)],
)
def test_a_change_that_the_shop_does_not_show_goes_to_a_person(desk: Desk, fault, misses):
    task = sent_and_lost(desk, runner.MAX_LOST)
    desk.shop.fault(**fault, scope={"path": "/effects"})

    task = desk.work(task)

    assert (task.status, task.reason) == ("handed_off", "step_keeps_failing")
    left = operation(task)
    assert (left.state, left.reason) == (State.NEEDS_PERSON, "step_keeps_failing")
    assert left.observations.filter(source="look_up", body={"found": False}).count() == misses
    assert left.attempts.count() == 1
    assert len(desk.shop.effects()) == 1


def test_when_the_last_look_kills_its_worker_too_nobody_looks_again(desk: Desk):
    task = sent_and_lost(desk, runner.MAX_LOST + 1)

    task = desk.work(task)

    assert (task.status, task.reason) == ("handed_off", "step_keeps_failing")
    assert operation(task).state == State.NEEDS_PERSON
    assert look_ups(desk) == 0


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
    lose(task, runner.MAX_LOST)

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
