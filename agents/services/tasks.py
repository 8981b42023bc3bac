"""Tasks as workers run them and as people stop them."""

import logging
from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from django.db import transaction

from agents import dispatch, events, record, runner, store, telemetry, telling
from agents.models import Task
from agents.store import StaleClaimError
from agents.trail import about
from approvals import services as approvals
from audit import services as audit
from tools import history
from tools.models import UNSENT, State
from tools.operations import OperationStateError
from tools.outages import again_on_collision
from tools.trigger import Point, reach

RETRY_SECONDS = 2.0

logger = logging.getLogger(__name__)


def advance(*, task_ids: Sequence[int]) -> None:
    """Run one step of each task that is ready; whatever is not is left alone.

    Safe to call twice, late, or beside itself: the claim decides.
    """
    for task_id in task_ids:
        reach(Point.C04)
        for held in store.claim([task_id]):
            events.ring(held.task.pk, held.task.ticket_id)
            _advance_one(held)


def _advance_one(held: store.Claim) -> None:
    try:
        with telemetry.stretch(held):
            record.record(held, runner.run(held))
    except StaleClaimError:
        logger.info("task %s is held by another worker now", held.task.pk)
    except Exception:
        # A fault of ours must not hold the task until its lease runs out.
        logger.exception("step %s failed", held.step)
        store.release(held, seconds=RETRY_SECONDS * held.step.attempts)


def sweep() -> int:
    """Wake every task that has been ready for a while: its message was lost. Returns how many.

    What became ready just now is left to its own message, so that under load the sweep does not
    double the queue.
    """
    history.watch()
    ready = store.find_ready(for_seconds=settings.SWEEP_SECONDS)
    for task_id in ready:
        dispatch.advance(task_id)
    return len(ready)


def go_on(*, shop_id: int) -> int:
    """Let the tasks go on that waited because their shop was not called. Returns how many."""
    waiting = store.find_resting(shop_id=shop_id)
    for task_id in waiting:
        dispatch.wake(task_id)
    return len(waiting)


@again_on_collision
@transaction.atomic
def cancel(*, task_id: int, by: str, now: datetime, reason: str = "cancelled_by_customer") -> Task:
    """Stop a task. What is already being sent is not interrupted; the task ends after it.

    Cancelling an ended task changes nothing and returns it as it is.
    """
    task = (
        Task.objects.select_for_update(of=("self",))
        .select_related("shop", "customer__shop", "ticket__customer")
        .get(pk=task_id)
    )
    if not task.is_live:
        return task
    if task.cancel_requested_at is None:
        task.cancel_requested_at = now
        task.reason = reason
        task.save(update_fields=["cancel_requested_at", "reason"])
        record_task(task, "cancel_requested", actor=by, now=now)
    if task.operation is not None and task.operation.state in UNSENT:
        _withdraw(task, by)
    if _is_between_steps(task):
        _end_now(task, now)
    dispatch.advance(task.pk)
    ring_after_commit(task.ticket_id, task)
    return task


def _withdraw(task: Task, by: str) -> None:
    if task.operation_id is None:
        return
    try:
        approvals.withdraw(operation_id=task.operation_id, by=by, reason="task cancelled")
    except OperationStateError:
        logger.info("task %s: its operation is being sent already", task.pk)


def _is_between_steps(task: Task) -> bool:
    """No worker holds it, and no send of it is unresolved."""
    if task.lease_until is not None:
        return False
    operation = task.operation
    if operation is None:
        return True
    operation = type(operation).objects.get(pk=operation.pk)
    return operation.is_final or operation.state not in {
        State.SENDING,
        State.UNKNOWN,
        State.NEEDS_PERSON,
    }


def _end_now(task: Task, now: datetime) -> None:
    telling.end_cancelled(task, now=now)
    task.save(
        update_fields=["status", "outcome", "reason", "lease_until", "wake_at", "finished_at"]
    )


def ring_after_commit(ticket_id: int, task: Task | None) -> None:
    """Tell followers of a ticket and its task once the change is committed."""
    transaction.on_commit(lambda: events.ring(task.pk if task else 0, ticket_id))


def record_task(task: Task, what: str, *, actor: str, now: datetime) -> None:
    """The audit event of a task's change, in the same transaction."""
    audit.record(
        actor=actor,
        action=f"task.{what}",
        subject=f"task:{task.pk}",
        at=now,
        data={"workflow": task.workflow, "model": task.model, "prompt": task.prompt_version},
        **about(task),
    )
