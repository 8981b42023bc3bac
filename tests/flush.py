"""Empties the database after a transactional test: in milliseconds, and in spite of the guards.

TRUNCATE makes new files for every table and index, which takes far longer than the test before it
when sixty tables hold a few rows each, and the trail refuses it besides. DELETE in a session that
no trigger hears leaves the guards as production has them.
"""

from typing import Any

import pytest
from django.core.management.commands import flush

# What migrations put there, and every test expects.
KEPT = {"django_content_type", "django_migrations", "auth_permission"}


def statements(_style: object, connection: Any, **_options: object) -> list[str]:
    """What empties every table, for one transaction. It waits for whoever still writes."""
    tables = sorted(
        set(connection.introspection.django_table_names(only_existing=True, include_views=False))
        - KEPT
    )
    quoted = [connection.ops.quote_name(table) for table in tables]
    return [
        "SET LOCAL session_replication_role = replica",
        f"LOCK TABLE {', '.join(quoted)} IN ACCESS EXCLUSIVE MODE",
        *(f"DELETE FROM {table}" for table in quoted),  # noqa: S608
    ]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup):
    """pytest-django's own setup, then a `flush` that is quick and makes no permission anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush, "sql_flush", statements)
        patch.setattr(flush, "emit_post_migrate_signal", lambda *_args, **_kwargs: None)
        yield
