"""A person's yes or no to the sealed action of one step."""

from typing import Any, ClassVar

from django.http import HttpResponse, JsonResponse
from django.utils import timezone
from rest_framework.request import Request

from accounts import second_factor
from accounts.models import Role
from accounts.second_factor import Proof
from agents import events
from agents.api import access, problems, shapes, spec
from agents.api.authentication import Principal, StaffPrincipal
from agents.api.base import ApiView
from agents.api.bodies import check, read_object
from agents.api.problems import ProblemError, invalid
from agents.models import Task
from approvals import selectors, services
from approvals.entitlement import in_words
from approvals.models import Approval, ApprovalStatus
from tools.models import Operation
from tools.operations import OperationStateError

CODE_SECONDS = 60
YES = frozenset({"yes", "approve"})


@spec.decide(spec.TASK)
class TaskDecisionView(ApiView):
    """The customer answers the customer's question, staff the one put to staff."""

    writers = frozenset({Role.CUSTOMER, Role.STAFF})
    shape: ClassVar[type[shapes.DecisionIn]] = shapes.DecisionIn

    def post(self, request: Request, task_id: int, step: int) -> HttpResponse:
        values = check(self.shape(data=read_object(self.http))).validated_data
        task = access.get_task(self.principal, task_id, is_read=False)
        approval = _question(task, step, self.principal)
        is_yes = values["decision"] in YES
        if self.principal.role == Role.STAFF and not is_yes and not values["reason"]:
            raise invalid("reason", "Say why, so that the customer can be told.")
        if is_yes:
            _require_code(self.principal, approval, values["code"])
        try:
            decided = services.decide(
                approval_id=approval.pk,
                decider=self.principal.decider(),
                is_yes=is_yes,
                digest=values["digest"],
                decision_id=values["decision_id"],
                reason=values["reason"],
            )
        except services.DecisionError as exc:
            raise _refused(exc, task, self.principal) from exc
        except OperationStateError as exc:
            raise _superseded(task) from exc
        return JsonResponse(_decision(task, step, decided, values["decision"]))


def _question(task: Task, step: int, principal: Principal) -> Approval:
    """What this principal's role is asked about the step. Raises ProblemError: 404, or 403."""
    customers = selectors.get_of_step(task_id=task.pk, step_n=step, role=Role.CUSTOMER)
    if isinstance(principal, StaffPrincipal):
        mine = selectors.get_of_step_for_staff(
            task_id=task.pk, step_n=step, user_id=principal.user.pk
        )
    else:
        mine = customers
    if mine is not None:
        return mine
    raise ProblemError(problems.WRONG_ROLE if customers else problems.NOT_FOUND)


def _require_code(principal: Principal, approval: Approval, code: str) -> None:
    """Staff with a second factor prove it before money moves, as they do in the console."""
    is_about_money = approval.operation.amount is not None
    if not isinstance(principal, StaffPrincipal) or not is_about_money:
        return
    if approval.status != ApprovalStatus.OPEN:
        return  # sent again, or too late: nothing is decided by it
    match second_factor.prove(user_id=principal.user.pk, code=code, now=timezone.now()):
        case Proof.WRONG:
            raise ProblemError(problems.CODE_NEEDED)
        case Proof.WAIT:
            raise _too_fast(CODE_SECONDS)


def _too_fast(seconds: int) -> ProblemError:
    return ProblemError(problems.TOO_FAST, headers={"Retry-After": str(seconds)})


def _decision(task: Task, step: int, approval: Approval, decision: str) -> dict[str, Any]:
    operation = Operation.objects.get(pk=approval.operation_id)
    return {
        "task": task.pk,
        "step": step,
        "approval": str(approval.public_id),
        "role": approval.role,
        "decision": decision,
        "status": approval.status,
        "digest": approval.digest,
        "decided_at": approval.decided_at.isoformat() if approval.decided_at else None,
        "operation": events.operation_data(operation),
    }


def _refused(exc: services.DecisionError, task: Task, principal: Principal) -> ProblemError:
    approval = exc.approval
    if isinstance(exc, services.NotAllowedError):
        return ProblemError(problems.WRONG_ROLE, _why_not(exc, principal))
    if isinstance(exc, services.ExpiredError):
        told = {"expires_at": approval.expires_at.isoformat()}
        return ProblemError(problems.EXPIRED, extensions=told)
    if isinstance(exc, services.TooFastError):
        return _too_fast(exc.seconds)
    if isinstance(exc, services.SupersededError):
        return _superseded(task)
    return ProblemError(problems.DECIDED_OTHERWISE, extensions=_by_whom(approval, principal))


def _why_not(exc: services.NotAllowedError, principal: Principal) -> str:
    """To staff: what their right does not reach to, or that they are the first of two."""
    if not isinstance(principal, StaffPrincipal):
        return ""
    return in_words(exc.bar, exc.approval.operation, user_id=principal.user.pk)


def _superseded(task: Task) -> ProblemError:
    """With the action that waits now, if one does: what the client should show instead."""
    return ProblemError(problems.SUPERSEDED, extensions={"action": events.pending_action(task)})


def _by_whom(approval: Approval, principal: Principal) -> dict[str, Any]:
    told: dict[str, Any] = {
        "decision": approval.status,
        "decided_at": approval.decided_at.isoformat() if approval.decided_at else None,
    }
    if principal.role == Role.STAFF:
        told |= {"decided_by": approval.decided_by, "reason": approval.reason}
    return told
