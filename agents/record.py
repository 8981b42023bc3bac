"""Record what a step came to and plan the next one, in one transaction under the claim's epoch."""

import time
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from agents import (
    budgets,
    dispatch,
    engine,
    events,
    forms,
    llm,
    prompting,
    store,
    telemetry,
    telling,
)
from agents.budgets import Amount
from agents.models import Outcome, Step, StepKind, StepStatus, TaskStatus
from agents.moves import CallModel, CallTool, HandOff, Move, Reply
from agents.outcomes import (
    GiveUp,
    ModelAnswered,
    ModelFailed,
    OperationStands,
    ShopAway,
    StepOutcome,
    ToolExamined,
)
from agents.runner import caller_of
from agents.store import Claim
from agents.trail import about
from approvals import services as approvals
from audit import services as audit
from tools import gateway, operations
from tools.clock import database_now
from tools.models import Kind, Operation, State
from tools.outages import again_on_collision
from tools.reconcile import delay_asked_for, delay_before_next_look
from tools.trigger import Point, reach

# Tries of one model call before a person is asked; waits double from one second to a minute.
MAX_MODEL_TRIES = 6
MAX_SHOP_TRIES = 5
NOT_NOW_SECONDS = 15.0
# A shop that asks for a longer wait than this cannot be seen now: the customer is told so.
READ_PATIENCE = 30.0  # seconds
NOTHING = Amount(0, 0)


def record(held: Claim, outcome: StepOutcome) -> None:
    """Commit the outcome of a claimed step. Raises StaleClaimError when the claim is void."""
    _record(held, outcome)
    reach(Point.C18)


@again_on_collision
def _record(held: Claim, outcome: StepOutcome) -> None:
    with transaction.atomic(durable=True):
        recording = Recording(held)
        recording.take(outcome)


class Recording:
    """One record under way: the locked task, its step, and the time they share."""

    def __init__(self, held: Claim) -> None:
        self.held = held
        self.task = store.locked(held)
        self.step = Step.objects.get(pk=held.step.pk)
        self.now = database_now()
        self.task.active_ms += int((time.monotonic() - held.claimed_at) * 1000)

    def take(self, outcome: StepOutcome) -> None:
        match outcome:
            case ModelAnswered():
                self._model_answered(outcome.reply)
            case ModelFailed():
                self._model_failed(outcome)
            case ToolExamined():
                self._tool_examined(outcome)
            case OperationStands():
                self._operation_stands(outcome.operation)
            case ShopAway():
                self._shop_away(outcome)
            case GiveUp():
                # No call was made, so whatever was set aside for it is free again.
                budgets.settle(self.task, self.step, NOTHING)
                self._finish_step({"error": outcome.reason}, error=outcome.reason)
                self._hand_off(HandOff(outcome.reason))
        self._save()

    # --- Model steps ------------------------------------------------------------------------

    def _model_answered(self, reply: llm.ModelReply) -> None:
        usage = reply.usage
        if usage is None:
            budgets.charge_unknown(self.task, self.step)
        else:
            self.step.tokens_in = usage.prompt
            self.step.tokens_cached = usage.cached
            self.step.tokens_out = usage.completion
            spent = Amount(usage.prompt + usage.completion, llm.cost(usage))
            budgets.settle(self.task, self.step, spent)
        self._finish_step(reply.as_result(self.step.n))
        self._move_on()

    def _model_failed(self, failed: ModelFailed) -> None:
        if failed.may_be_charged:
            budgets.charge_unknown(self.task, self.step)
        else:
            budgets.settle(self.task, self.step, NOTHING)
        if self.step.arguments == prompting.PHRASE_ONLY:
            self._finish_step({"text": "", "error": "model_unavailable"}, error=failed.kind)
            self._move_on()
        elif failed.is_final or self.step.attempts >= MAX_MODEL_TRIES:
            self._finish_step({"text": "", "error": "model_unavailable"}, error=failed.kind)
            self._hand_off(HandOff("model_unavailable"))
        else:
            delay = failed.retry_after or min(2.0 ** (self.step.attempts - 1), 60.0)
            self._try_again(TaskStatus.WAITING_MODEL, delay, error=failed.kind)

    # --- Tool steps -------------------------------------------------------------------------

    def _tool_examined(self, outcome: ToolExamined) -> None:
        examined = outcome.examined
        caller = caller_of(self.held)
        if isinstance(examined, gateway.Proposal) and self._is_stopped:
            self._keep_verdicts(examined.verdicts)
            self._end_stopped()
            return
        if isinstance(examined, gateway.Proposal):
            decided = gateway.propose(examined, caller, now=self.now)
            self._keep_verdicts(decided.verdicts)
            if isinstance(decided, gateway.Accepted):
                self._accepted(decided)
                return
            self._finish_step(decided.result, error=decided.error)
        elif isinstance(examined, gateway.HandOffAsked):
            self._keep_verdicts(examined.verdicts)
            self._finish_step({"reason": examined.reason})
        else:
            self._keep_verdicts(examined.verdicts)
            error = examined.error if isinstance(examined, gateway.Refused) else ""
            self._finish_step(examined.result, error=error)
        self._move_on()

    def _accepted(self, accepted: gateway.Accepted) -> None:
        """A change that is now, or already was, an operation."""
        if not accepted.is_new:
            self._finish_step(operations.result(accepted.operation))
            self._move_on()
            return
        self.step.operation = accepted.operation
        self.task.operation = accepted.operation
        reach(Point.C09)
        approvals.request(accepted.operation, role="customer", now=self.now)
        self._wait(TaskStatus.WAITING_APPROVAL)

    def _operation_stands(self, seen: Operation) -> None:
        # Read again with the task locked: a person may have settled it since it was looked at.
        operation = Operation.objects.select_related("customer", "reversal", "transit").get(
            pk=seen.pk
        )
        reach(Point.C17)
        if operation.is_final:
            self._finish_step(operations.result(operation), error=_error_of(operation))
            self._move_on()
        elif operation.state == State.NEEDS_PERSON:
            self._finish_step(operations.result(operation), error="needs_person")
            is_mail = operation.kind == Kind.CLOSE_TICKET
            self._hand_off(HandOff("mail_outcome_unknown" if is_mail else "outcome_needs_person"))
        elif operation.state == State.UNKNOWN:
            self._wait(TaskStatus.WAITING_OUTCOME, delay_before_next_look(operation, self.now))
        elif operation.state == State.APPROVED and self._is_stopped:
            # Certainly not sent: what was stopped on its way is taken back, not tried again.
            approvals.withdraw(operation_id=operation.pk, by="system", reason="task cancelled")
            self._operation_stands(operation)
        elif operation.state == State.APPROVED:
            asked = delay_asked_for(operation, self.now)
            self._wait(TaskStatus.WAITING_APPROVAL, asked or NOT_NOW_SECONDS)
        else:
            self._wait(TaskStatus.WAITING_OUTCOME, NOT_NOW_SECONDS)

    def _shop_away(self, away: ShopAway) -> None:
        wait = away.retry_after
        if self.step.operation is not None and self._is_stopped:
            self._operation_stands(self.step.operation)
        elif self.step.operation is not None:
            # Approved and not sent: it stays approved, until the shop is back or its time is over.
            seconds = NOT_NOW_SECONDS if wait is None else wait
            self._wait(TaskStatus.WAITING_OUTCOME, seconds, error=away.kind)
        elif self._has_no_patience_for(away):
            self._finish_step(
                {"error": "unavailable", "message": "The shop cannot be reached at the moment."},
                error="unavailable",
            )
            self._move_on()
        else:
            delay = min(2.0 ** (self.step.attempts - 1), 60.0)
            self._try_again(TaskStatus.RUNNING, max(delay, wait or 0.0), error=away.kind)

    def _has_no_patience_for(self, away: ShopAway) -> bool:
        """Is it better to say at once that the shop cannot be seen?"""
        return (
            away.is_known
            or self.step.attempts >= MAX_SHOP_TRIES
            or bool(self.held.task.workflow)
            or (away.retry_after or 0.0) > READ_PATIENCE
        )

    # --- What follows -----------------------------------------------------------------------

    @property
    def _is_stopped(self) -> bool:
        """Has somebody stopped the task since it was claimed?"""
        return self.task.cancel_requested_at is not None

    def _end_stopped(self) -> None:
        """Nothing more comes of this step, whatever it was about to do."""
        self._finish_step({"error": "cancelled"}, error="cancelled")
        self._move_on()

    def _move_on(self) -> None:
        """Plan the move that the engine derives from the log as it now is."""
        if self._is_stopped:
            telling.end_cancelled(self.task, now=self.now)
            return
        if self.task.active_ms >= self.task.max_active_ms:
            self._hand_off(HandOff("time_limit"))
            return
        self._carry_out(engine.next_move(store.log_of(self.task, self.held.request)))

    def _carry_out(self, move: Move) -> None:
        match move:
            case CallModel():
                arguments = prompting.PHRASE_ONLY if move.phrase_only else ""
                store.plan(self.task, kind=StepKind.MODEL, arguments=arguments, now=self.now)
                self._ready()
            case CallTool():
                store.plan(
                    self.task,
                    kind=StepKind.TOOL,
                    tool=move.name,
                    arguments=move.arguments,
                    call_id=move.call_id,
                    now=self.now,
                )
                self._ready()
            case Reply():
                steps = store.log_of(self.task, self.held.request).steps
                telling.end_with_reply(
                    self.task, move, outcome=Outcome(engine.outcome_of(steps)), now=self.now
                )
            case HandOff():
                self._hand_off(move)

    def _hand_off(self, move: HandOff) -> None:
        telling.end_with_hand_off(self.task, move, request=self.held.request, now=self.now)

    def _ready(self) -> None:
        self.task.lease_until = None
        self.task.wake_at = self.now
        dispatch.advance(self.task.pk)

    def _wait(self, status: TaskStatus, seconds: float | None = None, *, error: str = "") -> None:
        """Hold no worker, no lease and no connection until there is news, or time is up."""
        self.step.status = StepStatus.WAITING
        self.step.error = error
        self.step.save()
        self._sleep(status, seconds)

    def _try_again(self, status: TaskStatus, seconds: float, *, error: str) -> None:
        """The same step once more, later: it is planned again, with its tries counted."""
        if self._is_stopped:
            self._end_stopped()
            return
        self.step.status = StepStatus.PLANNED
        self.step.error = error
        self.step.save()
        self._sleep(status, seconds)

    def _sleep(self, status: TaskStatus, seconds: float | None) -> None:
        self.task.status = status
        self.task.lease_until = None
        self.task.wake_at = None if seconds is None else _after(self.now, seconds)
        if seconds is not None:
            dispatch.advance(self.task.pk, countdown=seconds)

    def _finish_step(self, result: dict[str, Any], *, error: str = "") -> None:
        self.step.status = StepStatus.FINISHED
        self.step.result = result
        self.step.error = error[:80]
        self.step.finished_at = self.now
        self.step.save()
        audit.record(
            actor="agent",
            action="step.finished",
            subject=f"step:{self.step}",
            at=self.now,
            tool=self.step.tool or self.step.kind,
            outcome=events.step_outcome(self.step)[:100],
            data={
                "n": self.step.n,
                "epoch": self.held.lease.epoch,
                "kind": self.step.kind,
                "attempts": self.step.attempts,
                "tokens_in": self.step.tokens_in,
                "tokens_out": self.step.tokens_out,
                "cost": self.step.cost,
                "model": self.step.model,
                "prompt_version": self.step.prompt_version,
                "verdict": self.step.verdict,
                "proposed_by": forms.proposed_by(self.step.call_id),
            },
            **about(self.task),
        )

    def _keep_verdicts(self, verdicts: Any) -> None:
        gateway.keep_verdicts(
            verdicts,
            caller_of(self.held),
            tool=self.step.tool,
            policy_version=self.task.shop.policy_version,
            now=self.now,
        )
        self.step.verdict = gateway.summary(verdicts)[:200]

    def _keep_trace(self) -> None:
        """Where the task's next stretches belong, as far as anybody is told of them."""
        here = telemetry.here()
        if here and not self.task.traceparent:
            self.task.traceparent = here
        if here and self.held.is_resumed:
            self.task.traceparent_resumed = here

    def _save(self) -> None:
        task = self.task
        self._keep_trace()
        task.save(
            update_fields=[
                "status",
                "outcome",
                "reason",
                "operation",
                "lease_until",
                "wake_at",
                "steps_planned",
                "active_ms",
                "finished_at",
                "traceparent",
                "traceparent_resumed",
            ]
        )
        transaction.on_commit(lambda: events.ring(task.pk, task.ticket_id))


def _error_of(operation: Operation) -> str:
    return "" if operation.state == State.SUCCEEDED else str(operation.state)


def _after(now: datetime, seconds: float) -> datetime:
    return now + timedelta(seconds=seconds)
