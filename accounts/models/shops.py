"""Shops: tenants with their settings."""

from typing import ClassVar
from zoneinfo import available_timezones

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from typing_extensions import override

from accounts import validators


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
    second_limit = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        help_text="Refunds above this need two of staff (minor units); empty: none do.",
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
    keep_texts_days = models.PositiveIntegerField(
        default=730,
        db_default=730,
        help_text="Days after a ticket's last change in which its texts are kept; 0 keeps them for ever.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    # More of it may cost more money. Raising one takes two people, and so does no longer counting
    # cancellations, serving one more country, another currency (see migration 0008), and raising or
    # removing the second limit (0014).
    RAISED_BY_TWO: ClassVar[tuple[str, ...]] = (
        "staff_limit",
        "refund_window_days",
        "customer_approval_seconds",
        "staff_approval_seconds",
        "max_tokens",
        "max_cost",
        "customer_day_max_tokens",
        "customer_day_max_cost",
        "shop_day_max_tokens",
        "shop_day_max_cost",
    )
    LOOSENED_BY_TWO: ClassVar[tuple[str, ...]] = (
        *RAISED_BY_TWO,
        "second_limit",
        "staff_also_for_cancel",
        "countries_served",
        "currency",
    )

    # A change of one of these is a change of policy (see migrations 0002 and 0014).
    MONEY_SETTINGS: ClassVar[tuple[str, ...]] = (
        "currency",
        "staff_limit",
        "second_limit",
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
