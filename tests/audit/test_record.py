"""Recording: what a row holds, and what is refused before anything is written."""

from datetime import datetime

import pytest
from django.db import DatabaseError, connection, transaction

from audit import services
from audit.canonical import content_digest, event_digest
from audit.models import AppendOnlyError, CustomerKey, Event, PersonalText, Unsealed
from tests.audit.facts import NOW, SHOP, full_entry, plain_entry


def nothing_written():
    return not (
        Event.objects.exists() or PersonalText.objects.exists() or Unsealed.objects.exists()
    )


def test_a_recorded_event_is_stored_with_every_field_as_given(db):
    recorded = services.record_many([full_entry()])[0]

    stored = Event.objects.get()
    assert stored.pk == recorded.pk
    assert stored.content() == {
        "at": "2026-03-01T12:30:15.123456Z",
        "shop_id": SHOP,
        "actor": "staff:dana",
        "action": "refund.succeeded",
        "subject": "operation:12",
        "task_id": 81,
        "ticket_id": 5,
        "customer": "ada",
        "order_id": "1042",
        "tool": "refund_order",
        "outcome": "succeeded",
        "amount": 4000,
        "currency": "USD",
        "data": {"rule": "refund_window", "days": 12, "lines": ["1042-1"], "late": False},
        "personal_digest": bytes(recorded.personal_digest or b"").hex(),
    }


def test_the_digest_made_in_the_database_is_the_one_that_python_recomputes(db):
    services.record_many([full_entry(), plain_entry()])

    for event in Event.objects.all():
        assert bytes(event.digest) == event_digest(event.pk, content_digest(event.content()))


def test_record_writes_one_event_and_returns_it(db):
    event = services.record(
        actor="customer:ada", action="approval.granted", subject="approval:3", at=NOW, shop_id=SHOP
    )

    assert Event.objects.get() == event
    assert bytes(Event.objects.get().digest) == event.digest
    assert (event.actor, event.data, event.amount) == ("customer:ada", {}, None)


def test_many_entries_keep_their_order_and_take_one_insert(db, django_assert_num_queries):
    with django_assert_num_queries(1):
        events = services.record_many([plain_entry(subject=f"task:{n}") for n in range(20)])

    stored = list(Event.objects.order_by("id").values_list("id", "subject"))
    assert stored == [(event.pk, f"task:{n}") for n, event in enumerate(events)]


def test_no_entries_record_nothing(db):
    assert services.record_many([]) == []
    assert nothing_written()


def test_each_event_waits_for_its_seal(db):
    events = services.record_many([plain_entry(), plain_entry()])

    assert list(Unsealed.objects.order_by("event_id").values_list("event_id", flat=True)) == [
        event.pk for event in events
    ]


@pytest.mark.django_db(transaction=True)
def test_recording_outside_a_transaction_is_refused():
    with pytest.raises(services.AuditOutsideTransactionError):
        services.record_many([full_entry()])

    assert nothing_written()


@pytest.mark.django_db(transaction=True)
def test_a_rolled_back_change_leaves_no_event():
    def change():
        with transaction.atomic():
            services.record_many([full_entry()])
            raise LookupError

    with pytest.raises(LookupError):
        change()

    assert nothing_written()
    assert not CustomerKey.objects.exists()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"action": "refund"}, "action"),
        ({"action": "Refund.Succeeded"}, "action"),
        ({"action": "refund.succeeded.twice"}, "action"),
        ({"action": "refund.succeeded\n"}, "action"),
        ({"actor": ""}, "actor"),
        ({"actor": "staff:"}, "actor"),
        ({"actor": "staff:" + "d" * 200}, "actor"),
        ({"subject": "12"}, "subject"),
        ({"order_id": "1" * 201}, "order_id"),
        ({"outcome": "x" * 101}, "outcome"),
        ({"amount": 4000.0}, "amount"),
        ({"amount": True}, "amount"),
        ({"amount": 2**53}, "amount"),
        ({"amount": 4000, "currency": ""}, "currency"),
        ({"amount": None, "currency": "USD"}, "currency"),
        ({"currency": "DOLLAR"}, "currency"),
        ({"task_id": "81"}, "task_id"),
        ({"at": datetime(2026, 3, 1)}, "time zone"),  # noqa: DTZ001 - a naive time is the fault
        ({"shop_id": None}, "shop_id"),
        ({"customer": ""}, "customer"),
        ({"customer": "a\x00da"}, "NUL"),
        ({"data": {"share": 0.5}}, r"\$\.share"),
        ({"data": {"list": [1, {"deep": 1e3}]}}, r"\$\.list\[1\]\.deep"),
        ({"data": {"big": 2**53}}, r"\$\.big"),
        ({"data": {"when": NOW}}, "datetime"),
        ({"data": {"text": "a\x00b"}}, "NUL"),
        ({"data": {"text": "\ud800"}}, "codepoints|surrogate"),
        ({"data": {1: "one"}}, "key 1"),
    ],
)
def test_an_entry_that_cannot_be_held_exactly_is_refused(db, changes, named):
    with pytest.raises(services.InvalidEntryError, match=named):
        services.record_many([plain_entry(), full_entry(**changes)])

    assert nothing_written()


def test_data_nested_too_deep_to_hash_is_refused(db):
    nest: dict[str, object] = {}
    for _ in range(3000):
        nest = {"a": nest}

    with pytest.raises(services.InvalidEntryError):
        services.record_many([plain_entry(data=nest)])

    assert nothing_written()


def test_a_row_cannot_be_saved_or_deleted_from_python(db):
    event = services.record_many([plain_entry()])[0]

    with pytest.raises(AppendOnlyError):
        event.save()
    with pytest.raises(AppendOnlyError):
        event.delete()

    assert Event.objects.get().action == "task.started"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("action", "'refund'"),
        ("actor", "''"),
        ("subject", "'12'"),
        ("digest", "'x'"),
        ("amount", "5"),
    ],
)
def test_the_table_refuses_a_malformed_row_however_it_comes(db, column, value):
    services.record_many([plain_entry()])
    columns = "at, actor, action, subject, customer, order_id, tool, outcome, currency, data, digest, amount"
    chosen = ", ".join(value if name == column else name for name in columns.split(", "))

    with pytest.raises(DatabaseError, match="audit_event_"), transaction.atomic():
        connection.cursor().execute(
            f"INSERT INTO audit_event ({columns}) SELECT {chosen} FROM audit_event"  # noqa: S608
        )

    assert Event.objects.count() == 1
