"""Who said yes: ask, decide, expire, withdraw.

The operation's row is locked before the approval's, here as everywhere, so of two deciders, or of
a yes and an expiry in the same instant, exactly one takes effect.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction

from accounts.models import Role, User
from approvals import entitlement, pace, selectors
from approvals.entitlement import Bar
from approvals.models import DECIDED, STAFF_ROLES, Approval, ApprovalStatus
from approvals.signals import approval_changed
from audit import services as audit
from tools import operations
from tools.clock import ClockTimestamp, database_now
from tools.models import UNSENT, Operation, State
from tools.outages import again_on_collision


class DecisionError(Exception):
    """A decision was refused; nothing changed. `approval` shows how things stand."""

    def __init__(self, approval: Approval) -> None:
        super().__init__(f"{approval.public_id} is {approval.status}")
        self.approval = approval


class AlreadyDecidedError(DecisionError):
    """Somebody decided before, otherwise."""


class SupersededError(DecisionError):
    """The digest is not that of what would be sent: the question is no longer this one."""


class ExpiredError(DecisionError):
    """The time to answer is over."""


class NotAllowedError(DecisionError):
    """This person may not give this answer, because of the `bar`."""

    def __init__(self, approval: Approval, bar: Bar = Bar.NO_RIGHT) -> None:
        super().__init__(approval)
        self.bar = bar


class ReasonNeededError(DecisionError):
    """Staff who say no say why: the customer is told."""


class TooFastError(DecisionError):
    """Too many yeses about money in a row. `seconds` says how long to wait."""

    def __init__(self, approval: Approval, seconds: int) -> None:
        super().__init__(approval)
        self.seconds = seconds


@dataclass(frozen=True)
class Decider:
    """Who decides, from the verified identity: a customer, or a member of staff."""

    role: str
    actor: str
    customer_id: int | None = None
    user_id: int | None = None


def by_customer(*, customer_id: int, actor: str) -> Decider:
    return Decider(role=Role.CUSTOMER, actor=actor, customer_id=customer_id)


def by_staff(user: User) -> Decider:
    return Decider(role=Role.STAFF, actor=user.actor, user_id=user.pk)


def request(operation: Operation, *, role: str, now: datetime) -> Approval:
    """Ask one role about a sealed operation. Runs in the caller's transaction.

    The customer gets the shop's customer time, staff what is left of the operation's; the first of
    two gets half of that, so that there is time for the second.
    """
    expires_at = operation.expires_at
    if role == Role.CUSTOMER:
        seconds = operation.shop.customer_approval_seconds
        expires_at = min(expires_at, now + timedelta(seconds=seconds))
    elif role == Role.STAFF and Role.SECOND_STAFF in operation.required_roles:
        expires_at = now + (expires_at - now) / 2
    approval = Approval.objects.create(
        operation=operation,
        role=role,
        digest=operation.digest,
        asked_at=now,
        expires_at=expires_at,
    )
    _record(approval, operation, "requested", actor="agent", now=now)
    return approval


def decide(
    *,
    approval_id: int,
    decider: Decider,
    is_yes: bool,
    digest: str,
    decision_id: str = "",
    reason: str = "",
) -> Approval:
    """Take a person's yes or no. The same decision made again returns the first answer.

    Raises NotAllowedError, SupersededError, ExpiredError, AlreadyDecidedError or (staff saying no
    without a reason) ReasonNeededError, and then nothing has changed; TooFastError as well, which is
    noted on the trail. A customer may still take a yes back (say no) until the operation is being sent.
    """
    try:
        return _decide(approval_id, decider, is_yes, digest, decision_id, reason)
    except TooFastError as exc:
        if decider.user_id is not None:
            shop_id = exc.approval.operation.shop_id
            with transaction.atomic():
                pace.note_pause(user_id=decider.user_id, shop_id=shop_id, now=database_now())
        raise


@again_on_collision
@transaction.atomic
def _decide(
    approval_id: int,
    decider: Decider,
    is_yes: bool,  # noqa: FBT001 - its one caller names it
    digest: str,
    decision_id: str,
    reason: str,
) -> Approval:
    operation, approval = _lock(approval_id)
    _require_right(approval, operation, decider, is_yes=is_yes)
    if digest != approval.digest:
        raise SupersededError(approval)
    if approval.status != ApprovalStatus.OPEN:
        return _decided_before(approval, operation, decider, is_yes=is_yes, decision_id=decision_id)
    now = database_now()
    if approval.expires_at <= now:
        raise ExpiredError(approval)
    if operation.state != State.AWAITING_APPROVAL:
        raise SupersededError(approval)
    if is_yes:
        _require_pace(approval, operation, decider, now)
        _say_yes(approval, operation, decider, decision_id, now)
    elif decider.role == Role.STAFF and not reason.strip():
        raise ReasonNeededError(approval)
    else:
        _say_no(approval, operation, decider, decision_id, reason, now)
    return approval


def _lock(approval_id: int) -> tuple[Operation, Approval]:
    operation_id = Approval.objects.values_list("operation_id", flat=True).get(pk=approval_id)
    operation = operations.lock(operation_id)
    return operation, Approval.objects.select_for_update().get(pk=approval_id)


def _require_right(
    approval: Approval, operation: Operation, decider: Decider, *, is_yes: bool
) -> None:
    if decider.role == Role.CUSTOMER:
        is_theirs = approval.role == Role.CUSTOMER and decider.customer_id == operation.customer_id
        bar = None if is_theirs else Bar.NO_RIGHT
    elif approval.role not in STAFF_ROLES:
        bar = Bar.NO_RIGHT
    else:
        bar = entitlement.bar_to(decider.user_id, operation, role=approval.role, is_yes=is_yes)
    if bar is not None:
        raise NotAllowedError(approval, bar)


def _require_pace(
    approval: Approval, operation: Operation, decider: Decider, now: datetime
) -> None:
    if decider.user_id is None or operation.amount is None:
        return
    seconds = pace.seconds_to_wait(user_id=decider.user_id, now=now)
    if seconds:
        raise TooFastError(approval, seconds)


def _decided_before(
    approval: Approval, operation: Operation, decider: Decider, *, is_yes: bool, decision_id: str
) -> Approval:
    if approval.status == ApprovalStatus.EXPIRED:
        raise ExpiredError(approval)
    if approval.status not in DECIDED:
        raise SupersededError(approval)
    is_same_person = approval.decided_by == decider.actor
    was_yes = approval.status == ApprovalStatus.APPROVED
    if is_same_person and (
        was_yes == is_yes or (decision_id and decision_id == approval.decision_id)
    ):
        return approval
    takes_back = is_same_person and was_yes and decider.role == Role.CUSTOMER
    if takes_back and operation.state in UNSENT:
        _take_back(approval, operation, decider)
        return approval
    if (
        takes_back
        and operation.state == State.REJECTED
        and operation.decided_by_role == Role.CUSTOMER
    ):
        return approval
    raise AlreadyDecidedError(approval)


def _say_yes(
    approval: Approval, operation: Operation, decider: Decider, decision_id: str, now: datetime
) -> None:
    approval.approve(by=decider.actor, user_id=decider.user_id, decision_id=decision_id, at=now)
    _save_decision(approval)
    _record(approval, operation, "granted", actor=decider.actor, now=now)
    operation = operations.grant(
        operation_id=operation.pk, role=approval.role, by=decider.actor, now=now
    )
    # The customer first; staff are asked only after that yes, and the second after the first's.
    missing = set(operation.required_roles) - set(operation.granted_roles)
    waiting = [role for role in STAFF_ROLES if role in missing]
    if waiting:
        request(operation, role=waiting[0], now=now)


def _say_no(
    approval: Approval,
    operation: Operation,
    decider: Decider,
    decision_id: str,
    reason: str,
    now: datetime,
) -> None:
    approval.reject(
        by=decider.actor,
        user_id=decider.user_id,
        decision_id=decision_id,
        reason=reason[:500],
        at=now,
    )
    _save_decision(approval)
    _record(approval, operation, "rejected", actor=decider.actor, now=now)
    operations.reject(
        operation_id=operation.pk,
        role=decider.role,
        by=decider.actor,
        reason=reason[:500],
        now=now,
    )


def _take_back(approval: Approval, operation: Operation, decider: Decider) -> None:
    """The customer's yes withdrawn before anything was sent; the decision itself stays on record."""
    now = database_now()
    _end_open(operation, Approval.withdraw, by=decider.actor, now=now)
    operations.reject(
        operation_id=operation.pk,
        role=Role.CUSTOMER,
        by=decider.actor,
        reason="The customer took the yes back.",
        now=now,
    )
    _record(approval, operation, "taken_back", actor=decider.actor, now=now)


@transaction.atomic
def withdraw(*, operation_id: int, by: str, reason: str) -> Operation:
    """Stop an operation that waits for a yes, or has it but is not being sent yet.

    Raises tools.operations.OperationStateError when it is too late.
    """
    operation = operations.lock(operation_id)
    now = database_now()
    cancelled = operations.cancel(operation_id=operation.pk, by=by, reason=reason, now=now)
    _end_open(operation, Approval.withdraw, by=by, now=now)
    return cancelled


def _end_open(
    operation: Operation, end: Callable[[Approval], None], *, by: str, now: datetime
) -> None:
    for approval in Approval.objects.select_for_update().filter(
        operation=operation, status=ApprovalStatus.OPEN
    ):
        end(approval)
        approval.save(update_fields=["status"])
        _record(approval, operation, approval.status, actor=by, now=now)


@transaction.atomic
def supersede(*, operation_id: int, reason: str) -> Operation:
    """End an operation whose order is not what people are asked about any more; `reason` is a code.

    The agent looks again. Raises tools.operations.OperationStateError when it is too late.
    """
    operation = operations.lock(operation_id)
    now = database_now()
    superseded = operations.supersede(operation_id=operation.pk, reason=reason, now=now)
    _end_open(operation, Approval.supersede, by="system", now=now)
    return superseded


def expire_due(*, limit: int = 200) -> int:
    """Close the questions whose time is over. Returns how many. Safe to run twice at once."""
    due = list(
        Approval.objects.filter(status=ApprovalStatus.OPEN, expires_at__lte=ClockTimestamp())
        .order_by("expires_at")
        .values_list("pk", flat=True)[:limit]
    )
    return sum(_expire(approval_id) for approval_id in due)


@transaction.atomic
def _expire(approval_id: int) -> bool:
    operation, approval = _lock(approval_id)
    now = database_now()
    if approval.status != ApprovalStatus.OPEN or approval.expires_at > now:
        return False
    approval.expire()
    approval.save(update_fields=["status"])
    _record(approval, operation, "expired", actor="system", now=now)
    if operation.state == State.AWAITING_APPROVAL:
        operations.expire(operation_id=operation.pk, now=now)
    return True


def is_still_granted(operation: Operation) -> bool:
    """Do the people who said yes to exactly these bytes still hold the right to?

    Asked again inside the transaction that starts a send.
    """
    approvals = selectors.list_of_operation(operation_id=operation.pk)
    valid = {
        approval.role
        for approval in approvals
        if approval.status == ApprovalStatus.APPROVED
        and approval.digest == operation.digest
        and (approval.role == Role.CUSTOMER or _may_still(approval, operation))
    }
    return set(operation.required_roles) <= valid


def _may_still(approval: Approval, operation: Operation) -> bool:
    user_id = approval.decided_by_user_id
    return entitlement.bar_to(user_id, operation, role=approval.role, is_yes=True) is None


def _save_decision(approval: Approval) -> None:
    approval.save(
        update_fields=[
            "status",
            "decided_by",
            "decided_by_user_id",
            "decided_at",
            "decision_id",
            "reason",
        ]
    )


def _record(
    approval: Approval, operation: Operation, what: str, *, actor: str, now: datetime
) -> None:
    audit.record(
        actor=actor,
        action=f"approval.{what}",
        subject=f"approval:{approval.public_id}",
        at=now,
        outcome=approval.status,
        data={"role": approval.role, "digest": approval.digest},
        personal=approval.reason or None,
        **operations.about(operation),
    )
    transaction.on_commit(
        partial(
            approval_changed.send,
            sender=Approval,
            approval_id=approval.pk,
            operation_id=operation.pk,
            task_id=operation.task_id,
            shop_id=operation.shop_id,
        )
    )
