"""What is known of the way to each shop."""

from django.db import models
from django.db.models import Q
from typing_extensions import override

from accounts.models import Shop


class AdapterState(models.TextChoices):
    WORKING = "working"
    AWAY = "away"
    REFUSED = "refused"


class Adapter(models.Model):
    """The way to one shop: does it work, and if not, since when and when is it tried next?

    `away`: calls failed one after another. `refused`: the shop does not take our own name and
    secret. A shop without a row works. `probes` counts the tries since it stopped working.
    """

    shop = models.OneToOneField(Shop, on_delete=models.PROTECT, related_name="adapter")
    state = models.CharField(
        max_length=20, choices=AdapterState.choices, default=AdapterState.WORKING
    )
    reason = models.CharField(max_length=80, blank=True)
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    stopped_at = models.DateTimeField(null=True)
    next_try_at = models.DateTimeField(null=True)
    probes = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="adapter_state_valid", condition=Q(state__in=AdapterState.values)
            ),
            models.CheckConstraint(
                name="adapter_stopped_with_times",
                condition=Q(
                    state=AdapterState.WORKING, stopped_at__isnull=True, next_try_at__isnull=True
                )
                | (
                    ~Q(state=AdapterState.WORKING)
                    & Q(stopped_at__isnull=False, next_try_at__isnull=False)
                    & ~Q(reason="")
                ),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.shop_id} {self.state}"
