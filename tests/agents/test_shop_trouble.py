"""What a task does while its shop does not answer, does not know us, or asks for fewer calls."""

from datetime import timedelta

import pytest

from accounts.models import Customer, Shop
from agents import record, services
from agents.models import Task
from tests.agents.desk import Desk, operation, reply, steps
from tools import adapters
from tools.access import ask
from tools.clock import database_now
from tools.models import Adapter, Operation

ONE = {"path": "/api/orders/1042", "method": "GET"}


@pytest.fixture
def shop(desk: Desk) -> Shop:
    return Shop.objects.get(slug="demo")


def stop_calls(shop: Shop) -> None:
    for _ in range(adapters.FAILURES):
        adapters.note_failure(shop, "timeout")


def open_way(shop: Shop) -> None:
    """The pause ends, and somebody else's read finds that the shop answers."""
    Adapter.objects.filter(shop=shop).update(next_try_at=database_now() - timedelta(seconds=1))
    ada = Customer.objects.get(shop=shop, external_id="ada")
    ask(ada, lambda client: client.list_orders(limit=1))


def seconds_left(task: Task) -> float:
    assert task.wake_at is not None
    return (task.wake_at - database_now()).total_seconds()


def api_calls(desk: Desk) -> list[str]:
    return [call["path"] for call in desk.shop.calls() if call["path"].startswith("/api")]


def test_a_customer_is_told_at_once_that_the_shop_cannot_be_seen(desk: Desk, shop: Shop):
    stop_calls(shop)
    task = desk.ask("Please refund order 1042")
    desk.shop.forget_calls()

    task = desk.work(task)

    assert (task.status, task.outcome) == ("succeeded", "answered")
    assert (steps(task)[1].error, steps(task)[1].attempts) == ("unavailable", 1)
    assert "does not answer" in reply(task)
    assert api_calls(desk) == []
    assert not Operation.objects.filter(task_id=task.pk).exists()


def test_a_fixed_workflow_says_so_too(desk: Desk, shop: Shop):
    stop_calls(shop)

    task = desk.work(desk.ask("Where is order 1045?"))

    assert (task.status, task.workflow) == ("succeeded", "order_status")
    assert steps(task)[0].error == "unavailable"
    assert "does not answer" in reply(task)


@pytest.mark.parametrize("why", ["away", "refused"])
def test_an_approved_refund_sleeps_until_the_shop_answers_and_is_paid_once(
    desk: Desk, shop: Shop, why: str
):
    task = desk.work(desk.ask("Please refund order 1042"))
    if why == "away":
        stop_calls(shop)
    else:
        adapters.pause(shop)
    desk.shop.forget_calls()

    task = desk.say_yes(task)

    assert task.status == "waiting_outcome"
    assert 0 < seconds_left(task) <= 5
    assert operation(task).state == "approved"
    assert api_calls(desk) == []

    open_way(shop)
    Task.objects.filter(pk=task.pk).update(wake_at=database_now() + timedelta(hours=1))
    assert services.go_on(shop_id=shop.pk) == 1
    task = desk.work(task)
    assert (task.status, task.outcome) == ("succeeded", "done")
    assert len(desk.shop.effects()) == 1


def test_what_waits_for_something_else_is_not_woken(desk: Desk, shop: Shop):
    task = desk.work(desk.ask("Please refund order 1042"))
    desk.shop.fault("timeout_after", scope={"path": "/refunds"}, times=1, ms=2500)
    task = desk.say_yes(task)
    assert operation(task).state == "unknown"

    assert services.go_on(shop_id=shop.pk) == 0


def test_a_read_that_is_throttled_waits_as_long_as_the_shop_says(desk: Desk, shop: Shop):
    desk.shop.fault("error_before", scope=ONE, times=1, status=429, retry_after=20)

    task = desk.work(desk.ask("Please refund order 1042"))

    assert task.status == "running"
    assert 15 < seconds_left(task) <= 20
    assert desk.wake(task).status == "waiting_approval"


def test_a_read_that_would_have_to_wait_for_long_is_told_instead(desk: Desk, shop: Shop):
    seconds = int(record.READ_PATIENCE) + 1
    desk.shop.fault("error_before", scope=ONE, status=429, retry_after=seconds)

    task = desk.work(desk.ask("Please refund order 1042"))

    assert task.status == "succeeded"
    assert (steps(task)[1].error, steps(task)[1].attempts) == ("unavailable", 1)


def test_a_throttled_send_comes_again_when_the_shop_says(desk: Desk, shop: Shop):
    task = desk.work(desk.ask("Please refund order 1042"))
    desk.shop.fault(
        "error_before", scope={"path": "/refunds"}, times=1, status=429, retry_after=200
    )

    task = desk.say_yes(task)

    assert operation(task).state == "approved"
    assert 190 < seconds_left(task) <= 200
    Operation.objects.filter(task_id=task.pk).update(not_before=database_now())
    task = desk.wake(task)
    assert (task.status, task.outcome) == ("succeeded", "done")
    assert len(desk.shop.effects()) == 1


def test_an_order_that_cannot_be_read_for_a_send_is_read_when_the_shop_says(desk: Desk, shop: Shop):
    task = desk.work(desk.ask("Please refund order 1042"))
    desk.shop.fault("error_before", scope=ONE, times=1, status=429, retry_after=200)

    task = desk.say_yes(task)

    assert operation(task).state == "approved"
    assert 190 < seconds_left(task) <= 200
