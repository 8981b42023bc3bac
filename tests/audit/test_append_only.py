"""The database refuses to change the trail, whoever asks."""

import pytest
from django.db import IntegrityError, connection, transaction

from audit import services
from tests.audit.facts import TABLES, full_entry


def put_one_row_in_each_table():
    services.record_many([full_entry()])
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO audit_seal (id, previous, event_ids, leaves, count, root, signed_at, key_id,"
            " signature, digest) SELECT 1, sha256('0'), ARRAY[id], digest, 1, digest, now(), 'k',"
            " digest || digest, digest FROM audit_event"
        )


def rows(table):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT t::text FROM {table} t ORDER BY 1")  # noqa: S608
        return cursor.fetchall()


@pytest.mark.parametrize("table", ["audit_event", "audit_personal_text", "audit_seal"])
def test_an_update_is_refused(db, table):
    put_one_row_in_each_table()
    before = rows(table)
    column = {"audit_event": "id", "audit_personal_text": "event_id", "audit_seal": "id"}[table]

    with pytest.raises(IntegrityError, match=f"UPDATE on {table} is refused"), transaction.atomic():
        connection.cursor().execute(f"UPDATE {table} SET {column} = {column}")  # noqa: S608

    assert rows(table) == before


@pytest.mark.parametrize("table", TABLES)
def test_a_delete_is_refused(db, table):
    put_one_row_in_each_table()
    before = rows(table)

    with pytest.raises(IntegrityError, match=f"DELETE on {table} is refused"), transaction.atomic():
        connection.cursor().execute(f"DELETE FROM {table}")  # noqa: S608

    assert rows(table) == before
    assert before


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("table", TABLES)
def test_a_truncate_is_refused(table):
    with transaction.atomic():
        put_one_row_in_each_table()
    before = rows(table)

    with (
        pytest.raises(IntegrityError, match=r"TRUNCATE on .* is refused"),
        transaction.atomic(),
    ):
        connection.cursor().execute(f"TRUNCATE {table} CASCADE")

    assert rows(table) == before
    assert before
