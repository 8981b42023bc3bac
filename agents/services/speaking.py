"""Who speaks to the customer: staff take a ticket over, write in it, and give it back.

One speaks at a time. Whoever holds a ticket is the only member of staff who writes in it; a colleague
takes it over from them by name, so that nobody takes what somebody else took a moment ago.
"""

from datetime import datetime

from django.db import transaction

from accounts.models import User
from agents import store, telling
from agents.models import Author, Message, Speaker, Ticket, TicketStatus
from agents.services.tasks import cancel, ring_after_commit
from agents.services.tickets import (
    MAX_MESSAGE,
    TicketClosedError,
    live_task_of,
    record_ticket,
)
from tools.outages import again_on_collision
from tools.text import clean


class AgentSpeaksError(Exception):
    """Staff may write to a customer only after taking the ticket over."""


class ColleagueSpeaksError(Exception):
    """Somebody else holds the ticket, or nobody has taken it yet. `holder` is who does."""

    def __init__(self, holder: User | None) -> None:
        super().__init__("the ticket is held by somebody else")
        self.holder = holder


@again_on_collision
@transaction.atomic
def take_over(
    *, ticket_id: int, user: User, now: datetime, instead_of: int | None = None
) -> Ticket:
    """A member of staff becomes the one who speaks; the agent's live task ends as handed off.

    `instead_of` is the id of the colleague whose place is taken. Raises ColleagueSpeaksError when
    another one holds it by now; nothing is changed then.
    """
    live = live_task_of(Ticket.objects.get(pk=ticket_id))
    if live is not None:
        cancel(task_id=live.pk, by=user.actor, now=now, reason=telling.TAKEN_OVER)
    ticket = _lock(ticket_id)
    if ticket.assigned_to_id not in {None, user.pk, instead_of}:
        raise ColleagueSpeaksError(ticket.assigned_to)
    ticket.speaker = Speaker.STAFF
    ticket.assigned_to = user
    _save(ticket, now)
    record_ticket(ticket, "ticket.taken_over", actor=user.actor, now=now)
    ring_after_commit(ticket.pk, live)
    return ticket


@again_on_collision
@transaction.atomic
def give_back(*, ticket_id: int, user: User, now: datetime) -> Ticket:
    """The agent speaks again: the customer's next message opens a task.

    Whoever holds the ticket gives it back, and anybody one that nobody holds; otherwise raises
    ColleagueSpeaksError.
    """
    ticket = _lock(ticket_id)
    if ticket.assigned_to_id not in {None, user.pk}:
        raise ColleagueSpeaksError(ticket.assigned_to)
    ticket.speaker = Speaker.AGENT
    ticket.assigned_to = None
    _save(ticket, now)
    record_ticket(ticket, "ticket.given_back", actor=user.actor, now=now)
    ring_after_commit(ticket.pk, None)
    return ticket


@again_on_collision
@transaction.atomic
def reply_as_staff(*, ticket_id: int, user: User, text: str, now: datetime) -> Message:
    """Write to the customer in a ticket that one holds.

    Raises AgentSpeaksError, ColleagueSpeaksError or TicketClosedError; nothing is written then.
    """
    ticket = _lock(ticket_id)
    if ticket.status == TicketStatus.CLOSED:
        raise TicketClosedError(ticket_id)
    if ticket.speaker != Speaker.STAFF:
        raise AgentSpeaksError(ticket.pk)
    if ticket.assigned_to_id != user.pk:
        raise ColleagueSpeaksError(ticket.assigned_to)
    message = store.add_message(
        ticket,
        author=Author.STAFF,
        text=clean_lines(text),
        now=now,
        author_name=user.get_full_name() or user.get_username(),
    )
    record_ticket(ticket, "message.sent", actor=user.actor, now=now)
    ring_after_commit(ticket.pk, None)
    return message


def clean_lines(text: str) -> str:
    """A text of several lines, each with what cannot be seen made visible."""
    lines = text[:MAX_MESSAGE].replace("\r\n", "\n").split("\n")
    return "\n".join(clean(line, MAX_MESSAGE) for line in lines)


def _lock(ticket_id: int) -> Ticket:
    return (
        Ticket.objects.select_for_update(of=("self",))
        .select_related("customer", "assigned_to")
        .get(pk=ticket_id)
    )


def _save(ticket: Ticket, now: datetime) -> None:
    ticket.version += 1
    ticket.updated_at = now
    ticket.save(update_fields=["speaker", "assigned_to", "version", "updated_at"])
