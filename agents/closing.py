"""The desk that tools close tickets at."""

from datetime import datetime

from agents.aftermath import Aftermath
from agents.models import Author, Message, Ticket, TicketStatus
from audit import services as audit
from tools import operations
from tools.models import Operation, State
from tools.tickets import TicketFacts


class Desk(Aftermath):
    """Tickets as `tools.tickets.TicketDesk` wants them."""

    def look(self, *, ticket_id: int, closure: str) -> TicketFacts:
        """The facts that a closure rests on, now."""
        ticket = Ticket.objects.select_related("customer").get(pk=ticket_id)
        heard = Message.objects.filter(ticket=ticket).exclude(author=Author.AGENT)
        done = Operation.objects.filter(
            ticket_id=ticket_id, state=State.SUCCEEDED, reversal__isnull=True
        ).order_by("id")
        is_ours = bool(closure) and ticket.closed_by == closure
        return TicketFacts(
            ticket=ticket_id,
            is_open=ticket.status == TicketStatus.OPEN or is_ours,
            speaker=ticket.speaker,
            last_heard=heard.order_by("-seq").values_list("seq", flat=True).first() or 0,
            recipient=ticket.customer.email,
            done=tuple(operations.in_words(operation, ticket.spoken) for operation in done),
            locale=ticket.spoken,
        )

    def close(self, *, ticket_id: int, closure: str, now: datetime) -> None:
        """Close the ticket in the caller's transaction; closing it again changes nothing."""
        ticket = Ticket.objects.select_for_update(of=("self",)).get(pk=ticket_id)
        if ticket.closed_by == closure:
            return
        ticket.status = TicketStatus.CLOSED
        ticket.closed_at = ticket.updated_at = now
        ticket.closed_by = closure
        ticket.version += 1
        _save(ticket, "closed", closure, now)

    def reopen(self, *, ticket_id: int, closure: str, now: datetime) -> None:
        """Open the ticket that this closure closed, in the caller's transaction; or change nothing."""
        ticket = Ticket.objects.select_for_update(of=("self",)).get(pk=ticket_id)
        if ticket.closed_by != closure:
            return
        ticket.status = TicketStatus.OPEN
        ticket.closed_at = None
        ticket.updated_at = now
        ticket.closed_by = ""
        ticket.version += 1
        _save(ticket, "reopened", closure, now)


def _save(ticket: Ticket, what: str, closure: str, now: datetime) -> None:
    ticket.save(update_fields=["status", "closed_at", "closed_by", "updated_at", "version"])
    audit.record(
        actor="agent",
        action=f"ticket.{what}",
        subject=f"ticket:{ticket.pk}",
        at=now,
        shop_id=ticket.shop_id,
        ticket_id=ticket.pk,
        customer=ticket.customer.external_id,
        data={"closure": closure},
    )
