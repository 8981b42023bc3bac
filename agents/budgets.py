"""Budgets as a ledger: reserved before a model call, settled after it, never released when unknown.

Three rows carry each reservation: the task's, the customer's day and the shop's day. Tokens are
tokens, costs are millionths of a US dollar. CHECK constraints hold `spent + reserved <= cap` on
every row whatever this code does. Rows are taken in one order everywhere: task, customer, shop.
"""

from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from django.db import connection, transaction
from django.db.models import F

from accounts.models import Shop
from agents.models import DayBudget, Step, Task

_RESERVE_DAY = """
    INSERT INTO agents_daybudget AS row
      (shop_id, customer_id, day, tokens_spent, tokens_reserved, max_tokens,
       cost_spent, cost_reserved, max_cost)
    SELECT %(shop)s, %(customer)s, %(day)s, 0, %(tokens)s, %(max_tokens)s, 0, %(cost)s, %(max_cost)s
    WHERE %(tokens)s <= %(max_tokens)s AND %(cost)s <= %(max_cost)s
    ON CONFLICT (shop_id, customer_id, day) DO UPDATE
    SET tokens_reserved = row.tokens_reserved + EXCLUDED.tokens_reserved,
        cost_reserved = row.cost_reserved + EXCLUDED.cost_reserved,
        max_tokens = EXCLUDED.max_tokens, max_cost = EXCLUDED.max_cost
    WHERE row.tokens_spent + row.tokens_reserved + EXCLUDED.tokens_reserved <= EXCLUDED.max_tokens
      AND row.cost_spent + row.cost_reserved + EXCLUDED.cost_reserved <= EXCLUDED.max_cost
    RETURNING row.id
"""


@dataclass(frozen=True)
class Amount:
    """Tokens, and millionths of a US dollar."""

    tokens: int
    cost: int


class ExhaustedError(Exception):
    """A budget does not allow the reservation. `budget` is task, customer_day or shop_day."""

    def __init__(self, budget: str) -> None:
        super().__init__(budget)
        self.budget = budget


def reserve(task: Task, step: Step, worst: Amount, *, now: datetime) -> None:
    """Set the worst case of a model call aside, in the caller's transaction.

    Raises ExhaustedError when a cap does not allow it; nothing has changed then.
    """
    day = now.astimezone(ZoneInfo(task.shop.time_zone)).date()
    with transaction.atomic():
        _reserve_task(task, worst)
        _reserve_day(task.shop, task.customer_id, day, worst)
        _reserve_day(task.shop, None, day, worst)
    step.tokens_reserved, step.cost_reserved, step.budget_day = worst.tokens, worst.cost, day
    step.save(update_fields=["tokens_reserved", "cost_reserved", "budget_day"])


def settle(task: Task, step: Step, spent: Amount) -> None:
    """Turn a step's reservation into what was really spent, never more than was reserved.

    Called in the transaction that records the step; the caller saves the step.
    """
    tokens = min(spent.tokens, step.tokens_reserved)
    cost = min(spent.cost, step.cost_reserved)
    change = {
        "tokens_spent": F("tokens_spent") + tokens,
        "cost_spent": F("cost_spent") + cost,
        "tokens_reserved": F("tokens_reserved") - step.tokens_reserved,
        "cost_reserved": F("cost_reserved") - step.cost_reserved,
    }
    Task.objects.filter(pk=task.pk).update(**change)
    if step.budget_day is not None:
        days = DayBudget.objects.filter(shop_id=task.shop_id, day=step.budget_day)
        days.filter(customer_id=task.customer_id).update(**change)
        days.filter(customer__isnull=True).update(**change)
    step.cost += cost
    step.tokens_reserved = step.cost_reserved = 0
    step.budget_day = None


def charge_unknown(task: Task, step: Step) -> None:
    """A call whose charge nobody knows is charged at all that was reserved for it."""
    settle(task, step, Amount(step.tokens_reserved, step.cost_reserved))


def _reserve_task(task: Task, worst: Amount) -> None:
    allowed = Task.objects.filter(
        pk=task.pk,
        max_tokens__gte=F("tokens_spent") + F("tokens_reserved") + worst.tokens,
        max_cost__gte=F("cost_spent") + F("cost_reserved") + worst.cost,
    ).update(
        tokens_reserved=F("tokens_reserved") + worst.tokens,
        cost_reserved=F("cost_reserved") + worst.cost,
    )
    if not allowed:
        raise ExhaustedError("task")


def _reserve_day(shop: Shop, customer_id: int | None, day: date, worst: Amount) -> None:
    """One statement: the row is made, or raised where the cap of this moment allows it."""
    is_shop = customer_id is None
    with connection.cursor() as cursor:
        cursor.execute(
            _RESERVE_DAY,
            {
                "shop": shop.pk,
                "customer": customer_id,
                "day": day,
                "tokens": worst.tokens,
                "cost": worst.cost,
                "max_tokens": shop.shop_day_max_tokens if is_shop else shop.customer_day_max_tokens,
                "max_cost": shop.shop_day_max_cost if is_shop else shop.customer_day_max_cost,
            },
        )
        if cursor.fetchone() is None:
            raise ExhaustedError("shop_day" if is_shop else "customer_day")
