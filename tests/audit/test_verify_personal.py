"""The verifier's look at the personal text beside the chain."""

import pytest

from audit import services
from audit.verify import verify
from tests.audit.facts import (
    NOW,
    SHOP,
    full_entry,
    plain_entry,
    record_committed,
    seal,
    sealed_trail,
    tamper,
)


def first_fault():
    return str(verify().faults[0])


PERSONAL_CHANGES = {
    "event_id": "event_id = event_id + 100000",
    "key_id": "key_id = (SELECT id FROM audit_customer_key WHERE customer = 'bob')",
    "ciphertext": "ciphertext = set_byte(ciphertext, 40, 65 + (get_byte(ciphertext, 40) + 1) %% 26)",
}


@pytest.mark.parametrize("change", PERSONAL_CHANGES.values(), ids=PERSONAL_CHANGES)
def test_a_changed_personal_text_names_its_event(db, change):
    record_committed(full_entry(customer="bob"))
    victim = sealed_trail()[1]

    assert tamper(f"UPDATE audit_personal_text SET {change} WHERE event_id = %s", [victim.pk]) == 1  # noqa: S608

    assert first_fault().startswith(f"event {victim.pk} (refund.succeeded, 2026-03-01): ")
    assert "personal text" in first_fault()


def test_swapped_personal_texts_are_found(db):
    first, second, *_ = sealed_trail()
    tamper(
        "UPDATE audit_personal_text AS t SET ciphertext = o.ciphertext FROM audit_personal_text AS o"
        " WHERE (t.event_id, o.event_id) IN ((%s, %s), (%s, %s))",
        [first.pk, second.pk, second.pk, first.pk],
    )

    assert [fault.what for fault in verify().faults] == [
        f"the personal text of event {first.pk} is not the one that was recorded",
        f"the personal text of event {second.pk} is not the one that was recorded",
    ]


def test_a_personal_text_added_later_is_found(db):
    victim = record_committed(plain_entry())[0]
    donor = record_committed(full_entry())[0]
    tamper(
        "INSERT INTO audit_personal_text SELECT %s, ciphertext, key_id FROM audit_personal_text"
        " WHERE event_id = %s",
        [victim.pk, donor.pk],
    )

    assert first_fault().endswith("a personal text was added to it")


def test_a_missing_key_is_found(db):
    victim = sealed_trail()[0]
    tamper("DELETE FROM audit_customer_key")

    assert first_fault() == (
        f"event {victim.pk} (refund.succeeded, 2026-03-01): the key of its personal text is missing"
    )


def test_after_an_erasure_the_chain_holds_and_the_text_is_gone(db):
    events = sealed_trail()
    services.erase_customer(shop_id=SHOP, customer="ada", actor="staff:dana", at=NOW)
    seal()

    report = verify()

    assert report.holds, report.faults
    assert report.erased == len(events)
    assert [services.read_personal(event) for event in events] == [None] * len(events)


def test_a_key_destroyed_without_a_record_is_found(db):
    victim = sealed_trail()[0]
    tamper("UPDATE audit_customer_key SET wrapped_key = '', destroyed_at = now()")

    assert first_fault().endswith("its personal text was erased without a record")
    assert first_fault().startswith(f"event {victim.pk} ")
