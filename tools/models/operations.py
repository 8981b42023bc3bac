"""Operations: accepted intents to change something."""

from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition
from typing_extensions import override

from accounts.models import Customer, Shop


class Kind(models.TextChoices):
    REFUND = "refund"
    CANCEL = "cancel"
    CHANGE_ADDRESS = "change_address"
    CLOSE_TICKET = "close_ticket"


class State(models.TextChoices):
    AWAITING_APPROVAL = "awaiting_approval"
    APPROVED = "approved"
    SENDING = "sending"
    UNKNOWN = "unknown"
    NEEDS_PERSON = "needs_person"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REJECTED = "rejected"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"


UNSENT = (State.AWAITING_APPROVAL, State.APPROVED)
SENT = (State.SENDING, State.UNKNOWN, State.NEEDS_PERSON)
OPEN = (*UNSENT, *SENT)
FINAL = (
    State.SUCCEEDED,
    State.FAILED,
    State.REJECTED,
    State.EXPIRED,
    State.SUPERSEDED,
    State.CANCELLED,
)
# What an operation may be only after every required role has countersigned.
AUTHORISED = (*SENT, State.SUCCEEDED, State.FAILED)

# Why an operation failed for which nothing was left to do: somebody else came first, says the shop.
ALREADY_DONE = "already_done"

# What is asked about an operation whose end does not fit what the shop says since.
CONTRADICTED = "contradicted"

# Fits BIGINT sums of any realistic day and every JSON reader's exact integers.
MAX_AMOUNT = 10**12


class Operation(models.Model):
    """One accepted intent to change something at the shop.

    Holds the seal (the exact bytes that people see and approve) and the idempotency key, both
    stored before anything is sent and never changed after.
    """

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="+")
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="+")
    # Plain numbers: tasks and tickets live in a layer above.
    ticket_id = models.BigIntegerField()
    task_id = models.BigIntegerField()
    step_n = models.PositiveIntegerField()
    kind = models.CharField(max_length=20, choices=Kind.choices)
    order_id = models.CharField(max_length=64, blank=True)
    state = FSMField(
        choices=State.choices, default=State.AWAITING_APPROVAL, protected=True, max_length=20
    )
    idempotency_key = models.CharField(max_length=80, unique=True)
    # SHA-256 of what was asked (customer, kind, order, lines, amount, destination), so that the
    # same proposal made again is recognised whatever step or ticket it comes from.
    intent = models.CharField(max_length=64)
    seal = models.BinaryField()
    digest = models.CharField(max_length=64)
    amount = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, blank=True)
    required_roles = ArrayField(models.CharField(max_length=20))
    granted_roles = ArrayField(models.CharField(max_length=20), default=list)
    policy_version = models.PositiveIntegerField()
    epoch = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    first_sent_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # The shop asked for fewer calls: nothing is sent or looked up for it before this moment.
    not_before = models.DateTimeField(null=True)
    reference = models.CharField(max_length=120, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    decided_by_role = models.CharField(max_length=20, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(name="operation_kind_valid", condition=Q(kind__in=Kind.values)),
            models.CheckConstraint(
                name="operation_state_valid", condition=Q(state__in=State.values)
            ),
            models.CheckConstraint(
                name="operation_customer_always_asked",
                condition=Q(required_roles__contains=["customer"]),
            ),
            models.CheckConstraint(
                name="operation_second_staff_after_staff",
                condition=~Q(required_roles__contains=["second_staff"])
                | Q(required_roles__contains=["staff"]),
            ),
            models.CheckConstraint(
                name="operation_sent_only_when_granted",
                condition=~Q(state__in=AUTHORISED)
                | Q(granted_roles__contains=models.F("required_roles")),
            ),
            models.CheckConstraint(
                name="operation_approved_means_granted",
                condition=~Q(state=State.APPROVED)
                | Q(granted_roles__contains=models.F("required_roles")),
            ),
            models.CheckConstraint(
                name="operation_amount_valid",
                # A CHECK that comes to NULL passes, so the amount's presence is asked for by name.
                condition=Q(
                    amount__isnull=False,
                    amount__gte=1,
                    amount__lte=MAX_AMOUNT,
                    currency__regex=r"^[A-Z]{3}$",
                )
                | (Q(amount__isnull=True, currency="") & ~Q(kind=Kind.REFUND)),
            ),
            models.CheckConstraint(
                name="operation_sent_has_time",
                condition=~Q(state__in=AUTHORISED) | Q(first_sent_at__isnull=False),
            ),
            models.CheckConstraint(
                name="operation_final_has_time",
                condition=Q(state__in=FINAL, finished_at__isnull=False)
                | (~Q(state__in=FINAL) & Q(finished_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="operation_success_has_reference",
                condition=~Q(state=State.SUCCEEDED) | ~Q(reference=""),
            ),
            models.UniqueConstraint(
                name="operation_one_open_per_order",
                fields=["shop", "order_id"],
                condition=Q(state__in=OPEN) & ~Q(order_id=""),
            ),
            models.UniqueConstraint(
                name="operation_one_open_closure_per_ticket",
                fields=["ticket_id"],
                condition=Q(state__in=OPEN, kind=Kind.CLOSE_TICKET),
            ),
            models.CheckConstraint(
                name="operation_is_about_an_order_or_a_ticket",
                condition=Q(order_id="", kind=Kind.CLOSE_TICKET)
                | (~Q(order_id="") & ~Q(kind=Kind.CLOSE_TICKET)),
            ),
            models.UniqueConstraint(name="operation_one_per_step", fields=["task_id", "step_n"]),
        ]
        indexes = [
            models.Index(fields=["customer", "kind", "created_at"], name="operation_customer_day"),
            models.Index(fields=["ticket_id"], name="operation_ticket"),
            models.Index(
                fields=["expires_at"],
                name="operation_expiring",
                condition=Q(state__in=UNSENT),
            ),
        ]

    @override
    def __str__(self) -> str:
        return self.idempotency_key

    @property
    def is_final(self) -> bool:
        return self.state in FINAL

    @property
    def is_already_done(self) -> bool:
        """Did it fail since, as the shop says, somebody else had done it and nothing was left to do?"""
        return bool(self.state == State.FAILED and self.reason == ALREADY_DONE)

    @property
    def came_back(self) -> bool:
        """Has the money of this refund come back to the shop since? (A read, unless it is at hand.)"""
        return hasattr(self, "reversal")

    @property
    def is_on_its_way(self) -> bool:
        """Has the shop taken this refund as pending, and told no end of it yet? (Reads, like that.)"""
        if self.kind != Kind.REFUND or self.state != State.SUCCEEDED:
            return False
        transit = getattr(self, "transit", None)
        return transit is not None and transit.arrived_at is None and not self.came_back

    @property
    def is_contradicted(self) -> bool:
        """Has it ended unmade, and does evidence say since that it was made? (Reads, like that.)"""
        if not self.is_final or self.state == State.SUCCEEDED:
            return False
        return any(one.kind == CONTRADICTED for one in self.inquiries.all())

    # Transitions set fields and nothing else; operations.py locks, checks, saves and records.

    @transition(field=state, source=State.AWAITING_APPROVAL, target=State.APPROVED)
    def approve(self) -> None: ...

    @transition(field=state, source=State.APPROVED, target=State.SENDING)
    def start(self, *, epoch: int, at: datetime) -> None:
        self.epoch = epoch
        self.first_sent_at = self.first_sent_at or at

    @transition(field=state, source=State.UNKNOWN, target=State.SENDING)
    def start_again(self, *, epoch: int) -> None:
        self.epoch = epoch

    @transition(field=state, source=State.SENDING, target=State.APPROVED)
    def hold_back(self) -> None:
        """Certainly nothing was sent: everything is decided anew at the next try."""
        self.first_sent_at = None

    @transition(field=state, source=SENT, target=State.SUCCEEDED)
    def succeed(self, *, reference: str, at: datetime) -> None:
        self.reference = reference
        self.finished_at = at

    @transition(field=state, source=SENT, target=State.FAILED)
    def fail(self, *, reason: str, at: datetime) -> None:
        self.reason = reason
        self.finished_at = at

    @transition(field=state, source=[State.SENDING, State.UNKNOWN], target=State.UNKNOWN)
    def lose_sight(self, *, reason: str) -> None:
        self.reason = reason

    @transition(field=state, source=[State.SENDING, State.UNKNOWN], target=State.NEEDS_PERSON)
    def need_person(self, *, reason: str) -> None:
        self.reason = reason

    @transition(field=state, source=UNSENT, target=State.REJECTED)
    def reject(self, *, role: str, reason: str, at: datetime) -> None:
        self.decided_by_role = role
        self.reason = reason
        self.finished_at = at

    @transition(field=state, source=UNSENT, target=State.EXPIRED)
    def expire(self, *, reason: str, at: datetime) -> None:
        self.reason = reason
        self.finished_at = at

    @transition(field=state, source=UNSENT, target=State.SUPERSEDED)
    def supersede(self, *, reason: str, at: datetime) -> None:
        self.reason = reason
        self.finished_at = at

    @transition(field=state, source=UNSENT, target=State.CANCELLED)
    def cancel(self, *, reason: str, at: datetime) -> None:
        self.reason = reason
        self.finished_at = at
