"""Looking at a customer's case is on the trail, and at a sensitive one it takes a reason first.

A reload within minutes is the same look, and so is a page that stays open. Recording never stands in
the way of reading: when it fails, the page is shown and the log says so. Only a sensitive case without
its reason stays shut.
"""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import DatabaseError, connection, transaction

from accounts.models import Customer, Look, User
from audit import services as audit

SAME_LOOK = timedelta(minutes=10)
STAYS_OPEN = timedelta(hours=12)
REASON_HOLDS = timedelta(hours=4)
MAX_REASON = 500
LOCK_MS = 500
OPENED, EXPLAINED = "case.opened", "case.explained"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Case:
    """What is looked at. `is_theirs`: the person holds it, or is the one who has to decide in it."""

    customer: Customer
    ticket_id: int | None = None  # None: the customer's own page
    is_theirs: bool = False

    @property
    def subject(self) -> str:
        if self.ticket_id is None:
            return f"customer:{self.customer.pk}"
        return f"ticket:{self.ticket_id}"


class ReasonNeededError(Exception):
    """A reason is 1 to 500 characters; nothing was recorded."""


class SensitivityError(Exception):
    """The customer is marked like that already; nothing was changed."""


def may_open(user: User, case: Case, *, now: datetime) -> bool:
    """May this person read the case now, or do they have to say why first?"""
    if not case.customer.is_sensitive or case.is_theirs:
        return True
    given = Look.objects.filter(user=user, subject=case.subject, reason_at__gt=now - REASON_HOLDS)
    return given.exists()


def note_look(user: User, case: Case, *, where: str, is_poll: bool, now: datetime) -> None:
    """Put it on the trail that this person has the case before them.

    Once for ten minutes of opening it, and for a page that asks again by itself once in twelve hours.
    Never raises for the database's sake.
    """
    since = now - (STAYS_OPEN if is_poll else SAME_LOOK)
    try:
        with transaction.atomic():
            if _is_fresh(user, case, since):
                return
            _wait_for_no_lock()
            if _claim(user, case, since, now):
                _record(user, case, OPENED, now, {"page": where})
    except DatabaseError as exc:
        logger.warning("A look at %s is not recorded: %s", case.subject, exc)


@transaction.atomic
def explain(user: User, case: Case, *, reason: str, now: datetime) -> None:
    """Take the reason for opening a sensitive case; it holds for four hours.

    The words stand beside the trail, under the customer's key. Raises ReasonNeededError.
    """
    words = reason.strip()
    if not 0 < len(words) <= MAX_REASON:
        raise ReasonNeededError
    Look.objects.update_or_create(
        user=user,
        subject=case.subject,
        defaults={"customer": case.customer, "reason_at": now},
    )
    _record(user, case, EXPLAINED, now, {}, personal=words)


@transaction.atomic
def mark_sensitive(
    *, customer_id: int, is_sensitive: bool, reason: str, by: User, now: datetime
) -> Customer:
    """Ask for a reason before this customer's cases are opened, or do so no more.

    Raises ReasonNeededError or SensitivityError.
    """
    words = reason.strip()
    if not 0 < len(words) <= MAX_REASON:
        raise ReasonNeededError
    customer = Customer.objects.select_for_update(of=("self",)).get(pk=customer_id)
    if customer.is_sensitive == is_sensitive:
        raise SensitivityError
    customer.is_sensitive = is_sensitive
    customer.save(update_fields=["is_sensitive"])
    audit.record(
        actor=by.actor,
        action=f"customer.{'marked_sensitive' if is_sensitive else 'unmarked_sensitive'}",
        subject=f"customer:{customer.pk}",
        at=now,
        shop_id=customer.shop_id,
        customer=customer.external_id,
        personal=words,
    )
    return customer


def _is_fresh(user: User, case: Case, since: datetime) -> bool:
    return Look.objects.filter(user=user, subject=case.subject, recorded_at__gt=since).exists()


def _wait_for_no_lock() -> None:
    """A look that would have to wait for another's is better lost than the page late."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{LOCK_MS}ms"])


def _claim(user: User, case: Case, since: datetime, now: datetime) -> bool:
    """Of several at once one records it."""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, [user.pk, case.customer.pk, case.subject, now, since])
        return cursor.fetchone() is not None


_CLAIM = """
    INSERT INTO accounts_look AS known (user_id, customer_id, subject, recorded_at)
    VALUES (%s, %s, %s, %s)
    ON CONFLICT (user_id, subject) DO UPDATE SET recorded_at = EXCLUDED.recorded_at
        WHERE known.recorded_at IS NULL OR known.recorded_at <= %s
    RETURNING id
"""


def _record(
    user: User,
    case: Case,
    action: str,
    now: datetime,
    data: dict[str, object],
    personal: str | None = None,
) -> None:
    customer = case.customer
    audit.record(
        actor=user.actor,
        action=action,
        subject=case.subject,
        at=now,
        shop_id=customer.shop_id,
        ticket_id=case.ticket_id,
        customer=customer.external_id,
        data={"sensitive": customer.is_sensitive, "theirs": case.is_theirs, **data},
        personal=personal,
    )
