"""What a customer is told when something becomes known of a change after its task has ended."""

from datetime import datetime

from django.db import transaction

from agents import events, store, telling, wording
from agents.models import Author, Speaker, Task, Ticket, TicketStatus
from audit import services as audit
from tools import money
from tools.erasing import is_erased
from tools.language import Text, pick
from tools.models import Operation


class Aftermath:
    """The part of `tools.tickets.TicketDesk` that tells customers."""

    def hold(self, *, task_id: int) -> None:
        """Lock the task's row: it can neither end nor move on meanwhile."""
        Task.objects.select_for_update().filter(pk=task_id).first()

    def tell_outcome(self, operation: Operation, *, now: datetime) -> None:
        """Tell how a change ended, unless its task, which is held, is there to tell it."""
        task = Task.objects.get(pk=operation.task_id)
        if task.is_live:
            return
        ticket = Ticket.objects.select_related("customer").get(pk=operation.ticket_id)
        locale = ticket.spoken
        checked = pick(wording.CHECKED, locale)
        text = f"{checked}\n{telling.true_state([operation], locale)}"
        _say(ticket, text, task, now)

    def open_case(self, operation: Operation, *, now: datetime) -> None:
        """Staff speak in the ticket from now on, reopened if need be; the customer is told why."""
        self._to_staff(operation, wording.CAME_BACK, now)

    def take_back(self, operation: Operation, *, now: datetime) -> None:
        """The same, where the customer was told that nothing was done, and it was."""
        self._to_staff(operation, wording.AFTER_ALL, now)

    def _to_staff(self, operation: Operation, words: Text, now: datetime) -> None:
        if is_erased(operation):
            return  # the ticket is gone with its customer; the case itself stands at the desk
        ticket = (
            Ticket.objects.select_for_update(of=("self",))
            .select_related("customer")
            .get(pk=operation.ticket_id)
        )
        was_closed = ticket.status == TicketStatus.CLOSED
        ticket.status = TicketStatus.OPEN
        ticket.closed_at = None
        ticket.closed_by = ""
        ticket.speaker = Speaker.STAFF
        ticket.version += 1
        ticket.updated_at = now
        ticket.save(
            update_fields=["status", "closed_at", "closed_by", "speaker", "version", "updated_at"]
        )
        _record(ticket, "reopened" if was_closed else "handed_to_staff", operation, now)
        amount = ""
        if operation.amount is not None:
            amount = money.show(operation.amount, operation.currency, ticket.spoken)
        text = pick(words, ticket.spoken)
        _say(ticket, text.format(amount=amount, order=operation.order_id), None, now)


def _say(ticket: Ticket, text: str, task: Task | None, now: datetime) -> None:
    store.add_message(ticket, author=Author.AGENT, text=text, now=now, task=task, is_template=True)
    task_id = task.pk if task else 0
    transaction.on_commit(lambda: events.ring(task_id, ticket.pk))


def _record(ticket: Ticket, what: str, operation: Operation, now: datetime) -> None:
    audit.record(
        actor="system",
        action=f"ticket.{what}",
        subject=f"ticket:{ticket.pk}",
        at=now,
        shop_id=ticket.shop_id,
        ticket_id=ticket.pk,
        customer=ticket.customer.external_id,
        data={"operation": operation.idempotency_key},
    )
