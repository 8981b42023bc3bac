"""A worker whose own clock is wrong: it claims, decides, sends and tells as any other."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Shop
from agents import store
from agents.models import Task
from tests.agents.desk import Desk, claim, line, operation, reply
from tools.models import Verdict
from tools.registry import TOOLS

SLOW_AND_FAST = pytest.mark.parametrize("minutes", [-10, 10])


@pytest.fixture
def by(monkeypatch):
    """Put this process's clock so many minutes forward, or back; the database's stays right."""
    right = timezone.now

    def put(minutes: int) -> None:
        monkeypatch.setattr(
            "django.utils.timezone.now", lambda: right() + timedelta(minutes=minutes)
        )

    return put


@SLOW_AND_FAST
def test_a_wrong_clock_refunds_once_and_only_after_the_yes(desk: Desk, by, minutes: int):
    task = desk.ask("Please refund order 1042")
    by(minutes)

    task = desk.work(task)
    assert task.status == "waiting_approval"
    assert desk.shop.effects() == []
    asked = operation(task)
    lives = (asked.expires_at - asked.created_at).total_seconds()
    assert lives == Shop.objects.get(pk=task.shop_id).customer_approval_seconds

    task = desk.say_yes(task)
    assert (task.status, task.outcome) == ("succeeded", "done")
    assert [effect["amount"] for effect in desk.shop.effects()] == [4000]
    assert operation(task).reference in reply(task)


@SLOW_AND_FAST
def test_a_wrong_clock_neither_takes_anothers_task_nor_loses_its_own(desk: Desk, by, minutes: int):
    task = desk.ask("Please refund order 1042")
    claim(task)
    by(minutes)

    assert store.claim([task.pk]) == []
    assert store.find_ready() == []

    Task.objects.filter(pk=task.pk).update(lease_until=timezone.now() - timedelta(hours=1))
    assert [one.task.pk for one in store.claim([task.pk])] == [task.pk]
    assert store.claim([task.pk]) == []


@SLOW_AND_FAST
@pytest.mark.parametrize("early", [True, False], ids=["five minutes left", "five minutes late"])
def test_the_refund_window_closes_by_the_databases_clock(desk: Desk, by, minutes: int, early: bool):
    window = timedelta(days=Shop.objects.get().refund_window_days)
    delivered = timezone.now() - window + timedelta(minutes=5 if early else -5)
    desk.shop.edit_order("1042", delivered_at=delivered.isoformat())
    task = desk.ask("Please refund order 1042")
    by(minutes)

    task = desk.work(task)

    assert ("refund_order:outside_window" in line(task)) is not early
    assert (task.status == "waiting_approval") is early
    assert desk.shop.effects() == []


@SLOW_AND_FAST
@pytest.mark.parametrize("ago", [30, 90])
def test_calls_are_counted_by_the_databases_minute(desk: Desk, by, minutes: int, ago: int):
    task = desk.ask("Please refund order 1042")
    at = timezone.now() - timedelta(seconds=ago)
    Verdict.objects.bulk_create(
        Verdict(
            shop_id=task.shop_id,
            customer_id=task.customer_id,
            task_id=task.pk,
            step_n=99,
            tool="refund_order",
            gate="offered",
            rule="within_rate",
            finding="allow",
            inputs={},
            policy_version=1,
            at=at,
        )
        for _ in range(TOOLS["refund_order"].calls_per_minute)
    )
    by(minutes)

    task = desk.work(task)

    assert ("refund_order:rate_limited" in line(task)) is (ago < 60)
    assert desk.shop.effects() == []
