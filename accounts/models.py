"""Who is asking: shops, their customers and staff, the keys and delegations that prove it."""

import re
from typing import Any, ClassVar
from zoneinfo import available_timezones

from django.contrib.auth.models import AbstractUser, UserManager
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator, RegexValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from typing_extensions import override

from accounts import validators


class Role(models.TextChoices):
    """The four kinds of people. Approvals are asked of `customer` and `staff`."""

    CUSTOMER = "customer"
    STAFF = "staff"
    AUDITOR = "auditor"
    ADMIN = "admin"


CONSOLE_ROLES = (Role.STAFF, Role.AUDITOR, Role.ADMIN)


class CustomerStatus(models.TextChoices):
    ACTIVE = "active"
    BLOCKED = "blocked"


class KeyAlgorithm(models.TextChoices):
    EDDSA = "EdDSA"
    HS256 = "HS256"


def default_countries() -> list[str]:
    return ["US"]


def validate_time_zone(name: str) -> None:
    """A name of the IANA time zone database."""
    if name not in available_timezones():
        raise ValidationError("%(name)s is not a time zone", params={"name": name})


class Shop(models.Model):
    """A tenant. Amounts are minor units of `currency`; times are seconds.

    `policy_version` rises by itself (database trigger) whenever a setting that decides about
    money or approvals changes; read it again after saving.
    """

    slug = models.CharField(
        max_length=60, unique=True, validators=[RegexValidator(validators.SLUG)]
    )
    name = models.CharField(max_length=120)
    base_url = models.CharField(max_length=300, validators=[validators.validate_base_url])
    currency = models.CharField(
        max_length=3, default="USD", validators=[RegexValidator(validators.CURRENCY)]
    )
    time_zone = models.CharField(max_length=64, default="UTC", validators=[validate_time_zone])
    locale = models.CharField(
        max_length=35, default="en", validators=[RegexValidator(validators.LOCALE)]
    )
    allowed_origins = ArrayField(
        models.TextField(validators=[validators.validate_origin]),
        default=list,
        blank=True,
        help_text="Sites that may embed the chat widget, each as scheme://host[:port].",
    )

    oauth_client_id = models.CharField(max_length=200)
    oauth_client_secret_encrypted = models.BinaryField()
    identity_issuer = models.CharField(max_length=200, unique=True)
    identity_audience = models.CharField(max_length=200, default="countersign")
    provider = models.CharField(
        max_length=60,
        default="orders_stub",
        help_text="Which record describes how this shop's API behaves.",
    )

    mail_from = models.CharField(
        max_length=254,
        blank=True,
        validators=[EmailValidator()],
        help_text="The sender of closure e-mails; without it none are sent.",
    )

    staff_limit = models.PositiveBigIntegerField(
        default=10_000, help_text="Refunds above this need staff too (minor units)."
    )
    staff_also_for_cancel = models.BooleanField(default=False)
    refund_window_days = models.PositiveIntegerField(default=30)
    countries_served = ArrayField(
        models.CharField(max_length=2, validators=[validators.validate_country]),
        default=default_countries,
    )
    customer_approval_seconds = models.PositiveIntegerField(default=1800)
    staff_approval_seconds = models.PositiveIntegerField(default=86_400)
    policy_version = models.PositiveIntegerField(default=1, editable=False)

    max_steps = models.PositiveIntegerField(default=24)
    max_tokens = models.PositiveIntegerField(default=60_000)
    max_cost = models.PositiveBigIntegerField(
        default=500_000, help_text="Per task, in millionths of a US dollar."
    )
    max_active_seconds = models.PositiveIntegerField(default=300)
    customer_day_max_tokens = models.PositiveBigIntegerField(default=400_000)
    customer_day_max_cost = models.PositiveBigIntegerField(
        default=2_000_000, help_text="Per customer and day, in millionths of a US dollar."
    )
    shop_day_max_tokens = models.PositiveBigIntegerField(default=1_000_000_000)
    shop_day_max_cost = models.PositiveBigIntegerField(
        default=500_000_000, help_text="Per day, in millionths of a US dollar."
    )
    max_running_tasks = models.PositiveIntegerField(
        default=2000, help_text="Tasks ready or being worked on at once; waiting ones do not count."
    )
    max_open_tasks_per_customer = models.PositiveIntegerField(default=3)
    tasks_per_minute_per_customer = models.PositiveIntegerField(default=20)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    # A change of one of these is a change of policy (see migration 0002).
    MONEY_SETTINGS: ClassVar[tuple[str, ...]] = (
        "currency",
        "staff_limit",
        "staff_also_for_cancel",
        "refund_window_days",
        "countries_served",
        "customer_approval_seconds",
        "staff_approval_seconds",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="shop_slug_valid", condition=Q(slug__regex=validators.SLUG)
            ),
            models.CheckConstraint(
                name="shop_currency_valid", condition=Q(currency__regex=validators.CURRENCY)
            ),
            models.CheckConstraint(
                name="shop_base_url_valid", condition=Q(base_url__regex=r"^https?://[^/]+")
            ),
            models.CheckConstraint(
                name="shop_identity_named",
                condition=~Q(identity_issuer="") & ~Q(identity_audience=""),
            ),
            models.CheckConstraint(
                name="shop_serves_a_country", condition=Q(countries_served__len__gt=0)
            ),
            models.CheckConstraint(
                name="shop_times_positive",
                condition=Q(customer_approval_seconds__gt=0)
                & Q(staff_approval_seconds__gt=0)
                & Q(max_active_seconds__gt=0),
            ),
            models.CheckConstraint(
                name="shop_caps_positive",
                condition=Q(max_steps__gt=0) & Q(max_tokens__gt=0) & Q(max_cost__gt=0),
            ),
            models.CheckConstraint(
                name="shop_day_caps_fit_bigint",
                condition=Q(customer_day_max_tokens__lte=10**15)
                & Q(customer_day_max_cost__lte=10**15)
                & Q(shop_day_max_tokens__lte=10**15)
                & Q(shop_day_max_cost__lte=10**15),
            ),
            models.CheckConstraint(
                name="shop_admission_positive",
                condition=Q(max_running_tasks__gt=0)
                & Q(max_open_tasks_per_customer__gt=0)
                & Q(tasks_per_minute_per_customer__gt=0),
            ),
            models.CheckConstraint(
                name="shop_policy_version_positive", condition=Q(policy_version__gt=0)
            ),
        ]

    @override
    def __str__(self) -> str:
        return self.name


class ConsoleUserManager(UserManager["User"]):
    """Makes console users; a superuser is an admin of the whole deployment."""

    @override
    def create_superuser(
        self,
        username: str,
        email: str | None = None,
        password: str | None = None,
        **extra_fields: Any,
    ) -> "User":
        extra_fields.setdefault("role", Role.ADMIN)
        return super().create_superuser(username, email, password, **extra_fields)


class User(AbstractUser):
    """Somebody who signs in to the console. Without a shop: an admin of all shops."""

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, null=True, blank=True)
    role = models.CharField(
        max_length=20, choices=[(r.value, r.label) for r in CONSOLE_ROLES], default=Role.STAFF
    )
    is_approver = models.BooleanField(
        default=False, help_text="May decide approvals that are asked of staff."
    )

    objects: ClassVar[ConsoleUserManager] = ConsoleUserManager()

    class Meta(AbstractUser.Meta):
        constraints = [
            models.CheckConstraint(
                name="user_role_valid", condition=Q(role__in=[r.value for r in CONSOLE_ROLES])
            ),
            models.CheckConstraint(
                name="user_auditor_decides_nothing",
                condition=~Q(role=Role.AUDITOR.value) | Q(is_approver=False),
            ),
            models.CheckConstraint(
                name="user_only_admin_without_shop",
                condition=Q(shop__isnull=False) | Q(role=Role.ADMIN.value),
            ),
        ]

    @property
    def can_approve(self) -> bool:
        """May this person countersign for the shop? Scope to `shop` is the caller's business."""
        return self.is_active and self.is_approver and self.role in {Role.STAFF, Role.ADMIN}

    @property
    def can_read_console(self) -> bool:
        """May this person look at tickets, tasks and the audit trail?"""
        return self.is_active and self.role in CONSOLE_ROLES

    @property
    def actor(self) -> str:
        """How the audit trail names this person, e.g. "staff:dana"."""
        return f"{self.role}:{self.username}"


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
