"""Send an approved operation, and write down what is known of the outcome.

Intent, act, evidence: `sending` is committed before the first byte leaves, the call holds no
transaction and no connection, and its outcome is committed only by the worker that still holds
the operation's epoch. A stale worker's answer becomes an observation.
"""

import hashlib
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from accounts.services import DelegationRevokedError
from tools import (
    ablation,
    adapters,
    carriers,
    execution,
    first_look,
    history,
    inquiries,
    operations,
    reversals,
    tickets,
    transits,
)
from tools.access import ask
from tools.carriers import Carrier
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
from tools.execution import Refusal, StillGranted
from tools.models import (
    Attempt,
    AttemptOutcome,
    Kind,
    LookFirst,
    Observation,
    Operation,
    State,
)
from tools.outcome import Outcome, confirmed, reason_of_refusal
from tools.outside import leave_database
from tools.proof import LOOK_UP, Effect
from tools.seal import BrokenSealError, open_seal, request_body
from tools.tickets import TicketFacts
from tools.trigger import Point, reach

# Refusals that say nothing about what an earlier send under the same key has done.
ORDER_NOT_FOUND = "order_not_found"
ACCESS_REVOKED = "access_revoked"
STALE_WORKER = "stale_worker"


@dataclass(frozen=True)
class Lease:
    """A worker's right to act on the operations of its task.

    Its fencing token, and until when by `time.monotonic()`.
    """

    epoch: int
    ends_at: float


def holds(lease: Lease, operation: Operation) -> bool:
    """The fence of every state write: is the operation this lease's, and nobody's younger?"""
    return operation.epoch == lease.epoch or not ablation.is_on("fence")


def is_behind(lease: Lease, operation: Operation) -> bool:
    """Has a younger claim held the operation before? Then it is not this lease's to take."""
    return operation.epoch > lease.epoch and ablation.is_on("fence")


def send(*, operation_id: int, lease: Lease, still_granted: StillGranted) -> Operation:
    """Send an approved operation once, after deciding everything again.

    Returns the operation as it then stands: final, `unknown`, `needs_person`, or still `approved`
    when nothing was sent because of a kill switch, a lease too short, a wait that the shop asked for
    or a shop that could not be reached. Raises UnavailableError, ThrottledError or ShopUnavailableError when the order's facts
    cannot be read; nothing was sent then. `lease` is of the operation's own task.
    """
    operation = get(operation_id)
    if operation.state != State.APPROVED:
        return operation
    period = history.is_looking_first()
    if period is None and operation.expires_at <= database_now():
        return _end(operation.pk, execution.EXPIRED)  # also while nobody can ask the shop
    if is_waiting(operation):
        return operation
    reach(Point.C12)
    try:
        client, subject = look_at_subject(operation)
        if period is not None and isinstance(subject, Order):
            found = first_look.look(operation, subject, period)
            if found is not None:
                return _take_for_sent(operation.pk, *found, lease)
    except (UnauthorizedError, DelegationRevokedError):
        return _end(operation.pk, execution.ACCESS_REVOKED)
    except NotFoundError:
        return _end(operation.pk, execution.ORDER_NOT_FOUND)
    except first_look.TooEarlyError:
        return operation
    operation, attempt = _begin(operation.pk, subject, lease, still_granted, period)
    if attempt is None:
        return operation
    return transmit(operation, attempt, carrier_of(client, subject), lease)


def is_waiting(operation: Operation) -> bool:
    """Has the shop asked us to call later than now?"""
    return operation.not_before is not None and database_now() < operation.not_before


def get(operation_id: int) -> Operation:
    """The operation with its shop and customer, unlocked."""
    operation = Operation.objects.select_related("shop", "customer").get(pk=operation_id)
    if operation.customer.shop_id == operation.shop_id:
        operation.customer.shop = operation.shop  # one row, and of many columns
    return operation


def look_at_subject(operation: Operation) -> tuple[ShopClient | None, Order | TicketFacts]:
    """The order as its customer sees it now, with the client that saw it; or the ticket's facts."""
    if operation.kind == Kind.CLOSE_TICKET:
        return None, tickets.desk().look(
            ticket_id=operation.ticket_id, closure=operation.idempotency_key
        )
    return ask(operation.customer, lambda client: (client, client.get_order(operation.order_id)))


def carrier_of(client: ShopClient | None, subject: Order | TicketFacts) -> Carrier:
    """Who takes the bytes out: the shop's client for this order, or the mail server.

    The order is the one whose facts were just found to be the sealed ones: an edit that changed
    none of them (a note) has raised its version and voids nothing.
    """
    if client is None or isinstance(subject, TicketFacts):
        return carriers.mail
    return partial(carriers.shop, client, subject.version)


def _end(operation_id: int, refusal: Refusal) -> Operation:
    """End it, unless something else has meanwhile."""
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        if operation.state != State.APPROVED:
            return operation
        return execution.end_unsent(operation, refusal, database_now())


def _take_for_sent(
    operation_id: int, outcome: Outcome, receipt: Receipt | None, lease: Lease
) -> Operation:
    """It may have been sent before commits were lost: what the shop shows is its outcome."""
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        if operation.state != State.APPROVED or is_behind(lease, operation):
            return operation
        now = database_now()
        operation.start(epoch=lease.epoch, at=now)
        operation.save(update_fields=["state", "epoch", "first_sent_at"])
        if receipt is not None:
            body = {"found": True, "effect": Effect.of_receipt(receipt).as_body()}
            Observation.objects.create(operation=operation, source=LOOK_UP, body=body, at=now)
            operations.record(
                operation,
                "observed",
                actor="agent",
                at=now,
                data={"source": LOOK_UP, "found": True},
            )
        _write_down(operation, outcome, lease, now)
    return operation


def _begin(
    operation_id: int,
    subject: Order | TicketFacts,
    lease: Lease,
    still_granted: StillGranted,
    period: LookFirst | None = None,
) -> tuple[Operation, Attempt | None]:
    """Decide again under lock, then commit the intent to send. Without an attempt: do not send.

    `period` is what was on when the shop was looked at.
    """
    with transaction.atomic(durable=True):
        operation = operations.lock(operation_id)
        if operation.state != State.APPROVED or is_behind(lease, operation):
            return operation, None
        now = database_now()
        if operation.expires_at <= now:
            return execution.end_unsent(operation, execution.EXPIRED, now), None
        if execution.is_off(operation) or not history.still_holds(period):
            return operation, None
        refusal = execution.why_not(operation, subject, still_granted, now)
        if refusal is not None:
            return execution.end_unsent(operation, refusal, now), None
        reach(Point.C13)
        operation.start(epoch=lease.epoch, at=now)
        operation.save(update_fields=["state", "epoch", "first_sent_at"])
        if operation.kind == Kind.CLOSE_TICKET:
            tickets.desk().close(
                ticket_id=operation.ticket_id, closure=operation.idempotency_key, now=now
            )
        return operation, new_attempt(operation, lease)


def new_attempt(operation: Operation, lease: Lease) -> Attempt:
    """Number and store a try before it is made, in the caller's transaction."""
    now = database_now()
    body = request_body(open_seal(operation.seal, operation.digest))
    attempt = Attempt.objects.create(
        operation=operation,
        n=operation.attempts.count() + 1,
        epoch=lease.epoch,
        request_digest=hashlib.sha256(body).hexdigest(),
        started_at=now,
    )
    operations.record(
        operation,
        "sending",
        actor="agent",
        at=now,
        data={"attempt": attempt.n, "epoch": lease.epoch},
    )
    return attempt


def transmit(operation: Operation, attempt: Attempt, carrier: Carrier, lease: Lease) -> Operation:
    """Put the sealed bytes on the wire and commit what came of it."""
    leave_database()
    reach(Point.C14)
    outcome = _over_the_wire(operation, carrier, lease)
    reach(Point.C16)
    settled = settle(operation.pk, outcome, lease, attempt_id=attempt.pk)
    if outcome.is_trouble and operation.kind != Kind.CLOSE_TICKET:
        adapters.note_failure(operation.shop, outcome.detail)
    return settled


def _over_the_wire(operation: Operation, carrier: Carrier, lease: Lease) -> Outcome:
    try:
        content = open_seal(operation.seal, operation.digest)
    except BrokenSealError:
        return Outcome(AttemptOutcome.NOT_SENT, "broken_seal", needs_person=True)
    # In the same breath as the socket write: a worker that overslept must not start a send.
    overslept = time.monotonic() + settings.SHOP_TIMEOUT >= lease.ends_at
    if overslept and ablation.is_on("deadline"):
        return Outcome(AttemptOutcome.NOT_SENT, "lease_too_short")
    return _outcome_of_call(operation, content, carrier)


def _outcome_of_call(operation: Operation, content: dict[str, Any], carrier: Carrier) -> Outcome:
    """Tell apart what a call showed, by what it means for the effect."""
    try:
        carried = carrier(operation, content)
    except RefusedError as exc:
        return Outcome(AttemptOutcome.REFUSED, exc.code)
    except NotFoundError:
        return Outcome(AttemptOutcome.REFUSED, ORDER_NOT_FOUND)
    except UnauthorizedError:
        return Outcome(AttemptOutcome.REFUSED, ACCESS_REVOKED)
    except KeyReusedError:
        return Outcome(AttemptOutcome.UNKNOWN, "key_reused", needs_person=True)
    except ThrottledError as exc:
        before = for_provider(operation.shop.provider).throttles_before_execution
        kind = AttemptOutcome.NOT_SENT if before else AttemptOutcome.UNKNOWN
        return Outcome(kind, "throttled", retry_after=exc.retry_after)
    except InProgressError:
        return Outcome(AttemptOutcome.UNKNOWN, "in_progress")
    except UnavailableError:
        return Outcome(AttemptOutcome.NOT_SENT, "unavailable", is_trouble=True)
    except UnknownOutcomeError as exc:
        return Outcome(
            AttemptOutcome.UNKNOWN,
            exc.kind,
            needs_person=exc.kind == "mismatch",
            is_trouble=adapters.is_failure(exc.kind, exc.status),
        )
    return confirmed(carried.reference, is_pending=carried.is_pending)


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
        if not holds(lease, operation) or operation.state not in {State.SENDING, State.UNKNOWN}:
            _observe(operation, outcome, lease, now)
            return operation
        _write_down(operation, outcome, lease, now, attempt_id=attempt_id)
    return operation


def _write_down(
    operation: Operation,
    outcome: Outcome,
    lease: Lease,
    now: datetime,
    *,
    attempt_id: int | None = None,
) -> None:
    """The outcome of a sent operation whose row is locked, with all that follows from it."""
    _move(operation, outcome, attempt_id, now)
    operation.not_before = _after(now, outcome.retry_after)
    operation.save(
        update_fields=[
            "state",
            "reference",
            "reason",
            "first_sent_at",
            "finished_at",
            "not_before",
        ]
    )
    data = {"detail": outcome.detail, "epoch": lease.epoch}
    if operation.state == State.FAILED:
        data["reason"] = operation.reason
    what = "held_back" if operation.state == State.APPROVED else operation.state
    operations.record(operation, what, actor="agent", at=now, data=data)
    if operation.kind == Kind.CLOSE_TICKET and operation.state in {
        State.APPROVED,
        State.FAILED,
    }:
        # No mail went out: the ticket is as open as its customer believes it to be.
        tickets.desk().reopen(
            ticket_id=operation.ticket_id, closure=operation.idempotency_key, now=now
        )
    if outcome.is_pending:
        transits.begin(operation, now=now)
    reversals.open_if_told(operation, now=now)
    operations.announce(operation)


def _after(now: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else now + timedelta(seconds=seconds)


def _move(operation: Operation, outcome: Outcome, attempt_id: int | None, now: datetime) -> None:
    """Change the state by what this try showed, and by what earlier ones may have done."""
    earlier = operation.attempts.exclude(
        Q(pk=attempt_id) | Q(outcome__in=[AttemptOutcome.NOT_SENT, AttemptOutcome.REFUSED])
    )
    if outcome.kind == AttemptOutcome.SUCCEEDED:
        operation.succeed(reference=outcome.reference, at=now)
    elif outcome.needs_person:
        operation.need_person(reason=outcome.detail)
    elif outcome.kind == AttemptOutcome.UNKNOWN or earlier.exists():
        # A refusal of this try, or its not being sent, says nothing about the ones before.
        operation.lose_sight(reason=outcome.detail)
    elif outcome.kind == AttemptOutcome.REFUSED:
        operation.fail(reason=reason_of_refusal(operation, outcome.detail), at=now)
    else:
        operation.hold_back()


def _observe(operation: Operation, outcome: Outcome, lease: Lease, now: datetime) -> None:
    Observation.objects.create(
        operation=operation,
        source=STALE_WORKER,
        body=outcome.as_body() | {"epoch": lease.epoch},
        at=now,
    )
    operations.record(operation, "observed", actor="agent", at=now, data={"source": STALE_WORKER})
    if outcome.kind == AttemptOutcome.SUCCEEDED:
        effect = Effect(outcome.reference, operation.kind, operation.order_id)
        inquiries.weigh(operation, effect, STALE_WORKER, now=now)
