"""Lets transactional tests flush: the database setup with the TRUNCATE triggers of the trail off.

A `conftest.py` takes it by importing the fixture: `from tests.audit_flush import django_db_setup`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

TABLES = ("audit_event", "audit_personal_text", "audit_customer_key", "audit_seal")


def switch_truncate_triggers(*, on: bool) -> None:
    """Switch the triggers that refuse TRUNCATE on or off, for every table of the trail."""
    verb = "ENABLE" if on else "DISABLE"
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"ALTER TABLE {table} {verb} TRIGGER {table}_no_truncate")


@contextmanager
def truncate_triggers_on() -> Iterator[None]:
    """The triggers as production has them, for as long as the block lasts."""
    switch_truncate_triggers(on=True)
    try:
        yield
    finally:
        switch_truncate_triggers(on=False)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    """pytest-django's own setup, then TRUNCATE allowed."""
    with django_db_blocker.unblock():
        switch_truncate_triggers(on=False)
