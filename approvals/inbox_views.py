"""The inbox of the approvals: the list, and what is done to questions short of a yes."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from accounts.console import Right, has_right, user_of
from accounts.live import live, nothing_new, wants_fragment
from accounts.models import User
from approvals import handling, inbox, selectors, services, shown
from approvals.entitlement import in_words
from approvals.forms import ASSIGN, REJECT_ALL, SNOOZE, SNOOZES, HandlingForm, InboxFilterForm
from approvals.models import Approval
from tools.operations import OperationStateError

QUEUE_LIMIT = 100
# Whoever sees every shop writes amounts in this one.
CURRENCY_WITHOUT_SHOP = "USD"


def queue(request: HttpRequest) -> HttpResponse:
    """What staff are asked now, oldest deadline first; asked again every two seconds."""
    user, now = user_of(request), timezone.now()
    form = InboxFilterForm(request.GET)
    if not form.is_valid():
        return render(request, "console/approvals/queue.html", _unreadable(form), status=400)
    wanted = form.filter_for(currency_of(user))
    sights, count = shown.list_inbox(user, wanted, limit=QUEUE_LIMIT, now=now)
    waiting = inbox.count_waiting(user, now=now)
    told: dict[str, Any] = {
        "sights": sights,
        "count": count,
        "more": count - len(sights),
        "waiting": waiting,
        "wanted": wanted,
        "is_filtered": wanted != inbox.InboxFilter(),
        "may_decide": has_right(user, Right.DECIDE),
    }
    key = f"{waiting.for_them}-{waiting.for_staff}-{count}"
    fragment = live(request, "console/approvals/rows.html", told, key=key)
    if wants_fragment(request):
        if fragment.is_seen:
            return nothing_new()
        return render(request, "console/approvals/live_queue.html", {**told, "live": fragment})
    context = {
        **told,
        "live": fragment,
        "form": form,
        "people": inbox.who_may_answer(shop_id=user.shop_id),
        "snoozes": SNOOZES,
        "decision_id": str(uuid.uuid4()),
    }
    return render(request, "console/approvals/queue.html", context)


def currency_of(user: User) -> str:
    """The currency in which this person writes amounts."""
    return user.shop.currency if user.shop else CURRENCY_WITHOUT_SHOP


def _unreadable(form: InboxFilterForm) -> dict[str, Any]:
    return {"form": form, "is_filtered": True, "count": 0, "waiting": None}


def watch(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """Somebody has this page open; colleagues see so. Changes nothing about the question."""
    approval = _find(request, public_id)
    handling.watch(approval_id=approval.pk, user=user_of(request), now=timezone.now())
    return HttpResponse(status=204)


def handle(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """Assign one question, put it off, or bring it back; then back to its page."""
    approval = _find(request, public_id)
    form = HandlingForm(request.POST)
    if not form.is_valid() or form.cleaned_data["what"] == REJECT_ALL:
        return _told(request, [Done(approval, NOT_SUCH)], status=422)
    done = _do(form, approval, user_of(request))
    if done.fault:
        return _told(request, [done], status=409)
    return redirect("console:approval", public_id=public_id)


def several(request: HttpRequest) -> HttpResponse:
    """Reject, assign or put off the chosen questions, each by itself, and tell what came of each.

    There is no yes for several: that is what a yes is for.
    """
    user = user_of(request)
    form = HandlingForm(request.POST)
    chosen = _chosen(request)
    if not form.is_valid() or not chosen:
        return _told(request, [], status=422)
    return _told(request, [_do(form, approval, user) for approval in chosen])


@dataclass(frozen=True)
class Done:
    """What came of one question; without a `fault` it was done."""

    approval: Approval
    fault: str = ""


NOT_SUCH = "That cannot be done here. Reload the page and choose again."
FAULTS: dict[type[Exception], str] = {
    services.AlreadyDecidedError: "Somebody has decided it already.",
    services.ExpiredError: "The time to answer is over.",
    services.ReasonNeededError: "Say why, so that the customer can be told.",
    services.SupersededError: "It is no longer what would be done.",
    OperationStateError: "It is no longer what would be done.",
}


def _do(form: HandlingForm, approval: Approval, user: User) -> Done:
    try:
        _apply(form, approval, user)
    except handling.HandlingError as exc:
        return Done(approval, str(exc))
    except services.NotAllowedError as exc:
        return Done(approval, in_words(exc.bar, approval.operation, user_id=user.pk))
    except (services.DecisionError, OperationStateError) as exc:
        return Done(approval, FAULTS[type(exc)])
    return Done(approval)


def _apply(form: HandlingForm, approval: Approval, user: User) -> None:
    given, now = form.cleaned_data, timezone.now()
    match given["what"]:
        case "reject":
            # What a question asks about never changes, so its own digest is the one that was seen.
            services.decide(
                approval_id=approval.pk,
                decider=services.by_staff(user),
                is_yes=False,
                digest=approval.digest,
                decision_id=given["decision_id"],
                reason=given["reason"],
            )
        case "assign":
            to = User.objects.filter(pk=given["to"]).first() if given["to"] else None
            if given["to"] and to is None:
                raise handling.HandlingError("There is no such person.")
            handling.assign(approval_id=approval.pk, to=to, by=user, now=now)
        case "snooze":
            handling.snooze(approval_id=approval.pk, length=form.length, by=user, now=now)
        case _:
            handling.wake(approval_id=approval.pk, by=user, now=now)


def _chosen(request: HttpRequest) -> list[Approval]:
    """The questions of this person's shop that were ticked, a page of them at most."""
    ids: list[uuid.UUID] = []
    for text in request.POST.getlist("approval")[:QUEUE_LIMIT]:
        try:
            ids.append(uuid.UUID(text))
        except ValueError:
            continue
    return selectors.list_for_staff(public_ids=ids, shop_id=user_of(request).shop_id)


def _find(request: HttpRequest, public_id: uuid.UUID) -> Approval:
    approval = selectors.get_for_staff(public_id=public_id, shop_id=user_of(request).shop_id)
    if approval is None:
        raise Http404
    return approval


def _told(request: HttpRequest, done: Sequence[Done], *, status: int = 200) -> HttpResponse:
    failed = sum(bool(each.fault) for each in done)
    sights = shown.see_fresh([each.approval for each in done], viewer=user_of(request))
    context = {
        "results": [
            {"sight": sight, "fault": each.fault} for each, sight in zip(done, sights, strict=True)
        ],
        "failed": failed,
        "succeeded": len(done) - failed,
        "what": request.POST.get("what", ""),
        "is_put": request.POST.get("what") in {ASSIGN, SNOOZE},
    }
    return render(request, "console/approvals/several.html", context, status=status)
