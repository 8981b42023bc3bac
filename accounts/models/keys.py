"""What a shop proves itself and its customers with, and the public name of its widget."""

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from typing_extensions import override

from accounts import validators
from accounts.models.shops import Shop


class KeyAlgorithm(models.TextChoices):
    EDDSA = "EdDSA"
    HS256 = "HS256"


class SigningKey(models.Model):
    """A key with which a shop signs its customers' identities. Keys may overlap in time."""

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="signing_keys")
    kid = models.CharField(max_length=120, validators=[RegexValidator(validators.KEY_ID)])
    algorithm = models.CharField(max_length=10, choices=KeyAlgorithm.choices)
    public_jwk = models.JSONField(null=True, blank=True)
    secret_encrypted = models.BinaryField(null=True, blank=True)
    active_from = models.DateTimeField(default=timezone.now)
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="signing_key_kid_unique", fields=["shop", "kid"]),
            models.CheckConstraint(
                name="signing_key_material_fits_algorithm",
                condition=Q(
                    algorithm=KeyAlgorithm.EDDSA.value,
                    public_jwk__isnull=False,
                    secret_encrypted__isnull=True,
                )
                | Q(
                    algorithm=KeyAlgorithm.HS256.value,
                    public_jwk__isnull=True,
                    secret_encrypted__isnull=False,
                ),
            ),
            models.CheckConstraint(
                name="signing_key_retires_after_start",
                condition=Q(retired_at__isnull=True) | Q(retired_at__gt=F("active_from")),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.kid} ({self.algorithm})"


class WebhookSecret(models.Model):
    """A secret with which a shop signs what it tells us. Several may hold at once, for a rotation."""

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="webhook_secrets")
    name = models.CharField(max_length=120, validators=[RegexValidator(validators.KEY_ID)])
    secret_encrypted = models.BinaryField()
    active_from = models.DateTimeField(default=timezone.now)
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="webhook_secret_name_unique", fields=["shop", "name"]),
        ]

    @override
    def __str__(self) -> str:
        return self.name


class WidgetKey(models.Model):
    """The public name of a shop in its widget snippet. It identifies, it authorizes nothing."""

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="widget_keys")
    key = models.CharField(max_length=60, unique=True, validators=[RegexValidator(validators.SLUG)])
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    @override
    def __str__(self) -> str:
        return self.key
