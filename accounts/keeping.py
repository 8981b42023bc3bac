"""Holds on a customer's texts, and erasures as they are asked for, done and listed."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Q

from accounts.models import ERASED, Customer, Delegation, ErasedTicket, Erasure, ErasureCause, Hold
from accounts.signals import access_revoked
from audit import services as audit

MAX_REASON = 300


class HeldError(Exception):
    """Somebody has ordered these texts kept; nothing was erased. `hold` is one such order."""

    def __init__(self, hold: Hold) -> None:
        super().__init__(str(hold))
        self.hold = hold


class HoldExistsError(Exception):
    """There is such a hold already; nothing was written."""


class HoldOverError(Exception):
    """The hold was lifted before; nothing was written."""


class ReasonMissingError(ValueError):
    """A hold says why, in at most MAX_REASON characters; nothing was written."""


def place_hold(
    *, customer_id: int, reason: str, by: str, now: datetime, ticket_id: int | None = None
) -> Hold:
    """Keep a customer's texts, or one ticket's, until the hold is lifted.

    The caller sees to it that the ticket is the customer's. Raises HoldExistsError,
    ReasonMissingError.
    """
    reason = reason.strip()
    if not 0 < len(reason) <= MAX_REASON:
        raise ReasonMissingError
    try:
        with transaction.atomic():
            # An erasure holds the same lock, so that one of the two comes first.
            customer = Customer.objects.select_for_update().get(pk=customer_id)
            hold = Hold.objects.create(
                shop_id=customer.shop_id,
                customer=customer,
                ticket_id=ticket_id,
                reason=reason,
                placed_by=by,
                placed_at=now,
            )
            _record_hold(hold, "hold.placed", by=by, now=now, personal=reason)
    except IntegrityError as exc:
        raise HoldExistsError from exc
    return hold


@transaction.atomic
def lift_hold(*, hold_id: int, by: str, now: datetime) -> Hold:
    """Let the texts go again when they are due. Raises HoldOverError."""
    hold = Hold.objects.select_for_update().get(pk=hold_id)
    if hold.lifted_at is not None:
        raise HoldOverError(hold_id)
    hold.lifted_by = by
    hold.lifted_at = now
    hold.save(update_fields=["lifted_by", "lifted_at"])
    _record_hold(hold, "hold.lifted", by=by, now=now)
    return hold


def find_hold(*, customer_id: int) -> Hold | None:
    """A hold that stops all of this customer's texts from going: of theirs or of a ticket's."""
    return Hold.objects.filter(customer_id=customer_id, lifted_at=None).order_by("pk").first()


def held() -> Q:
    """Tickets (by customer_id and pk) that a hold keeps."""
    standing = Hold.objects.filter(lifted_at=None)
    whole = standing.filter(ticket_id=None).values("customer_id")
    return Q(customer_id__in=whole) | Q(
        pk__in=standing.filter(ticket_id__isnull=False).values("ticket_id")
    )


def apart_from_mark(text: str) -> str:
    """The text, in quotation marks where it begins like an erased one: nobody writes the mark."""
    return f"“{ERASED}”{text[len(ERASED) :]}" if text.startswith(ERASED) else text


def is_leaving(customer_id: int) -> bool:
    """Is all that we know of this customer about to be erased?"""
    return Erasure.objects.filter(customer_id=customer_id, ticket_id=None, done_at=None).exists()


@transaction.atomic
def ask(*, customer_id: int, cause: ErasureCause, by: str, now: datetime) -> Erasure:
    """Put a customer's erasure on record and end their sessions; asking twice gives the first.

    Raises HeldError. What they had under way goes on: see agents.services.erasure.
    """
    customer = Customer.objects.select_for_update().get(pk=customer_id)
    refuse_held(customer_id)
    waiting = Erasure.objects.filter(customer=customer, ticket_id=None, done_at=None).first()
    if waiting is not None:
        return waiting
    erasure = Erasure.objects.create(
        shop_id=customer.shop_id, customer=customer, cause=cause, asked_by=by, asked_at=now
    )
    customer.tokens_valid_after = now
    customer.save(update_fields=["tokens_valid_after"])
    access_revoked.send(sender=Delegation, customer_id=customer.pk)
    _record_erasure(erasure, "erasure.asked", by=by, now=now)
    return erasure


def refuse_held(customer_id: int) -> None:
    """Raises HeldError."""
    hold = find_hold(customer_id=customer_id)
    if hold is not None:
        raise HeldError(hold)


def not_erased(ticket_ids: list[int]) -> list[int]:
    """Those of these tickets that still have their words."""
    gone = set(
        ErasedTicket.objects.filter(ticket_id__in=ticket_ids).values_list("ticket_id", flat=True)
    )
    return [ticket_id for ticket_id in ticket_ids if ticket_id not in gone]


def license_tickets(erasure: Erasure, ticket_ids: list[int], *, now: datetime) -> None:
    """Let the words of these tickets go, in the caller's transaction. The database judges each."""
    ErasedTicket.objects.bulk_create(
        ErasedTicket(ticket_id=ticket_id, erasure=erasure, erased_at=now)
        for ticket_id in ticket_ids
    )


def forget(customer: Customer, *, by: str, now: datetime) -> None:
    """Everything that we were told about the customer themselves, in the caller's transaction.

    The customer is locked. What stays is the shop's number for them, under which the amounts stand.
    """
    customer.name = customer.email = ""
    customer.locale = customer.shop.locale
    customer.tokens_valid_after = now
    customer.save(update_fields=["name", "email", "locale", "tokens_valid_after"])
    revoked = Delegation.objects.filter(customer=customer, revoked_at=None)
    revoked.update(revoked_at=now, revoked_reason="erased")
    Hold.objects.filter(customer=customer).exclude(reason=ERASED).update(reason=ERASED)
    audit.erase_customer(shop_id=customer.shop_id, customer=customer.external_id, actor=by, at=now)


def finish(erasure: Erasure, *, by: str, now: datetime, counts: dict[str, int]) -> None:
    """The erasure is done, in the caller's transaction, with how many rows lost their words."""
    erasure.done_at = now
    erasure.save(update_fields=["done_at"])
    _record_erasure(erasure, "erasure.done", by=by, now=now, counts=counts)


def _record_hold(
    hold: Hold, action: str, *, by: str, now: datetime, personal: str | None = None
) -> None:
    audit.record(
        actor=by,
        action=action,
        subject=f"hold:{hold.pk}",
        at=now,
        shop_id=hold.shop_id,
        ticket_id=hold.ticket_id,
        customer=hold.customer.external_id,
        personal=personal,
    )


def _record_erasure(
    erasure: Erasure,
    action: str,
    *,
    by: str,
    now: datetime,
    counts: dict[str, int] | None = None,
) -> None:
    audit.record(
        actor=by,
        action=action,
        subject=f"erasure:{erasure.pk}",
        at=now,
        shop_id=erasure.shop_id,
        ticket_id=erasure.ticket_id,
        customer=erasure.customer.external_id,
        data={"cause": erasure.cause, **(counts or {})},
    )
