"""The database's clock: the one that judges leases, expiries and windows."""

from datetime import datetime

from django.db import connection
from django.db.models import DateTimeField, Func


class ClockTimestamp(Func):
    """`clock_timestamp()`: moves on inside a transaction, as `now()` does not."""

    template = "clock_timestamp()"
    output_field = DateTimeField()


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now
