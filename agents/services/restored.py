"""What has to be done to a database that went back in time, before anybody works with it."""

from dataclasses import dataclass
from datetime import datetime

from django.apps import apps
from django.contrib.sessions.models import Session
from django.db import connection, models, transaction

from tools import history
from tools.clock import database_now
from tools.models import Attempt, LookFirst

# More numbers than a shop gives out between two backups.
SKIPPED = 1_000_000
ROOMS = ("agents", "approvals", "tools", "accounts", "audit")


@dataclass(frozen=True)
class CameBack:
    """The time in which every shop is asked first, and how many operations are looked up now."""

    period: LookFirst
    doubted: int


def came_back(*, since: datetime, reason: str, by: str) -> CameBack:
    """The database may lack what was committed after `since`.

    No number that was given out since then is given out again: keys of operations are made of them,
    and shops remember keys. Everybody signs in again, since sign-ins that had ended are back. What
    was approved is looked up, and what comes is asked about before its first send (tools/history.py).
    Never inside a transaction; harmless when done twice. Raises LookFirstError for a time to come.
    """
    began = database_now()
    if since > began:
        raise history.LookFirstError("The moment that was restored is still to come")
    history.watch()  # what PostgreSQL tells by itself counts as the same occasion
    period = history.begin(since=since, reason=reason, by=by)
    with transaction.atomic(durable=True):
        _skip_numbers()
        Session.objects.all().delete()
    doubted = Attempt.objects.filter(detail=history.COMMITS_LOST, started_at__gte=began).count()
    return CameBack(period, doubted)


def _skip_numbers() -> None:
    with connection.cursor() as cursor:
        for room in ROOMS:
            for model in apps.get_app_config(room).get_models():
                if isinstance(model._meta.pk, models.AutoField):
                    cursor.execute(
                        "SELECT setval(s, nextval(s) + %s) FROM pg_get_serial_sequence(%s, %s) AS s",
                        [SKIPPED, model._meta.db_table, model._meta.pk.column],
                    )
