"""What an effect that the shop shows or tells of proves about an operation."""

from dataclasses import asdict, dataclass
from typing import Any

from tools.clients.shapes import Receipt
from tools.models import Kind, Observation, Operation

DONE = "succeeded"
# What the shop says of a refund that it has taken, while the money is on its way.
PENDING = "pending"
# The source of an observation that came as the shop's signed event.
WEBHOOK = "webhook"
# The source of one that we made by asking the shop for the effect under our key.
LOOK_UP = "look_up"
# What the shop says of money that came back to it after all.
TAKEN_BACK = ("reversed", "failed")


@dataclass(frozen=True)
class Effect:
    """An effect in the shop's words. `reference` is its own id; `amount` is in minor units."""

    reference: str
    kind: str
    order_id: str
    amount: int | None = None
    currency: str = ""
    status: str = DONE

    @classmethod
    def of_receipt(cls, receipt: Receipt) -> "Effect":
        return cls(
            reference=receipt.id,
            kind=receipt.kind,
            order_id=receipt.order_id,
            amount=receipt.amount,
            currency=receipt.currency or "",
            status=str(receipt.raw.get("status", DONE))[:40],
        )

    @classmethod
    def of_body(cls, body: dict[str, Any]) -> "Effect | None":
        """The effect that an observation holds, if it holds one."""
        effect = body.get("effect")
        return cls(**effect) if effect else None

    def as_body(self) -> dict[str, Any]:
        return asdict(self)


def is_approved_one(operation: Operation, effect: Effect) -> bool:
    """Is this effect, found or told under our key, the one that was approved, to the minor unit?"""
    if (effect.kind, effect.order_id) != (operation.kind, operation.order_id):
        return False
    if operation.kind != Kind.REFUND:
        return True
    return (effect.amount, effect.currency) == (operation.amount, operation.currency)


def proves(operation: Operation, effect: Effect) -> bool:
    """Does it show that the operation has happened and still stands?"""
    return is_paid_out(operation, effect) or is_on_its_way(operation, effect)


def is_paid_out(operation: Operation, effect: Effect) -> bool:
    """Does it show that this has happened, with nothing outstanding?"""
    return effect.status == DONE and is_approved_one(operation, effect)


def is_on_its_way(operation: Operation, effect: Effect) -> bool:
    """Does it show that the shop has taken this refund, and that its money is on its way?"""
    is_pending = operation.kind == Kind.REFUND and effect.status == PENDING
    return is_pending and is_approved_one(operation, effect)


def told_since_sent(operation: Operation) -> list[Observation]:
    """The shop's signed events about this operation since its first send, oldest first.

    One from before that says nothing about what we have sent.
    """
    since = operation.first_sent_at
    events = operation.observations.filter(source=WEBHOOK).order_by("id")
    return [event for event in events if since is not None and event.at >= since]


def effects_told(operation: Operation) -> list[Effect]:
    """What those events tell of its effect."""
    events = told_since_sent(operation)
    return [effect for event in events if (effect := Effect.of_body(event.body))]
