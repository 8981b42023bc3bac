"""What must go and what must stay: erasures of personal texts, and the holds that stop them."""

from django.db import models
from django.db.models import Q
from typing_extensions import override

from accounts.models.customers import Customer
from accounts.models.shops import Shop

NOT_BLANK = r"\S"
# What stands where a person's words stood.
ERASED = "[erased]"


class Hold(models.Model):
    """Somebody's order to keep a customer's texts, or one ticket's: nothing erases them meanwhile.

    The ticket is a plain number: tickets live in a layer above.
    """

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="+")
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="holds")
    ticket_id = models.BigIntegerField(null=True)
    reason = models.CharField(max_length=300)
    placed_by = models.CharField(max_length=200)
    placed_at = models.DateTimeField()
    lifted_by = models.CharField(max_length=200, blank=True)
    lifted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(name="hold_has_reason", condition=Q(reason__regex=NOT_BLANK)),
            models.CheckConstraint(
                name="hold_lifted_by_whom_and_when",
                condition=Q(lifted_at__isnull=True, lifted_by="")
                | (Q(lifted_at__isnull=False) & ~Q(lifted_by="")),
            ),
            models.UniqueConstraint(
                name="hold_one_at_a_time",
                fields=["customer", "ticket_id"],
                condition=Q(lifted_at__isnull=True),
                nulls_distinct=False,
            ),
        ]

    @override
    def __str__(self) -> str:
        what = f"ticket {self.ticket_id}" if self.ticket_id else "everything"
        return f"hold on {what} of customer {self.customer_id}"


class ErasureCause(models.TextChoices):
    """Why texts go. A list and not words: words about a person could not be erased again."""

    ASKED = "asked", "The customer asked for it"
    SHOP = "shop", "The shop asked for it"
    RETENTION = "retention", "Kept as long as the shop keeps texts"
    REPLAY = "replay", "Erased before a backup was restored"


class Erasure(models.Model):
    """One erasure: of all of a customer's texts, or of one ticket's that was kept long enough.

    The ticket is a plain number. `listed_at`: when it was written to the list outside the database.
    """

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="+")
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="erasures")
    ticket_id = models.BigIntegerField(null=True)
    cause = models.CharField(max_length=20, choices=ErasureCause.choices)
    asked_by = models.CharField(max_length=200)
    asked_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True)
    listed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="erasure_cause_valid", condition=Q(cause__in=ErasureCause.values)
            ),
            models.CheckConstraint(
                name="erasure_listed_when_done",
                condition=Q(listed_at__isnull=True) | Q(done_at__isnull=False),
            ),
            models.UniqueConstraint(
                name="erasure_one_at_a_time",
                fields=["customer", "ticket_id"],
                condition=Q(done_at__isnull=True),
                nulls_distinct=False,
            ),
        ]
        indexes = [
            models.Index(fields=["id"], name="erasure_to_do", condition=Q(done_at__isnull=True)),
            models.Index(
                fields=["id"],
                name="erasure_to_list",
                condition=Q(listed_at__isnull=True, done_at__isnull=False, ticket_id__isnull=True),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"erasure {self.pk}"


class ErasedTicket(models.Model):
    """A ticket whose texts are gone, under which erasure. Rows are only ever added.

    It is what lets the guards of the tables above pass: while it stands for a ticket, the words of
    that ticket may become the mark in their place, and nothing else. It can be added only for a
    pending erasure, without a hold, and when nothing of the ticket is under way (a trigger says so).
    """

    ticket_id = models.BigIntegerField(primary_key=True)
    erasure = models.ForeignKey(Erasure, on_delete=models.PROTECT, related_name="tickets")
    erased_at = models.DateTimeField()

    @override
    def __str__(self) -> str:
        return f"ticket {self.ticket_id} is erased"
