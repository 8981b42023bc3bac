"""Who has opened whose case, and when that was last put on the trail."""

from django.db import models
from typing_extensions import override

from accounts.models.customers import Customer
from accounts.models.people import User


class Look(models.Model):
    """One person at one case. It keeps reloads off the trail, and a reason given for a while.

    `subject` is "ticket:12", or "customer:5" for their own page. The reason itself is on the trail.
    """

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="+")
    subject = models.CharField(max_length=40)
    recorded_at = models.DateTimeField(null=True)
    reason_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="look_one_per_case", fields=["user", "subject"]),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.user_id} at {self.subject}"
