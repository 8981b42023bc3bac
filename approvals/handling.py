"""Sharing out the questions among staff: whose, put off until when, open at whose desk.

None of it decides anything: a question that is somebody's, or put off, can still be answered by
whoever holds the right.
"""

from datetime import datetime, timedelta

from django.db import transaction

from accounts.models import User
from approvals.entitlement import bar_to
from approvals.models import Approval, ApprovalStatus, Handling, Watch
from audit import services as audit
from tools import operations

# It comes back this long before its deadline at the latest.
BEFORE_DEADLINE = timedelta(hours=1)
FORGOTTEN = timedelta(hours=1)


class HandlingError(Exception):
    """It could not be done; nothing changed. The text says why, for people."""


@transaction.atomic
def assign(*, approval_id: int, to: User | None, by: User, now: datetime) -> None:
    """Make an open question somebody's, or nobody's.

    Raises HandlingError when it is answered, or when that person could not answer it.
    """
    approval, handling = _lock(approval_id)
    if to is not None and bar_to(to.pk, approval.operation, role=approval.role, is_yes=True):
        raise HandlingError(f"{to.get_username()} may not answer this question.")
    handling.assigned_to = to
    handling.save(update_fields=["assigned_to"])
    _record(approval, "assigned", by, now, {"to": to.actor if to else ""})


@transaction.atomic
def snooze(*, approval_id: int, length: timedelta, by: User, now: datetime) -> None:
    """Put an open question off, until an hour before its deadline at the latest.

    Raises HandlingError when it is answered or its deadline too near. The deadline stays.
    """
    approval, handling = _lock(approval_id)
    until = min(now + length, approval.expires_at - BEFORE_DEADLINE)
    if until <= now:
        raise HandlingError("Its deadline is too near to put it off.")
    handling.snoozed_until = until
    handling.snoozed_by = by
    handling.save(update_fields=["snoozed_until", "snoozed_by"])
    _record(approval, "snoozed", by, now, {"until": until.isoformat()})


@transaction.atomic
def wake(*, approval_id: int, by: User, now: datetime) -> None:
    """Bring back a question that was put off. Raises HandlingError when it is answered."""
    approval, handling = _lock(approval_id)
    handling.snoozed_until = None
    handling.snoozed_by = None
    handling.save(update_fields=["snoozed_until", "snoozed_by"])
    _record(approval, "woken", by, now, {})


def watch(*, approval_id: int, user: User, now: datetime) -> None:
    """Note that somebody has a question's page open now; what they had open long ago goes."""
    Watch.objects.filter(user=user, seen_at__lt=now - FORGOTTEN).delete()
    Watch.objects.update_or_create(approval_id=approval_id, user=user, defaults={"seen_at": now})


def _lock(approval_id: int) -> tuple[Approval, Handling]:
    approval = (
        Approval.objects.select_for_update(of=("self",))
        .select_related("operation__customer__shop")
        .get(pk=approval_id)
    )
    if approval.status != ApprovalStatus.OPEN:
        raise HandlingError("It is answered already.")
    handling, _ = Handling.objects.get_or_create(approval=approval)
    return approval, handling


def _record(approval: Approval, what: str, by: User, now: datetime, data: dict[str, str]) -> None:
    audit.record(
        actor=by.actor,
        action=f"approval.{what}",
        subject=f"approval:{approval.public_id}",
        at=now,
        data=data,
        **operations.about(approval.operation),
    )
