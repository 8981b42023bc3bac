"""The second thing that proves who somebody is: an app's codes, and codes on paper for its loss."""

from django.db import models
from django.db.models import Q
from typing_extensions import override

from accounts.models.people import User


class SecondFactor(models.Model):
    """A secret shared with a person's authenticator app (TOTP, RFC 6238). It counts once confirmed.

    `last_counter` is the time step of the newest code that was taken: no code is taken twice.
    """

    user = models.OneToOneField(User, on_delete=models.PROTECT, related_name="second_factor")
    secret_encrypted = models.BinaryField()
    created_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True)
    last_counter = models.BigIntegerField(default=0)
    # Wrong codes since the last right one, and until when none is looked at.
    failures = models.PositiveIntegerField(default=0)
    blocked_until = models.DateTimeField(null=True)

    @override
    def __str__(self) -> str:
        return f"second factor of {self.user_id}"


class RecoveryCode(models.Model):
    """One of the codes that stand in for a lost app: used once, kept as a digest."""

    factor = models.ForeignKey(SecondFactor, on_delete=models.CASCADE, related_name="codes")
    digest = models.CharField(max_length=64)
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="recovery_code_once", fields=["factor", "digest"]),
            models.CheckConstraint(
                name="recovery_code_is_a_digest", condition=Q(digest__regex=r"^[0-9a-f]{64}$")
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"recovery code of {self.factor_id}"
