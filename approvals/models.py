"""Approvals: one question put to one role about one sealed operation."""

import uuid
from datetime import datetime, time

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django_fsm import FSMField, transition
from typing_extensions import override

from accounts.models import Role, Shop, User
from tools.models import Operation


class ApprovalStatus(models.TextChoices):
    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    WITHDRAWN = "withdrawn"


DECIDED = (ApprovalStatus.APPROVED, ApprovalStatus.REJECTED)
# Staff's questions: of one person, and above a second limit of another one too.
STAFF_ROLES = (Role.STAFF, Role.SECOND_STAFF)
ASKED_ROLES = (Role.CUSTOMER, *STAFF_ROLES)


class Approval(models.Model):
    """May this sealed operation be sent? Asked of one role, answered once, for these bytes only."""

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="approvals")
    role = models.CharField(
        max_length=20, choices=[(role.value, role.label) for role in ASKED_ROLES]
    )
    status = FSMField(
        choices=ApprovalStatus.choices, default=ApprovalStatus.OPEN, protected=True, max_length=20
    )
    digest = models.CharField(max_length=64)
    asked_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    decided_by = models.CharField(max_length=120, blank=True)
    # The member of staff behind `decided_by`, whose right is looked at again before sending.
    decided_by_user_id = models.BigIntegerField(null=True)
    decided_at = models.DateTimeField(null=True)
    decision_id = models.CharField(max_length=80, blank=True)
    reason = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="approval_status_valid", condition=Q(status__in=ApprovalStatus.values)
            ),
            models.CheckConstraint(
                name="approval_role_valid",
                condition=Q(role__in=[role.value for role in ASKED_ROLES]),
            ),
            models.UniqueConstraint(name="approval_one_per_role", fields=["operation", "role"]),
            models.UniqueConstraint(
                name="approval_two_staff_are_two_people",
                fields=["operation", "decided_by_user_id"],
            ),
            models.CheckConstraint(
                name="approval_decided_by_whom_and_when",
                condition=(Q(status__in=DECIDED, decided_at__isnull=False) & ~Q(decided_by=""))
                | (~Q(status__in=DECIDED) & Q(decided_at__isnull=True, decided_by="")),
            ),
            models.CheckConstraint(
                name="approval_rejection_by_staff_has_reason",
                condition=~Q(
                    status=ApprovalStatus.REJECTED, role__in=[r.value for r in STAFF_ROLES]
                )
                | ~Q(reason=""),
            ),
            models.CheckConstraint(
                name="approval_staff_decision_has_user",
                condition=~Q(status__in=DECIDED, role__in=[r.value for r in STAFF_ROLES])
                | Q(decided_by_user_id__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["expires_at"], name="approval_open", condition=Q(status="open")),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.role} about {self.operation_id}: {self.status}"

    @transition(field=status, source=ApprovalStatus.OPEN, target=ApprovalStatus.APPROVED)
    def approve(self, *, by: str, user_id: int | None, decision_id: str, at: datetime) -> None:
        self.decided_by = by
        self.decided_by_user_id = user_id
        self.decision_id = decision_id
        self.decided_at = at

    @transition(field=status, source=ApprovalStatus.OPEN, target=ApprovalStatus.REJECTED)
    def reject(
        self, *, by: str, user_id: int | None, decision_id: str, reason: str, at: datetime
    ) -> None:
        self.decided_by = by
        self.decided_by_user_id = user_id
        self.decision_id = decision_id
        self.reason = reason
        self.decided_at = at

    @transition(field=status, source=ApprovalStatus.OPEN, target=ApprovalStatus.EXPIRED)
    def expire(self) -> None: ...

    @transition(field=status, source=ApprovalStatus.OPEN, target=ApprovalStatus.SUPERSEDED)
    def supersede(self) -> None: ...

    @transition(field=status, source=ApprovalStatus.OPEN, target=ApprovalStatus.WITHDRAWN)
    def withdraw(self) -> None: ...


class Handling(models.Model):
    """How staff share out a question: whose it is, and until when it is put off. It decides nothing."""

    approval = models.OneToOneField(Approval, on_delete=models.PROTECT, related_name="handling")
    assigned_to = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    snoozed_until = models.DateTimeField(null=True)
    snoozed_by = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="handling_snoozed_by_somebody",
                condition=Q(snoozed_until__isnull=True, snoozed_by__isnull=True)
                | Q(snoozed_until__isnull=False, snoozed_by__isnull=False),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"handling of {self.approval_id}"


class Watch(models.Model):
    """Somebody had the page of a question open at that moment. A trace for colleagues, no right."""

    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="watches")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="watch_one_per_person", fields=["approval", "user"]),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.user_id} at {self.approval_id}"


def working_days() -> list[int]:
    """Monday to Friday, as ISO numbers them."""
    return [1, 2, 3, 4, 5]


class Attention(models.Model):
    """When a shop's staff are at work, and how long a question may wait for them meanwhile.

    Times of day are in the shop's time zone; minutes are minutes of work. `escalate_to` are e-mail
    addresses that are told when a question is late, instead of those who could answer it.
    """

    shop = models.OneToOneField(Shop, on_delete=models.PROTECT, related_name="attention")
    opens_at = models.TimeField(default=time(9))
    closes_at = models.TimeField(default=time(17))
    weekdays = ArrayField(models.PositiveSmallIntegerField(), default=working_days)
    warn_minutes = models.PositiveIntegerField(default=60)
    late_minutes = models.PositiveIntegerField(default=240)
    escalate_to = ArrayField(models.CharField(max_length=254), default=list)
    sends_mail = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="attention_opens_before_it_closes", condition=Q(opens_at__lt=F("closes_at"))
            ),
            models.CheckConstraint(
                name="attention_warns_before_it_is_late",
                condition=Q(warn_minutes__gt=0, warn_minutes__lt=F("late_minutes")),
            ),
            models.CheckConstraint(
                name="attention_days_of_a_week",
                condition=Q(weekdays__contained_by=[1, 2, 3, 4, 5, 6, 7]) & Q(weekdays__len__gt=0),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"attention of {self.shop_id}"


class Level(models.TextChoices):
    """How pressing a question has become."""

    WARNING = "warning"
    LATE = "late"


class ReminderStatus(models.TextChoices):
    SENDING = "sending"
    SENT = "sent"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Reminder(models.Model):
    """One e-mail to one person about one question at one level: sent once, or not at all.

    It is written before the mail leaves. A worker that dies meanwhile leaves `sending`, and nobody
    sends it again: of a reminder, none is better than two.
    """

    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="reminders")
    level = models.CharField(max_length=10, choices=Level.choices)
    recipient = models.CharField(max_length=254)
    status = models.CharField(
        max_length=10, choices=ReminderStatus.choices, default=ReminderStatus.SENDING
    )
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="reminder_once", fields=["approval", "level", "recipient"]
            ),
            models.CheckConstraint(
                name="reminder_level_valid", condition=Q(level__in=Level.values)
            ),
            models.CheckConstraint(
                name="reminder_status_valid", condition=Q(status__in=ReminderStatus.values)
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.level} about {self.approval_id}: {self.status}"
