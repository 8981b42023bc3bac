"""Personal text: readable with the customer's key, gone without it."""

import pytest
from django.db import DatabaseError, connection, transaction

from audit import services
from audit.models import CustomerKey, Event, PersonalText
from tests.audit.facts import NOW, SHOP, full_entry, plain_entry

CANARY = "It came broken, Ada"


def test_recorded_text_can_be_read_again(db):
    event = services.record_many([full_entry(personal=CANARY)])[0]

    assert services.read_personal(Event.objects.get(pk=event.pk)) == CANARY


@pytest.mark.parametrize("text", ["", "emoji 🏺 and NUL \x00", "half a pair \ud83c"])
def test_any_text_a_person_can_send_comes_back_as_it_was(db, text):
    event = services.record_many([full_entry(personal=text)])[0]

    assert services.read_personal(event) == text


def test_an_event_without_personal_text_reads_as_none(db):
    event = services.record_many([plain_entry()])[0]

    assert services.read_personal(event) is None


def test_the_text_is_nowhere_in_the_tables(db):
    services.record_many([full_entry(personal=CANARY)])

    with connection.cursor() as cursor:
        for table in ("audit_event", "audit_personal_text", "audit_customer_key"):
            cursor.execute(f"SELECT string_agg(t::text, ' ') FROM {table} t")  # noqa: S608
            dump = cursor.fetchone()[0]
            assert CANARY not in dump
            assert CANARY.encode().hex() not in dump


def test_a_customer_has_one_key_in_each_shop(db):
    services.record_many(
        [
            full_entry(customer="ada"),
            full_entry(customer="bob"),
            full_entry(customer="ada"),
            full_entry(customer="ada", shop_id=SHOP + 1),
        ]
    )
    services.record_many([full_entry(customer="ada")])

    assert sorted(CustomerKey.objects.values_list("shop_id", "customer")) == [
        (SHOP, "ada"),
        (SHOP, "bob"),
        (SHOP + 1, "ada"),
    ]


def test_the_same_words_twice_leave_different_digests(db):
    first, second = services.record_many([full_entry(personal=CANARY), full_entry(personal=CANARY)])

    assert first.personal_digest != second.personal_digest


def test_erasing_a_customer_destroys_their_text_and_no_one_elses(db):
    ada, bob = services.record_many(
        [
            full_entry(customer="ada", personal="from ada"),
            full_entry(customer="bob", personal="from bob"),
        ]
    )

    destroyed = services.erase_customer(shop_id=SHOP, customer="ada", actor="staff:dana", at=NOW)

    assert destroyed == 1
    assert services.read_personal(ada) is None
    assert services.read_personal(bob) == "from bob"
    key = CustomerKey.objects.get(customer="ada")
    assert (bytes(key.wrapped_key), key.destroyed_at) == (b"", NOW)
    erasure = Event.objects.latest("id")
    assert (erasure.action, erasure.subject, erasure.actor) == (
        "customer.erased",
        "customer:ada",
        "staff:dana",
    )


def test_erasing_twice_changes_and_records_nothing_more(db):
    services.record_many([full_entry(customer="ada")])
    services.erase_customer(shop_id=SHOP, customer="ada", actor="staff:dana", at=NOW)
    before = Event.objects.count()

    assert services.erase_customer(shop_id=SHOP, customer="ada", actor="staff:dana", at=NOW) == 0
    assert Event.objects.count() == before


def test_a_customer_who_comes_back_gets_a_new_key(db):
    old = services.record_many([full_entry(personal="before")])[0]
    services.erase_customer(shop_id=SHOP, customer="ada", actor="staff:dana", at=NOW)

    new = services.record_many([full_entry(personal="after")])[0]

    assert services.read_personal(old) is None
    assert services.read_personal(new) == "after"


def test_text_moved_to_another_event_is_not_passed_off_as_its_own(db):
    first, second = services.record_many([full_entry(personal="yes"), full_entry(personal="no")])
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(
            "UPDATE audit_personal_text SET ciphertext ="
            " (SELECT ciphertext FROM audit_personal_text WHERE event_id = %s) WHERE event_id = %s",
            [second.pk, first.pk],
        )
        cursor.execute("SET session_replication_role = origin")

    with pytest.raises(ValueError, match=f"event {first.pk} is not the one that was recorded"):
        services.read_personal(first)


@pytest.mark.parametrize(
    "change",
    [
        "wrapped_key = 'other', destroyed_at = NULL",
        "customer = 'bob'",
        "shop_id = 8",
        "created_at = now() + interval '1 day'",
    ],
)
def test_a_destroyed_key_never_changes_again(db, change):
    services.record_many([full_entry()])
    services.erase_customer(shop_id=SHOP, customer="ada", actor="staff:dana", at=NOW)

    with pytest.raises(DatabaseError, match="once"), transaction.atomic():
        connection.cursor().execute(f"UPDATE audit_customer_key SET {change}")  # noqa: S608

    assert CustomerKey.objects.get().destroyed_at == NOW


def test_a_key_cannot_be_destroyed_without_saying_when(db):
    services.record_many([full_entry()])

    with pytest.raises(DatabaseError, match="destroyed_is_empty"), transaction.atomic():
        CustomerKey.objects.update(wrapped_key=b"")

    assert len(bytes(CustomerKey.objects.get().wrapped_key)) > 0


def test_personal_text_stands_only_beside_its_event(db):
    event = services.record_many([full_entry()])[0]

    with pytest.raises(DatabaseError, match="audit_personal_text"), transaction.atomic():
        PersonalText.objects.bulk_create(
            [PersonalText(event_id=event.pk, key=CustomerKey.objects.get(), ciphertext=b"x")]
        )

    assert PersonalText.objects.count() == 1
