"""How a rule is applied and its verdict kept; and who must countersign.

A tool's own rules stand beside the tool (`tools/catalogue/`). Here is what they share.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NoReturn

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from accounts.models import Role, Shop
from tools.clients.shapes import Order
from tools.erasing import content_of
from tools.models import (
    FINAL,
    OPEN,
    Finding,
    Gate,
    Inquiry,
    InquiryKind,
    Kind,
    Operation,
    Reversal,
    State,
)
from tools.seal import Intent

# The limit on refunds that need no staff holds for this long a stretch of time, rolling.
ROLLING = timedelta(hours=24)


class DeniedError(Exception):
    """A rule said no. `code` is for the model and for code, `message` for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Ruled:
    """One rule's verdict, with what it looked at."""

    gate: Gate
    rule: str
    finding: Finding
    inputs: dict[str, Any]


@dataclass
class Ruling:
    """Collects verdicts in the order of their gates and stops at the first refusal."""

    verdicts: list[Ruled] = field(default_factory=list)

    def allow(self, gate: Gate, rule: str, **inputs: Any) -> None:
        self.verdicts.append(Ruled(gate, rule, Finding.ALLOW, inputs))

    def ask(self, gate: Gate, rule: str, **inputs: Any) -> None:
        self.verdicts.append(Ruled(gate, rule, Finding.ASK, inputs))

    def deny(self, gate: Gate, rule: str, *, code: str, message: str, **inputs: Any) -> NoReturn:
        """Keep the verdict and raise DeniedError."""
        self.verdicts.append(Ruled(gate, rule, Finding.DENY, {"code": code, **inputs}))
        raise DeniedError(code, message)

    def require(
        self,
        rule: str,
        *,
        holds: bool,
        code: str,
        message: str,
        gate: Gate = Gate.POLICY,
        **inputs: Any,
    ) -> None:
        """Allow when the rule holds; otherwise deny."""
        if holds:
            self.allow(gate, rule, **inputs)
        else:
            self.deny(gate, rule, code=code, message=message, **inputs)


def get_rolling_total(*, customer_id: int, shop: Shop, now: datetime, before_id: int | None) -> int:
    """What this customer's refunds of the last 24 hours come to, in minor units.

    Counts what was paid, what may have been paid and what is still in flight. `before_id` leaves
    out the operation itself and all younger ones, so that of two refunds that together pass the
    limit it is the second that asks staff. Call it with the customer's row locked.
    """
    after_all = _contradicted().filter(operation=OuterRef("pk"))
    counted = ~Q(state__in=FINAL) | Q(state=State.SUCCEEDED) | Q(Exists(after_all))
    kinds = [Kind.REFUND, Kind.CANCEL] if shop.staff_also_for_cancel else [Kind.REFUND]
    operations = (
        Operation.objects.filter(counted, customer_id=customer_id, kind__in=kinds)
        .annotate(moved_at=Coalesce("finished_at", "first_sent_at", F("created_at")))
        .filter(Q(moved_at__gt=now - ROLLING) | ~Q(state__in=FINAL))
    )
    if before_id is not None:
        operations = operations.filter(id__lt=before_id)
    return operations.aggregate(total=Sum("amount"))["total"] or 0


def require_our_refunds_shown(intent: Intent, order: Order, *, shop: Shop, ruling: Ruling) -> None:
    """Deny a refund while the shop shows less of its order refunded than we know it has refunded.

    A read may be older than what we did: what is left could then be paid a second time.
    """
    if intent.kind != Kind.REFUND:
        return
    at_least = _refunded_at_least(shop, order.id)
    ruling.require(
        "our_refunds_are_shown",
        holds=at_least <= order.refunded,
        code="another_change_in_progress",
        message=f"The shop does not show yet what was refunded of order {order.id} before.",
        at_least=at_least,
        shown=order.refunded,
    )


def _refunded_at_least(shop: Shop, order_id: str) -> int:
    """What must be refunded of an order by now: all of ours, less what came back to the shop.

    That one of ours was made after all counts until somebody has found out. Where other hands had refunded before our last one, its sealed facts say how much, and that
    much again would hide that ours is not shown.
    """
    after_all = _contradicted().filter(operation=OuterRef("pk"), closed_at=None)
    made_by_us = Q(state=State.SUCCEEDED) | Q(Exists(after_all))
    ours = list(
        Operation.objects.filter(made_by_us, shop=shop, order_id=order_id, kind=Kind.REFUND)
        .select_related("customer", "reversal")
        .order_by("id")
    )
    if not ours:
        return 0
    made = sum(one.amount or 0 for one in ours)
    came_back = sum(one.amount or 0 for one in ours if one.came_back)
    last = ours[-1]
    before = content_of(last).get("facts", {}).get("refunded", 0)  # nothing after an erasure
    return max(made, int(before) + (last.amount or 0)) - came_back


def require_nothing_is_open(*, ticket_id: int, ruling: Ruling) -> None:
    """Deny the closing of a ticket while a change that was asked for in it has no end yet.

    Its e-mail lists what was done, and could only be silent about that one.
    """
    open_ones = Operation.objects.filter(ticket_id=ticket_id, state__in=OPEN)
    ruling.require(
        "no_change_is_open",
        holds=not open_ones.exclude(kind=Kind.CLOSE_TICKET).exists(),
        code="another_change_in_progress",
        message="A change in this conversation is still being checked; it stays open until then.",
    )


def _contradicted() -> QuerySet[Inquiry]:
    return Inquiry.objects.filter(kind=InquiryKind.CONTRADICTED)


def _asks_whatever_the_sum(intent: Intent, *, shop: Shop, ruling: Ruling) -> bool:
    """Are staff asked about any further refund of this order?

    Only people know whether what came back was made good by other means, or what truly was made.
    """
    if intent.kind != Kind.REFUND:
        return False
    ours = Operation.objects.filter(shop=shop, order_id=intent.order_id)
    if Reversal.objects.filter(operation__in=ours).exists():
        ruling.ask(Gate.APPROVAL, "refund_came_back_before", order=intent.order_id)
        return True
    if _contradicted().filter(operation__in=ours).exists():
        ruling.ask(Gate.APPROVAL, "end_contradicted_before", order=intent.order_id)
        return True
    return False


def required_roles(intent: Intent, *, shop: Shop, rolling_total: int, ruling: Ruling) -> list[str]:
    """Who must say yes: the customer always, staff when money passes the shop's limit, and two of
    staff when it passes the second limit, where the shop has one. Staff also where an earlier refund
    of the order came back to the shop, or the shop contradicts how an earlier change of it ended.

    Exactly a limit is not over it. `rolling_total` is what the customer's other refunds of the last
    24 hours come to, in minor units. A second limit below the first asks two all the same.
    """
    ruling.ask(Gate.APPROVAL, "customer_countersigns", kind=intent.kind)
    counts = intent.kind == Kind.REFUND or (
        intent.kind == Kind.CANCEL and shop.staff_also_for_cancel
    )
    if not counts or intent.amount is None:
        return [Role.CUSTOMER]
    total = intent.amount + rolling_total
    inputs = {
        "amount": intent.amount,
        "other_refunds_24h": rolling_total,
        "currency": intent.currency,
    }
    roles: list[str] = [Role.CUSTOMER]
    if _asks_whatever_the_sum(intent, shop=shop, ruling=ruling):
        roles = [Role.CUSTOMER, Role.STAFF]
    if total > shop.staff_limit:
        ruling.ask(Gate.APPROVAL, "staff_over_limit", **inputs, limit=shop.staff_limit)
        roles = [Role.CUSTOMER, Role.STAFF]
    else:
        ruling.allow(Gate.APPROVAL, "staff_over_limit", **inputs, limit=shop.staff_limit)
    if shop.second_limit is None:
        return roles
    if total > shop.second_limit:
        ruling.ask(Gate.APPROVAL, "second_staff_over_limit", **inputs, limit=shop.second_limit)
        return [Role.CUSTOMER, Role.STAFF, Role.SECOND_STAFF]
    ruling.allow(Gate.APPROVAL, "second_staff_over_limit", **inputs, limit=shop.second_limit)
    return roles
