"""The console's approvals: the question and the decision. The inbox is in `inbox_views.py`."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from accounts.console import Right, has_right, user_of
from accounts.live import Live, live, nothing_new, wants_fragment
from accounts.models import User
from accounts.step_up import doubt_about
from approvals import entitlement, inbox, selectors, services, shown
from approvals.entitlement import Bar
from approvals.forms import SNOOZES, DecisionForm
from approvals.models import Approval
from tools.explain import list_verdicts
from tools.facts import FactsNow, look_up
from tools.models import Operation
from tools.operations import OperationStateError

# Gives what a layer above knows of the conversation that a question came from.
ConversationOf = Callable[[int], Any]


def question(
    request: HttpRequest, public_id: uuid.UUID, *, conversation_of: ConversationOf
) -> HttpResponse:
    """One question: the sealed action, the order's facts now, the conversation, the verdicts."""
    sight = shown.see(_find(request, public_id), viewer=user_of(request))
    if wants_fragment(request):
        return _state(request, sight)
    return _page(request, sight, conversation_of)


def decide(
    request: HttpRequest, public_id: uuid.UUID, *, conversation_of: ConversationOf
) -> HttpResponse:
    """Take an approver's yes or no; whatever forbids it is answered with how things stand."""
    user = user_of(request)
    approval = _find(request, public_id)
    refusal = _decide(request, user, approval)
    sight = shown.see(_find(request, public_id), viewer=user_of(request))
    if wants_fragment(request):
        status = refusal.status if refusal else 200
        answer = render(request, PANEL, _panel(request, sight, refusal), status=status)
    elif refusal is None:
        return redirect("console:approval", public_id=public_id)
    else:
        answer = _page(request, sight, conversation_of, refusal)
    if refusal and refusal.wait:
        answer.headers["Retry-After"] = str(refusal.wait)
    return answer


PANEL = "console/approvals/decision.html"


@dataclass(frozen=True)
class Refusal:
    """Why a decision was not taken. `facts` when the order is not what was sealed any more."""

    status: int
    message: str
    field: str = ""
    facts: FactsNow | None = None
    wait: int = 0  # seconds


MALFORMED = Refusal(422, "That is not a decision. Reload the page and choose again.")
REASON_NEEDED = Refusal(422, "Say why, so that the customer can be told.", field="reason")
ORDER_CHANGED = (
    "The order is not what it was when this was sealed, so nothing was sent. The agent looks again."
)
SUPERSEDED = Refusal(409, "This is no longer what would be done. Nothing was decided.")
EXPIRED = Refusal(410, "The time to answer is over. Nothing was decided.")
TOO_FAST = (
    "Take a breath: that were many approvals in a short time. Nothing was decided. Look at this one "
    "again, and approve it in a while."
)
DECIDED = Refusal(409, "Somebody has decided already, so yours was not taken.")


def _decide(request: HttpRequest, user: User, approval: Approval) -> Refusal | None:
    form = DecisionForm(request.POST)
    if not form.is_valid():
        return MALFORMED
    try:
        refusal = _before_a_yes(request, user, approval, form) if form.is_yes else None
        if refusal is not None:
            return refusal
        services.decide(
            approval_id=approval.pk,
            decider=services.by_staff(user),
            is_yes=form.is_yes,
            digest=form.cleaned_data["digest"],
            decision_id=form.cleaned_data["decision_id"],
            reason=form.cleaned_data["reason"],
        )
    except services.DecisionError as exc:
        return _refused(exc, user)
    except OperationStateError:
        return SUPERSEDED
    return None


def _before_a_yes(
    request: HttpRequest, user: User, approval: Approval, form: DecisionForm
) -> Refusal | None:
    """A yes about money makes sure that it is them, and any yes needs the order as it was sealed.

    An order that has changed ends the question, so that the agent can ask anew. A shop that cannot
    be asked forbids nothing here: everything is decided again before sending. Whoever may not say yes
    ends nothing either.
    """
    sight = shown.see(approval, viewer=user)
    operation = sight.operation
    bar = entitlement.bar_to(user.pk, operation, role=approval.role, is_yes=True)
    if sight.is_open and bar is not None:
        return _barred(bar, operation, user)
    if sight.needs_password:
        given = form.cleaned_data
        doubt = doubt_about(request, password=given["password"], code=given["code"])
        if doubt is not None:
            return Refusal(doubt.status, f"{doubt.value} Nothing was decided.", field=doubt.field)
    if sight.is_open and sight.is_about_an_order:
        facts = look_up(operation.customer, sight.content)
        if facts.has_changed:
            services.supersede(operation_id=operation.pk, reason="order_changed")
            return Refusal(409, ORDER_CHANGED, facts=facts)
    return None


def _barred(bar: Bar, operation: Operation, user: User) -> Refusal:
    why = entitlement.in_words(bar, operation, user_id=user.pk)
    return Refusal(403, f"{why} Nothing was decided.")


def _refused(exc: services.DecisionError, user: User) -> Refusal:
    match exc:
        case services.TooFastError(seconds=seconds):
            return Refusal(429, TOO_FAST, wait=seconds)
        case services.ExpiredError():
            return EXPIRED
        case services.NotAllowedError(bar=bar, approval=approval):
            return _barred(bar, approval.operation, user)
        case services.ReasonNeededError():
            return REASON_NEEDED
        case services.AlreadyDecidedError():
            return DECIDED
        case _:
            return SUPERSEDED


def _find(request: HttpRequest, public_id: uuid.UUID) -> Approval:
    approval = selectors.get_for_staff(public_id=public_id, shop_id=user_of(request).shop_id)
    if approval is None:
        raise Http404
    return approval


def _page(
    request: HttpRequest,
    sight: shown.Sight,
    conversation_of: ConversationOf,
    refusal: Refusal | None = None,
) -> HttpResponse:
    operation = sight.operation
    verdicts = list_verdicts(task_id=operation.task_id, step_n=operation.step_n)
    facts = refusal.facts if refusal else None
    if facts is None and sight.is_about_an_order:
        facts = look_up(operation.customer, sight.content)
    context = {
        **_panel(request, sight, refusal),
        "live": _live_state(request, sight),
        "facts": facts,
        "verdicts": verdicts,
        "conversation": conversation_of(operation.ticket_id),
        "successor": shown.successor_of(sight),
        "people": inbox.who_may_answer(shop_id=operation.shop_id),
        "snoozes": SNOOZES,
    }
    status = refusal.status if refusal else 200
    return render(request, "console/approvals/question.html", context, status=status)


def _state(request: HttpRequest, sight: shown.Sight) -> HttpResponse:
    """What has become of it; with the panel when that is not what the page shows any more."""
    fragment = _live_state(request, sight)
    if fragment.is_seen:
        return nothing_new()
    context = {**_panel(request, sight, None), "live": fragment}
    return render(request, "console/approvals/live_state.html", context)


def _live_state(request: HttpRequest, sight: shown.Sight) -> Live:
    here = reverse("console:approval", args=[sight.approval.public_id])
    return live(request, "console/approvals/state.html", {"sight": sight}, key=sight.state, at=here)


def _panel(request: HttpRequest, sight: shown.Sight, refusal: Refusal | None) -> dict[str, Any]:
    user, approval = user_of(request), sight.approval
    may_decide = has_right(user, Right.DECIDE) and sight.is_open and sight.card is not None
    bar = None
    if may_decide:
        bar = entitlement.bar_to(user.pk, sight.operation, role=approval.role, is_yes=True)
    return {
        "sight": sight,
        "refusal": refusal,
        "may_approve": may_decide and bar is None,
        "may_reject": may_decide and bar in {None, Bar.TOO_MUCH},
        "bar": entitlement.in_words(bar, sight.operation, user_id=user.pk) if bar else "",
        "decision_id": str(uuid.uuid4()),
    }
