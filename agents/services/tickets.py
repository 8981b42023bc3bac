"""Tickets: what customers say, and staff taking over and giving back."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.utils.text import Truncator

from accounts.keeping import apart_from_mark
from accounts.models import Customer, Shop
from agents import (
    dispatch,
    engine,
    forms,
    prompting,
    prompts,
    store,
    telling,
    wording,
    workflows,
)
from agents.cards import hide_cards
from agents.models import (
    LIVE,
    READY,
    Author,
    Message,
    Speaker,
    StepKind,
    Task,
    TaskStatus,
    Ticket,
    TicketStatus,
)
from agents.moves import CallModel, CallTool, Move
from agents.services.tasks import cancel, record_task, ring_after_commit
from audit import services as audit
from tools.clock import database_now
from tools.language import pick
from tools.outages import again_on_collision
from tools.text import clean
from tools.trigger import Point, reach

MAX_MESSAGE = 4000
# What a customer of a busy shop is asked to wait.
BUSY_SECONDS = 10
# The advisory lock's class: "a customer's submissions".
_SUBMISSIONS = 7101
# How the ids of the messages begin that ask for a person.
_WISH = "person-"


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
    """The customer asks faster than allowed, or the whole shop is busy. `retry_after`: seconds."""

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


@again_on_collision
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
    locale: str = "",
    form: CallTool | None = None,
    traceparent: str = "",
) -> Submitted:
    """Take a customer's message: it joins the ticket's live task, or opens a new one.

    Without a ticket it goes to the customer's newest open one that the agent still speaks in. The
    same client_message_id again gives what came of the first. With a `form` (agents.forms) the
    message is that form: it always opens a task, in a ticket of its own where another is under way
    or staff speak. In `locale`, if given, code answers from now on. A new task is told of in the trace
    of `traceparent` (agents.telemetry). Raises TicketNotFoundError,
    TicketClosedError, TooManyOpenTasksError, TooManyRequestsError or MessageReusedError; nothing is
    written then. A card number in the text is hidden before anything keeps it, and they are told.
    """
    take_turns(customer_id)
    taken = hide_cards(text)
    text = apart_from_mark(taken.text)
    if form is not None:
        form = replace(form, arguments=hide_cards(form.arguments).text)
    customer = Customer.objects.select_related("shop").get(pk=customer_id)
    known = _submitted_before(customer, client_message_id, text, form)
    if known is not None:
        return known
    ticket = None if opens_new_ticket else _ticket_for(customer, ticket_id)
    if form is not None:
        free = _make_way(ticket, customer, now)
        ticket = ticket if form == forms.PERSON else free
    live = live_task_of(ticket)
    if live is None and (ticket is None or ticket.speaker == Speaker.AGENT):
        _admit(customer, now)
    if ticket is None:
        ticket = _open_ticket(customer, text, locale, now)
    elif locale and ticket.locale != locale:
        Ticket.objects.filter(pk=ticket.pk).update(locale=locale)
    message = store.add_message(
        ticket,
        author=Author.CUSTOMER,
        text=text,
        now=now,
        task=live,
        client_message_id=client_message_id,
    )
    record_ticket(ticket, "message.received", actor=customer.actor, now=now)
    if taken.hidden:
        told = pick(wording.CARD_HIDDEN, ticket.spoken)
        store.add_message(ticket, author=Author.AGENT, text=told, now=now, is_template=True)
        record_ticket(ticket, "card.hidden", actor="system", now=now)
    if live is not None or ticket.speaker == Speaker.STAFF:
        ring_after_commit(ticket.pk, live)
        return Submitted(ticket, message, live, is_new=False)
    task = _open_task(customer, ticket, message, agent, form, traceparent, now)
    reach(Point.C01)
    return Submitted(ticket, message, task, is_new=True)


@again_on_collision
@transaction.atomic
def ask_for_person(
    *, customer_id: int, ticket_id: int | None, now: datetime, locale: str = ""
) -> Submitted:
    """The customer's "talk to a person" button: always there, needs no model.

    In the midst of a task it is a message like any other, which the agent hears next.
    """
    # Said again before anybody could answer, it is the same wish.
    take_turns(customer_id)
    asked = _pending_wish(customer_id, ticket_id)
    if asked is not None:
        return asked
    return submit(
        customer_id=customer_id,
        text=pick(wording.PERSON_PLEASE, locale),
        locale=locale,
        client_message_id=f"{_WISH}{hashlib.sha256(f'{ticket_id}{now}'.encode()).hexdigest()[:24]}",
        now=now,
        ticket_id=ticket_id,
        form=forms.PERSON,
    )


def _pending_wish(customer_id: int, ticket_id: int | None) -> Submitted | None:
    """The customer's last words, if they asked for a person and the agent has not spoken since.

    That is while the task still hears them, and from then on for as long as staff have the ticket.
    """
    said = Message.objects.filter(
        ticket__customer_id=customer_id, ticket__status=TicketStatus.OPEN, author=Author.CUSTOMER
    )
    if ticket_id is not None:
        said = said.filter(ticket_id=ticket_id)
    last = said.select_related("ticket").order_by("-at", "-pk").first()
    if last is None or not last.client_message_id.startswith(_WISH):
        return None
    live = Task.objects.filter(ticket=last.ticket, status__in=LIVE).first()
    if live is None and last.ticket.speaker != Speaker.STAFF:
        return None
    return Submitted(last.ticket, last, live, is_new=False)


def take_turns(customer_id: int) -> None:
    """One customer's submissions pass one at a time, so limits and ids are judged on settled rows.

    Not the customer's row: a worker locks that after its task, and here a task comes after.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_SUBMISSIONS, customer_id % 2**31])


def _submitted_before(
    customer: Customer, client_message_id: str, text: str, form: CallTool | None
) -> Submitted | None:
    message = (
        Message.objects.filter(ticket__customer=customer, client_message_id=client_message_id)
        .exclude(client_message_id="")
        .select_related("ticket", "task")
        .first()
    )
    if message is None:
        return None
    opened = Task.objects.filter(ticket=message.ticket, opening_seq=message.seq).first()
    made = store.form_of(opened) if opened else None
    # A form says the same in every language.
    if made != form or (form is None and message.text != text):
        raise MessageReusedError
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


def live_task_of(ticket: Ticket | None) -> Task | None:
    """The ticket's live task, locked: a record under way ends before or after the message."""
    if ticket is None:
        return None
    return Task.objects.select_for_update().filter(ticket=ticket, status__in=LIVE).first()


def _make_way(ticket: Ticket | None, customer: Customer, now: datetime) -> Ticket | None:
    """The ticket if a form can open a task in it: a task that waits for the model makes way."""
    if ticket is None or ticket.speaker != Speaker.AGENT:
        return None
    live = live_task_of(ticket)
    if live is not None and live.status == TaskStatus.WAITING_MODEL:
        live = cancel(task_id=live.pk, by=customer.actor, now=now, reason=telling.FORM_INSTEAD)
    return None if live is not None and live.is_live else ticket


def _admit(customer: Customer, now: datetime) -> None:
    """Raise when this customer has too much under way or asks too fast, or the shop is busy."""
    shop = customer.shop
    running = Task.objects.filter(shop=shop, status__in=READY)[: shop.max_running_tasks]
    if running.count() >= shop.max_running_tasks:
        raise TooManyRequestsError(BUSY_SECONDS)
    live = Task.objects.filter(customer=customer, status__in=LIVE).order_by("-pk")
    if live.count() >= shop.max_open_tasks_per_customer:
        raise TooManyOpenTasksError(live[0])
    minute = timedelta(minutes=1)
    recent = Task.objects.filter(customer=customer, created_at__gt=now - minute)
    if recent.count() >= shop.tasks_per_minute_per_customer:
        oldest = recent.order_by("created_at").values_list("created_at", flat=True)[0]
        raise TooManyRequestsError(max(1, int((oldest + minute - now).total_seconds()) + 1))


def _open_ticket(customer: Customer, text: str, locale: str, now: datetime) -> Ticket:
    ticket = Ticket.objects.create(
        shop=customer.shop,
        customer=customer,
        subject=Truncator(clean(text.partition("\n")[0] or text, 200)).chars(120),
        locale=locale,
        opened_at=now,
        updated_at=now,
    )
    record_ticket(ticket, "ticket.opened", actor=customer.actor, now=now)
    return ticket


def _open_task(
    customer: Customer,
    ticket: Ticket,
    message: Message,
    agent: str,
    form: CallTool | None,
    traceparent: str,
    now: datetime,
) -> Task:
    shop = customer.shop
    task = Task(
        shop=shop,
        customer=customer,
        ticket=ticket,
        agent=agent,
        workflow=forms.WORKFLOW if form else workflows.match(message.text),
        opening_seq=message.seq,
        prompt_version=prompts.current("support"),
        model=settings.MODEL,
        created_at=now,
        traceparent=traceparent,
        wake_at=database_now(),
        **_caps(shop),
    )
    task.save()
    _plan_first(task, form or engine.next_move(store.log_of(task, message.text)), now)
    record_task(task, "queued", actor=customer.actor, now=now)
    dispatch.advance(task.pk)
    ring_after_commit(ticket.pk, task)
    return task


def _caps(shop: Shop) -> dict[str, int]:
    return {
        "max_steps": shop.max_steps,
        "max_tokens": shop.max_tokens,
        "max_cost": shop.max_cost,
        "max_active_ms": shop.max_active_seconds * 1000,
    }


def _plan_first(task: Task, move: Move, now: datetime) -> None:
    """Plan step 1; with room for one step only there is just the hand-off."""
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


def record_ticket(ticket: Ticket, action: str, *, actor: str, now: datetime) -> None:
    audit.record(
        actor=actor,
        action=action,
        subject=f"ticket:{ticket.pk}",
        at=now,
        shop_id=ticket.shop_id,
        ticket_id=ticket.pk,
        customer=ticket.customer.external_id,
    )
