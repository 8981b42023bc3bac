"""What customers, staff and workers do with tickets and tasks."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils.text import Truncator

from accounts.models import Customer, Shop, User
from agents import (
    dispatch,
    engine,
    events,
    prompting,
    prompts,
    record,
    runner,
    store,
    telling,
    workflows,
)
from agents.models import (
    LIVE,
    Author,
    Message,
    Speaker,
    StepKind,
    Task,
    Ticket,
    TicketStatus,
)
from agents.moves import CallModel, CallTool
from agents.store import StaleClaimError
from approvals import services as approvals
from audit import services as audit
from tools.models import UNSENT, State
from tools.operations import OperationStateError
from tools.text import clean

MAX_MESSAGE = 4000
RETRY_SECONDS = 2.0

logger = logging.getLogger(__name__)


class TicketNotFoundError(Exception):
    """There is no such ticket for this customer, whether or not somebody else has one."""


class TicketClosedError(Exception):
    """The ticket is closed; a new message opens a new one."""


class TooManyOpenTasksError(Exception):
    """The customer has as many tasks under way as the shop allows. `task` is the newest of them."""

    def __init__(self, task: Task) -> None:
        super().__init__("too many open tasks")
        self.task = task


class TooManyRequestsError(Exception):
    """The customer asks faster than the shop allows. `retry_after` is in seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("too many requests")
        self.retry_after = retry_after


class MessageReusedError(Exception):
    """The client's message id was used before, with another text."""


@dataclass(frozen=True)
class Submitted:
    """Where a message went. `is_new` tells whether it opened a task; with `task` None staff have it."""

    ticket: Ticket
    message: Message
    task: Task | None
    is_new: bool


@transaction.atomic
def submit(
    *,
    customer_id: int,
    text: str,
    client_message_id: str,
    now: datetime,
    ticket_id: int | None = None,
    opens_new_ticket: bool = False,
    agent: str = "support",
) -> Submitted:
    """Take a customer's message: it joins the ticket's live task, or opens a new one.

    Without a ticket it goes to the customer's newest open one that the agent still speaks in. The
    same client_message_id again gives what came of the first. Raises TicketNotFoundError,
    TicketClosedError, TooManyOpenTasksError, TooManyRequestsError or MessageReusedError; nothing is
    written then.
    """
    # One customer's submissions pass one at a time, so limits and ids are judged on settled rows.
    customer = (
        Customer.objects.select_for_update(of=("self",)).select_related("shop").get(pk=customer_id)
    )
    known = _submitted_before(customer, client_message_id, text)
    if known is not None:
        return known
    ticket = None if opens_new_ticket else _ticket_for(customer, ticket_id)
    live = _live_task(ticket)
    if live is None and (ticket is None or ticket.speaker == Speaker.AGENT):
        _admit(customer, now)
    if ticket is None:
        ticket = _open_ticket(customer, text, now)
    message = store.add_message(
        ticket,
        author=Author.CUSTOMER,
        text=text,
        now=now,
        task=live,
        client_message_id=client_message_id,
    )
    _record_ticket(ticket, "message.received", actor=customer.actor, now=now)
    if live is not None or ticket.speaker == Speaker.STAFF:
        _ring_after_commit(ticket.pk, live)
        return Submitted(ticket, message, live, is_new=False)
    task = _open_task(customer, ticket, message, agent, now)
    return Submitted(ticket, message, task, is_new=True)


def advance(*, task_ids: Sequence[int]) -> None:
    """Run one step of each task that is ready; whatever is not is left alone.

    Safe to call twice, late, or beside itself: the claim decides.
    """
    for task_id in task_ids:
        for held in store.claim([task_id]):
            events.ring(held.task.pk, held.task.ticket_id)
            _advance_one(held)


def _advance_one(held: store.Claim) -> None:
    try:
        record.record(held, runner.run(held))
    except StaleClaimError:
        logger.info("task %s is held by another worker now", held.task.pk)
    except Exception:
        # A fault of ours must not hold the task until its lease runs out.
        logger.exception("step %s failed", held.step)
        store.release(held, seconds=RETRY_SECONDS * held.step.attempts)


def sweep() -> int:
    """Wake every task that is ready, whatever became of its message. Returns how many."""
    ready = store.find_ready()
    for task_id in ready:
        dispatch.advance(task_id)
    return len(ready)


@transaction.atomic
def cancel(*, task_id: int, by: str, now: datetime, reason: str = "cancelled_by_customer") -> Task:
    """Stop a task. What is already being sent is not interrupted; the task ends after it.

    Cancelling an ended task changes nothing and returns it as it is.
    """
    task = (
        Task.objects.select_for_update(of=("self",))
        .select_related("shop", "customer__shop", "ticket")
        .get(pk=task_id)
    )
    if not task.is_live:
        return task
    if task.cancel_requested_at is None:
        task.cancel_requested_at = now
        task.reason = reason
        task.save(update_fields=["cancel_requested_at", "reason"])
        _record_task(task, "cancel_requested", actor=by, now=now)
    if task.operation is not None and task.operation.state in UNSENT:
        _withdraw(task, by)
    if _is_between_steps(task):
        _end_now(task, now)
    dispatch.advance(task.pk)
    _ring_after_commit(task.ticket_id, task)
    return task


@transaction.atomic
def take_over(*, ticket_id: int, user: User, now: datetime) -> Ticket:
    """A member of staff becomes the one who speaks; the agent's live task ends as handed off."""
    ticket = Ticket.objects.get(pk=ticket_id)
    live = _live_task(ticket)
    if live is not None:
        cancel(task_id=live.pk, by=user.actor, now=now, reason=telling.TAKEN_OVER)
    ticket = Ticket.objects.select_for_update().get(pk=ticket_id)
    ticket.speaker = Speaker.STAFF
    ticket.assigned_to = user
    ticket.version += 1
    ticket.updated_at = now
    ticket.save(update_fields=["speaker", "assigned_to", "version", "updated_at"])
    _record_ticket(ticket, "ticket.taken_over", actor=user.actor, now=now)
    _ring_after_commit(ticket.pk, live)
    return ticket


@transaction.atomic
def give_back(*, ticket_id: int, user: User, now: datetime) -> Ticket:
    """The agent speaks again: the customer's next message opens a task."""
    ticket = Ticket.objects.select_for_update().get(pk=ticket_id)
    ticket.speaker = Speaker.AGENT
    ticket.assigned_to = None
    ticket.version += 1
    ticket.updated_at = now
    ticket.save(update_fields=["speaker", "assigned_to", "version", "updated_at"])
    _record_ticket(ticket, "ticket.given_back", actor=user.actor, now=now)
    _ring_after_commit(ticket.pk, None)
    return ticket


class AgentSpeaksError(Exception):
    """Staff may write to a customer only after taking the ticket over."""


@transaction.atomic
def reply_as_staff(*, ticket_id: int, user: User, text: str, now: datetime) -> Message:
    """Write to the customer in a ticket that staff have taken over. Raises AgentSpeaksError."""
    ticket = Ticket.objects.select_for_update().get(pk=ticket_id)
    if ticket.speaker != Speaker.STAFF:
        raise AgentSpeaksError(ticket.pk)
    message = store.add_message(
        ticket,
        author=Author.STAFF,
        text=clean(text, MAX_MESSAGE),
        now=now,
        author_name=user.get_full_name() or user.get_username(),
    )
    _record_ticket(ticket, "message.sent", actor=user.actor, now=now)
    _ring_after_commit(ticket.pk, None)
    return message


def ask_for_person(*, customer_id: int, ticket_id: int | None, now: datetime) -> Submitted:
    """The customer's "talk to a person" button: always there, needs no model."""
    return submit(
        customer_id=customer_id,
        text="I'd like to talk to a person, please.",
        client_message_id=f"person-{hashlib.sha256(f'{ticket_id}{now}'.encode()).hexdigest()[:24]}",
        now=now,
        ticket_id=ticket_id,
    )


def _submitted_before(customer: Customer, client_message_id: str, text: str) -> Submitted | None:
    message = (
        Message.objects.filter(ticket__customer=customer, client_message_id=client_message_id)
        .exclude(client_message_id="")
        .select_related("ticket", "task")
        .first()
    )
    if message is None:
        return None
    if message.text != text:
        raise MessageReusedError
    opened = Task.objects.filter(ticket=message.ticket, opening_seq=message.seq).first()
    return Submitted(message.ticket, message, opened or message.task, is_new=False)


def _ticket_for(customer: Customer, ticket_id: int | None) -> Ticket | None:
    tickets = Ticket.objects.filter(customer=customer)
    if ticket_id is None:
        return (
            tickets.filter(status=TicketStatus.OPEN, speaker=Speaker.AGENT)
            .order_by("-updated_at", "-pk")
            .first()
        )
    ticket = tickets.filter(pk=ticket_id).first()
    if ticket is None:
        raise TicketNotFoundError(ticket_id)
    if ticket.status == TicketStatus.CLOSED:
        raise TicketClosedError(ticket_id)
    return ticket


def _live_task(ticket: Ticket | None) -> Task | None:
    """The ticket's live task, locked: a record under way ends before or after the message."""
    if ticket is None:
        return None
    return Task.objects.select_for_update().filter(ticket=ticket, status__in=LIVE).first()


def _admit(customer: Customer, now: datetime) -> None:
    """Raise when this customer has too much under way, or asks too fast."""
    shop = customer.shop
    live = Task.objects.filter(customer=customer, status__in=LIVE).order_by("-pk")
    if live.count() >= shop.max_open_tasks_per_customer:
        raise TooManyOpenTasksError(live[0])
    minute = timedelta(minutes=1)
    recent = Task.objects.filter(customer=customer, created_at__gt=now - minute)
    if recent.count() >= shop.tasks_per_minute_per_customer:
        oldest = recent.order_by("created_at").values_list("created_at", flat=True)[0]
        raise TooManyRequestsError(max(1, int((oldest + minute - now).total_seconds()) + 1))


def _open_ticket(customer: Customer, text: str, now: datetime) -> Ticket:
    ticket = Ticket.objects.create(
        shop=customer.shop,
        customer=customer,
        subject=Truncator(clean(text, 200)).chars(120),
        opened_at=now,
        updated_at=now,
    )
    _record_ticket(ticket, "ticket.opened", actor=customer.actor, now=now)
    return ticket


def _open_task(
    customer: Customer, ticket: Ticket, message: Message, agent: str, now: datetime
) -> Task:
    shop = customer.shop
    task = Task(
        shop=shop,
        customer=customer,
        ticket=ticket,
        agent=agent,
        workflow=workflows.match(message.text),
        opening_seq=message.seq,
        prompt_version=prompts.current("support"),
        model=settings.MODEL,
        created_at=now,
        **_caps(shop),
    )
    task.save()
    _plan_first(task, message.text, now)
    _record_task(task, "queued", actor=customer.actor, now=now)
    dispatch.advance(task.pk)
    _ring_after_commit(ticket.pk, task)
    return task


def _caps(shop: Shop) -> dict[str, int]:
    return {
        "max_steps": shop.max_steps,
        "max_tokens": shop.max_tokens,
        "max_cost": shop.max_cost,
        "max_active_ms": shop.max_active_seconds * 1000,
    }


def _plan_first(task: Task, request: str, now: datetime) -> None:
    """Plan step 1 as the engine says; with room for one step only there is just the hand-off."""
    move = engine.next_move(store.log_of(task, request))
    if isinstance(move, CallTool):
        store.plan(
            task,
            kind=StepKind.TOOL,
            tool=move.name,
            arguments=move.arguments,
            call_id=move.call_id,
            now=now,
        )
    else:
        is_phrasing = isinstance(move, CallModel) and move.phrase_only
        arguments = prompting.PHRASE_ONLY if is_phrasing else ""
        store.plan(task, kind=StepKind.MODEL, arguments=arguments, now=now)
    task.save(update_fields=["steps_planned"])


def _withdraw(task: Task, by: str) -> None:
    if task.operation_id is None:
        return
    try:
        approvals.withdraw(operation_id=task.operation_id, by=by, reason="task cancelled")
    except OperationStateError:
        logger.info("task %s: its operation is being sent already", task.pk)


def _is_between_steps(task: Task) -> bool:
    """No worker holds it, and no send of it is unresolved."""
    if task.lease_until is not None:
        return False
    operation = task.operation
    if operation is None:
        return True
    operation = type(operation).objects.get(pk=operation.pk)
    return operation.is_final or operation.state not in {
        State.SENDING,
        State.UNKNOWN,
        State.NEEDS_PERSON,
    }


def _end_now(task: Task, now: datetime) -> None:
    telling.end_cancelled(task, now=now)
    task.save(
        update_fields=["status", "outcome", "reason", "lease_until", "wake_at", "finished_at"]
    )


def _ring_after_commit(ticket_id: int, task: Task | None) -> None:
    transaction.on_commit(lambda: events.ring(task.pk if task else 0, ticket_id))


def _record_ticket(ticket: Ticket, action: str, *, actor: str, now: datetime) -> None:
    audit.record(
        actor=actor,
        action=action,
        subject=f"ticket:{ticket.pk}",
        at=now,
        shop_id=ticket.shop_id,
        ticket_id=ticket.pk,
        customer=ticket.customer.external_id,
    )


def _record_task(task: Task, what: str, *, actor: str, now: datetime) -> None:
    audit.record(
        actor=actor,
        action=f"task.{what}",
        subject=f"task:{task.pk}",
        at=now,
        shop_id=task.shop_id,
        task_id=task.pk,
        ticket_id=task.ticket_id,
        customer=task.customer.external_id,
        data={"workflow": task.workflow, "model": task.model, "prompt": task.prompt_version},
    )
