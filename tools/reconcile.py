"""What to do about an operation whose outcome nobody knows.

Look it up by its key first. Send again only with the same key and the same bytes, only inside the
provider's key window, and no more than MAX_SENDS times. After that a person looks at the evidence.
"""

from datetime import datetime, timedelta

from django.db import transaction

from accounts.services import DelegationRevokedError, ShopUnavailableError
from tools import operations, registry
from tools.access import client_for
from tools.clients.capabilities import Capabilities, for_provider
from tools.clients.errors import (
    InProgressError,
    NotFoundError,
    RefusedError,
    ThrottledError,
    UnauthorizedError,
    UnavailableError,
    UnknownOutcomeError,
)
from tools.clients.shapes import Receipt
from tools.clients.shop import ShopClient
from tools.clock import database_now
from tools.models import Attempt, AttemptOutcome, Observation, Operation, State
from tools.outside import leave_database
from tools.sending import Lease, Outcome, get, new_attempt, settle, transmit

MAX_SENDS = 5
# Without an answer for this long a person is asked, whatever the window.
GIVE_UP_AFTER = timedelta(hours=24)
_CANNOT_LOOK = (
    UnavailableError,
    UnauthorizedError,
    ThrottledError,
    UnknownOutcomeError,
    InProgressError,
    RefusedError,
    NotFoundError,
    DelegationRevokedError,
    ShopUnavailableError,
)


def reconcile(*, operation_id: int, lease: Lease) -> Operation:
    """Find out what became of a send. Returns the operation as it then stands."""
    operation = _take_over(operation_id, lease)
    if operation.state != State.UNKNOWN:
        return operation
    leave_database()
    try:
        client = client_for(operation.customer)
        receipt = client.find_effect(operation.idempotency_key)
    except _CANNOT_LOOK as exc:
        return _wait_or_give_up(operation, lease, f"look-up failed: {type(exc).__name__}")
    if receipt is not None:
        return settle(operation.pk, _from_look_up(operation, receipt), lease)
    return _not_there(operation, client, lease)


def delay_before_next_look(operation: Operation, now: datetime) -> float:
    """Seconds to wait: half of what has passed since the first send, from 2 seconds to 5 minutes."""
    since = (now - (operation.first_sent_at or now)).total_seconds()
    return min(max(2.0, since / 2), 300.0)


def _take_over(operation_id: int, lease: Lease) -> Operation:
    """Become the operation's holder. A send left open by a lost worker is unknown from here on."""
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        if operation.state not in {State.SENDING, State.UNKNOWN} or operation.epoch > lease.epoch:
            return get(operation_id)
        now = database_now()
        if operation.state == State.SENDING:
            operation.lose_sight(reason="worker_lost")
            Attempt.objects.filter(operation=operation, outcome="").update(
                outcome=AttemptOutcome.UNKNOWN, detail="worker_lost", finished_at=now
            )
            operations.record(
                operation, "unknown", actor="system", at=now, data={"detail": "worker_lost"}
            )
        operation.epoch = lease.epoch
        operation.save(update_fields=["state", "reason", "epoch"])
    return get(operation_id)


def _from_look_up(operation: Operation, receipt: Receipt) -> Outcome:
    """The provider shows an effect under our key: is it the one that was approved?"""
    is_ours = receipt.kind == operation.kind and receipt.order_id == operation.order_id
    if operation.kind == "refund":
        is_ours = is_ours and (receipt.amount, receipt.currency) == (
            operation.amount,
            operation.currency,
        )
    if not is_ours:
        return Outcome(AttemptOutcome.UNKNOWN, "look_up_mismatch", needs_person=True)
    return Outcome(AttemptOutcome.SUCCEEDED, "found_by_look_up", reference=receipt.id)


def _not_there(operation: Operation, client: ShopClient, lease: Lease) -> Operation:
    """The look-up shows nothing. That counts only once the provider's own lag has passed."""
    capabilities = for_provider(operation.shop.provider)
    with transaction.atomic(durable=True):
        locked = operations.lock(operation.pk)
        if locked.state != State.UNKNOWN or locked.epoch != lease.epoch:
            return locked
        now = database_now()
        Observation.objects.create(
            operation=locked, source="look_up", body={"found": False}, at=now
        )
        operations.record(
            locked, "observed", actor="agent", at=now, data={"source": "look_up", "found": False}
        )
        if not _is_credible(locked, capabilities, now):
            return locked
        if not _may_resend(locked, capabilities, now):
            locked.need_person(reason="not found and no safe way to send again")
            locked.save(update_fields=["state", "reason"])
            operations.record(locked, "needs_person", actor="system", at=now)
            operations.announce(locked)
            return locked
        if registry.is_off(tool=registry.effect_tool(locked.kind).name, shop_id=locked.shop_id):
            return locked
        locked.start_again(epoch=lease.epoch)
        locked.save(update_fields=["state", "epoch"])
        attempt = new_attempt(locked, lease, now)
    return transmit(locked, attempt, client, lease)


def _is_credible(operation: Operation, capabilities: Capabilities, now: datetime) -> bool:
    attempts = list(operation.attempts.order_by("n"))
    if all(attempt.outcome == AttemptOutcome.NOT_SENT for attempt in attempts):
        return True
    lag = timedelta(seconds=capabilities.lookup_lag_seconds)
    return now - max(attempt.finished_at or attempt.started_at for attempt in attempts) >= lag


def _may_resend(operation: Operation, capabilities: Capabilities, now: datetime) -> bool:
    """Same key, inside the window that the provider promises, and not for ever."""
    if operation.first_sent_at is None or operation.attempts.count() >= MAX_SENDS:
        return False
    age = (now - operation.first_sent_at).total_seconds()
    return capabilities.can_resend(age_seconds=age)


def _wait_or_give_up(operation: Operation, lease: Lease, why: str) -> Operation:
    with transaction.atomic(durable=True):
        locked = operations.lock(operation.pk)
        now = database_now()
        if locked.state != State.UNKNOWN or locked.epoch != lease.epoch:
            return locked
        if locked.first_sent_at is None or now - locked.first_sent_at < GIVE_UP_AFTER:
            return locked
        locked.need_person(reason=why)
        locked.save(update_fields=["state", "reason"])
        operations.record(locked, "needs_person", actor="system", at=now)
        operations.announce(locked)
    return locked
