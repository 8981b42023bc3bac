"""Where a shop wants to be told of what happens, and what it is told."""

from uuid import uuid4

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from typing_extensions import override

from accounts import validators
from accounts.models.shops import Shop


class Endpoint(models.Model):
    """An address of a shop that is told of events, and the secret that signs them.

    While a secret is replaced the former one signs as well, until `former_until`. An endpoint
    that fails rests until `rests_until`; what it is to be told waits in its order.
    """

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="endpoints")
    name = models.CharField(max_length=120, validators=[RegexValidator(validators.KEY_ID)])
    url = models.CharField(max_length=500)
    secret_encrypted = models.BinaryField()
    former_secret_encrypted = models.BinaryField(default=bytes)
    former_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    disabled_at = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    rests_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="endpoint_name_unique", fields=["shop", "name"]),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.shop.slug}: {self.name}"


def new_notice_id() -> str:
    """An id that no restored database gives a second time; receivers drop what they have seen."""
    return f"evt_{uuid4().hex}"


class Notice(models.Model):
    """One event for one endpoint: the bytes that are sent each time, and how it went.

    Written in the transaction of the event that it tells of.
    """

    id = models.BigAutoField(primary_key=True)
    endpoint = models.ForeignKey(Endpoint, on_delete=models.PROTECT, related_name="notices")
    public_id = models.CharField(max_length=40, unique=True, default=new_notice_id)
    event_id = models.BigIntegerField()
    type = models.CharField(max_length=100)
    body = models.TextField()
    created_at = models.DateTimeField()
    attempts = models.PositiveIntegerField(default=0)
    last_answer = models.CharField(max_length=40, blank=True)
    delivered_at = models.DateTimeField(null=True, blank=True)
    given_up_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="notice_once_an_endpoint", fields=["endpoint", "event_id"]
            ),
            models.CheckConstraint(
                name="notice_ends_once",
                condition=Q(delivered_at__isnull=True) | Q(given_up_at__isnull=True),
            ),
        ]
        indexes = [
            models.Index(
                F("endpoint"),
                F("id"),
                name="notice_waiting",
                condition=Q(delivered_at__isnull=True, given_up_at__isnull=True),
            ),
        ]

    @override
    def __str__(self) -> str:
        return self.public_id
