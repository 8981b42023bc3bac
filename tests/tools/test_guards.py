"""What the database itself refuses about operations and their evidence, whatever code asks it to."""

import itertools
from typing import Any

import pytest
from django.db import Error, connection, transaction
from django.utils import timezone
from django_fsm import TransitionNotAllowed

from tests.factories import (
    make_approved_operation,
    make_approver,
    make_caller,
    make_customer,
    make_line,
    make_operation,
    make_order,
    make_shop,
    say_yes,
)
from tools import gateway
from tools.models import (
    FINAL,
    Attempt,
    Gate,
    Observation,
    Operation,
    Settlement,
    State,
    Verdict,
)
from tools.policy import Ruling

pytestmark = pytest.mark.django_db

NOW = timezone.now()
NEXT = {
    "awaiting_approval": {"approved", "rejected", "expired", "superseded", "cancelled"},
    "approved": {"sending", "rejected", "expired", "superseded", "cancelled"},
    "sending": {"succeeded", "failed", "unknown", "needs_person"},
    "unknown": {"sending", "succeeded", "failed", "needs_person"},
    "needs_person": {"succeeded", "failed"},
}
# The shortest way from awaiting_approval to each state.
WAYS: dict[str, list[str]] = {
    "awaiting_approval": [],
    "approved": ["approved"],
    "sending": ["approved", "sending"],
    "unknown": ["approved", "sending", "unknown"],
    "needs_person": ["approved", "sending", "needs_person"],
    "succeeded": ["approved", "sending", "succeeded"],
    "failed": ["approved", "sending", "failed"],
    "rejected": ["rejected"],
    "expired": ["expired"],
    "superseded": ["superseded"],
    "cancelled": ["cancelled"],
}


@pytest.fixture
def operation():
    return make_operation(make_customer(make_shop()), make_order(make_line(40_000)))


def execute(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def refused(statement, *values):
    """The database's own words about a statement that it refuses."""
    before = list(Operation.objects.order_by("id").values())
    with pytest.raises(Error) as caught, transaction.atomic():
        execute(statement, *values)
    assert list(Operation.objects.order_by("id").values()) == before
    return str(caught.value)


def fields_for(state):
    """A state with the fields that have to go with it, as SQL."""
    parts = [f"state = '{state}'"]
    if state in FINAL:
        parts.append("finished_at = clock_timestamp()")
    if state in {"sending", "succeeded", "failed", "unknown", "needs_person"}:
        parts.append("first_sent_at = COALESCE(first_sent_at, clock_timestamp())")
    if state == "succeeded":
        parts.append("reference = 're_1'")
    return ", ".join(parts)


def say_everything(operation):
    """Every yes that it needs: it is approved then."""
    say_yes(operation)
    say_yes(operation, make_approver(operation.shop))


def walk(operation, state):
    """Take it to a state by allowed steps, all required yeses given."""
    for step in WAYS[state]:
        if step == "approved":
            say_everything(operation)
            continue
        execute(f"UPDATE tools_operation SET {fields_for(step)} WHERE id = %s", operation.pk)  # noqa: S608
    assert Operation.objects.get().state == state


def settle_on_record(operation, outcome):
    """Two people's word that it ended so."""
    settlement = Settlement.objects.create(
        operation=operation,
        outcome=outcome,
        reference="re_1" if outcome == "succeeded" else "",
        evidence="Seen in the shop's books.",
        needs_second=True,
        proposed_by="staff:dana",
        proposed_by_user_id=1,
        proposed_at=NOW,
    )
    settlement.confirmed_by, settlement.confirmed_by_user_id = "staff:erin", 2
    settlement.settle(by="staff:erin", at=NOW)
    settlement.save()


@pytest.mark.parametrize(("start", "end"), list(itertools.product(State.values, repeat=2)))
def test_only_the_steps_of_an_operation_s_life_are_possible(operation, start, end):
    walk(operation, start)
    statement = f"UPDATE tools_operation SET {fields_for(end)} WHERE id = %s"  # noqa: S608

    if end in NEXT.get(start, set()):
        if end == "approved":
            say_everything(operation)
        elif start == "needs_person":
            assert "needs a settlement" in refused(statement, operation.pk)
            settle_on_record(operation, end)
            execute(statement, operation.pk)
        else:
            execute(statement, operation.pk)
        assert Operation.objects.get().state == end
    elif start == end and start not in FINAL:
        execute(statement, operation.pk)
    else:
        message = refused(statement, operation.pk)
        assert "cannot go from" in message or "is final" in message


@pytest.mark.parametrize("granted", ["{}", "{customer}", "{staff}", "{customer,admin}"])
def test_nothing_is_approved_or_sent_without_every_yes(operation, granted):
    execute("SET CONSTRAINTS ALL IMMEDIATE")
    execute("ALTER TABLE tools_operation DISABLE TRIGGER operation_grants_are_backed")
    execute("UPDATE tools_operation SET granted_roles = %s", granted)

    message = refused("UPDATE tools_operation SET state = 'approved'")
    assert "operation_approved_means_granted" in message
    execute("ALTER TABLE tools_operation DISABLE TRIGGER operation_guard")
    for state in ("sending", "unknown", "needs_person", "succeeded", "failed"):
        assert "operation_sent_only_when_granted" in refused(
            f"UPDATE tools_operation SET {fields_for(state)}"  # noqa: S608
        )


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("digest", "0" * 64),
        ("seal", b"{}"),
        ("amount", 1),
        ("currency", "EUR"),
        ("required_roles", "{customer}"),
        ("idempotency_key", "task-1-step-1-again"),
        ("intent", "0" * 64),
        ("kind", "cancel"),
        ("order_id", "9999"),
        ("policy_version", 99),
        ("expires_at", NOW.replace(year=2099)),
        ("created_at", NOW.replace(year=2020)),
        ("task_id", 1),
        ("ticket_id", 1),
        ("step_n", 99),
    ],
)
@pytest.mark.parametrize("state", ["awaiting_approval", "approved", "unknown"])
def test_what_was_sealed_never_changes(operation, state, column, value):
    walk(operation, state)

    assert "never changes" in refused(
        f"UPDATE tools_operation SET {column} = %s",  # noqa: S608
        value,
    )


def test_another_customer_never_comes_into_it(operation):
    other = make_customer(operation.shop)

    assert "never changes" in refused("UPDATE tools_operation SET customer_id = %s", other.pk)


@pytest.mark.parametrize("state", FINAL)
@pytest.mark.parametrize(
    "assignment",
    [
        "reason = 'other'",
        "finished_at = now()",
        "epoch = 99",
        "decided_by_role = 'staff'",
    ],
)
def test_what_is_final_stays_as_it_is(operation, state, assignment):
    walk(operation, state)

    assert "is final" in refused(f"UPDATE tools_operation SET {assignment}")  # noqa: S608


@pytest.mark.parametrize("assignment", ["granted_roles = '{}'", "epoch = epoch - 1"])
def test_grants_and_epochs_only_grow(operation, assignment):
    say_yes(operation)
    execute("UPDATE tools_operation SET epoch = 3")

    assert "only grow" in refused(f"UPDATE tools_operation SET {assignment}")  # noqa: S608


@pytest.mark.parametrize("value", ["NULL", "now() + interval '1 day'"])
def test_the_first_send_happened_once(operation, value):
    walk(operation, "unknown")

    assert "happened once" in refused(f"UPDATE tools_operation SET first_sent_at = {value}")  # noqa: S608


def test_operations_are_never_deleted(operation):
    assert "never deleted" in refused("DELETE FROM tools_operation WHERE id = %s", operation.pk)


# --- Held back ----------------------------------------------------------------------------------

HOLD_BACK = "UPDATE tools_operation SET state = 'approved', first_sent_at = NULL"


def attempt(operation, n, outcome):
    return Attempt.objects.create(
        operation=operation,
        n=n,
        epoch=1,
        request_digest="0" * 64,
        started_at=NOW,
        finished_at=NOW if outcome else None,
        outcome=outcome,
    )


@pytest.mark.parametrize("outcome", ["", "unknown", "refused", "succeeded"])
def test_a_try_that_may_have_reached_the_shop_cannot_be_undone(operation, outcome):
    walk(operation, "sending")
    attempt(operation, 1, "not_sent")
    attempt(operation, 2, outcome)

    assert "happened once" in refused(HOLD_BACK)


def test_a_try_that_sent_nothing_can_be_undone(operation):
    walk(operation, "sending")
    attempt(operation, 1, "not_sent")

    execute(HOLD_BACK)

    assert Operation.objects.get().state == State.APPROVED


def test_what_goes_back_to_approved_forgets_its_first_send(operation):
    walk(operation, "sending")
    attempt(operation, 1, "not_sent")

    assert "cannot go from" in refused("UPDATE tools_operation SET state = 'approved'")


def test_nothing_goes_back_to_approved_from_unknown(operation):
    walk(operation, "unknown")
    attempt(operation, 1, "not_sent")

    assert "happened once" in refused(HOLD_BACK)


# --- Rows as they come in -----------------------------------------------------------------------


def insert(operation, **changes):
    """What the database says to a copy of the operation with these changes."""
    row: dict[str, Any] = {**Operation.objects.filter(pk=operation.pk).values().get()}
    row |= {"idempotency_key": "other", "task_id": 10**9, "order_id": "other"}
    row |= changes
    del row["id"]
    columns = ", ".join(row)
    marks = ", ".join(["%s"] * len(row))
    return refused(
        f"INSERT INTO tools_operation ({columns}) VALUES ({marks})",  # noqa: S608
        *row.values(),
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "approved", "granted_roles": ["customer", "staff"]},
        {
            "state": "sending",
            "granted_roles": ["customer", "staff"],
            "first_sent_at": NOW,
        },
        {"granted_roles": ["customer"]},
        {"epoch": 1},
        {"first_sent_at": NOW},
    ],
)
def test_an_operation_begins_by_asking(operation, changes):
    assert "begin by asking" in insert(operation, **changes)


@pytest.mark.parametrize(
    ("changes", "constraint"),
    [
        ({"amount": 0}, "operation_amount_valid"),
        ({"amount": -4000}, "operation_amount_valid"),
        ({"amount": 10**12 + 1}, "operation_amount_valid"),
        ({"amount": None}, "operation_amount_valid"),
        ({"amount": None, "currency": ""}, "operation_amount_valid"),
        ({"currency": ""}, "operation_amount_valid"),
        ({"currency": "usd"}, "operation_amount_valid"),
        ({"kind": "payout"}, "operation_kind_valid"),
        ({"required_roles": []}, "operation_customer_always_asked"),
        ({"required_roles": ["staff"]}, "operation_customer_always_asked"),
    ],
)
def test_an_operation_that_makes_no_sense_is_not_stored(operation, changes, constraint):
    assert constraint in insert(operation, **changes)


def test_a_key_is_used_once(operation):
    assert "idempotency_key" in insert(operation, idempotency_key=operation.idempotency_key)


def test_a_step_makes_one_operation(operation):
    assert "operation_one_per_step" in insert(operation, task_id=operation.task_id)


@pytest.mark.parametrize(
    "state", ["awaiting_approval", "approved", "sending", "unknown", "needs_person"]
)
def test_an_order_has_one_open_operation(operation, state):
    walk(operation, state)
    fresh: dict[str, Any] = {
        "state": "awaiting_approval",
        "granted_roles": [],
        "first_sent_at": None,
    }

    assert "operation_one_open_per_order" in insert(operation, order_id=operation.order_id, **fresh)


@pytest.mark.parametrize("state", FINAL)
def test_an_order_may_change_again_once_the_first_change_has_ended(operation, state):
    walk(operation, state)
    order = make_order(id=operation.order_id, status="pending")

    assert make_operation(operation.customer, order, "cancel_order").pk != operation.pk


# --- Evidence -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE tools_attempt SET outcome = 'succeeded'",
        "UPDATE tools_attempt SET detail = 'other'",
        "DELETE FROM tools_attempt",
    ],
)
def test_a_finished_attempt_stays_as_it_is(operation, statement):
    walk(operation, "sending")
    attempt(operation, 1, "unknown")

    assert "finished attempt" in refused(statement)


def test_an_attempt_has_an_outcome_exactly_when_it_is_finished(operation):
    walk(operation, "sending")
    attempt(operation, 1, "")

    assert "attempt_finished_with_outcome" in refused(
        "UPDATE tools_attempt SET outcome = 'unknown'"
    )
    assert "attempt_finished_with_outcome" in refused(
        "UPDATE tools_attempt SET finished_at = now()"
    )
    assert "attempt_outcome_valid" in refused(
        "UPDATE tools_attempt SET outcome = 'fine', finished_at = now()"
    )


@pytest.mark.parametrize("statement", ["UPDATE {} SET at = now()", "DELETE FROM {}"])
@pytest.mark.parametrize("table", ["tools_observation", "tools_verdict"])
def test_evidence_is_only_ever_added(operation, table, statement):
    Observation.objects.create(operation=operation, source="test", body={}, at=NOW)
    caller = make_caller(operation.customer)
    ruling = Ruling()
    ruling.allow(Gate.OFFERED, "tool_is_on")
    gateway.keep_verdicts(ruling.verdicts, caller, tool="x", policy_version=1, now=NOW)

    assert "append-only" in refused(statement.format(table))
    assert (Observation.objects.count(), Verdict.objects.count()) == (1, 1)


# --- Python, before the database ----------------------------------------------------------------


def test_code_cannot_assign_a_state(operation):
    with pytest.raises(AttributeError):
        operation.state = State.SUCCEEDED


def test_the_model_s_own_steps_are_the_database_s(operation):
    approved = make_approved_operation(make_customer())

    with pytest.raises(TransitionNotAllowed):
        operation.start(epoch=1, at=NOW)
    with pytest.raises(TransitionNotAllowed):
        approved.succeed(reference="re_1", at=NOW)
