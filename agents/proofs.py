"""What a reply may say: the facts that its sentences are held against, and what is wrong with one."""

from dataclasses import dataclass
from typing import Any

from agents import claims
from agents.models import Step, StepStatus, Ticket
from tools import money
from tools.models import Kind, Operation, State

_UNDECIDED = (State.APPROVED, State.SENDING, State.UNKNOWN, State.NEEDS_PERSON)


@dataclass(frozen=True)
class Faults:
    """What a text claims or denies against the facts, and whether it asks for secrets."""

    unproven: frozenset[str]
    denied: frozenset[str]
    asks_for_secrets: bool

    def __bool__(self) -> bool:
        return bool(self.unproven or self.denied or self.asks_for_secrets)


@dataclass(frozen=True)
class Proofs:
    """A ticket's changes, oldest first, and what its look-ups showed of orders."""

    known: tuple[Operation, ...]
    seen: frozenset[str]
    deeds: tuple[claims.Deed, ...]
    # Refunds from the customer's other tickets, of orders seen here, whose money is on its way: what
    # a look-up calls refunded is not there yet.
    coming: tuple[Operation, ...] = ()

    @property
    def cancelled_elsewhere(self) -> frozenset[str]:
        """The orders that somebody else had cancelled when we were about to."""
        return frozenset(
            item.order_id
            for item in self.known
            if item.kind == Kind.CANCEL and item.is_already_done
        )

    def faults(self, text: str) -> Faults:
        """Pure: what keeps this text from being said."""
        stands = [
            item for item in self.known if item.state == State.SUCCEEDED and not item.came_back
        ]
        undecided = [
            item
            for item in self.known
            if item.state in _UNDECIDED or item.came_back or item.is_contradicted
        ]
        succeeded = frozenset(item.kind for item in stands)
        unproven = claims.unproven(
            text,
            succeeded=succeeded,
            known_cancelled=self._with_deed("cancel") | self.cancelled_elsewhere,
            known_refunded=self._with_deed("refund"),
        )
        unproven |= claims.misplaced(
            text,
            deeds=[*self._deeds_of_ours_perhaps(), *(_deed(item) for item in stands)],
            known_orders=self.seen | {item.order_id for item in self.known},
            cancelled_elsewhere=self.cancelled_elsewhere,
        )
        unproven |= claims.undelivered(
            text,
            on_its_way=frozenset(
                item.order_id for item in (*stands, *self.coming) if item.is_on_its_way
            ),
            known_orders=self.seen | {item.order_id for item in self.known},
        )
        denied = claims.denied(
            text,
            open_or_unknown=frozenset(item.kind for item in undecided),
            succeeded=succeeded,
        )
        return Faults(unproven, denied, claims.asks_for_secrets(text))

    def _deeds_of_ours_perhaps(self) -> list[claims.Deed]:
        """What look-ups showed, without what somebody else is known to have done."""
        elsewhere = self.cancelled_elsewhere
        return [
            deed for deed in self.deeds if deed.kind != "cancel" or deed.order_id not in elsewhere
        ]

    def _with_deed(self, kind: str) -> frozenset[str]:
        return frozenset(deed.order_id for deed in self.deeds if deed.kind == kind)


def gather(ticket_id: int) -> Proofs:
    """The facts of a ticket as they are now."""
    known = Operation.objects.filter(ticket_id=ticket_id)
    results = Step.objects.filter(
        task__ticket_id=ticket_id, tool="find_orders", status=StepStatus.FINISHED
    ).values_list("result", flat=True)
    orders = [order for result in results for order in (result or {}).get("orders", [])]
    cancelled = [
        claims.Deed("cancel", order["order_id"]) for order in orders if _is_cancelled(order)
    ]
    refunded = [
        claims.Deed("refund", order["order_id"], order["refunded"])
        for order in orders
        if order["refunded"].strip("0.")
    ]
    seen = frozenset(order["order_id"] for order in orders)
    return Proofs(
        known=tuple(
            known.select_related("customer", "reversal", "transit")
            .prefetch_related("inquiries")
            .order_by("id")
        ),
        seen=seen,
        deeds=(*cancelled, *refunded),
        coming=_coming(ticket_id, seen) if refunded else (),
    )


def _coming(ticket_id: int, seen: frozenset[str]) -> tuple[Operation, ...]:
    customer_id = Ticket.objects.values_list("customer_id", flat=True).get(pk=ticket_id)
    out = Operation.objects.filter(
        customer_id=customer_id,
        order_id__in=seen,
        transit__isnull=False,
        transit__arrived_at=None,
        reversal=None,
    )
    elsewhere = out.exclude(ticket_id=ticket_id).order_by("id")
    return tuple(elsewhere.select_related("customer", "reversal", "transit"))


def _is_cancelled(order: dict[str, Any]) -> bool:
    return bool(order["status"] == "cancelled")


def _deed(operation: Operation) -> claims.Deed:
    amount = ""
    if operation.amount is not None:
        amount = money.to_decimal_text(operation.amount, operation.currency)
    return claims.Deed(operation.kind, operation.order_id, amount)
