"""What the database itself refuses about settlements and cases, whatever code asks it to."""

from typing import Any

import pytest
from django.db import Error, connection, transaction
from django.utils import timezone

from tests.factories import (
    make_approved_operation,
    make_customer,
    make_line,
    make_order,
    make_shop,
)
from tools.models import Observation, Operation, Reversal, Settlement, ShopEvent

pytestmark = pytest.mark.django_db

NOW = timezone.now()
ENDS = {
    "succeeded": "UPDATE tools_operation SET state = 'succeeded', reference = 're_1',"
    " finished_at = clock_timestamp()",
    "failed": "UPDATE tools_operation SET state = 'failed', finished_at = clock_timestamp()",
}


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def refused(statement: str) -> str:
    """The database's own words about a statement that it refuses."""
    tables = (Operation, Settlement, Reversal)
    before = [list(table.objects.order_by("id").values()) for table in tables]
    with pytest.raises(Error) as caught, transaction.atomic():
        execute(statement)
    assert [list(table.objects.order_by("id").values()) for table in tables] == before
    return str(caught.value)


def needing_person(price: int = 4000) -> Operation:
    operation = make_approved_operation(
        make_customer(make_shop()), make_order(make_line(price), id="9001")
    )
    execute("UPDATE tools_operation SET state = 'sending', first_sent_at = clock_timestamp()")
    execute("UPDATE tools_operation SET state = 'needs_person'")
    return Operation.objects.get(pk=operation.pk)


def said(operation: Operation, **changes: Any) -> Settlement:
    fields = {
        "outcome": "succeeded",
        "reference": "re_1",
        "evidence": "Seen in the shop's books.",
        "needs_second": False,
        "proposed_by": "staff:dana",
        "proposed_by_user_id": 1,
        "proposed_at": NOW,
    }
    return Settlement.objects.create(operation=operation, **fields | changes)


SETTLED = "UPDATE tools_settlement SET status = 'settled', ended_by = 'x', ended_at = now()"
CONFIRMED = ", confirmed_by = 'staff:erin', confirmed_by_user_id = 2"


@pytest.mark.parametrize("end", ENDS)
def test_nothing_ends_that_needs_a_person_without_one(end):
    needing_person()

    assert "needs a settlement" in refused(ENDS[end])


@pytest.mark.parametrize("end", ENDS)
def test_an_open_settlement_ends_nothing(end):
    said(needing_person(), outcome=end)

    assert "needs a settlement" in refused(ENDS[end])


def test_a_settlement_ends_it_as_it_says_and_in_no_other_way():
    said(needing_person())
    execute(SETTLED)

    assert "needs a settlement" in refused(ENDS["failed"])
    assert "needs a settlement" in refused(ENDS["succeeded"].replace("re_1", "re_2"))
    execute(ENDS["succeeded"])
    assert Operation.objects.get().state == "succeeded"


EFFECT = {
    "reference": "re_1",
    "kind": "refund",
    "order_id": "9001",
    "amount": 4000,
    "currency": "USD",
    "status": "succeeded",
}


@pytest.mark.parametrize("source", ["look_up", "webhook"])
def test_the_shops_own_word_ends_it(source):
    operation = needing_person()
    Observation.objects.create(operation=operation, source=source, body={"effect": EFFECT}, at=NOW)

    assert "needs a settlement" in refused(ENDS["failed"])
    execute(ENDS["succeeded"])


@pytest.mark.parametrize(
    ("source", "change"),
    [
        ("stale_worker", {}),
        ("look_up", {"reference": "re_2"}),
        ("look_up", {"kind": "cancel"}),
        ("look_up", {"order_id": "9002"}),
        ("look_up", {"amount": 3999}),
        ("look_up", {"currency": "EUR"}),
        ("webhook", {"status": "reversed"}),
    ],
)
def test_what_is_not_quite_the_shops_word_about_it_ends_nothing(source, change):
    operation = needing_person()
    body = {"effect": EFFECT | change}
    Observation.objects.create(operation=operation, source=source, body=body, at=NOW)

    assert "needs a settlement" in refused(ENDS["succeeded"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"evidence": ""}, "settlement_has_evidence"),
        ({"evidence": " \n\t"}, "settlement_has_evidence"),
        ({"reference": ""}, "settlement_success_has_reference"),
        ({"outcome": "cancelled"}, "settlement_outcome_valid"),
        ({"status": "settled", "ended_by": "x", "ended_at": NOW}, "begins by being proposed"),
        ({"confirmed_by": "staff:erin", "confirmed_by_user_id": 2}, "begins by being proposed"),
    ],
)
def test_a_settlement_that_makes_no_sense_is_not_stored(changes, words):
    operation = needing_person()

    with pytest.raises(Error, match=words), transaction.atomic():
        said(operation, **changes)
    assert not Settlement.objects.exists()


@pytest.mark.parametrize("price", [10_001, 40_000])
def test_over_the_limit_one_persons_word_is_not_stored(price):
    operation = needing_person(price)

    with pytest.raises(Error, match="second person is needed"), transaction.atomic():
        said(operation)


def test_exactly_the_limit_needs_one_person():
    assert said(needing_person(10_000)).pk


def test_a_limit_lowered_since_counts():
    operation = needing_person()
    operation.shop.staff_limit = 3999
    operation.shop.save()

    with pytest.raises(Error, match="second person is needed"), transaction.atomic():
        said(operation)


@pytest.mark.parametrize(
    "who",
    [
        "",
        ", confirmed_by = 'staff:dana', confirmed_by_user_id = 2",
        ", confirmed_by_user_id = 2",
        ", confirmed_by = 'staff:erin', confirmed_by_user_id = 1",
    ],
)
def test_where_two_are_needed_one_does_not_do(who):
    said(needing_person(40_000), needs_second=True)

    assert "settlement_" in refused(SETTLED + who)


def test_two_people_settle_it():
    said(needing_person(40_000), needs_second=True)

    execute(SETTLED + CONFIRMED)
    execute(ENDS["succeeded"])


@pytest.mark.parametrize(
    "assignment",
    [
        "outcome = 'failed'",
        "reference = 're_2'",
        "evidence = 'Other.'",
        "needs_second = false",
        "proposed_by = 'staff:erin'",
        "proposed_by_user_id = 3",
        "proposed_at = now()",
    ],
)
def test_what_was_said_never_changes(assignment):
    said(needing_person(40_000), needs_second=True)

    assert "never changes" in refused(f"UPDATE tools_settlement SET {assignment}")  # noqa: S608


def test_a_settlement_ends_once_and_is_never_deleted():
    said(needing_person())
    execute(SETTLED)

    assert "ends once" in refused("UPDATE tools_settlement SET status = 'open', ended_at = NULL")
    assert "never deleted" in refused("DELETE FROM tools_settlement")


def test_one_settlement_is_open_at_a_time():
    operation = needing_person()
    said(operation)

    with pytest.raises(Error, match="one_open_per_operation"), transaction.atomic():
        said(operation, outcome="failed")


@pytest.mark.parametrize("state", ["approved", "sending", "unknown"])
def test_only_what_needs_a_person_is_settled_by_one(state):
    operation = make_approved_operation(make_customer(make_shop()))
    if state != "approved":
        execute("UPDATE tools_operation SET state = 'sending', first_sent_at = now()")
    if state == "unknown":
        execute("UPDATE tools_operation SET state = 'unknown'")

    with pytest.raises(Error, match="needs a person"), transaction.atomic():
        said(operation)


# --- Cases ----------------------------------------------------------------------------------------


def event_of(operation: Operation) -> ShopEvent:
    return ShopEvent.objects.create(
        shop=operation.shop, event_id="evt_1", kind="refund.reversed", received_at=NOW
    )


def test_only_what_has_succeeded_comes_back():
    operation = needing_person()

    with pytest.raises(Error, match="only what has succeeded"), transaction.atomic():
        Reversal.objects.create(operation=operation, event=event_of(operation), opened_at=NOW)


def test_a_case_is_closed_once_with_a_note_and_stays():
    operation = needing_person()
    said(operation)
    execute(SETTLED)
    execute(ENDS["succeeded"])
    Reversal.objects.create(operation=operation, event=event_of(operation), opened_at=NOW)
    closing = "UPDATE tools_reversal SET closed_by = 'x', closed_at = now(), note = '{}'"

    assert "reversal_closed_by" in refused(closing.format(" "))
    assert "says what it said" in refused("UPDATE tools_reversal SET reason = 'other'")
    execute(closing.format("Sent a cheque."))
    assert "closed once" in refused(closing.format("Sent two."))
    assert "never deleted" in refused("DELETE FROM tools_reversal")
