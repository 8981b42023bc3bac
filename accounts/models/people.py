"""The people of the console, and what their roles are."""

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser, UserManager
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.crypto import salted_hmac
from typing_extensions import override

from accounts.models.shops import Shop


class Role(models.TextChoices):
    """The four kinds of people, and what approvals are asked of: `customer`, `staff`, `second_staff`.

    `second_staff` is a member of staff other than the one who answered as `staff`; no user has it.
    """

    CUSTOMER = "customer"
    STAFF = "staff"
    SECOND_STAFF = "second_staff"
    AUDITOR = "auditor"
    ADMIN = "admin"


CONSOLE_ROLES = (Role.STAFF, Role.AUDITOR, Role.ADMIN)
# What a right to approve can be narrowed to. The kinds of change themselves live in a layer above.
APPROVABLE = ("refund", "cancel", "change_address", "close_ticket")


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
    approve_up_to = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        help_text="The largest sum that they may say yes to (minor units); empty: any.",
    )
    approve_kinds = ArrayField(
        models.CharField(max_length=20),
        null=True,
        blank=True,
        help_text="What they may decide about; none chosen: everything.",
    )

    # Raised to end every session of this person.
    session_epoch = models.PositiveIntegerField(default=0, db_default=0, editable=False)

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
            models.CheckConstraint(
                name="user_approves_known_kinds",
                condition=Q(approve_kinds__isnull=True)
                | Q(approve_kinds__contained_by=list(APPROVABLE)),
            ),
        ]

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """What a session must have been begun with: password, role, shop and epoch of now.

        Django compares it at every request, so that a change of one of them ends all sessions.
        """
        begun_with = (self.password, self.role, str(self.shop_id), str(self.session_epoch))
        return salted_hmac(
            "accounts.User.session", "\n".join(begun_with), secret=secret, algorithm="sha256"
        ).hexdigest()

    @property
    def can_approve(self) -> bool:
        """May this person countersign for the shop? Scope to `shop` is the caller's business."""
        return self.is_active and self.is_approver and self.role in {Role.STAFF, Role.ADMIN}

    def may_decide_kind(self, kind: str) -> bool:
        """Does the right to approve reach to this kind of change?"""
        return not self.approve_kinds or kind in self.approve_kinds

    def may_approve_sum(self, amount: int | None) -> bool:
        """Does it reach to this many minor units? None: no money moves."""
        return self.approve_up_to is None or amount is None or amount <= self.approve_up_to

    @property
    def is_admin(self) -> bool:
        """May this person change the settings of the shop, or without one of every shop?"""
        return self.is_active and self.role == Role.ADMIN

    @property
    def can_read_console(self) -> bool:
        """May this person look at tickets, tasks and the audit trail?"""
        return self.is_active and self.role in CONSOLE_ROLES

    @property
    def actor(self) -> str:
        """How the audit trail names this person, e.g. "staff:dana"."""
        return f"{self.role}:{self.username}"
