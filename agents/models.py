"""Tickets, their messages, tasks and steps."""

from django.db import models
from django.db.models import F, Q
from typing_extensions import override

from accounts.models import Customer, Shop, User
from agents import casework  # noqa: F401 - models of this app
from tools.models import Operation


class TicketStatus(models.TextChoices):
    OPEN = "open"
    CLOSED = "closed"


class Speaker(models.TextChoices):
    AGENT = "agent"
    STAFF = "staff"


class Author(models.TextChoices):
    CUSTOMER = "customer"
    AGENT = "agent"
    STAFF = "staff"


class TaskStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING_APPROVAL = "waiting_approval"
    WAITING_OUTCOME = "waiting_outcome"
    WAITING_MODEL = "waiting_model"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    HANDED_OFF = "handed_off"


READY = (TaskStatus.QUEUED, TaskStatus.RUNNING)
WAITING = (
    TaskStatus.WAITING_APPROVAL,
    TaskStatus.WAITING_OUTCOME,
    TaskStatus.WAITING_MODEL,
)
LIVE = (*READY, *WAITING)
ENDED = (
    TaskStatus.SUCCEEDED,
    TaskStatus.FAILED,
    TaskStatus.CANCELLED,
    TaskStatus.HANDED_OFF,
)


class Outcome(models.TextChoices):
    """What a succeeded task came to: an answer, a change made, or a change refused."""

    ANSWERED = "answered"
    DONE = "done"
    REFUSED = "refused"


class StepKind(models.TextChoices):
    MODEL = "model"
    TOOL = "tool"
    HAND_OFF = "hand_off"


class StepStatus(models.TextChoices):
    PLANNED = "planned"
    STARTED = "started"
    WAITING = "waiting"
    FINISHED = "finished"


class Ticket(models.Model):
    """One customer's case. `version` rises with every change of it; `last_seq` numbers messages."""

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="+")
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="tickets")
    status = models.CharField(
        max_length=10, choices=TicketStatus.choices, default=TicketStatus.OPEN
    )
    speaker = models.CharField(max_length=10, choices=Speaker.choices, default=Speaker.AGENT)
    assigned_to = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    subject = models.CharField(max_length=200)
    # The language tag that the customer reads it in, "de-AT"; empty for the customer's own.
    locale = models.CharField(max_length=20, blank=True, default="", db_default="")
    version = models.PositiveIntegerField(default=1)
    last_seq = models.PositiveIntegerField(default=0)
    opened_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    # The idempotency key of the closure that closed it; empty when staff did.
    closed_by = models.CharField(max_length=80, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="ticket_status_valid", condition=Q(status__in=TicketStatus.values)
            ),
            models.CheckConstraint(
                name="ticket_speaker_valid", condition=Q(speaker__in=Speaker.values)
            ),
            models.CheckConstraint(
                name="ticket_closed_has_time",
                condition=Q(status=TicketStatus.CLOSED, closed_at__isnull=False)
                | Q(status=TicketStatus.OPEN, closed_at__isnull=True),
            ),
        ]
        indexes = [
            models.Index(fields=["shop", "-updated_at"], name="ticket_inbox"),
            models.Index(fields=["customer", "-updated_at"], name="ticket_of_customer"),
        ]

    @override
    def __str__(self) -> str:
        return f"#{self.pk} {self.subject}"

    @property
    def spoken(self) -> str:
        """The locale in which code speaks to its customer."""
        return self.locale or self.customer.locale


class Task(models.Model):
    """One request being worked on inside a ticket. It owns its budgets and its step log.

    `epoch` is the fencing token: every claim raises it, and a write under an older one changes no
    row. `lease_until`, `wake_at` and `expires_at` are judged by the database's clock alone. Tokens
    are tokens, costs are millionths of a US dollar, active time is milliseconds.
    """

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="+")
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="+")
    ticket = models.ForeignKey(Ticket, on_delete=models.PROTECT, related_name="tasks")
    agent = models.CharField(max_length=40, default="support")
    workflow = models.CharField(max_length=40, blank=True)
    status = models.CharField(max_length=20, choices=TaskStatus.choices, default=TaskStatus.QUEUED)
    outcome = models.CharField(max_length=20, choices=Outcome.choices, blank=True)
    reason = models.CharField(max_length=200, blank=True)
    opening_seq = models.PositiveIntegerField()
    prompt_version = models.CharField(max_length=20)
    model = models.CharField(max_length=80)
    # The change that it waits for, or waited for last.
    operation = models.ForeignKey(Operation, null=True, on_delete=models.PROTECT, related_name="+")

    epoch = models.BigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    wake_at = models.DateTimeField(null=True)

    steps_planned = models.PositiveIntegerField(default=0)
    max_steps = models.PositiveIntegerField()
    tokens_spent = models.BigIntegerField(default=0)
    tokens_reserved = models.BigIntegerField(default=0)
    max_tokens = models.BigIntegerField()
    cost_spent = models.BigIntegerField(default=0)
    cost_reserved = models.BigIntegerField(default=0)
    max_cost = models.BigIntegerField()
    active_ms = models.BigIntegerField(default=0)
    max_active_ms = models.BigIntegerField()

    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    # W3C trace contexts (agents.telemetry): where it began, and where it goes on since it last waited.
    traceparent = models.CharField(max_length=55, blank=True, default="", db_default="")
    traceparent_resumed = models.CharField(max_length=55, blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="task_status_valid", condition=Q(status__in=TaskStatus.values)
            ),
            models.CheckConstraint(
                name="task_outcome_valid",
                condition=Q(status=TaskStatus.SUCCEEDED, outcome__in=Outcome.values)
                | (~Q(status=TaskStatus.SUCCEEDED) & Q(outcome="")),
            ),
            models.CheckConstraint(
                name="task_ended_has_time",
                condition=Q(status__in=ENDED, finished_at__isnull=False)
                | Q(status__in=LIVE, finished_at__isnull=True),
            ),
            models.CheckConstraint(
                name="task_lease_only_while_running",
                condition=Q(status=TaskStatus.RUNNING) | Q(lease_until__isnull=True),
            ),
            models.CheckConstraint(
                name="task_waits_for_an_operation",
                condition=~Q(status__in=[TaskStatus.WAITING_APPROVAL, TaskStatus.WAITING_OUTCOME])
                | Q(operation__isnull=False),
            ),
            models.CheckConstraint(
                name="task_steps_within_cap",
                condition=Q(steps_planned__lte=F("max_steps")),
            ),
            models.CheckConstraint(
                name="task_tokens_within_cap",
                condition=Q(
                    tokens_reserved__gte=0,
                    tokens_spent__gte=0,
                    max_tokens__gte=F("tokens_spent") + F("tokens_reserved"),
                ),
            ),
            models.CheckConstraint(
                name="task_cost_within_cap",
                condition=Q(
                    cost_reserved__gte=0,
                    cost_spent__gte=0,
                    max_cost__gte=F("cost_spent") + F("cost_reserved"),
                ),
            ),
            models.CheckConstraint(
                name="task_ended_reserves_nothing",
                condition=Q(status__in=LIVE) | Q(tokens_reserved=0, cost_reserved=0),
            ),
            models.UniqueConstraint(
                name="task_one_live_per_ticket", fields=["ticket"], condition=Q(status__in=LIVE)
            ),
        ]
        indexes = [
            # The sweep: tasks that a lost message may have left behind.
            models.Index(fields=["lease_until"], name="task_ready", condition=Q(status__in=READY)),
            models.Index(
                fields=["wake_at"],
                name="task_waking",
                condition=Q(status__in=WAITING),
            ),
            models.Index(fields=["customer", "created_at"], name="task_admission"),
            models.Index(fields=["operation"], name="task_operation"),
        ]

    @override
    def __str__(self) -> str:
        return f"task-{self.pk}"

    @property
    def is_live(self) -> bool:
        return self.status in LIVE


class Message(models.Model):
    """What somebody said in a ticket. Text is data: it decides nothing by itself."""

    ticket = models.ForeignKey(Ticket, on_delete=models.PROTECT, related_name="messages")
    seq = models.PositiveIntegerField()
    author = models.CharField(max_length=10, choices=Author.choices)
    author_name = models.CharField(max_length=120, blank=True)
    text = models.TextField(max_length=8000)
    task = models.ForeignKey(Task, null=True, on_delete=models.PROTECT, related_name="messages")
    client_message_id = models.CharField(max_length=80, blank=True)
    is_template = models.BooleanField(default=False)
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="message_numbered_once", fields=["ticket", "seq"]),
            models.UniqueConstraint(
                name="message_client_id_once",
                fields=["ticket", "client_message_id"],
                condition=~Q(client_message_id=""),
            ),
            models.CheckConstraint(
                name="message_author_valid", condition=Q(author__in=Author.values)
            ),
        ]
        ordering = ["seq"]

    @override
    def __str__(self) -> str:
        return f"{self.ticket_id}/{self.seq} {self.author}"


class Step(models.Model):
    """One model call, tool call or hand-off of a task, numbered 1..n with no gap.

    Saved before it runs (`planned`, then `started`) and after (`finished`); immutable then.
    `heard_seq` is the last message of the ticket that a model call was shown.
    """

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="steps")
    n = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=StepKind.choices)
    status = models.CharField(max_length=10, choices=StepStatus.choices, default=StepStatus.PLANNED)
    tool = models.CharField(max_length=64, blank=True)
    call_id = models.CharField(max_length=80, blank=True)
    arguments = models.TextField(blank=True)
    result = models.JSONField(null=True)
    verdict = models.CharField(max_length=200, blank=True)
    error = models.CharField(max_length=80, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    # Tries whose worker was never heard of again.
    lost = models.PositiveSmallIntegerField(default=0)
    heard_seq = models.PositiveIntegerField(null=True)
    operation = models.ForeignKey(Operation, null=True, on_delete=models.PROTECT, related_name="+")
    prompt_version = models.CharField(max_length=20, blank=True)
    model = models.CharField(max_length=80, blank=True)
    tokens_in = models.PositiveIntegerField(default=0)
    tokens_cached = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField(default=0)
    cost = models.BigIntegerField(default=0)
    tokens_reserved = models.PositiveIntegerField(default=0)
    cost_reserved = models.BigIntegerField(default=0)
    # The shop's day on which the reservation was made, and on whose rows it is settled.
    budget_day = models.DateField(null=True)
    # What a worker has to be able to do to run it (agents.abilities); with nothing said, any will do.
    needs = models.CharField(max_length=200, blank=True, default="", db_default="")
    planned_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="step_numbered_once", fields=["task", "n"]),
            models.CheckConstraint(name="step_kind_valid", condition=Q(kind__in=StepKind.values)),
            models.CheckConstraint(
                name="step_status_valid", condition=Q(status__in=StepStatus.values)
            ),
            models.CheckConstraint(name="step_counts_from_one", condition=Q(n__gte=1)),
            models.CheckConstraint(
                name="step_finished_has_result_and_time",
                condition=Q(
                    status=StepStatus.FINISHED, finished_at__isnull=False, result__isnull=False
                )
                | (~Q(status=StepStatus.FINISHED) & Q(finished_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="step_waits_for_an_operation",
                condition=~Q(status=StepStatus.WAITING) | Q(operation__isnull=False),
            ),
        ]
        ordering = ["n"]

    @override
    def __str__(self) -> str:
        return f"task-{self.task_id}-step-{self.n}"


class DayBudget(models.Model):
    """What a shop, or one customer of it, may spend on the model in one day of the shop's calendar.

    Without a customer it is the whole shop's. A reservation is settled on the row it was made on,
    so midnight refills nothing that is running.
    """

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="+")
    customer = models.ForeignKey(Customer, null=True, on_delete=models.PROTECT, related_name="+")
    day = models.DateField()
    tokens_spent = models.BigIntegerField(default=0)
    tokens_reserved = models.BigIntegerField(default=0)
    max_tokens = models.BigIntegerField()
    cost_spent = models.BigIntegerField(default=0)
    cost_reserved = models.BigIntegerField(default=0)
    max_cost = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="day_budget_one_row",
                fields=["shop", "customer", "day"],
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                name="day_budget_tokens_within_cap",
                condition=Q(
                    tokens_reserved__gte=0,
                    tokens_spent__gte=0,
                    max_tokens__gte=F("tokens_spent") + F("tokens_reserved"),
                ),
            ),
            models.CheckConstraint(
                name="day_budget_cost_within_cap",
                condition=Q(
                    cost_reserved__gte=0,
                    cost_spent__gte=0,
                    max_cost__gte=F("cost_spent") + F("cost_reserved"),
                ),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.day} of {self.customer_id or 'the shop'}"


class IdempotencyRecord(models.Model):
    """The first answer to a request that a client may send again."""

    scope = models.CharField(max_length=120)
    key = models.CharField(max_length=255)
    request_digest = models.CharField(max_length=64)
    status_code = models.PositiveSmallIntegerField(null=True)
    response = models.JSONField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="idempotency_key_once_per_scope", fields=["scope", "key"]),
            models.CheckConstraint(
                name="idempotency_answer_whole",
                condition=Q(status_code__isnull=True, response__isnull=True)
                | Q(status_code__isnull=False, response__isnull=False),
            ),
        ]
        indexes = [models.Index(fields=["created_at"], name="idempotency_age")]

    @override
    def __str__(self) -> str:
        return f"{self.scope}/{self.key}"
