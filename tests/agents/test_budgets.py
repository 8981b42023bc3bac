"""Budgets: three rows carry each reservation, nothing is refilled, unknown charges stay."""

import threading
from datetime import UTC, date, datetime

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import Sum

from agents import budgets, record, runner
from agents.budgets import Amount, ExhaustedError
from agents.models import DayBudget, Step, Task
from tests.agents.desk import Desk, claim, steps

BEFORE_MIDNIGHT = datetime(2026, 11, 30, 23, 59, tzinfo=UTC)
AFTER_MIDNIGHT = datetime(2026, 12, 1, 0, 1, tzinfo=UTC)


def rows(task: Task) -> list[tuple[int, int]]:
    """Spent and reserved tokens of the task, the customer's days and the shop's days."""
    task = Task.objects.get(pk=task.pk)
    days = DayBudget.objects.order_by("customer_id", "day")
    return [
        (task.tokens_spent, task.tokens_reserved),
        *((day.tokens_spent, day.tokens_reserved) for day in days),
    ]


def planned(desk: Desk) -> tuple[Task, Step]:
    task = Task.objects.select_related("shop").get(pk=desk.ask("hello").pk)
    task.shop.time_zone = "UTC"
    return task, steps(task)[0]


def test_a_reservation_stands_on_three_rows_and_is_settled_on_them(desk: Desk):
    task, step = planned(desk)

    budgets.reserve(task, step, Amount(100, 10), now=BEFORE_MIDNIGHT)
    assert rows(task) == [(0, 100)] * 3

    budgets.settle(task, step, Amount(60, 6))
    assert rows(task) == [(60, 0)] * 3
    assert (step.cost, step.tokens_reserved) == (6, 0)


def test_more_than_was_reserved_is_never_charged(desk: Desk):
    task, step = planned(desk)
    budgets.reserve(task, step, Amount(100, 10), now=BEFORE_MIDNIGHT)

    budgets.settle(task, step, Amount(10**9, 10**9))

    assert rows(task) == [(100, 0)] * 3


def test_midnight_settles_on_the_day_of_the_reservation_and_refills_no_task(desk: Desk):
    task, step = planned(desk)
    budgets.reserve(task, step, Amount(100, 10), now=BEFORE_MIDNIGHT)
    budgets.charge_unknown(task, step)
    budgets.reserve(task, step, Amount(50, 5), now=AFTER_MIDNIGHT)

    days = DayBudget.objects.filter(customer__isnull=True).order_by("day")
    assert [(row.day, row.tokens_spent, row.tokens_reserved) for row in days] == [
        (date(2026, 11, 30), 100, 0),
        (date(2026, 12, 1), 0, 50),
    ]
    assert rows(task)[0] == (100, 50)


def test_the_day_is_the_shops_own(desk: Desk):
    task, step = planned(desk)
    task.shop.time_zone = "Pacific/Auckland"

    budgets.reserve(task, step, Amount(1, 1), now=BEFORE_MIDNIGHT)

    assert step.budget_day == date(2026, 12, 1)


@pytest.mark.parametrize(
    ("field", "budget"),
    [
        ("customer_day_max_tokens", "customer_day"),
        ("customer_day_max_cost", "customer_day"),
        ("shop_day_max_tokens", "shop_day"),
        ("shop_day_max_cost", "shop_day"),
    ],
)
def test_an_exhausted_day_reserves_nothing_anywhere(desk: Desk, field: str, budget: str):
    task, step = planned(desk)
    setattr(task.shop, field, 99)

    with pytest.raises(ExhaustedError) as refused:
        budgets.reserve(task, step, Amount(100, 100), now=BEFORE_MIDNIGHT)

    assert refused.value.budget == budget
    assert rows(task) == [(0, 0)]
    assert Step.objects.get(pk=step.pk).tokens_reserved == 0


def test_a_cap_holds_over_several_reservations_and_a_raised_one_counts_at_once(desk: Desk):
    task, step = planned(desk)
    task.shop.customer_day_max_tokens = 150
    budgets.reserve(task, step, Amount(100, 1), now=BEFORE_MIDNIGHT)
    with pytest.raises(ExhaustedError):
        budgets.reserve(task, step, Amount(51, 1), now=BEFORE_MIDNIGHT)

    task.shop.customer_day_max_tokens = 151
    budgets.reserve(task, step, Amount(51, 1), now=BEFORE_MIDNIGHT)

    assert rows(task)[1] == (0, 151)


@pytest.mark.parametrize("field", ["customer_day_max_tokens", "shop_day_max_cost"])
def test_a_spent_day_hands_the_task_to_a_person_without_a_call(desk: Desk, field: str):
    task = desk.ask("hello")
    setattr(task.shop, field, 1)
    task.shop.save(update_fields=[field])

    task = desk.work(task)

    assert task.status == "handed_off"
    assert task.reason in {"customer_day_budget_spent", "shop_day_budget_spent"}
    assert desk.model.calls() == []


def test_the_sum_of_steps_is_the_tasks_usage_and_the_days(desk: Desk):
    task = desk.done("Please refund order 1042")

    task = Task.objects.get(pk=task.pk)
    of_steps = task.steps.aggregate(tokens=Sum("tokens_in") + Sum("tokens_out"), cost=Sum("cost"))
    assert (of_steps["tokens"], of_steps["cost"]) == (task.tokens_spent, task.cost_spent)
    for day in DayBudget.objects.all():
        assert (day.tokens_spent, day.cost_spent) == (task.tokens_spent, task.cost_spent)
        assert (day.tokens_reserved, day.cost_reserved) == (0, 0)


def test_a_lost_reply_stays_charged_beside_the_second_call(desk: Desk):
    task = desk.ask("hello")
    first = claim(task)
    assert first.model_request is not None
    Task.objects.filter(pk=task.pk).update(lease_until=BEFORE_MIDNIGHT.replace(year=2020))

    second = claim(task)
    record.record(second, runner.run(second))

    step = steps(task)[0]
    spent = first.model_request.worst.tokens + step.tokens_in + step.tokens_out
    assert rows(task) == [(spent, 0)] * 3


def test_the_database_holds_the_caps_whatever_code_does(desk: Desk):
    task, step = planned(desk)
    budgets.reserve(task, step, Amount(100, 10), now=BEFORE_MIDNIGHT)

    for change in ("tokens_spent = max_tokens", "cost_reserved = max_cost + 1"):
        with (
            pytest.raises(IntegrityError),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(f"UPDATE agents_daybudget SET {change}")  # noqa: S608 - our own words


@pytest.mark.django_db(transaction=True)
def test_sixteen_spenders_at_once_never_pass_the_cap(desk: Desk):
    tasks = [planned(desk) for _ in range(3)]
    reserved: list[bool] = []
    start = threading.Barrier(16)

    def spend(index: int) -> None:
        task, step = tasks[index % 3]
        step = Step.objects.get(pk=step.pk)
        task.shop.customer_day_max_tokens = 50
        start.wait()
        try:
            with transaction.atomic():
                budgets.reserve(task, step, Amount(10, 1), now=BEFORE_MIDNIGHT)
            reserved.append(True)
        except ExhaustedError:
            reserved.append(False)
        finally:
            connection.close()

    threads = [threading.Thread(target=spend, args=(index,)) for index in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(reserved) == 5
    row = DayBudget.objects.get(customer__isnull=False)
    assert row.tokens_reserved == 50
