"""A database that went back in time: rows as they once were, under another timeline."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connection, models, transaction
from django.db.models import F

from tools import history
from tools.clock import database_now
from tools.models import Attempt, History, Observation, Operation

Rows = list[tuple[models.Model, dict[str, Any]]]


def backup(*rows: models.Model) -> Rows:
    """The rows as they are now."""
    fresh = [type(row)._base_manager.get(pk=row.pk) for row in rows]
    return [(row, {f.attname: getattr(row, f.attname) for f in row._meta.fields}) for row in fresh]


def restore(rows: Rows) -> None:
    """Put rows back to their backup; what their operations left behind since is gone."""
    with _unguarded():
        for row, values in rows:
            type(row)._base_manager.filter(pk=row.pk).update(**values)
            if isinstance(row, Operation):
                _forget(row)


def forget(*later: "models.QuerySet[Any]") -> None:
    """Rows that were written after the backup."""
    with _unguarded():
        for rows in later:
            rows.delete()


def lose(operation: Operation) -> None:
    """The operation was never committed, as far as the database knows."""
    with _unguarded(), connection.cursor() as cursor:
        _forget(operation)
        cursor.execute("DELETE FROM approvals_approval WHERE operation_id = %s", [operation.pk])
        cursor.execute("DELETE FROM tools_operation WHERE id = %s", [operation.pk])


def change_timeline(*, minutes_ago: float = 5) -> None:
    """The row that remembers the history is from a time before the one that runs now."""
    history.watch()
    History.objects.update(
        timeline=F("timeline") + 1,
        seen_at=database_now() - timedelta(minutes=minutes_ago),
    )


def _forget(operation: Operation) -> None:
    for kind in (Attempt, Observation):
        kind._base_manager.filter(operation=operation).delete()


@contextmanager
def _unguarded() -> Iterator[None]:
    """The guards that forbid it in production are off for this one transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        yield
        cursor.execute("SET LOCAL session_replication_role = origin")
