"""Private notes on a ticket: from staff to staff."""

from datetime import datetime

from django.db import transaction

from accounts.models import User
from agents.casework import Note
from agents.models import Ticket
from agents.services.speaking import clean_lines
from agents.services.tickets import record_ticket


@transaction.atomic
def add_note(*, ticket_id: int, user: User, text: str, now: datetime) -> Note:
    """Leave a note for colleagues. It changes nothing about the ticket, open or closed.

    Its words are in the note alone: the trail says only that there is one.
    """
    ticket = Ticket.objects.select_related("customer").get(pk=ticket_id)
    note = Note.objects.create(ticket=ticket, author=user, text=clean_lines(text), at=now)
    record_ticket(ticket, "note.added", actor=user.actor, now=now)
    return note
