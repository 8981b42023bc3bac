"""What is known of an operation's outcome, and from whom."""

from django.db import models
from django.db.models import Q
from typing_extensions import override

from accounts.models import Shop
from tools.models.operations import Operation


class AttemptOutcome(models.TextChoices):
    SUCCEEDED = "succeeded"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    NOT_SENT = "not_sent"


class Attempt(models.Model):
    """One try at sending an operation. Without an outcome it may have reached the shop."""

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="attempts")
    n = models.PositiveSmallIntegerField()
    epoch = models.BigIntegerField()
    request_digest = models.CharField(max_length=64)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=20, choices=AttemptOutcome.choices, blank=True)
    detail = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="attempt_numbered_once", fields=["operation", "n"]),
            models.CheckConstraint(
                name="attempt_outcome_valid", condition=Q(outcome__in=["", *AttemptOutcome.values])
            ),
            models.CheckConstraint(
                name="attempt_finished_with_outcome",
                condition=Q(finished_at__isnull=True, outcome="")
                | (Q(finished_at__isnull=False) & ~Q(outcome="")),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.operation_id}/{self.n}"


class Observation(models.Model):
    """Evidence about an outcome that came late. Never rewrites a state by itself."""

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="observations")
    source = models.CharField(max_length=40)
    body = models.JSONField()
    at = models.DateTimeField()

    @override
    def __str__(self) -> str:
        return f"{self.source} about {self.operation_id}"


class ShopEvent(models.Model):
    """One signed event of a shop, taken once however often it is delivered.

    Without an operation it was about nothing of ours.
    """

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="+")
    event_id = models.CharField(max_length=120)
    kind = models.CharField(max_length=60)
    operation = models.ForeignKey(
        Operation, null=True, on_delete=models.PROTECT, related_name="shop_events"
    )
    received_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="shop_event_taken_once", fields=["shop", "event_id"]),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.kind} {self.event_id}"
