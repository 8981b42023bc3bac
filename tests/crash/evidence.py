"""Everything that an oracle may look at: our rows about one customer, and what the outside shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email import message_from_bytes, policy
from typing import Any

from accounts.models import Customer
from agents.models import DayBudget, Message, Step, Task, Ticket
from approvals.models import Approval
from audit.models import Event
from tests.postbox import Postbox
from tests.stubs import RunningShop
from tools.models import Attempt, Observation, Operation, Switch
from tools.seal import open_seal


@dataclass(frozen=True)
class Mail:
    """An e-mail that the mail server took."""

    message_id: str
    recipients: tuple[str, ...]
    subject: str
    text: str


@dataclass
class Evidence:
    """One customer's case as our rows tell it, beside what really happened outside."""

    customer: Customer
    tickets: Sequence[Ticket]
    tasks: Sequence[Task]
    steps: Sequence[Step]
    operations: Sequence[Operation]
    attempts: Sequence[Attempt]
    observations: Sequence[Observation]
    approvals: Sequence[Approval]
    messages: Sequence[Message]
    events: Sequence[Event]
    days: Sequence[DayBudget]
    switches: Sequence[Switch]
    effects: Sequence[dict[str, Any]]
    sends: Sequence[dict[str, Any]]
    mails: Sequence[Mail]
    order: Callable[[str], dict[str, Any]]
    # Calls that the model's server has seen for this customer alone; None when not known.
    model_calls: Sequence[dict[str, Any]] | None = None

    def sealed(self, operation: Operation) -> dict[str, Any]:
        return open_seal(operation.seal, operation.digest)

    def effects_of(self, operation: Operation) -> list[dict[str, Any]]:
        """What the shop did under this operation's key."""
        key = operation.idempotency_key
        return [effect for effect in self.effects if effect["idempotency_key"] == key]

    def mails_of(self, operation: Operation) -> list[Mail]:
        key = operation.idempotency_key
        return [mail for mail in self.mails if mail.message_id.startswith(f"<{key}@")]

    def happened(self, operation: Operation) -> int:
        """How often the operation took effect outside."""
        return len(self.effects_of(operation)) + len(self.mails_of(operation))

    def attempts_of(self, operation: Operation) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.operation_id == operation.pk]

    def approvals_of(self, operation: Operation) -> list[Approval]:
        return [approval for approval in self.approvals if approval.operation_id == operation.pk]

    def events_about(self, subject: str) -> list[str]:
        return [event.action for event in self.events if event.subject == subject]


def gather(
    customer: Customer,
    shop: RunningShop,
    postbox: Postbox | None = None,
    model_calls: Sequence[dict[str, Any]] | None = None,
) -> Evidence:
    """Read all there is about a customer, now."""
    ledger = shop.ledger()
    mine = customer.external_id
    operations = list(Operation.objects.filter(customer=customer).order_by("id"))
    tasks = list(Task.objects.filter(customer=customer).order_by("id"))
    return Evidence(
        customer=customer,
        tickets=list(Ticket.objects.filter(customer=customer).order_by("id")),
        tasks=tasks,
        steps=list(Step.objects.filter(task__in=tasks).order_by("task_id", "n")),
        operations=operations,
        attempts=list(Attempt.objects.filter(operation__in=operations).order_by("id")),
        observations=list(Observation.objects.filter(operation__in=operations).order_by("id")),
        approvals=list(Approval.objects.filter(operation__in=operations).order_by("id")),
        messages=list(Message.objects.filter(ticket__customer=customer).order_by("ticket", "seq")),
        events=list(Event.objects.filter(shop_id=customer.shop_id, customer=mine).order_by("id")),
        days=list(DayBudget.objects.filter(customer=customer)),
        switches=list(Switch.objects.filter(is_off=True)),
        effects=[effect for effect in ledger["effects"] if effect["customer"] == mine],
        sends=[
            call
            for call in ledger["calls"]
            if call["customer"] == mine
            and call["method"] != "GET"
            and call["path"].startswith("/api/")
        ],
        mails=[] if postbox is None else [_mail(taken) for taken in postbox.taken],
        order=shop.order,
        model_calls=model_calls,
    )


def _mail(envelope: Any) -> Mail:
    message = message_from_bytes(envelope.content, policy=policy.default)
    body = message.get_body()
    assert body is not None
    return Mail(
        message_id=str(message["Message-ID"]),
        recipients=tuple(envelope.rcpt_tos),
        subject=str(message["Subject"]),
        text=body.get_content().replace("\r\n", "\n"),
    )
