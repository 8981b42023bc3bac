"""A shop's customers, and their leave to act for them."""

import re

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from typing_extensions import override

from accounts import validators
from accounts.models.people import Role
from accounts.models.shops import Shop


class CustomerStatus(models.TextChoices):
    ACTIVE = "active"
    BLOCKED = "blocked"


class Customer(models.Model):
    """A shop's customer, as the shop's signed identity last described them."""

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="customers")
    external_id = models.CharField(max_length=120, validators=[RegexValidator(validators.PLAIN_ID)])
    name = models.CharField(max_length=200, blank=True)
    email = models.CharField(max_length=254, blank=True)
    locale = models.CharField(max_length=35, default="en")
    status = models.CharField(
        max_length=10, choices=CustomerStatus.choices, default=CustomerStatus.ACTIVE
    )
    # Identity tokens issued before this moment no longer count: signed out, blocked, revoked.
    tokens_valid_after = models.DateTimeField(null=True, blank=True)
    # Whoever opens their cases without holding them says why first (accounts.looks).
    is_sensitive = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="customer_external_id_unique", fields=["shop", "external_id"]
            ),
            models.CheckConstraint(
                name="customer_status_valid", condition=Q(status__in=CustomerStatus.values)
            ),
            models.CheckConstraint(
                name="customer_external_id_plain",
                condition=Q(external_id__regex=validators.PLAIN_ID),
            ),
        ]

    @override
    def __str__(self) -> str:
        return self.name or self.external_id

    @property
    def actor(self) -> str:
        """How the audit trail names this person, e.g. "customer:ada"."""
        return f"{Role.CUSTOMER.value}:{self.external_id}"

    @property
    def first_name(self) -> str:
        """What to call them in a sentence; "" when the shop told no name."""
        return re.split(r"\s", self.name.strip(), maxsplit=1)[0]


class Delegation(models.Model):
    """A customer's leave to act for them at the shop, until somebody takes it back.

    Tokens are encrypted (accounts.keys). They are emptied once the shop knows of a revocation.
    """

    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="delegations")
    refresh_token_encrypted = models.BinaryField()
    access_token_encrypted = models.BinaryField()
    access_expires_at = models.DateTimeField()
    created_at = models.DateTimeField(default=timezone.now)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_reason = models.CharField(max_length=60, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="delegation_one_active_per_customer",
                fields=["customer"],
                condition=Q(revoked_at__isnull=True),
            ),
            models.CheckConstraint(
                name="delegation_revoked_with_reason",
                condition=Q(revoked_at__isnull=True, revoked_reason="")
                | (Q(revoked_at__isnull=False) & ~Q(revoked_reason="")),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"delegation {self.pk}"
