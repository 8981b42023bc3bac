"""What the database itself refuses about approvals, whatever code asks it to."""

from datetime import timedelta

import pytest
from django.db import Error, connection, transaction
from django.utils import timezone

from accounts.models import Role
from approvals.models import Approval
from tests.factories import (
    make_customer,
    make_line,
    make_operation,
    make_order,
    make_shop,
    say_no,
    say_yes,
)
from tools.models import Operation

pytestmark = pytest.mark.django_db


@pytest.fixture
def operation():
    return make_operation(make_customer(make_shop()), make_order(make_line(40_000)))


def refused(statement, *values):
    """The database's own words about a statement that it refuses."""
    before = list(Approval.objects.order_by("id").values())
    with pytest.raises(Error) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, values)
    assert list(Approval.objects.order_by("id").values()) == before
    return str(caught.value)


def question(operation):
    return Approval.objects.get(operation=operation, role=Role.CUSTOMER)


@pytest.mark.parametrize("status", ["rejected", "open", "expired", "withdrawn", "superseded"])
def test_a_decision_is_never_made_again(operation, status):
    say_yes(operation)
    message = refused(
        "UPDATE approvals_approval SET status = %s WHERE id = %s", status, question(operation).pk
    )

    assert "is decided" in message


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("decided_by", "customer:eve"),
        ("decided_at", timezone.now()),
        ("decision_id", "other"),
        ("reason", "other"),
    ],
)
def test_a_decision_is_never_rewritten(operation, column, value):
    say_no(operation)

    assert "is decided" in refused(
        f"UPDATE approvals_approval SET {column} = %s WHERE id = %s",  # noqa: S608
        value,
        question(operation).pk,
    )


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("digest", "0" * 64),
        ("role", "staff"),
        ("expires_at", timezone.now() + timedelta(days=365)),
        ("asked_at", timezone.now()),
        ("public_id", "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_a_question_never_changes_what_it_asks(operation, column, value):
    assert "one thing only" in refused(
        f"UPDATE approvals_approval SET {column} = %s WHERE id = %s",  # noqa: S608
        value,
        question(operation).pk,
    )


def test_a_question_is_never_deleted(operation):
    assert "never deleted" in refused(
        "DELETE FROM approvals_approval WHERE id = %s", question(operation).pk
    )


def insert(operation, **changes):
    now = timezone.now()
    fields = {
        "public_id": "00000000-0000-0000-0000-000000000002",
        "operation_id": operation.pk,
        "role": "staff",
        "status": "open",
        "digest": operation.digest,
        "asked_at": now,
        "expires_at": now + timedelta(hours=1),
        "decided_by": "",
        "decision_id": "",
        "reason": "",
    } | changes
    columns = ", ".join(fields)
    marks = ", ".join(["%s"] * len(fields))
    return refused(
        f"INSERT INTO approvals_approval ({columns}) VALUES ({marks})",  # noqa: S608
        *fields.values(),
    )


def test_a_question_begins_unanswered(operation):
    answered = {
        "status": "approved",
        "decided_by": "staff:eve",
        "decided_at": timezone.now(),
        "decided_by_user_id": 1,
    }

    assert "begin by asking" in insert(operation, **answered)


def test_a_question_is_about_the_sealed_bytes(operation):
    assert "sealed bytes" in insert(operation, digest="0" * 64)


@pytest.mark.parametrize("role", ["auditor", "admin", "agent", ""])
def test_only_customer_and_staff_are_asked(operation, role):
    assert "approval_role_valid" in insert(operation, role=role)


def test_a_role_is_asked_once(operation):
    assert "approval_one_per_role" in insert(operation, role="customer")


@pytest.mark.parametrize(
    ("assignment", "constraint"),
    [
        ("status = 'approved'", "approval_decided_by_whom_and_when"),
        ("status = 'approved', decided_by = 'x'", "approval_decided_by_whom_and_when"),
        ("status = 'approved', decided_at = now()", "approval_decided_by_whom_and_when"),
        ("decided_by = 'x', decided_at = now()", "approval_decided_by_whom_and_when"),
        ("status = 'maybe'", "approval_status_valid"),
    ],
)
def test_an_answer_has_somebody_and_a_time(operation, assignment, constraint):
    assert constraint in refused(
        f"UPDATE approvals_approval SET {assignment} WHERE id = %s",  # noqa: S608
        question(operation).pk,
    )


@pytest.mark.parametrize(
    ("assignment", "constraint"),
    [
        ("status = 'approved'", "approval_staff_decision_has_user"),
        (
            "status = 'rejected', decided_by_user_id = 1",
            "approval_rejection_by_staff_has_reason",
        ),
    ],
)
def test_staff_answer_as_somebody_and_say_why(operation, assignment, constraint):
    say_yes(operation)
    asked = Approval.objects.get(operation=operation, role=Role.STAFF)

    assert constraint in refused(
        f"UPDATE approvals_approval SET {assignment}, decided_by = 'x', decided_at = now()"  # noqa: S608
        " WHERE id = %s",
        asked.pk,
    )


@pytest.mark.parametrize("granted", ["{customer}", "{staff}", "{customer,staff}", "{agent}"])
def test_no_hand_but_an_approval_s_writes_a_yes(operation, granted):
    assert "no approval behind it" in refused(
        "UPDATE tools_operation SET granted_roles = %s WHERE id = %s", granted, operation.pk
    )
    assert Operation.objects.get().granted_roles == []


def test_the_customer_s_yes_is_not_also_staff_s(operation):
    say_yes(operation)

    assert "no approval behind it" in refused(
        "UPDATE tools_operation SET granted_roles = required_roles, state = 'approved'"
    )
    assert Operation.objects.get().granted_roles == ["customer"]


def test_code_cannot_assign_a_status():
    operation = make_operation(make_customer(), make_order())
    asked = question(operation)

    with pytest.raises(AttributeError):
        asked.status = "approved"
    assert question(operation).status == "open"
