"""Run one claimed step: the outside call, with no transaction and no connection held."""

from functools import partial

from django.conf import settings

from accounts.services import ShopUnavailableError
from agents import llm, telemetry
from agents.drafts import Draft
from agents.models import StepKind
from agents.outcomes import (
    GiveUp,
    ModelAnswered,
    ModelFailed,
    OperationStands,
    ShopAway,
    StepOutcome,
    ToolExamined,
)
from agents.prompting import Request
from agents.store import Claim
from approvals.services import is_still_granted
from tools import gateway, reconcile, sending
from tools.adapters import RestingError
from tools.clients.errors import ThrottledError, UnavailableError
from tools.clock import database_now
from tools.models import Operation, State
from tools.outside import leave_database
from tools.registry import TOOLS
from tools.trigger import Point, reach

# A step whose worker died or failed this often is not tried again: it may be what kills them.
MAX_LOST = 3


def run(held: Claim) -> StepOutcome:
    """What the claimed step comes to. Writes nothing but an operation's own sending."""
    if held.step.lost >= MAX_LOST:
        return _end_after_a_look(held)
    if held.step.kind != StepKind.MODEL:
        return telemetry.call(held, _use_tool)
    if held.model_request is None or held.spent_budget:
        return GiveUp(f"{held.spent_budget}_budget_spent")
    return telemetry.call(held, partial(_ask_model, held.model_request))


def _use_tool(held: Claim) -> StepOutcome:
    try:
        if held.step.operation is not None:
            return OperationStands(_drive(held.step.operation, held.lease))
        return _examine(held)
    except (UnavailableError, ThrottledError, ShopUnavailableError) as exc:
        return ShopAway(
            type(exc).__name__,
            retry_after=getattr(exc, "retry_after", None),
            is_known=isinstance(exc, RestingError),
        )


def caller_of(held: Claim) -> gateway.Caller:
    """On whose behalf the step runs: from the task's rows, never from a text."""
    return gateway.Caller(
        shop=held.task.shop,
        customer=held.task.customer,
        ticket_id=held.task.ticket_id,
        task_id=held.task.pk,
        step_n=held.step.n,
    )


def _end_after_a_look(held: Claim) -> StepOutcome:
    """Try no more. Of a change that may have been sent, first look once what became of it.

    A person is to be asked only what the shop cannot tell. If the look is what kills the worker,
    the next one does without.
    """
    operation = held.step.operation
    if operation is not None and held.step.lost == MAX_LOST:
        stands = reconcile.look(operation_id=operation.pk, lease=held.lease)
        if stands.is_final:
            return OperationStands(stands)
    return _give_up(held, "step_keeps_failing")


def _give_up(held: Claim, reason: str) -> GiveUp:
    """Leave the step to a person, and with it the change whose outcome nobody would look for."""
    if held.step.operation is not None:
        reconcile.hand_over(operation_id=held.step.operation.pk, lease=held.lease, why=reason)
    return GiveUp(reason)


def _ask_model(request: Request, held: Claim) -> StepOutcome:
    leave_database()
    reach(Point.C06)
    try:
        reply = llm.complete(
            model=held.task.model,
            messages=request.messages,
            tools=request.tools,
            tool_choice=request.tool_choice,
            max_output_tokens=settings.MODEL_MAX_OUTPUT,
            on_text=Draft(held).add,
        )
    except llm.ModelUnavailableError as exc:
        return ModelFailed(exc.kind, retry_after=exc.retry_after, may_be_charged=exc.may_be_charged)
    except llm.ModelRefusedError as exc:
        return ModelFailed(exc.kind, is_final=True)
    reach(Point.C07)
    return ModelAnswered(reply)


def _examine(held: Claim) -> ToolExamined:
    reach(Point.C08)
    call = gateway.Call(name=held.step.tool, arguments=held.step.arguments)
    return ToolExamined(
        gateway.examine(call, caller_of(held), offered=frozenset(TOOLS), now=database_now())
    )


def _drive(operation: Operation, lease: sending.Lease) -> Operation:
    """Take an operation as far as it goes now: send it, or find out what became of it."""
    state = sending.get(operation.pk).state
    if state == State.APPROVED:
        return sending.send(operation_id=operation.pk, lease=lease, still_granted=is_still_granted)
    if state in {State.SENDING, State.UNKNOWN}:
        return reconcile.reconcile(
            operation_id=operation.pk, lease=lease, still_granted=is_still_granted
        )
    return sending.get(operation.pk)
