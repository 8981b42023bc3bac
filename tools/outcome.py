"""What one try at an operation, or one look for it, came to."""

from dataclasses import dataclass
from typing import Any

from tools.clients.capabilities import for_provider
from tools.clients.shapes import Receipt
from tools.models import ALREADY_DONE, AttemptOutcome, Operation
from tools.proof import Effect, is_approved_one, is_on_its_way, proves


@dataclass(frozen=True)
class Outcome:
    """What one try showed. `reference` is the shop's own id of the effect.

    `retry_after` is in seconds, where the shop has named a time to wait. `is_trouble`: the call
    itself failed, whatever it means for the effect. `is_pending`: it succeeded, with its money on
    its way.
    """

    kind: AttemptOutcome
    detail: str
    reference: str = ""
    needs_person: bool = False
    retry_after: float | None = None
    is_trouble: bool = False
    is_pending: bool = False

    def as_body(self) -> dict[str, Any]:
        """What is kept as an observation."""
        body = {"outcome": self.kind, "detail": self.detail, "reference": self.reference}
        return body | ({"pending": True} if self.is_pending else {})


def confirmed(reference: str, *, is_pending: bool) -> Outcome:
    """The other side's own answer says that it has happened."""
    detail = "confirmed_pending" if is_pending else "confirmed"
    return Outcome(AttemptOutcome.SUCCEEDED, detail, reference, is_pending=is_pending)


def reason_of_refusal(operation: Operation, code: str) -> str:
    """Why an operation failed that the shop has refused with this code.

    ALREADY_DONE where the code says that somebody else came first, else the code itself.
    """
    capabilities = for_provider(operation.shop.provider)
    return ALREADY_DONE if code in capabilities.already_done else code


def of_look_up(operation: Operation, receipt: Receipt) -> Outcome:
    """The shop shows an effect under our key: is it the one that was approved?"""
    effect = Effect.of_receipt(receipt)
    if not is_approved_one(operation, effect):
        return Outcome(AttemptOutcome.UNKNOWN, "look_up_mismatch", needs_person=True)
    if not proves(operation, effect):
        return Outcome(AttemptOutcome.UNKNOWN, "look_up_taken_back", needs_person=True)
    is_pending = is_on_its_way(operation, effect)
    detail = "found_pending" if is_pending else "found_by_look_up"
    return Outcome(AttemptOutcome.SUCCEEDED, detail, reference=receipt.id, is_pending=is_pending)
