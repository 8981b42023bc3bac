"""Roles that add to the trail and cannot change it, triggers or not."""

from contextlib import contextmanager
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import ProgrammingError, connection, transaction

from audit import services
from audit.models import CustomerKey, Event, Seal
from tests.audit.facts import NOW, SHOP, TABLES, full_entry, record_committed, seal, sealed_trail


def run(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)


@contextmanager
def as_role(role):
    run(f'SET LOCAL ROLE "{role}"')
    try:
        yield
    finally:
        run("RESET ROLE")


@pytest.fixture
def roles(db):
    """Two roles with what the command prints, gone again with the test's transaction."""
    run('CREATE ROLE "countersign app test"')
    run('CREATE ROLE "countersign sealer test"')
    out = StringIO()
    call_command(
        "audit_grants", app="countersign app test", sealer="countersign sealer test", stdout=out
    )
    run(out.getvalue())
    return "countersign app test", "countersign sealer test"


def test_the_two_roles_can_do_all_that_the_trail_needs(roles):
    app, sealer = roles

    with as_role(app):
        # Of a kind that nobody else is told of: other tables are not the trail's business.
        event = record_committed(full_entry(action="step.finished", personal="words"))[0]
    with as_role(sealer):
        seal()
    with as_role(app):
        assert services.read_personal(event) == "words"
        services.erase_customer(shop_id=SHOP, customer="ada", actor="staff:dana", at=NOW)

    assert Seal.objects.get().event_ids == [event.pk]
    assert CustomerKey.objects.get().destroyed_at == NOW


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {table} SET {column} = {column}",
        "DELETE FROM {table}",
        "TRUNCATE {table}",
        "ALTER TABLE {table} DISABLE TRIGGER ALL",
        "DROP TABLE {table}",
        "SET session_replication_role = replica",
    ],
)
def test_neither_role_can_change_the_trail(roles, which, table, statement):
    sealed_trail(seals=1)
    column = "event_id" if table == "audit_personal_text" else "id"
    before = list(Event.objects.values()), list(Seal.objects.values())

    with (
        pytest.raises(ProgrammingError, match=r"permission denied|must be owner"),
        transaction.atomic(),
        as_role_to_the_end(roles[which]),
    ):
        run(statement.format(table=table, column=column))

    assert (list(Event.objects.values()), list(Seal.objects.values())) == before


@contextmanager
def as_role_to_the_end(role):
    """Until the transaction fails, and its rollback gives the role back."""
    run(f'SET LOCAL ROLE "{role}"')
    yield


def test_the_sealer_cannot_write_events(roles):
    with (
        pytest.raises(ProgrammingError, match="permission denied"),
        transaction.atomic(),
        as_role_to_the_end(roles[1]),
    ):
        services.record_many([full_entry(personal=None)])

    assert not Event.objects.exists()
