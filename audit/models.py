"""What happened: events, the personal text beside them, and the seals that chain them.

Rows of Event, PersonalText and Seal are only ever inserted; triggers (migration 0001) refuse UPDATE,
DELETE and TRUNCATE. Write through `audit.services`; a row saved any other way has no true digest.
"""

from __future__ import annotations

from typing import Any, NoReturn

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.db.models.lookups import Exact
from typing_extensions import override

from audit.canonical import DIGEST_BYTES, SealContent, rfc3339
from audit.export_models import Export as Export
from audit.functions import Cardinality, OctetLength

ACTION_PATTERN = r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$"
ACTOR_PATTERN = r"^[a-z][a-z0-9_.-]*(:.+)?$"
SUBJECT_PATTERN = r"^[a-z][a-z0-9_]*:.+$"
NAME_LENGTH = 200


class AppendOnlyError(TypeError):
    """The trail is written by `audit.services` and `audit.sealer` alone, and never changed."""


class AppendOnlyModel(models.Model):
    """A row that Python code cannot save or delete by itself."""

    class Meta:
        abstract = True

    @override
    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnlyError(f"{type(self).__name__} rows are written by the audit services")

    @override
    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnlyError(f"{type(self).__name__} rows are never deleted")


class Event(AppendOnlyModel):
    """One thing that happened, written in the transaction that made it happen.

    Shop, task and ticket are plain numbers and the people plain text: no cascade reaches this table.
    """

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    shop_id = models.BigIntegerField(null=True)
    actor = models.CharField(max_length=NAME_LENGTH)
    action = models.CharField(max_length=100)
    subject = models.CharField(max_length=NAME_LENGTH)
    task_id = models.BigIntegerField(null=True)
    ticket_id = models.BigIntegerField(null=True)
    customer = models.CharField(max_length=NAME_LENGTH, blank=True)
    order_id = models.CharField(max_length=NAME_LENGTH, blank=True)
    tool = models.CharField(max_length=100, blank=True)
    outcome = models.CharField(max_length=100, blank=True)
    amount = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, blank=True)
    data = models.JSONField(default=dict)
    personal_digest = models.BinaryField(null=True)
    digest = models.BinaryField()

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(F("shop_id"), F("id").desc(), name="audit_event_shop"),
            models.Index(
                fields=["task_id", "id"],
                name="audit_event_task",
                condition=Q(task_id__isnull=False),
            ),
            models.Index(
                fields=["ticket_id", "id"],
                name="audit_event_ticket",
                condition=Q(ticket_id__isnull=False),
            ),
            models.Index(
                fields=["shop_id", "order_id", "id"],
                name="audit_event_order",
                condition=~Q(order_id=""),
            ),
            models.Index(
                fields=["shop_id", "customer", "id"],
                name="audit_event_customer",
                condition=~Q(customer=""),
            ),
            models.Index(fields=["shop_id", "action", "id"], name="audit_event_action"),
            # Rows lie nearly in the order of time, so a few kilobytes find any stretch of it.
            BrinIndex(fields=["at"], name="audit_event_at", autosummarize=True),
        ]
        constraints = [
            models.CheckConstraint(
                name="audit_event_action_shape", condition=Q(action__regex=ACTION_PATTERN)
            ),
            models.CheckConstraint(
                name="audit_event_actor_shape", condition=Q(actor__regex=ACTOR_PATTERN)
            ),
            models.CheckConstraint(
                name="audit_event_subject_shape", condition=Q(subject__regex=SUBJECT_PATTERN)
            ),
            models.CheckConstraint(
                name="audit_event_amount_has_currency",
                condition=Q(amount__isnull=True, currency="")
                | Q(amount__isnull=False) & ~Q(currency=""),
            ),
            models.CheckConstraint(
                name="audit_event_digest_length",
                condition=Exact(OctetLength("digest"), DIGEST_BYTES),
            ),
            models.CheckConstraint(
                name="audit_event_personal_digest_length",
                condition=Q(personal_digest__isnull=True)
                | Q(Exact(OctetLength("personal_digest"), DIGEST_BYTES)),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"event {self.pk} ({self.action}, {rfc3339(self.at)})"

    def content(self) -> dict[str, object]:
        """Every column but the id and the digest, as the JSON object that is hashed."""
        return {
            "at": rfc3339(self.at),
            "shop_id": self.shop_id,
            "actor": self.actor,
            "action": self.action,
            "subject": self.subject,
            "task_id": self.task_id,
            "ticket_id": self.ticket_id,
            "customer": self.customer,
            "order_id": self.order_id,
            "tool": self.tool,
            "outcome": self.outcome,
            "amount": self.amount,
            "currency": self.currency,
            "data": self.data,
            "personal_digest": None
            if self.personal_digest is None
            else bytes(self.personal_digest).hex(),
        }


class CustomerKey(models.Model):
    """The key that one customer's personal text is encrypted with.

    Destroying it (`audit.services.erase_customer`) is how that text is erased. A customer who comes
    back afterwards gets a new key.
    """

    id = models.BigAutoField(primary_key=True)
    shop_id = models.BigIntegerField()
    customer = models.CharField(max_length=NAME_LENGTH)
    wrapped_key = models.BinaryField()
    created_at = models.DateTimeField(db_default=Now())
    destroyed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "audit_customer_key"
        constraints = [
            models.UniqueConstraint(
                name="audit_customer_key_one_live",
                fields=["shop_id", "customer"],
                condition=Q(destroyed_at__isnull=True),
            ),
            models.CheckConstraint(
                name="audit_customer_key_destroyed_is_empty",
                condition=Q(destroyed_at__isnull=True) & ~Q(Exact(OctetLength("wrapped_key"), 0))
                | Q(destroyed_at__isnull=False) & Q(Exact(OctetLength("wrapped_key"), 0)),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"key {self.pk} of customer {self.customer} in shop {self.shop_id}"


class PersonalText(AppendOnlyModel):
    """A person's words beside the chain, readable only while the customer's key exists."""

    event = models.OneToOneField(
        Event, on_delete=models.PROTECT, primary_key=True, related_name="personal"
    )
    key = models.ForeignKey(CustomerKey, on_delete=models.PROTECT, related_name="+")
    ciphertext = models.BinaryField()

    class Meta:
        db_table = "audit_personal_text"

    @override
    def __str__(self) -> str:
        return f"personal text of event {self.event_id}"


class Seal(AppendOnlyModel):
    """A signed batch of events: one link of the chain.

    `leaves` repeats the digest of each event in the tree's order, so that a changed row is named even
    when its own digest was recomputed.
    """

    id = models.BigIntegerField(primary_key=True)  # 1..n without a gap
    previous = models.BinaryField(unique=True)
    event_ids = ArrayField(models.BigIntegerField())
    leaves = models.BinaryField()
    count = models.IntegerField()
    root = models.BinaryField()
    signed_at = models.DateTimeField()
    key_id = models.CharField(max_length=16)
    signature = models.BinaryField()
    digest = models.BinaryField(unique=True)

    class Meta:
        constraints = [
            models.CheckConstraint(name="audit_seal_number_positive", condition=Q(id__gt=0)),
            models.CheckConstraint(
                name="audit_seal_counts_agree",
                condition=Q(count__gt=0)
                & Q(Exact(Cardinality("event_ids"), F("count")))
                & Q(Exact(OctetLength("leaves"), F("count") * DIGEST_BYTES)),
            ),
            models.CheckConstraint(
                name="audit_seal_lengths",
                condition=Q(Exact(OctetLength("previous"), DIGEST_BYTES))
                & Q(Exact(OctetLength("root"), DIGEST_BYTES))
                & Q(Exact(OctetLength("digest"), DIGEST_BYTES))
                & Q(Exact(OctetLength("signature"), 64)),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"seal {self.pk}"

    def content(self) -> SealContent:
        """What the digest covers."""
        return SealContent(
            number=self.pk,
            previous=bytes(self.previous),
            event_ids=self.event_ids,
            root=bytes(self.root),
            signed_at=self.signed_at,
            key_id=self.key_id,
        )


class Unsealed(models.Model):
    """The sealer's inbox: a trigger puts each new event's id here, in the same transaction."""

    event_id = models.BigIntegerField(primary_key=True)

    class Meta:
        db_table = "audit_unsealed"

    @override
    def __str__(self) -> str:
        return f"event {self.event_id} waits for its seal"
