"""What people say about outcomes that the shop's answers leave open, and money that came back."""

from datetime import datetime

from django.db import models
from django.db.models import F, Q
from django_fsm import FSMField, transition
from typing_extensions import override

from tools.models.evidence import ShopEvent
from tools.models.operations import CONTRADICTED, Operation, State

OUTCOMES = (State.SUCCEEDED, State.FAILED)
NOT_BLANK = r"\S"


class SettlementStatus(models.TextChoices):
    OPEN = "open"
    SETTLED = "settled"
    TURNED_DOWN = "turned_down"


class Settlement(models.Model):
    """A person's word on how an operation ended, with their evidence; over the limit, two people's.

    What it says never changes: the second person confirms exactly what the first one wrote.
    """

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="settlements")
    outcome = models.CharField(
        max_length=20, choices=[(outcome.value, outcome.label) for outcome in OUTCOMES]
    )
    reference = models.CharField(max_length=120, blank=True)
    evidence = models.TextField(max_length=2000)
    needs_second = models.BooleanField()
    status = FSMField(
        choices=SettlementStatus.choices,
        default=SettlementStatus.OPEN,
        protected=True,
        max_length=20,
    )
    proposed_by = models.CharField(max_length=120)
    proposed_by_user_id = models.BigIntegerField()
    proposed_at = models.DateTimeField()
    confirmed_by = models.CharField(max_length=120, blank=True)
    confirmed_by_user_id = models.BigIntegerField(null=True)
    ended_by = models.CharField(max_length=120, blank=True)
    ended_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="settlement_outcome_valid",
                condition=Q(outcome__in=[outcome.value for outcome in OUTCOMES]),
            ),
            models.CheckConstraint(
                name="settlement_status_valid", condition=Q(status__in=SettlementStatus.values)
            ),
            models.CheckConstraint(
                name="settlement_has_evidence", condition=Q(evidence__regex=NOT_BLANK)
            ),
            models.CheckConstraint(
                name="settlement_success_has_reference",
                condition=~Q(outcome=State.SUCCEEDED.value) | Q(reference__regex=NOT_BLANK),
            ),
            models.CheckConstraint(
                name="settlement_confirmed_by_another",
                condition=Q(confirmed_by_user_id__isnull=True, confirmed_by="")
                | (
                    Q(confirmed_by_user_id__isnull=False)
                    & ~Q(confirmed_by="")
                    & ~Q(confirmed_by_user_id=F("proposed_by_user_id"))
                    & ~Q(confirmed_by=F("proposed_by"))
                ),
            ),
            models.CheckConstraint(
                name="settlement_second_person_when_needed",
                condition=~Q(status=SettlementStatus.SETTLED, needs_second=True)
                | Q(confirmed_by_user_id__isnull=False),
            ),
            models.CheckConstraint(
                name="settlement_ended_by_whom_and_when",
                condition=Q(status=SettlementStatus.OPEN, ended_at__isnull=True, ended_by="")
                | (~Q(status=SettlementStatus.OPEN) & Q(ended_at__isnull=False) & ~Q(ended_by="")),
            ),
            models.UniqueConstraint(
                name="settlement_one_open_per_operation",
                fields=["operation"],
                condition=Q(status=SettlementStatus.OPEN),
            ),
            models.UniqueConstraint(
                name="settlement_settles_once",
                fields=["operation"],
                condition=Q(status=SettlementStatus.SETTLED),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.operation_id} {self.outcome} ({self.status})"

    @transition(field=status, source=SettlementStatus.OPEN, target=SettlementStatus.SETTLED)
    def settle(self, *, by: str, at: datetime) -> None:
        self.ended_by = by
        self.ended_at = at

    @transition(field=status, source=SettlementStatus.OPEN, target=SettlementStatus.TURNED_DOWN)
    def turn_down(self, *, by: str, reason: str, at: datetime) -> None:
        self.ended_by = by
        self.reason = reason
        self.ended_at = at


class Reversal(models.Model):
    """Money of a refund that had succeeded came back to the shop: a case for staff.

    The operation stays as it ended; what has happened since stands here.
    """

    operation = models.OneToOneField(Operation, on_delete=models.PROTECT, related_name="reversal")
    # None where a look-up of ours has shown it.
    event = models.OneToOneField(ShopEvent, null=True, on_delete=models.PROTECT, related_name="+")
    reason = models.CharField(max_length=200, blank=True)
    opened_at = models.DateTimeField()
    closed_by = models.CharField(max_length=120, blank=True)
    closed_at = models.DateTimeField(null=True)
    note = models.TextField(max_length=2000, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="reversal_closed_by_whom_when_and_why",
                condition=Q(closed_at__isnull=True, closed_by="", note="")
                | (Q(closed_at__isnull=False, note__regex=NOT_BLANK) & ~Q(closed_by="")),
            ),
        ]
        indexes = [
            models.Index(
                fields=["opened_at"], name="reversal_open", condition=Q(closed_at__isnull=True)
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"reversal of {self.operation_id}"


class Transit(models.Model):
    """Money of a refund that the shop has taken and calls pending, until it says that it was paid out.

    The operation has succeeded and stays as it ended; where its money is stands here. Money that
    comes back instead is a `Reversal`.
    """

    operation = models.OneToOneField(Operation, on_delete=models.PROTECT, related_name="transit")
    began_at = models.DateTimeField()
    arrived_at = models.DateTimeField(null=True)
    # When the shop is asked about it again; None: at once.
    next_look_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["next_look_at"], name="transit_out", condition=Q(arrived_at__isnull=True)
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"transit of {self.operation_id}"


class InquiryKind(models.TextChoices):
    NO_END = "no_end"
    CONTRADICTED = CONTRADICTED


class Inquiry(models.Model):
    """A question about a change that has ended, which only a person can find the answer to.

    `no_end`: a refund that the shop goes on calling pending. `contradicted`: evidence that does not
    fit how it ended. The operation stays as it ended. What was found out is on the trail alone.
    """

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="inquiries")
    kind = models.CharField(max_length=20, choices=InquiryKind.choices)
    opened_at = models.DateTimeField()
    closed_by = models.CharField(max_length=120, blank=True)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="inquiry_once_of_a_kind", fields=["operation", "kind"]),
            models.CheckConstraint(
                name="inquiry_kind_valid", condition=Q(kind__in=InquiryKind.values)
            ),
            models.CheckConstraint(
                name="inquiry_closed_by_whom_and_when",
                condition=Q(closed_at__isnull=True, closed_by="")
                | (Q(closed_at__isnull=False) & ~Q(closed_by="")),
            ),
        ]
        indexes = [
            models.Index(
                fields=["opened_at"], name="inquiry_open", condition=Q(closed_at__isnull=True)
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.kind} of {self.operation_id}"
