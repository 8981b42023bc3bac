"""The true state of operations in plain English, written by code and by nothing a model said."""

from collections.abc import Sequence
from dataclasses import dataclass

from tools.text import clean

NOTHING_CHANGED = "Nothing has been changed so far."
MAX_TOLD = 6
MAX_REASON = 200

_NOUNS = {
    "refund": "refund",
    "cancel": "cancellation",
    "change_address": "address change",
    "close_ticket": "closing of this conversation",
    "email": "e-mail",
}
_OPEN = {
    "awaiting_approval": "is waiting for a yes. Nothing has been sent yet.",
    "approved": "has its yes and goes to the shop next. It is not confirmed yet.",
    "sending": "is with the shop now. It is not confirmed yet.",
    "unknown": "is still being checked with the shop. It will not be sent twice.",
    "needs_person": "is still being checked, now by a colleague. It will not be sent twice.",
}
_ENDED = {
    "denied": "was not made: the shop's rules do not allow it.",
    "expired": "was not made: nobody said yes in time.",
    "superseded": "was not made: the order changed in the meantime.",
    "cancelled": "was not made: it was withdrawn before it was sent.",
    "failed": "was not made: the shop refused it.",
}
_DECIDERS = {"customer": "you said no", "staff": "the shop's staff said no"}


@dataclass(frozen=True)
class OperationView:
    """An operation as it may be told. `amount_text` is ready for people, "$40.00", or empty.

    `came_back`: it succeeded, and the money has come back to the shop since.
    """

    kind: str
    order_id: str
    state: str
    amount_text: str = ""
    reference: str = ""
    reason: str = ""
    decided_by: str = ""
    came_back: bool = False


def true_state(operations: Sequence[OperationView]) -> str:
    """What has become of these operations, oldest first, one line each, at most the newest six.

    One that did not happen is left out when a later one of the same kind and order is there.
    """
    told = [
        _line(operation)
        for at, operation in enumerate(operations)
        if operation.state == "succeeded" or not _is_retold(operation, operations[at + 1 :])
    ]
    return "\n".join(told[-MAX_TOLD:]) or NOTHING_CHANGED


def _is_retold(operation: OperationView, later: Sequence[OperationView]) -> bool:
    return operation.state not in _OPEN and any(
        (other.kind, other.order_id) == (operation.kind, operation.order_id) for other in later
    )


def _line(operation: OperationView) -> str:
    what = f"The {_NOUNS.get(operation.kind, 'change')}"
    if operation.amount_text:
        what += f" of {clean(operation.amount_text, 40)}"
    if operation.order_id:
        what += f" for order {clean(operation.order_id, 64)}"
    return f"{what} {_became(operation)}"


def _became(operation: OperationView) -> str:
    if operation.state == "succeeded" and operation.came_back:
        return "was made, but the money came back to the shop since. A colleague takes care of it."
    if operation.state == "failed" and operation.reason == "settled_by_staff":
        return "was not made: a colleague has checked it with the shop."
    if operation.state == "succeeded":
        reference = clean(operation.reference, 120)
        return f"is done (reference {reference})." if reference else "is done."
    if operation.state == "rejected":
        return _rejected(operation)
    known = _OPEN.get(operation.state) or _ENDED.get(operation.state)
    # A state that is new here is no reason to say more than is known.
    return known or "is still being checked."


def _rejected(operation: OperationView) -> str:
    who = _DECIDERS.get(operation.decided_by, "it was turned down")
    reason = clean(operation.reason, MAX_REASON).strip()
    if not reason or operation.decided_by == "customer":
        return f"was not made: {who}."
    return f'was not made: {who}. Their reason: "{reason}"'
