"""Which of the database's histories ours is, and the times in which it may have lost its end."""

from django.db import models
from django.db.models import Q
from typing_extensions import override


class History(models.Model):
    """The one row that says which history of the database the product has been running on.

    A failover or a restore continues the data under another timeline or another system. What was
    committed after `seen_at` may be missing then.
    """

    is_only = models.BooleanField(default=True, unique=True)
    system = models.CharField(max_length=40)
    timeline = models.BigIntegerField()
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(name="history_is_one", condition=Q(is_only=True)),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.system}/{self.timeline}"


class LookFirst(models.Model):
    """A time in which nothing is sent before the shop was asked whether it has happened already.

    What was committed after `since` may be missing. It ends at `until` by itself: shops have
    forgotten by then the keys that were lost with those commits.
    """

    since = models.DateTimeField()
    started_at = models.DateTimeField()
    until = models.DateTimeField()
    started_by = models.CharField(max_length=120)
    reason = models.CharField(max_length=200)
    is_on = models.BooleanField(default=True)
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=120, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="look_first_one_at_a_time", fields=["is_on"], condition=Q(is_on=True)
            ),
            models.CheckConstraint(
                name="look_first_ended_with_time",
                condition=Q(is_on=True, ended_at__isnull=True, ended_by="")
                | (Q(is_on=False, ended_at__isnull=False) & ~Q(ended_by="")),
            ),
            models.CheckConstraint(
                name="look_first_in_order",
                condition=Q(since__lte=models.F("started_at"))
                & Q(until__gt=models.F("started_at")),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"since {self.since:%Y-%m-%d %H:%M}"
