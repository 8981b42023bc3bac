"""An outcome that only people can settle: ask the shop once more, then say how it ended, and why.

A settlement is one person's word with their evidence; over the shop's limit, two people's. The
shop's own word comes first: what it shows or tells of ends the question by itself, and nobody can
say against it.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Any

from django.db import transaction

from accounts.models import Role, User
from accounts.rights import get_countersigner, is_same_person
from accounts.services import DelegationRevokedError, ShopUnavailableError
from tools import operations, reversals, sending, tickets, transits
from tools.access import ask
from tools.clients.capabilities import for_provider
from tools.clients.errors import ShopError
from tools.clock import database_now
from tools.models import (
    AttemptOutcome,
    Kind,
    Observation,
    Operation,
    Settlement,
    SettlementStatus,
    State,
)
from tools.proof import (
    LOOK_UP,
    TAKEN_BACK,
    Effect,
    effects_told,
    is_approved_one,
    is_on_its_way,
    proves,
)
from tools.signals import evidence_came
from tools.unresolved import UNRESOLVED

MAX_EVIDENCE = 2000
BY_STAFF = "settled_by_staff"


class SettlementError(Exception):
    """This cannot be done; nothing was changed. `operation` shows how things stand."""

    def __init__(self, operation: Operation) -> None:
        super().__init__(f"{operation.idempotency_key} is {operation.state}")
        self.operation = operation


class WrongStateError(SettlementError):
    """It does not wait for a person, or for an outcome, (any more)."""


class NotAllowedError(SettlementError):
    """This person may not say so: their right does not reach to it, or it is their own case."""


class SamePersonError(SettlementError):
    """Over the limit it takes two; this one has spoken."""


class EvidenceNeededError(SettlementError):
    """Nothing is settled without its evidence, and no success without the shop's reference."""


class ContradictedError(SettlementError):
    """The shop itself says otherwise."""


class AlreadyProposedError(SettlementError):
    """Somebody has said how it ended, and a second person has not answered yet."""


class NotProposedError(SettlementError):
    """There is nothing to confirm or to turn down (any more)."""


class Showed(Enum):
    """What asking the shop came to."""

    DONE = "done"
    PENDING = "pending"
    PAID_OUT = "paid_out"
    NOTHING = "nothing"
    SOMETHING_ELSE = "something_else"
    TAKEN_BACK = "taken_back"
    NO_ANSWER = "no_answer"
    CANNOT_BE_ASKED = "cannot_be_asked"


@dataclass(frozen=True)
class Check:
    """The operation after a look, and what that look showed."""

    operation: Operation
    showed: Showed


def check_now(*, operation_id: int, by: str) -> Check:
    """Ask the shop for the effect under the operation's key; settle it where that proves it.

    Calls the shop, so never inside a transaction. What was seen becomes an observation. Raises
    WrongStateError where nothing is open any more, or a send is under way.
    """
    operation = sending.get(operation_id)
    if operation.state not in UNRESOLVED:
        raise WrongStateError(operation)
    if not can_be_looked_up(operation):
        return Check(operation, Showed.CANNOT_BE_ASKED)
    try:
        receipt = ask(
            operation.customer, lambda client: client.find_effect(operation.idempotency_key)
        )
    except (ShopError, DelegationRevokedError, ShopUnavailableError) as exc:
        body: dict[str, Any] = {"found": None, "trouble": type(exc).__name__}
        return _keep_look(operation, body, None, by)
    effect = Effect.of_receipt(receipt) if receipt else None
    return _keep_look(operation, {"found": effect is not None}, effect, by)


def can_be_looked_up(operation: Operation) -> bool:
    """Can the shop be asked what became of it? Of an e-mail nobody can."""
    has_key = operation.kind != Kind.CLOSE_TICKET
    return has_key and for_provider(operation.shop.provider).lookup_by_key


def needs_second_person(operation: Operation) -> bool:
    """Does it take two to settle it? Above the shop's limit, or where staff had to say yes."""
    return (
        Role.STAFF in operation.required_roles
        or (operation.amount or 0) > operation.shop.staff_limit
    )


def get_open(operation: Operation) -> Settlement | None:
    """What somebody has proposed and nobody has answered yet."""
    return operation.settlements.filter(status=SettlementStatus.OPEN).first()


def propose(
    *, operation_id: int, user_id: int, outcome: State, reference: str, evidence: str
) -> Settlement:
    """Say how an operation ended that needs a person. Below the limit that settles it.

    Raises NotAllowedError, WrongStateError, EvidenceNeededError, ContradictedError or
    AlreadyProposedError.
    """
    with transaction.atomic(durable=True):
        operation = _hold(operation_id)
        user = _require_right(operation, user_id)
        if operation.state != State.NEEDS_PERSON:
            raise WrongStateError(operation)
        _require_evidence(operation, outcome, reference, evidence)
        _refuse_contradiction(operation, outcome)
        if get_open(operation) is not None:
            raise AlreadyProposedError(operation)
        now = database_now()
        settlement = Settlement.objects.create(
            operation=operation,
            outcome=outcome,
            reference=reference.strip() if outcome == State.SUCCEEDED else "",
            evidence=evidence,
            needs_second=needs_second_person(operation),
            proposed_by=user.actor,
            proposed_by_user_id=user.pk,
            proposed_at=now,
        )
        _record(settlement, operation, "settlement_proposed", user.actor, now, evidence)
        if not settlement.needs_second:
            _settle(settlement, operation, user.actor, now)
    return settlement


def confirm(*, settlement_id: int, user_id: int) -> Settlement:
    """The second person's yes to exactly what the first one wrote.

    Raises NotAllowedError, NotProposedError, SamePersonError, WrongStateError or ContradictedError.
    """
    with transaction.atomic(durable=True):
        operation, settlement = _hold_settlement(settlement_id)
        user = _require_right(operation, user_id)
        if settlement.status != SettlementStatus.OPEN:
            raise NotProposedError(operation)
        if is_same_person(user, User.objects.get(pk=settlement.proposed_by_user_id)):
            raise SamePersonError(operation)
        if operation.state != State.NEEDS_PERSON:
            raise WrongStateError(operation)
        _refuse_contradiction(operation, State(settlement.outcome))
        now = database_now()
        settlement.confirmed_by = user.actor
        settlement.confirmed_by_user_id = user.pk
        _record(settlement, operation, "settlement_confirmed", user.actor, now)
        _settle(settlement, operation, user.actor, now)
    return settlement


def turn_down(*, settlement_id: int, user_id: int, reason: str) -> Settlement:
    """Refuse what was proposed, or take one's own proposal back.

    Raises NotAllowedError, NotProposedError or EvidenceNeededError (no reason).
    """
    with transaction.atomic(durable=True):
        operation, settlement = _hold_settlement(settlement_id)
        user = _require_right(operation, user_id)
        if settlement.status != SettlementStatus.OPEN:
            raise NotProposedError(operation)
        if not reason.strip():
            raise EvidenceNeededError(operation)
        _end(settlement, operation, user.actor, reason[:500], database_now())
    return settlement


def _hold(operation_id: int) -> Operation:
    """Lock the task, then its operation: in the order that every other transaction takes."""
    task_id = Operation.objects.values_list("task_id", flat=True).get(pk=operation_id)
    tickets.desk().hold(task_id=task_id)
    return operations.lock(operation_id)


def _hold_settlement(settlement_id: int) -> tuple[Operation, Settlement]:
    operation_id = Settlement.objects.values_list("operation_id", flat=True).get(pk=settlement_id)
    operation = _hold(operation_id)
    return operation, Settlement.objects.select_for_update().get(pk=settlement_id)


def _require_right(operation: Operation, user_id: int) -> User:
    """As for a yes: whoever may not agree to such a change may not say how it ended either."""
    user = get_countersigner(user_id, customer=operation.customer)
    if user is None or not (
        user.may_decide_kind(operation.kind) and user.may_approve_sum(operation.amount)
    ):
        raise NotAllowedError(operation)
    return user


def _require_evidence(operation: Operation, outcome: State, reference: str, evidence: str) -> None:
    is_told = evidence.strip() and len(evidence) <= MAX_EVIDENCE
    if not is_told or (outcome == State.SUCCEEDED and not reference.strip()):
        raise EvidenceNeededError(operation)


def _refuse_contradiction(operation: Operation, outcome: State) -> None:
    """Nobody says "it did not happen" while the last that the shop said is that it did."""
    seen = operation.observations.filter(source=LOOK_UP).order_by("id")
    shown = [effect for look in seen if (effect := Effect.of_body(look.body))]
    said = [*shown[-1:], *effects_told(operation)]
    came_back = any(effect.status in TAKEN_BACK for effect in said)
    brought_home = operation.observations.filter(
        source=sending.STALE_WORKER, body__outcome=AttemptOutcome.SUCCEEDED
    )
    happened = brought_home.exists() or any(proves(operation, effect) for effect in said)
    if outcome == State.FAILED and happened and not came_back:
        raise ContradictedError(operation)


def _settle(settlement: Settlement, operation: Operation, by: str, now: datetime) -> None:
    settlement.settle(by=by, at=now)
    settlement.save(
        update_fields=["status", "confirmed_by", "confirmed_by_user_id", "ended_by", "ended_at"]
    )
    people = [settlement.proposed_by, settlement.confirmed_by]
    data = {"settlement": settlement.pk, "people": [person for person in people if person]}
    if settlement.outcome == State.SUCCEEDED:
        operation.succeed(reference=settlement.reference, at=now)
    else:
        operation.fail(reason=BY_STAFF, at=now)
    _finish(operation, by, data, now)


def _finish(
    operation: Operation,
    by: str,
    data: dict[str, Any],
    now: datetime,
    *,
    is_pending: bool = False,
) -> None:
    """Save the end that the operation has come to, and tell everybody whom it concerns."""
    operation.save(update_fields=["state", "reference", "reason", "finished_at"])
    if is_pending:
        transits.begin(operation, now=now)
    operations.record(operation, operation.state, actor=by, at=now, data=data)
    if operation.kind == Kind.CLOSE_TICKET and operation.state == State.FAILED:
        # No mail went out: the ticket is as open as its customer believes it to be.
        tickets.desk().reopen(
            ticket_id=operation.ticket_id, closure=operation.idempotency_key, now=now
        )
    if not reversals.open_if_told(operation, now=now):
        tickets.desk().tell_outcome(operation, now=now)
    operations.announce(operation)
    transaction.on_commit(
        partial(
            evidence_came.send,
            sender=Operation,
            operation_id=operation.pk,
            task_id=operation.task_id,
        )
    )


def _keep_look(operation: Operation, body: dict[str, Any], effect: Effect | None, by: str) -> Check:
    """Write down what was seen. Only what proves the very effect that was approved settles it."""
    with transaction.atomic(durable=True):
        operation = _hold(operation.pk)
        if operation.state not in UNRESOLVED:
            raise WrongStateError(operation)
        now = database_now()
        if effect is not None:
            body = body | {"effect": effect.as_body()}
        Observation.objects.create(
            operation=operation, source=LOOK_UP, body=body | {"by": by}, at=now
        )
        operations.record(
            operation,
            "observed",
            actor=by,
            at=now,
            data={"source": LOOK_UP, "found": body["found"]},
        )
        showed = _judge(operation, body["found"], effect)
        proof = effect if showed == Showed.DONE else _told_proof(operation, showed)
        if proof is not None:
            _settle_by_proof(operation, proof, by, now)
            showed = Showed.DONE
    return Check(operation, showed)


def _judge(operation: Operation, found: bool | None, effect: Effect | None) -> Showed:  # noqa: FBT001
    if found is None:
        return Showed.NO_ANSWER
    if effect is None:
        return Showed.NOTHING
    if not is_approved_one(operation, effect):
        return Showed.SOMETHING_ELSE
    if effect.status in TAKEN_BACK or any(
        told.status in TAKEN_BACK for told in effects_told(operation)
    ):
        return Showed.TAKEN_BACK
    return Showed.DONE if proves(operation, effect) else Showed.SOMETHING_ELSE


def _told_proof(operation: Operation, showed: Showed) -> Effect | None:
    """Where the shop does not answer, what it has told by itself may be enough."""
    told = effects_told(operation)
    if showed != Showed.NO_ANSWER or not told:
        return None
    return told[-1] if all(proves(operation, effect) for effect in told) else None


def _settle_by_proof(operation: Operation, effect: Effect, by: str, now: datetime) -> None:
    settlement = get_open(operation)
    if settlement is not None:
        _end(settlement, operation, "system", "The shop has shown it.", now)
    operation.succeed(reference=effect.reference, at=now)
    is_pending = is_on_its_way(operation, effect)
    detail = "found_pending_by_person" if is_pending else "found_by_person"
    _finish(
        operation, by, {"detail": detail, "reference": effect.reference}, now, is_pending=is_pending
    )


def _end(settlement: Settlement, operation: Operation, by: str, reason: str, now: datetime) -> None:
    settlement.turn_down(by=by, reason=reason, at=now)
    settlement.save(update_fields=["status", "ended_by", "reason", "ended_at"])
    _record(settlement, operation, "settlement_turned_down", by, now, reason)


def _record(
    settlement: Settlement,
    operation: Operation,
    what: str,
    by: str,
    now: datetime,
    words: str | None = None,
) -> None:
    data = {
        "settlement": settlement.pk,
        "outcome": settlement.outcome,
        "needs_second": settlement.needs_second,
    }
    operations.record(operation, what, actor=by, at=now, data=data, personal=words)
