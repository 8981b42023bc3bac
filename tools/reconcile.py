"""What to do about an operation whose outcome nobody knows.

Believe our own worker's late evidence and the shop's signed events, then look the effect up by its
key. Send again only with the same key and the same bytes, only inside the provider's key window, no
more than MAX_SENDS times, and only while everything that allowed the first send still holds. After
that a person looks at the evidence.
"""

from datetime import datetime, timedelta

from django.db import transaction

from accounts.services import DelegationRevokedError, ShopUnavailableError
from tools import ablation, execution, operations
from tools.access import ask
from tools.adapters import RestingError
from tools.clients.capabilities import Capabilities, for_provider
from tools.clients.errors import (
    NotFoundError,
    ThrottledError,
    UnauthorizedError,
    UnavailableError,
)
from tools.clients.shapes import Order
from tools.clock import database_now
from tools.execution import Refusal, StillGranted
from tools.models import Attempt, AttemptOutcome, Kind, Observation, Operation, State
from tools.outcome import Outcome, of_look_up, reason_of_refusal
from tools.proof import LOOK_UP, TAKEN_BACK, effects_told, is_approved_one
from tools.sending import (
    ACCESS_REVOKED,
    ORDER_NOT_FOUND,
    STALE_WORKER,
    Lease,
    carrier_of,
    get,
    holds,
    is_behind,
    is_waiting,
    look_at_subject,
    new_attempt,
    settle,
    transmit,
)
from tools.tickets import TicketFacts

MAX_SENDS = 5
# Without an answer for this long a person is asked, whatever the window.
GIVE_UP_AFTER = timedelta(hours=24)
_CANNOT_ASK = (
    UnavailableError,
    UnauthorizedError,
    ThrottledError,
    NotFoundError,
    DelegationRevokedError,
    ShopUnavailableError,
)


def reconcile(*, operation_id: int, lease: Lease, still_granted: StillGranted) -> Operation:
    """Find out what became of a send. Returns the operation as it then stands.

    Raises nothing when the shop cannot be asked: the operation stays `unknown` until a person is
    asked. `lease` is of the operation's own task.
    """
    operation = _take_over(operation_id, lease)
    if operation.state != State.UNKNOWN or not holds(lease, operation):
        return operation
    seen = _known_here(operation)
    if seen is not None:
        return settle(operation.pk, seen, lease)
    if operation.kind == Kind.CLOSE_TICKET:
        return _leave_to_person(operation.pk, lease, "mail has no key: it is never sent again")
    if is_waiting(operation):
        return operation
    capabilities = ablation.heeded(for_provider(operation.shop.provider))
    try:
        seen = _found_at_shop(operation, capabilities)
        if seen is not None:
            return settle(operation.pk, seen, lease)
        if not _should_send_again(operation.pk, lease, capabilities):
            return get(operation.pk)
        client, subject = look_at_subject(operation)
    except _CANNOT_ASK as exc:
        return _wait_or_give_up(operation.pk, lease, exc)
    operation, attempt = _begin_again(operation.pk, subject, lease, still_granted)
    if attempt is None:
        return operation
    return transmit(operation, attempt, carrier_of(client, subject), lease)


def look(*, operation_id: int, lease: Lease) -> Operation:
    """Find out what became of a send by reading alone. Returns the operation as it then stands.

    Still `unknown` where nothing shows it, or the shop cannot be asked: raises nothing then either.
    """
    operation = _take_over(operation_id, lease)
    if operation.state != State.UNKNOWN or not holds(lease, operation):
        return operation
    seen = _known_here(operation)
    capabilities = ablation.heeded(for_provider(operation.shop.provider))
    can_be_asked = capabilities.lookup_by_key and operation.kind != Kind.CLOSE_TICKET
    if seen is None and can_be_asked and not is_waiting(operation):
        try:
            seen = _found_at_shop(operation, capabilities)
        except _CANNOT_ASK:
            return operation
        if seen is None:
            _note_miss(operation.pk, lease)
    return operation if seen is None else settle(operation.pk, seen, lease)


def hand_over(*, operation_id: int, lease: Lease, why: str) -> None:
    """Nobody will drive this operation any more: what may have been sent goes to a person.

    What certainly was not sent is withdrawn, so that it does not keep its order closed to other
    changes. Changes nothing where it is decided already, or held by a later lease.
    """
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        if operation.epoch > lease.epoch:
            return
        now = database_now()
        if operation.state == State.APPROVED:
            operations.cancel(operation_id=operation_id, by="system", reason=why, now=now)
        elif operation.state in {State.SENDING, State.UNKNOWN}:
            _close_attempts(operation, now)
            operation.epoch = lease.epoch
            operation.save(update_fields=["epoch"])
            _ask_person(operation, why, now)


def delay_before_next_look(operation: Operation, now: datetime) -> float:
    """Seconds to wait: half of what has passed since the first send, from 2 seconds to 5 minutes.

    Longer only where the shop has asked for it.
    """
    since = (now - (operation.first_sent_at or now)).total_seconds()
    return max(min(max(2.0, since / 2), 300.0), delay_asked_for(operation, now))


def delay_asked_for(operation: Operation, now: datetime) -> float:
    """Seconds until the moment that the shop has named; 0 when it has named none."""
    if operation.not_before is None:
        return 0.0
    return max(0.0, (operation.not_before - now).total_seconds())


def _take_over(operation_id: int, lease: Lease) -> Operation:
    """Become the operation's holder. A send left open by a lost worker is unknown from here on."""
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        is_open = operation.state in {State.SENDING, State.UNKNOWN}
        if not is_open or is_behind(lease, operation):
            return get(operation_id)
        now = database_now()
        if operation.state == State.SENDING:
            operation.lose_sight(reason="worker_lost")
            _close_attempts(operation, now)
            operations.record(
                operation,
                "unknown",
                actor="system",
                at=now,
                data={"detail": "worker_lost", "epoch": lease.epoch},
            )
        operation.epoch = lease.epoch
        operation.save(update_fields=["state", "reason", "epoch"])
    return get(operation_id)


def _close_attempts(operation: Operation, now: datetime) -> None:
    """A try whose worker never came back may have reached the shop."""
    Attempt.objects.filter(operation=operation, outcome="").update(
        outcome=AttemptOutcome.UNKNOWN, detail="worker_lost", finished_at=now
    )


def _known_here(operation: Operation) -> Outcome | None:
    """What our own worker's late evidence or the shop's events say, without asking anybody."""
    return _seen_by_a_stale_worker(operation) or _told_by_shop(operation)


def _found_at_shop(operation: Operation, capabilities: Capabilities) -> Outcome | None:
    """The effect under the operation's key, where the provider lets it be looked up.

    Raises what the shop's client raises.
    """
    if not capabilities.lookup_by_key:
        return None
    receipt = ask(operation.customer, lambda client: client.find_effect(operation.idempotency_key))
    return None if receipt is None else of_look_up(operation, receipt)


def _seen_by_a_stale_worker(operation: Operation) -> Outcome | None:
    """The receipt that a worker of ours brought home after it had lost the operation."""
    for observation in operation.observations.filter(source=STALE_WORKER).order_by("id"):
        if observation.body.get("outcome") == AttemptOutcome.SUCCEEDED:
            return Outcome(
                AttemptOutcome.SUCCEEDED,
                "seen_by_stale_worker",
                observation.body["reference"],
                is_pending="pending" in observation.body,
            )
    return None


def _told_by_shop(operation: Operation) -> Outcome | None:
    """What the shop's signed events since the first send come to, if they come to anything.

    One that does not fit, and money that came back to the shop, are for a person to weigh.
    """
    told = effects_told(operation)
    if any(effect.status in TAKEN_BACK for effect in told):
        return Outcome(AttemptOutcome.UNKNOWN, "webhook_taken_back", needs_person=True)
    if told and not all(is_approved_one(operation, effect) for effect in told):
        return Outcome(AttemptOutcome.UNKNOWN, "webhook_mismatch", needs_person=True)
    if told:
        return Outcome(AttemptOutcome.SUCCEEDED, "told_by_webhook", reference=told[0].reference)
    return None


def _should_send_again(operation_id: int, lease: Lease, capabilities: Capabilities) -> bool:
    """Nothing was found under the key, or nothing can be looked up: what follows from that?

    A miss counts only once the provider's own lag has passed. Without a way to look, sending again
    inside the key window is the only question that the provider answers.
    """
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        if operation.state != State.UNKNOWN or not holds(lease, operation):
            return False
        now = database_now()
        attempts = list(operation.attempts.order_by("n"))
        if capabilities.lookup_by_key:
            _observe_miss(operation, now)
            if not _is_credible(attempts, capabilities, now):
                return False
        last = attempts[-1]
        if last.outcome == AttemptOutcome.REFUSED:
            _end_refused(operation, last, capabilities, now)
            return False
        if not _may_resend(operation, attempts, capabilities, now):
            _ask_person(operation, "not found and no safe way to send again", now)
            return False
        return True


def _note_miss(operation_id: int, lease: Lease) -> None:
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        if operation.state == State.UNKNOWN and holds(lease, operation):
            _observe_miss(operation, database_now())


def _observe_miss(operation: Operation, now: datetime) -> None:
    Observation.objects.create(operation=operation, source=LOOK_UP, body={"found": False}, at=now)
    operations.record(
        operation, "observed", actor="agent", at=now, data={"source": LOOK_UP, "found": False}
    )


def _is_credible(attempts: list[Attempt], capabilities: Capabilities, now: datetime) -> bool:
    lag = timedelta(seconds=capabilities.lookup_lag_seconds)
    return now - max(attempt.finished_at or attempt.started_at for attempt in attempts) >= lag


def _end_refused(
    operation: Operation, last: Attempt, capabilities: Capabilities, now: datetime
) -> None:
    """The last send was refused, and the ones before it left no trace.

    That is a definite end where effects can be looked up, it is the shop's word about the operation,
    and the shop keeps it under the key; otherwise it says nothing about the earlier sends, one of
    which may still be with a worker that stands still at the socket.
    """
    is_about_it = last.detail not in {ACCESS_REVOKED, ORDER_NOT_FOUND}
    if not (capabilities.lookup_by_key and capabilities.errors_cached and is_about_it):
        _ask_person(operation, f"refused when sent again: {last.detail}", now)
        return
    operation.fail(reason=reason_of_refusal(operation, last.detail), at=now)
    operation.save(update_fields=["state", "reason", "finished_at"])
    data = {"detail": last.detail, "reason": operation.reason}
    operations.record(operation, "failed", actor="system", at=now, data=data)
    operations.announce(operation)


def _may_resend(
    operation: Operation, attempts: list[Attempt], capabilities: Capabilities, now: datetime
) -> bool:
    """Same key, inside the window that the provider promises, and not for ever.

    However long the window is, and whatever keeps the sends back (a switch, no connection), a person
    is asked after a day.
    """
    sends = [attempt for attempt in attempts if attempt.outcome != AttemptOutcome.NOT_SENT]
    if operation.first_sent_at is None or len(sends) >= MAX_SENDS:
        return False
    if not ablation.is_on("window"):
        return True
    age = now - operation.first_sent_at
    return age < GIVE_UP_AFTER and capabilities.can_resend(age_seconds=age.total_seconds())


def _begin_again(
    operation_id: int, subject: Order | TicketFacts, lease: Lease, still_granted: StillGranted
) -> tuple[Operation, Attempt | None]:
    """Decide again as for a first send; what forbids it now is for a person to weigh.

    The operation cannot end unsent any more, and a changed order may be its own doing. A send that
    can do nothing more than ask goes out all the same.
    """
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        if operation.state != State.UNKNOWN or not holds(lease, operation):
            return operation, None
        now = database_now()
        if execution.is_off(operation):
            return operation, None
        refusal = execution.why_not(operation, subject, still_granted, now)
        if refusal is not None and not _can_only_ask(operation, subject, refusal):
            execution.keep_refusal(operation, refusal, now)
            _ask_person(operation, f"not sent again: {refusal.reason}", now)
            return operation, None
        operation.start_again(epoch=lease.epoch)
        operation.save(update_fields=["state", "epoch"])
        return operation, new_attempt(operation, lease)


def _can_only_ask(operation: Operation, subject: Order | TicketFacts, refusal: Refusal) -> bool:
    """Is the order cancelled that was to be cancelled, so that sending again can do nothing more?

    It asks then, under the same key, whose doing that was: the shop answers with our own effect, or
    refuses because somebody else came first. Only where the shop has a word for that.
    """
    return (
        refusal is execution.ORDER_CHANGED
        and operation.kind == Kind.CANCEL
        and isinstance(subject, Order)
        and subject.status == "cancelled"
        and bool(for_provider(operation.shop.provider).already_done)
    )


def _wait_or_give_up(operation_id: int, lease: Lease, failure: Exception) -> Operation:
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        now = database_now()
        if operation.state != State.UNKNOWN or not holds(lease, operation):
            return operation
        if operation.first_sent_at is not None and now - operation.first_sent_at >= GIVE_UP_AFTER:
            _ask_person(operation, f"look-up failed: {type(failure).__name__}", now)
            return operation
        wait = getattr(failure, "retry_after", None)
        if wait is not None and not isinstance(failure, RestingError):
            operation.not_before = now + timedelta(seconds=wait)
            operation.save(update_fields=["not_before"])
    return operation


def _leave_to_person(operation_id: int, lease: Lease, why: str) -> Operation:
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        if operation.state == State.UNKNOWN and holds(lease, operation):
            _ask_person(operation, why, database_now())
    return operation


def _ask_person(operation: Operation, why: str, now: datetime) -> None:
    """In the caller's transaction, with the row locked."""
    operation.need_person(reason=why)
    operation.save(update_fields=["state", "reason"])
    operations.record(operation, "needs_person", actor="system", at=now, data={"reason": why})
    operations.announce(operation)
