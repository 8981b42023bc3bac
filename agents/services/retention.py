"""Letting go of what a shop has kept long enough: a ticket at a time, a few at once.

A ticket's time counts from its last change. While a task or a change of it is under way, money of it
came back and waits for somebody, or a hold is on it or its customer, it stays whatever its age.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from accounts import keeping
from accounts.models import ERASED, Customer, Erasure, ErasureCause, Shop
from agents.models import LIVE, Task, Ticket
from agents.services import tickets
from agents.services.erasure import erase_tickets
from audit import services as audit
from tools.models import OPEN, Inquiry, Operation, Reversal

BY = "system"


def let_go(*, now: datetime, limit: int = 200) -> int:
    """Erase the words of tickets whose time is over, the oldest of each shop first.

    One transaction a ticket, so that a fault costs one ticket and nobody waits for many. At most
    `limit` for each shop; returns how many. Never inside a transaction. Safe to run twice at once.
    """
    shops = Shop.objects.filter(keep_texts_days__gt=0).order_by("pk")
    return sum(_let_go_of(shop, now, limit) for shop in shops)


def _let_go_of(shop: Shop, now: datetime, limit: int) -> int:
    due = _due(shop, now).order_by("updated_at").values_list("pk", "customer_id")
    return sum(
        _erase(shop, ticket_id, customer_id, now) for ticket_id, customer_id in list(due[:limit])
    )


def _due(shop: Shop, now: datetime) -> QuerySet[Ticket]:
    mine = Operation.objects.filter(ticket_id=OuterRef("pk"))
    cases = Reversal.objects.filter(operation__ticket_id=OuterRef("pk"), closed_at=None)
    asked = Inquiry.objects.filter(operation__ticket_id=OuterRef("pk"), closed_at=None)
    return (
        Ticket.objects.filter(shop=shop, updated_at__lt=now - timedelta(days=shop.keep_texts_days))
        .exclude(subject=ERASED)
        .exclude(keeping.held())
        .exclude(Exists(Task.objects.filter(ticket=OuterRef("pk"), status__in=LIVE)))
        .exclude(Exists(mine.filter(state__in=OPEN)))
        .exclude(Exists(cases))
        .exclude(Exists(asked))
    )


@transaction.atomic
def _erase(shop: Shop, ticket_id: int, customer_id: int, now: datetime) -> bool:
    """The ticket's words, if it is still due now that nobody else can touch it."""
    tickets.take_turns(customer_id)
    list(Task.objects.select_for_update().filter(ticket_id=ticket_id).order_by("pk"))
    list(Operation.objects.select_for_update().filter(ticket_id=ticket_id).order_by("pk"))
    Ticket.objects.select_for_update().get(pk=ticket_id)
    customer = Customer.objects.select_for_update().get(pk=customer_id)
    if not _due(shop, now).filter(pk=ticket_id).exists():
        return False
    erasure = Erasure.objects.create(
        shop=shop,
        customer=customer,
        ticket_id=ticket_id,
        cause=ErasureCause.RETENTION,
        asked_by=BY,
        asked_at=now,
    )
    erase_tickets(erasure, [ticket_id], now=now)
    audit.erase_texts(
        shop_id=shop.pk,
        ticket_ids=[ticket_id],
        customer=customer.external_id,
        actor=BY,
        at=now,
    )
    erasure.done_at = now
    erasure.save(update_fields=["done_at"])
    if not Ticket.objects.filter(customer=customer).exclude(subject=ERASED).exists():
        # Told anew with the next sign-in; until then nothing of theirs needs a name.
        customer.name = customer.email = ""
        customer.save(update_fields=["name", "email"])
    return True
