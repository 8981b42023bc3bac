"""Erasing what a customer said and was told; what was done and paid stays, without their words.

An erasure waits for what is under way. What was not sent yet is withdrawn, what was sent is waited
for, since only its outcome says what is true of the money. Meanwhile nobody signs in as the customer.
"""

import logging
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import unquote_plus

from django.db import transaction
from django.db.models import Q

from accounts import keeping
from accounts import services as accounts
from accounts.models import ERASED, Customer, Erasure, ErasureCause
from agents.casework import KeptReplay, Note, ReviewFlag, SavedView
from agents.models import LIVE, IdempotencyRecord, Message, Step, Task, Ticket, TicketStatus
from agents.services import tickets
from agents.services.tasks import cancel
from approvals import erasing as approvals_erasing
from approvals import services as approvals
from tools import erasing
from tools.models import OPEN, UNSENT, Operation
from tools.operations import OperationStateError

ERASURE = "customer_is_erased"
ERASED_RESULT = {"erased": True}

logger = logging.getLogger(__name__)


def erase_customer(*, customer_id: int, cause: ErasureCause, by: str, now: datetime) -> Erasure:
    """Erase a customer's words and what we know of them; done at once when nothing is under way.

    Otherwise it is on record (`done_at` is None) and `finish_erasures` does it later. Never inside a
    transaction. Raises accounts.keeping.HeldError; nothing was written then.
    """
    erasure = keeping.ask(customer_id=customer_id, cause=cause, by=by, now=now)
    _try(erasure, now)
    erasure.refresh_from_db()
    return erasure


def finish_erasures(*, now: datetime, limit: int = 50) -> int:
    """Do the erasures that were waiting and can be done now. Returns how many."""
    waiting = Erasure.objects.filter(ticket_id=None, done_at=None).order_by("pk")[:limit]
    return sum(_try(erasure, now) for erasure in waiting)


def _try(erasure: Erasure, now: datetime) -> bool:
    try:
        keeping.refuse_held(erasure.customer_id)
        _withdraw_what_is_unsent(erasure, now)
        is_done = _erase(erasure.pk, now)
    except keeping.HeldError:
        logger.info("%s waits: the customer is on hold", erasure)
        return False
    if is_done:
        accounts.tell_shops_of_revocations(customer_id=erasure.customer_id)
    return is_done


def _withdraw_what_is_unsent(erasure: Erasure, now: datetime) -> None:
    """Stop the customer's tasks, and take back changes that nobody has sent."""
    mine = {"customer_id": erasure.customer_id}
    for task_id in Task.objects.filter(**mine, status__in=LIVE).values_list("pk", flat=True):
        cancel(task_id=task_id, by=erasure.asked_by, now=now, reason=ERASURE)
    unsent = Operation.objects.filter(**mine, state__in=UNSENT).values_list("pk", flat=True)
    for operation_id in unsent:
        try:
            approvals.withdraw(operation_id=operation_id, by=erasure.asked_by, reason=ERASURE)
        except OperationStateError:
            logger.info("%s waits: operation %s is being sent", erasure, operation_id)


@transaction.atomic
def _erase(erasure_id: int, now: datetime) -> bool:
    """All of it in one transaction, or False when something is under way."""
    erasure = Erasure.objects.get(pk=erasure_id)
    customer_id = erasure.customer_id
    tickets.take_turns(customer_id)
    # Tasks, operations, tickets, the customer: the order in which everybody locks.
    tasks = list(Task.objects.select_for_update().filter(customer_id=customer_id).order_by("pk"))
    mine = Operation.objects.select_for_update().filter(customer_id=customer_id).order_by("pk")
    states = list(mine.values_list("state", flat=True))
    if any(task.is_live for task in tasks) or any(state in OPEN for state in states):
        return False
    found = Ticket.objects.select_for_update().filter(customer_id=customer_id).order_by("pk")
    left = keeping.not_erased(list(found.values_list("pk", flat=True)))
    customer = Customer.objects.select_for_update().get(pk=customer_id)
    erasure = Erasure.objects.select_for_update().get(pk=erasure_id)
    if erasure.done_at is not None:
        return True
    keeping.refuse_held(customer_id)
    counts = erase_tickets(erasure, left, now=now)
    IdempotencyRecord.objects.filter(scope=f"customer:{customer_id}").delete()
    _forget_searches(customer)
    keeping.forget(customer, by=erasure.asked_by, now=now)
    keeping.finish(erasure, by=erasure.asked_by, now=now, counts=counts)
    return True


def _forget_searches(customer: Customer) -> None:
    """Staff may have kept a search for the customer by name; the name goes from there, too."""
    names = [word.casefold() for word in (customer.name.strip(), customer.email) if word]
    views = SavedView.objects.filter(Q(user__shop_id=customer.shop_id) | Q(user__shop=None))
    found = [
        view.pk
        for view in views
        if any(name in f"{view.name} {unquote_plus(view.query)}".casefold() for name in names)
    ]
    SavedView.objects.filter(pk__in=found).delete()


def erase_tickets(erasure: Erasure, ticket_ids: Sequence[int], *, now: datetime) -> dict[str, int]:
    """Put the mark in place of every word of these tickets, in the caller's transaction.

    They are locked and nothing of them is under way. Returns how many rows of each kind were erased.
    """
    ids = list(ticket_ids)
    keeping.license_tickets(erasure, ids, now=now)
    task_ids = list(Task.objects.filter(ticket_id__in=ids).values_list("pk", flat=True))
    counts = {
        "tickets": len(ids),
        "messages": Message.objects.filter(ticket_id__in=ids)
        .exclude(text=ERASED)
        .update(text=ERASED, author_name="", client_message_id=""),
        "steps": Step.objects.filter(task_id__in=task_ids).update(
            arguments="", result=ERASED_RESULT, call_id=""
        ),
        "notes": Note.objects.filter(ticket_id__in=ids).exclude(text=ERASED).update(text=ERASED),
        "operations": erasing.erase_operations(ticket_ids=ids, task_ids=task_ids),
    }
    flags = ReviewFlag.objects.filter(task_id__in=task_ids)
    flags.exclude(reason=ERASED).update(reason=ERASED)
    flags.exclude(word__in=["", ERASED]).update(word=ERASED)
    KeptReplay.objects.filter(task_id__in=task_ids).delete()
    approvals_erasing.erase_reasons(ticket_ids=ids)
    open_ones = Ticket.objects.filter(pk__in=ids, status=TicketStatus.OPEN)
    open_ones.update(status=TicketStatus.CLOSED, closed_at=now, subject=ERASED)
    Ticket.objects.filter(pk__in=ids).exclude(subject=ERASED).update(subject=ERASED)
    return counts
