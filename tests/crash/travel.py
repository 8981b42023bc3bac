"""Time passes for one customer's rows alone: everything that was, was so many hours earlier."""

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from accounts.models import Customer

LONG_AGO = 10_000
# What carries a time of the work itself; the trail and what was said keep theirs.
_TIMES = {
    "agents_task": ("created_at", "started_at", "finished_at", "lease_until", "wake_at"),
    "tools_operation": (
        "created_at",
        "expires_at",
        "first_sent_at",
        "finished_at",
        "not_before",
    ),
}
_TIMES_BELOW = {
    "tools_attempt": ("started_at", "finished_at"),
    "approvals_approval": ("asked_at", "expires_at", "decided_at"),
}


def pass_hours(customer: Customer, hours: int) -> None:
    """Set every time of the customer's work back. A day or more also turns the budget's day.

    The guards that forbid it in production are off for this one transaction.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table, columns in _TIMES.items():
            cursor.execute(
                f"UPDATE {table} SET {_earlier(columns)} WHERE customer_id = %s",  # noqa: S608
                [hours] * len(columns) + [customer.pk],
            )
        for table, below in _TIMES_BELOW.items():
            cursor.execute(
                f"UPDATE {table} SET {_earlier(below)} WHERE operation_id IN"  # noqa: S608
                " (SELECT id FROM tools_operation WHERE customer_id = %s)",
                [hours] * len(below) + [customer.pk],
            )
        _turn_days(cursor, customer, hours // 24)


def _turn_days(cursor: CursorWrapper, customer: Customer, days: int) -> None:
    """The shop's whole ledger of days, and the reservations that are still to be settled on it.

    By way of long ago, so that no day meets the one before it on the way.
    """
    for shift in (LONG_AGO + days, -LONG_AGO):
        cursor.execute(
            "UPDATE agents_daybudget SET day = day - %s WHERE shop_id = %s",
            [shift, customer.shop_id],
        )
    cursor.execute(
        "UPDATE agents_step SET budget_day = budget_day - %s WHERE budget_day IS NOT NULL"
        " AND task_id IN (SELECT id FROM agents_task WHERE shop_id = %s)",
        [days, customer.shop_id],
    )


def _earlier(columns: tuple[str, ...]) -> str:
    return ", ".join(f"{name} = {name} - make_interval(hours => %s)" for name in columns)
