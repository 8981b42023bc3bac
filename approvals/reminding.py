"""Telling staff by e-mail of questions that wait too long. A mail links to a page and decides nothing."""

import logging
import uuid
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.urls import reverse

from accounts.models import Role, Shop, User
from approvals.attention import attention_of, level_of
from approvals.entitlement import bar_to
from approvals.models import Approval, ApprovalStatus, Level, Reminder, ReminderStatus
from approvals.selectors import list_open_for_staff
from audit import services as audit
from tools import money, operations
from tools.clients.errors import RefusedError, UnavailableError, UnknownOutcomeError
from tools.clients.mail import Mail, MailRejectedError, MailServer
from tools.outside import leave_database
from tools.text import clean

# So many questions are looked at in one go, oldest deadline first.
MOST = 1000

logger = logging.getLogger(__name__)


def remind_due(*, now: datetime) -> int:
    """Send the reminders that are due, one mail for each person and level. Returns how many mails.

    Safe to run twice at once: each reminder belongs to the run that wrote it down first. Without a
    mail server, or a sender of the shop's, nothing is sent and nothing is written.
    """
    if not settings.SMTP_URL:
        return 0
    return sum(
        _send(shop, recipient, level, approvals, now)
        for (shop, recipient, level), approvals in _due(now).items()
    )


def recipients_of(approval: Approval, level: Level) -> list[str]:
    """Who is told: whose question it is, else all who may answer; of a late one, whom the shop names."""
    shop = approval.operation.shop
    escalate_to = attention_of(shop).escalate_to
    if level == Level.LATE and escalate_to:
        return list(escalate_to)
    handling = getattr(approval, "handling", None)
    if level == Level.WARNING and handling is not None and handling.assigned_to is not None:
        people = [handling.assigned_to]
    else:
        people = list(User.objects.filter(shop=shop, is_active=True, is_approver=True))
    able = (
        person
        for person in people
        if bar_to(person.pk, approval.operation, role=approval.role, is_yes=True) is None
    )
    return sorted({person.email for person in able if person.email})


def _due(now: datetime) -> dict[tuple[Shop, str, Level], list[Approval]]:
    """Who is to be told of what now, and has not been told of it."""
    waiting = list_open_for_staff(shop_id=None).select_related(
        "operation__shop__attention", "operation__customer__shop", "handling__assigned_to"
    )
    due: dict[tuple[Shop, str, Level], list[Approval]] = defaultdict(list)
    for approval in waiting[:MOST]:
        shop = approval.operation.shop
        level = level_of(shop, asked_at=approval.asked_at, now=now)
        if level is None or not shop.mail_from or not attention_of(shop).sends_mail:
            continue
        if level == Level.WARNING and _is_put_off(approval, now):
            continue
        for recipient in recipients_of(approval, level):
            due[shop, recipient, level].append(approval)
    return due


def _is_put_off(approval: Approval, now: datetime) -> bool:
    handling = getattr(approval, "handling", None)
    until = handling.snoozed_until if handling else None
    return until is not None and until > now


def _send(
    shop: Shop, recipient: str, level: Level, approvals: Sequence[Approval], now: datetime
) -> int:
    """One mail about all of these that this run is the first to tell of. Returns 1 if one was sent."""
    mine = _claim(recipient, level, approvals, now)
    if not mine:
        return 0
    about = [approval for approval in approvals if approval.pk in mine]
    leave_database()
    try:
        _server().send(_mail(shop, recipient, level, about))
    except UnavailableError:
        # Certainly nothing left, so the next run may try.
        Reminder.objects.filter(pk__in=mine.values()).delete()
        logger.warning("The mail server is away; reminders of %s wait", shop.slug)
        return 0
    except (RefusedError, MailRejectedError):
        _settle(mine, ReminderStatus.REFUSED)
        logger.warning("A reminder of %s was refused", shop.slug)
        return 0
    except UnknownOutcomeError:
        _settle(mine, ReminderStatus.UNKNOWN)
        return 0
    _settle(mine, ReminderStatus.SENT)
    return 1


@transaction.atomic
def _claim(
    recipient: str, level: Level, approvals: Sequence[Approval], now: datetime
) -> dict[int, int]:
    """Write down the reminders that nobody has written down: reminder ids by approval id."""
    mine = {}
    for approval in sorted(approvals, key=lambda each: each.pk):
        if not Approval.objects.filter(pk=approval.pk, status=ApprovalStatus.OPEN).exists():
            continue
        reminder, is_new = Reminder.objects.get_or_create(
            approval=approval, level=level, recipient=recipient, defaults={"at": now}
        )
        if is_new:
            mine[approval.pk] = reminder.pk
            _record(approval, level, now)
    return mine


def _settle(mine: dict[int, int], status: ReminderStatus) -> None:
    Reminder.objects.filter(pk__in=mine.values()).update(status=status)


def _server() -> MailServer:
    return MailServer(settings.SMTP_URL, timeout=settings.SHOP_TIMEOUT / 3)


def _mail(shop: Shop, recipient: str, level: Level, approvals: Sequence[Approval]) -> Mail:
    """What is asked, of which order and until when; nothing about the customer."""
    count = len(approvals)
    waits = "1 approval waits" if count == 1 else f"{count} approvals wait"
    how = "too long" if level == Level.LATE else "for you"
    lines = [f"{waits} {how} at {clean(shop.name, 120)}.", ""]
    for approval in approvals:
        page = reverse("console:approval", args=[approval.public_id])
        lines += [_in_a_line(approval), f"{settings.PUBLIC_URL}{page}", ""]
    lines.append("Opening a link decides nothing; you decide on its page, signed in.")
    domain = shop.mail_from.rpartition("@")[2]
    return Mail(
        sender=shop.mail_from,
        recipient=recipient,
        subject=f"{waits} {how}: {clean(shop.name, 120)}",
        text="\n".join(lines),
        message_id=f"<reminder-{uuid.uuid4()}@{domain}>",
    )


def _in_a_line(approval: Approval) -> str:
    operation = approval.operation
    what = operation.get_kind_display()
    if operation.amount is not None:
        what = f"{what} of {money.show(operation.amount, operation.currency)}"
    if operation.order_id:
        what = f"{what}, order {clean(operation.order_id, 64)}"
    if approval.role == Role.SECOND_STAFF:
        what = f"{what}, second of two yeses"
    return f"{what}, to be answered before {approval.expires_at:%d %b %Y, %H:%M} UTC"


def _record(approval: Approval, level: Level, now: datetime) -> None:
    audit.record(
        actor="system",
        action="approval.reminded",
        subject=f"approval:{approval.public_id}",
        at=now,
        outcome=level.value,
        data={"level": level.value},
        **operations.about(approval.operation),
    )
