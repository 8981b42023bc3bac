"""Gate six: send an approved operation, and write down what is known of the outcome.

Intent, act, evidence: `sending` is committed before the first byte leaves, the call holds no
transaction and no connection, and its outcome is committed only by the worker that still holds
the operation's epoch. A stale worker's answer becomes an observation.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from accounts.models import CustomerStatus
from accounts.services import DelegationRevokedError
from tools import operations, policy, registry
from tools.access import client_for
from tools.clients.capabilities import for_provider
from tools.clients.errors import (
    InProgressError,
    KeyReusedError,
    NotFoundError,
    RefusedError,
    ThrottledError,
    UnauthorizedError,
    UnavailableError,
    UnknownOutcomeError,
)
from tools.clients.shapes import Order, Receipt
from tools.clients.shop import ShopClient
from tools.clock import database_now
from tools.models import (
    Attempt,
    AttemptOutcome,
    Finding,
    Gate,
    Kind,
    Observation,
    Operation,
    State,
    Verdict,
)
from tools.outside import leave_database
from tools.policy import DeniedError, Ruling
from tools.seal import BrokenSealError, facts_of, open_seal, request_body


@dataclass(frozen=True)
class Lease:
    """A worker's right to act: its fencing token, and until when by `time.monotonic()`."""

    epoch: int
    ends_at: float


@dataclass(frozen=True)
class Outcome:
    """What one try showed. `reference` is the shop's own id of the effect."""

    kind: AttemptOutcome
    detail: str
    reference: str = ""
    needs_person: bool = False


# Asks the layer above whether the people who said yes still may; called inside the transaction.
StillGranted = Callable[[Operation], bool]


def send(*, operation_id: int, lease: Lease, still_granted: StillGranted) -> Operation:
    """Send an approved operation once, after deciding everything again.

    Returns the operation as it then stands: final, `unknown`, or still `approved` when a kill
    switch or an unreachable shop says "not now". Raises UnavailableError or ShopUnavailableError
    when the order's facts cannot be read; nothing was sent then.
    """
    operation = get(operation_id)
    if operation.state != State.APPROVED:
        return operation
    leave_database()
    try:
        client = client_for(operation.customer)
        order = client.get_order(operation.order_id)
    except (UnauthorizedError, DelegationRevokedError):
        return _withdraw(operation, "access_revoked")
    except NotFoundError:
        return operations.supersede(
            operation_id=operation.pk, reason="order_not_found", now=database_now()
        )
    operation, attempt = _begin(operation.pk, order, lease, still_granted)
    if attempt is None:
        return operation
    return transmit(operation, attempt, client, lease)


def get(operation_id: int) -> Operation:
    """The operation with its shop and customer, unlocked."""
    return Operation.objects.select_related("shop", "customer__shop").get(pk=operation_id)


def _withdraw(operation: Operation, reason: str) -> Operation:
    return operations.cancel(
        operation_id=operation.pk, by="system", reason=reason, now=database_now()
    )


def _begin(
    operation_id: int, order: Order, lease: Lease, still_granted: StillGranted
) -> tuple[Operation, Attempt | None]:
    """Decide again under lock, then commit the intent to send. Without an attempt: do not send."""
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        if operation.state != State.APPROVED:
            return operation, None
        now = database_now()
        refusal = _why_not(operation, order, still_granted, now)
        if refusal is not None:
            return refusal(now), None
        if registry.is_off(
            tool=registry.effect_tool(operation.kind).name, shop_id=operation.shop_id
        ):
            return operation, None
        operation.start(epoch=lease.epoch, at=now)
        operation.save(update_fields=["state", "epoch", "first_sent_at"])
        return operation, new_attempt(operation, lease, now)


def _why_not(
    operation: Operation, order: Order, still_granted: StillGranted, now: datetime
) -> Callable[[datetime], Operation] | None:
    """How the operation ends unsent, or None when it may be sent."""

    def superseded(reason: str) -> Callable[[datetime], Operation]:
        return lambda at: operations.supersede(operation_id=operation.pk, reason=reason, now=at)

    if operation.expires_at <= now:
        return lambda at: operations.expire(operation_id=operation.pk, now=at)
    if operation.customer.status != CustomerStatus.ACTIVE:
        return lambda at: operations.cancel(
            operation_id=operation.pk, by="system", reason="customer_blocked", now=at
        )
    if not still_granted(operation):
        return superseded("approval_no_longer_valid")
    content = open_seal(operation.seal, operation.digest)
    if facts_of(order) != content["facts"]:
        _keep(operation, Ruling(), "facts_unchanged", Finding.DENY, now)
        return superseded("order_changed")
    return None if _same_decision(operation, content, order, now) else superseded("policy_changed")


def _same_decision(
    operation: Operation, content: dict[str, Any], order: Order, now: datetime
) -> bool:
    """Do today's rules still lead to exactly this, with no more people to ask?"""
    tool = registry.effect_tool(operation.kind)
    shop = operation.shop
    ruling = Ruling()
    arguments = tool.arguments.model_validate(content["arguments"])
    # Locked as at the proposal: totals are counted one decision at a time.
    type(operation.customer).objects.select_for_update().get(pk=operation.customer_id)
    try:
        intent = tool.decide(arguments, order, shop, now, ruling)
    except DeniedError:
        _keep(operation, ruling, "same_decision", Finding.DENY, now)
        return False
    total = policy.get_rolling_total(
        customer_id=operation.customer_id, shop=shop, now=now, before_id=operation.pk
    )
    roles = policy.required_roles(intent, shop=shop, rolling_total=total, ruling=ruling)
    is_same = intent.request == content["request"] and set(roles) <= set(operation.granted_roles)
    _keep(operation, ruling, "same_decision", Finding.ALLOW if is_same else Finding.DENY, now)
    return is_same


def _keep(operation: Operation, ruling: Ruling, rule: str, finding: Finding, now: datetime) -> None:
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


def new_attempt(operation: Operation, lease: Lease, now: datetime) -> Attempt:
    """Number and store a try before it is made, in the caller's transaction."""
    body = request_body(open_seal(operation.seal, operation.digest))
    attempt = Attempt.objects.create(
        operation=operation,
        n=operation.attempts.count() + 1,
        epoch=lease.epoch,
        request_digest=hashlib.sha256(body).hexdigest(),
        started_at=now,
    )
    operations.record(operation, "sending", actor="agent", at=now, data={"attempt": attempt.n})
    return attempt


def transmit(operation: Operation, attempt: Attempt, client: ShopClient, lease: Lease) -> Operation:
    """Put the sealed bytes on the wire and commit what came of it."""
    leave_database()
    outcome = _over_the_wire(operation, client, lease)
    return settle(operation.pk, outcome, lease, attempt_id=attempt.pk)


def _over_the_wire(operation: Operation, client: ShopClient, lease: Lease) -> Outcome:
    try:
        content = open_seal(operation.seal, operation.digest)
    except BrokenSealError:
        return Outcome(AttemptOutcome.NOT_SENT, "broken_seal", needs_person=True)
    # In the same breath as the socket write: a worker that overslept must not start a send.
    if time.monotonic() + settings.SHOP_TIMEOUT >= lease.ends_at:
        return Outcome(AttemptOutcome.NOT_SENT, "lease_too_short")
    try:
        receipt = _call(operation, content, client)
    except RefusedError as exc:
        return Outcome(AttemptOutcome.REFUSED, exc.code)
    except (NotFoundError, UnauthorizedError) as exc:
        return Outcome(AttemptOutcome.REFUSED, type(exc).__name__)
    except KeyReusedError:
        return Outcome(AttemptOutcome.UNKNOWN, "key_reused", needs_person=True)
    except ThrottledError:
        before = for_provider(operation.shop.provider).throttles_before_execution
        kind = AttemptOutcome.NOT_SENT if before else AttemptOutcome.UNKNOWN
        return Outcome(kind, "throttled")
    except InProgressError:
        return Outcome(AttemptOutcome.UNKNOWN, "in_progress")
    except UnavailableError:
        return Outcome(AttemptOutcome.NOT_SENT, "unavailable")
    except UnknownOutcomeError as exc:
        return Outcome(AttemptOutcome.UNKNOWN, exc.kind, needs_person=exc.kind == "mismatch")
    return Outcome(AttemptOutcome.SUCCEEDED, "confirmed", reference=receipt.id)


def _call(operation: Operation, content: dict[str, Any], client: ShopClient) -> Receipt:
    body = request_body(content)
    key = operation.idempotency_key
    if operation.kind == Kind.REFUND:
        return client.refund(operation.order_id, body, key)
    if operation.kind == Kind.CANCEL:
        return client.cancel(operation.order_id, content["order_version"], body, key)
    return client.change_address(operation.order_id, content["order_version"], body, key)


def settle(
    operation_id: int, outcome: Outcome, lease: Lease, *, attempt_id: int | None = None
) -> Operation:
    """Commit an outcome, if this lease still holds the operation; else keep it as evidence."""
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        now = database_now()
        if attempt_id is not None:
            Attempt.objects.filter(pk=attempt_id, outcome="").update(
                finished_at=now, outcome=outcome.kind, detail=outcome.detail[:200]
            )
        if operation.epoch != lease.epoch or operation.state not in {State.SENDING, State.UNKNOWN}:
            _observe(operation, outcome, lease, now)
            return operation
        _move(operation, outcome, now)
        operation.save(update_fields=["state", "reference", "reason", "finished_at"])
        operations.record(
            operation, operation.state, actor="agent", at=now, data={"detail": outcome.detail}
        )
        operations.announce(operation)
    return operation


def _move(operation: Operation, outcome: Outcome, now: datetime) -> None:
    if outcome.kind == AttemptOutcome.SUCCEEDED:
        operation.succeed(reference=outcome.reference, at=now)
    elif outcome.kind == AttemptOutcome.REFUSED:
        operation.fail(reason=outcome.detail, at=now)
    elif outcome.needs_person:
        operation.need_person(reason=outcome.detail)
    else:
        operation.lose_sight(reason=outcome.detail)


def _observe(operation: Operation, outcome: Outcome, lease: Lease, now: datetime) -> None:
    Observation.objects.create(
        operation=operation,
        source="stale_worker",
        body={
            "outcome": outcome.kind,
            "detail": outcome.detail,
            "reference": outcome.reference,
            "epoch": lease.epoch,
        },
        at=now,
    )
    operations.record(operation, "observed", actor="agent", at=now, data={"source": "stale_worker"})
