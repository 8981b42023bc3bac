"""The verifier finds every change and names the row."""

import base64

import pytest
from django.db import connection

from audit import verify as verify_module
from audit.canonical import content_digest, event_digest
from audit.keys import get_signer
from audit.models import Event, Seal, Unsealed
from audit.verify import verify
from tests.audit.facts import (
    full_entry,
    plain_entry,
    record_committed,
    seal,
    sealed_trail,
    tamper,
)

# For every column a value that differs from what the entries hold.
EVENT_CHANGES = {
    "id": ["id + 100000"],
    "at": ["at + interval '1 microsecond'", "at + interval '1 day'"],
    "shop_id": ["8", "NULL"],
    "actor": ["'staff:erin'"],
    "action": ["'refund.failed'"],
    "subject": ["'operation:13'"],
    "task_id": ["82", "NULL"],
    "ticket_id": ["6", "9007199254740993"],
    "customer": ["'bob'", "''"],
    "order_id": ["'1043'"],
    "tool": ["'cancel_order'"],
    "outcome": ["'failed'"],
    "amount": ["4001", "-4000"],
    "currency": ["'EUR'"],
    "data": ["data || '{\"days\": 13}'", "'{}'", "data || '{\"days\": 12.0}'", "'[]'", "'null'"],
    "personal_digest": ["NULL", "sha256('x')"],
    "digest": ["sha256('x')"],
}
SEAL_CHANGES = {
    "id": "id = id + 100",
    "previous": "previous = sha256('x')",
    "event_ids": "event_ids = ARRAY[event_ids[2], event_ids[1], event_ids[3]]",
    "leaves": "leaves = set_byte(leaves, 0, 255 - get_byte(leaves, 0))",
    "count": "count = 2, event_ids = event_ids[1:2], leaves = substr(leaves, 1, 64)",
    "root": "root = sha256('x')",
    "signed_at": "signed_at = signed_at + interval '1 microsecond'",
    "key_id": "key_id = '0000000000000000'",
    "signature": "signature = sha256('x') || sha256('y')",
    "digest": "digest = sha256('x')",
}


def first_fault():
    return str(verify().faults[0])


def columns(model):
    return [field.column for field in model._meta.concrete_fields]


def test_an_untouched_trail_holds(db):
    sealed_trail(seals=2, events=3)
    waiting = record_committed(plain_entry())

    report = verify()

    assert report.holds
    assert (report.seals, report.sealed, report.unsealed) == (2, 6, 1)
    assert report.unsealed_since == waiting[0].at
    assert report.newest == Seal.objects.get(pk=2)


def test_an_empty_trail_holds(db):
    report = verify()

    assert report.holds
    assert (report.seals, report.sealed, report.unsealed, report.newest) == (0, 0, 0, None)


def test_the_changes_tried_below_cover_every_column():
    assert list(EVENT_CHANGES) == columns(Event)
    assert list(SEAL_CHANGES) == columns(Seal)


@pytest.mark.parametrize(
    ("column", "value"),
    [(column, value) for column, values in EVENT_CHANGES.items() for value in values],
)
@pytest.mark.parametrize("sealed", [True, False])
def test_a_changed_field_names_the_row(db, column, value, sealed):
    sealed_trail(seals=1)
    events = sealed_trail(seals=1) if sealed else record_committed(*[full_entry()] * 3)
    victim = events[1]

    assert tamper(f"UPDATE audit_event SET {column} = {value} WHERE id = %s", [victim.pk]) == 1  # noqa: S608

    assert first_fault().startswith(f"event {victim.pk}")
    assert not first_fault().startswith(f"event {victim.pk}0")


def test_the_message_says_which_event_of_which_day(db):
    victim = sealed_trail()[1]
    tamper("UPDATE audit_event SET amount = 1 WHERE id = %s", [victim.pk])

    assert first_fault() == (
        f"event {victim.pk} (refund.succeeded, 2026-03-01): its content does not match its digest"
    )


def test_text_moved_across_a_field_border_is_found(db):
    victim = sealed_trail()[1]
    tamper(
        "UPDATE audit_event SET tool = tool || left(outcome, 1), outcome = substr(outcome, 2)"
        " WHERE id = %s",
        [victim.pk],
    )

    assert first_fault().startswith(f"event {victim.pk} ")


def test_a_row_changed_together_with_its_digest_is_named(db):
    victim = sealed_trail()[4]
    victim.amount = 1
    forged = event_digest(victim.pk, content_digest(victim.content()))
    tamper("UPDATE audit_event SET amount = 1, digest = %s WHERE id = %s", [forged, victim.pk])

    assert first_fault() == (
        f"event {victim.pk} (refund.succeeded, 2026-03-01):"
        " its content and digest were changed after it was sealed"
    )


def test_two_rows_that_changed_places_are_found(db):
    first, second, *_ = sealed_trail()
    tamper("UPDATE audit_event SET id = -1 WHERE id = %s", [first.pk])
    tamper("UPDATE audit_event SET id = %s WHERE id = %s", [first.pk, second.pk])
    tamper("UPDATE audit_event SET id = %s WHERE id = -1", [second.pk])

    faults = [fault.where for fault in verify().faults]
    assert faults[0].startswith(f"event {first.pk} ")
    assert faults[1].startswith(f"event {second.pk} ")


@pytest.mark.parametrize("place", [0, 1, 5])
def test_a_deleted_event_is_named(db, place):
    victim = sealed_trail()[place]
    tamper("DELETE FROM audit_event WHERE id = %s", [victim.pk])

    seal = 1 if place < 3 else 2
    assert first_fault() == f"event {victim.pk}: missing, though seal {seal} holds it"


def test_an_event_deleted_before_it_was_sealed_is_named_and_stops_no_sealing(db):
    victim, other = record_committed(plain_entry(), plain_entry())
    tamper("DELETE FROM audit_event WHERE id = %s", [victim.pk])

    assert seal().event_ids == [other.pk]
    assert first_fault() == f"event {victim.pk}: missing, though it waits for its seal"


def test_an_event_inserted_past_the_triggers_is_named(db):
    original = sealed_trail()[2]
    forged_id = original.pk + 500
    forged = event_digest(forged_id, content_digest(original.content() | {"personal_digest": None}))
    names = [name for name in columns(Event) if name not in {"id", "digest", "personal_digest"}]
    listed = ", ".join(names)
    copy = f"SELECT %s, %s, {listed} FROM audit_event WHERE id = %s"  # noqa: S608
    tamper(
        f"INSERT INTO audit_event (id, digest, {listed}) {copy}", [forged_id, forged, original.pk]
    )

    assert first_fault() == (
        f"event {forged_id} (refund.succeeded, 2026-03-01):"
        " it is in no seal and does not wait for one: it did not come through the trail"
    )


def test_an_event_taken_from_the_outbox_is_named(db):
    victim = record_committed(plain_entry())[0]
    Unsealed.objects.all().delete()

    assert first_fault().startswith(
        f"event {victim.pk} (task.started, 2026-03-01): it is in no seal"
    )


def test_an_event_sealed_twice_is_named(db):
    victim = sealed_trail()[1]
    Unsealed.objects.create(event_id=victim.pk)
    while_waiting = first_fault()
    seal()

    assert while_waiting.startswith(f"event {victim.pk} ")
    assert first_fault() == (
        f"event {victim.pk} (refund.succeeded, 2026-03-01): it is sealed or awaits its seal 2 times"
    )


@pytest.mark.parametrize("column", SEAL_CHANGES)
def test_a_changed_seal_is_named(db, column):
    sealed_trail(seals=3)

    assert tamper(f"UPDATE audit_seal SET {SEAL_CHANGES[column]} WHERE id = 2") == 1  # noqa: S608

    assert first_fault().startswith("seal 2: ")


def test_a_seal_taken_out_of_the_middle_is_named(db):
    sealed_trail(seals=3)
    tamper("DELETE FROM audit_seal WHERE id = 2")

    assert first_fault() == "seal 2: missing from the chain"


def test_a_seal_made_without_the_key_is_named(db, settings):
    sealed_trail(seals=1)
    ours = settings.SEAL_KEY
    settings.SEAL_KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    sealed_trail(seals=1)
    settings.SEAL_KEY = ours

    assert first_fault().startswith("seal 2: it is signed with the unknown key ")


def test_seals_of_a_retired_key_still_count(db, settings):
    sealed_trail(seals=1)
    retired = get_signer().private.public_key().public_bytes_raw()
    settings.SEAL_KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    settings.SEAL_PUBLIC_KEYS = [base64.b64encode(retired).decode()]
    sealed_trail(seals=1)

    assert verify().holds


def test_every_fault_is_listed_up_to_a_limit(db, monkeypatch):
    events = sealed_trail(seals=1, events=5)
    tamper("UPDATE audit_event SET amount = 1")
    monkeypatch.setattr(verify_module, "MAX_FAULTS", 3)

    faults = [fault.where for fault in verify().faults]

    assert faults == [f"event {event.pk} (refund.succeeded, 2026-03-01)" for event in events[:3]]


def test_seals_before_the_first_asked_for_are_checked_without_their_events(db):
    events = sealed_trail(seals=2)
    tamper("UPDATE audit_event SET amount = 1 WHERE id = %s", [events[0].pk])

    assert verify(first_seal=2).holds
    tamper("UPDATE audit_seal SET root = sha256('x') WHERE id = 1")
    assert not verify(first_seal=2).holds


def test_long_trails_are_read_in_chunks(db, monkeypatch):
    monkeypatch.setattr(verify_module, "CHUNK", 2)
    events = sealed_trail(seals=1, events=5)
    record_committed(*[plain_entry() for _ in range(5)])

    report = verify()
    tamper("UPDATE audit_event SET amount = 1 WHERE id = %s", [events[4].pk])

    assert report.holds
    assert (report.sealed, report.unsealed) == (5, 5)
    assert first_fault().startswith(f"event {events[4].pk} ")


@pytest.mark.django_db(transaction=True)
def test_the_verifier_reads_one_snapshot_and_cannot_write(monkeypatch):
    sealed_trail()
    seen = []

    def look(_):
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_isolation")
            level = cursor.fetchone()[0]
            cursor.execute("SHOW transaction_read_only")
            seen.append((level, cursor.fetchone()[0]))

    verify(progress=look)

    assert seen == [("repeatable read", "on")] * 2


@pytest.mark.parametrize("sealed", [True, False])
def test_a_row_that_cannot_even_be_read_is_named_and_hides_no_other(db, sealed):
    events = sealed_trail(seals=1) if sealed else record_committed(*[full_entry()] * 3)
    tamper("UPDATE audit_event SET at = 'infinity' WHERE id = %s", [events[0].pk])
    tamper("UPDATE audit_event SET amount = 1 WHERE id = %s", [events[2].pk])

    first, second = verify().faults
    assert str(first) == f"event {events[0].pk}: its content cannot be read"
    assert second.where == f"event {events[2].pk} (refund.succeeded, 2026-03-01)"


@pytest.mark.parametrize(
    "change",
    ["signed_at = 'infinity'", "event_ids = ARRAY[NULL, 1, 2]", "event_ids = ARRAY[event_ids]"],
)
def test_a_seal_that_cannot_even_be_read_is_named(db, change):
    sealed_trail(seals=3)
    tamper(f"UPDATE audit_seal SET {change} WHERE id = 2")  # noqa: S608

    assert first_fault() == "seal 2: its content cannot be read"
