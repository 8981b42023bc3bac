"""Gate six: everything is decided again, on the order as it is now, before bytes leave.

Nothing here sends. `why_not` says what stands in the way; `end_unsent` ends an operation for it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from accounts import services as accounts
from accounts.models import CustomerStatus
from tools import operations, policy, registry
from tools.clients.shapes import Order
from tools.models import Finding, Gate, Operation, State, Verdict
from tools.policy import DeniedError, Ruling
from tools.seal import BrokenSealError, facts_of, open_seal
from tools.tickets import TicketFacts

# Asks the layer above whether the people who said yes still may; called inside the transaction.
StillGranted = Callable[[Operation], bool]


@dataclass(frozen=True)
class Refusal:
    """Why an approved operation must not be sent, and how it ends when it never was."""

    rule: str
    reason: str
    end: State = State.SUPERSEDED
    ruling: Ruling = field(default_factory=Ruling)


EXPIRED = Refusal("not_expired", "expired", State.EXPIRED)
CUSTOMER_BLOCKED = Refusal("customer_is_active", "customer_blocked", State.CANCELLED)
ACCESS_REVOKED = Refusal("delegation_is_valid", "access_revoked", State.CANCELLED)
NOT_GRANTED = Refusal("approvals_still_hold", "approval_no_longer_valid")
SEAL_BROKEN = Refusal("seal_is_whole", "seal_broken")
ORDER_NOT_FOUND = Refusal("customer_owns_it", "order_not_found")
ORDER_CHANGED = Refusal("facts_unchanged", "order_changed")
TICKET_CHANGED = Refusal("facts_unchanged", "ticket_changed")


def why_not(
    operation: Operation, subject: Order | TicketFacts, still_granted: StillGranted, now: datetime
) -> Refusal | None:
    """What forbids sending this operation now; None when nothing does.

    In a transaction that has the operation's row locked. The customer's row need not be: only older
    operations count in the total, and those are all there. Its expiry is not looked at: that counts
    for the first send only.
    """
    if operation.customer.status != CustomerStatus.ACTIVE:
        return CUSTOMER_BLOCKED
    if isinstance(subject, Order) and not accounts.has_leave(operation.customer_id):
        return ACCESS_REVOKED  # since the order was read, with a token that is still in hand
    if not still_granted(operation):
        return NOT_GRANTED
    try:
        content = open_seal(operation.seal, operation.digest)
    except BrokenSealError:
        return SEAL_BROKEN
    if facts_of(subject) != content["facts"]:
        return ORDER_CHANGED if isinstance(subject, Order) else TICKET_CHANGED
    return _changed_decision(operation, content, subject, now)


def is_off(operation: Operation) -> bool:
    """Is a kill switch thrown for this operation's tool or shop?"""
    tool = registry.effect_tool(operation.kind).name
    return registry.is_off(tool=tool, shop_id=operation.shop_id)


def end_unsent(operation: Operation, refusal: Refusal, now: datetime) -> Operation:
    """End an operation that was not sent, and keep the verdict that ended it."""
    keep_refusal(operation, refusal, now)
    match refusal.end:
        case State.EXPIRED:
            return operations.expire(operation_id=operation.pk, now=now)
        case State.CANCELLED:
            return operations.cancel(
                operation_id=operation.pk, by="system", reason=refusal.reason, now=now
            )
        case _:
            return operations.supersede(operation_id=operation.pk, reason=refusal.reason, now=now)


def keep_refusal(operation: Operation, refusal: Refusal, now: datetime) -> None:
    """Store the verdict that stopped a send."""
    _keep(operation, refusal.rule, Finding.DENY, refusal.ruling, now)


def _keep(operation: Operation, rule: str, finding: Finding, ruling: Ruling, now: datetime) -> None:
    """Store what gate six found."""
    Verdict.objects.create(
        shop=operation.shop,
        customer=operation.customer,
        task_id=operation.task_id,
        step_n=operation.step_n,
        tool=registry.effect_tool(operation.kind).name,
        gate=Gate.EXECUTE,
        rule=rule,
        finding=finding,
        inputs={
            "rules": [
                {"rule": ruled.rule, "finding": ruled.finding, **ruled.inputs}
                for ruled in ruling.verdicts
            ]
        },
        policy_version=operation.shop.policy_version,
        at=now,
    )


def _changed_decision(
    operation: Operation,
    content: dict[str, Any],
    subject: Order | TicketFacts,
    now: datetime,
) -> Refusal | None:
    """Do today's rules still lead to exactly this, with no more people to ask?"""
    tool = registry.effect_tool(operation.kind)
    ruling = Ruling()
    changed = Refusal("same_decision", "policy_changed", ruling=ruling)
    arguments = tool.arguments.model_validate(content["arguments"])
    try:
        intent = tool.decide(arguments, subject, operation.shop, now, ruling)
    except DeniedError:
        return changed
    total = policy.get_rolling_total(
        customer_id=operation.customer_id, shop=operation.shop, now=now, before_id=operation.pk
    )
    roles = policy.required_roles(intent, shop=operation.shop, rolling_total=total, ruling=ruling)
    # A cancellation's request names no amount, and people were shown one.
    asked = (intent.request, intent.amount, intent.currency)
    is_same = asked == (content["request"], content["amount"], content["currency"])
    if not is_same or not set(roles) <= set(operation.granted_roles):
        return changed
    _keep(operation, "same_decision", Finding.ALLOW, ruling, now)
    return None
