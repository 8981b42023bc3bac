"""Changes of a shop's settings that loosen money: one person proposes, another confirms."""

from datetime import datetime

from django.db import models
from django.db.models import F, Q
from django_fsm import FSMField, transition
from typing_extensions import override

from accounts.models.shops import Shop


class ChangeStatus(models.TextChoices):
    OPEN = "open"
    CONFIRMED = "confirmed"
    TURNED_DOWN = "turned_down"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"


class ShopChange(models.Model):
    """One setting, from one value to a looser one. Triggers (migration 0008) hold what it says.

    A confirmed change lets the setting take exactly its new value, once, from exactly its old one:
    `applied_at` is set by the database as it happens.
    """

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="changes")
    setting = models.CharField(max_length=60)
    old_value = models.JSONField()
    new_value = models.JSONField()
    reason = models.CharField(max_length=500)
    status = FSMField(
        choices=ChangeStatus.choices, default=ChangeStatus.OPEN, protected=True, max_length=20
    )
    proposed_by = models.CharField(max_length=200)
    proposed_by_user_id = models.BigIntegerField()
    proposed_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    ended_by = models.CharField(max_length=200, blank=True)
    ended_by_user_id = models.BigIntegerField(null=True)
    ended_at = models.DateTimeField(null=True)
    note = models.CharField(max_length=500, blank=True)
    applied_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="shop_change_status_valid", condition=Q(status__in=ChangeStatus.values)
            ),
            models.UniqueConstraint(
                name="shop_change_one_open_per_setting",
                fields=["shop", "setting"],
                condition=Q(status="open"),
            ),
            models.CheckConstraint(
                name="shop_change_confirmed_by_another",
                condition=~Q(status=ChangeStatus.CONFIRMED)
                | (
                    Q(ended_by_user_id__isnull=False)
                    & ~Q(ended_by_user_id=F("proposed_by_user_id"))
                    & ~Q(ended_by=F("proposed_by"))
                ),
            ),
            models.CheckConstraint(
                name="shop_change_ended_by_whom_and_when",
                condition=Q(status=ChangeStatus.OPEN, ended_by="", ended_at__isnull=True)
                | (~Q(status=ChangeStatus.OPEN) & ~Q(ended_by="") & Q(ended_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="shop_change_applied_once_confirmed",
                condition=Q(applied_at__isnull=True) | Q(status=ChangeStatus.CONFIRMED),
            ),
            models.CheckConstraint(name="shop_change_has_reason", condition=~Q(reason="")),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.setting} of {self.shop_id}: {self.status}"

    @transition(field=status, source=ChangeStatus.OPEN, target=ChangeStatus.CONFIRMED)
    def confirm(self, *, by: str, user_id: int, at: datetime) -> None:
        self._end(by=by, user_id=user_id, note="", at=at)

    @transition(field=status, source=ChangeStatus.OPEN, target=ChangeStatus.TURNED_DOWN)
    def turn_down(self, *, by: str, user_id: int, note: str, at: datetime) -> None:
        self._end(by=by, user_id=user_id, note=note, at=at)

    @transition(field=status, source=ChangeStatus.OPEN, target=ChangeStatus.SUPERSEDED)
    def supersede(self, *, by: str, user_id: int, at: datetime) -> None:
        self._end(by=by, user_id=user_id, note="", at=at)

    @transition(field=status, source=ChangeStatus.OPEN, target=ChangeStatus.EXPIRED)
    def expire(self, *, at: datetime) -> None:
        self._end(by="system", user_id=None, note="", at=at)

    def _end(self, *, by: str, user_id: int | None, note: str, at: datetime) -> None:
        self.ended_by = by
        self.ended_by_user_id = user_id
        self.note = note
        self.ended_at = at
