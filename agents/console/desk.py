"""The console's desk: outcomes that nobody knows, and money that came back."""

from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from accounts.console import Right, has_right, user_of
from accounts.live import Live, live, nothing_new, wants_fragment
from accounts.step_up import doubt_about
from agents.console import desk_forms, desk_sights
from agents.console.conversation import conversation_of
from agents.console.desk_sights import DeskSight
from tools import arrivals, inquiries, reversals, settlement
from tools.facts import look_up
from tools.models import Operation, Settlement, State
from tools.settlement import Showed

LIMIT = 100


@dataclass(frozen=True)
class Refusal:
    """Why nothing was done. `form` names the form that it is about."""

    status: int
    message: str
    form: str = ""


MALFORMED = "Say how it ended and how you know it. Nothing was settled."
REFUSALS: dict[type[settlement.SettlementError], tuple[int, str]] = {
    settlement.WrongStateError: (409, "This does not wait for a person (any more)."),
    settlement.NotAllowedError: (403, "You may not settle this. Nothing was settled."),
    settlement.SamePersonError: (403, "It takes a second person. Nothing was settled."),
    settlement.EvidenceNeededError: (
        422,
        "The evidence is missing, or the reference that the shop gave. Nothing was settled.",
    ),
    settlement.ContradictedError: (
        409,
        "The shop itself says that it happened. Nothing was settled.",
    ),
    settlement.AlreadyProposedError: (409, "Somebody has proposed an end already; look at theirs."),
    settlement.NotProposedError: (409, "There is nothing to answer here any more."),
}
SHOWN = {
    Showed.DONE: "The shop shows that it happened, so it is settled.",
    Showed.PENDING: "The shop shows that it took this, and still calls it pending.",
    Showed.PAID_OUT: "The shop shows that the money was paid out.",
    Showed.NOTHING: (
        "The shop shows nothing under this key. That is no proof that nothing happened, the less "
        "the younger it is."
    ),
    Showed.SOMETHING_ELSE: "The shop shows something under this key that was not approved.",
    Showed.TAKEN_BACK: "The shop shows that it happened and that the money came back to it.",
    Showed.NO_ANSWER: "The shop did not answer, or no longer lets us ask for this customer.",
    Showed.CANNOT_BE_ASKED: "Nobody can be asked about this by its key.",
}


def overview(request: HttpRequest) -> HttpResponse:
    """All that lies at the desk, oldest first."""
    desk = desk_sights.see_desk(user_of(request), limit=LIMIT)
    count = len(desk.waiting)
    context = {"desk": desk, "count": count}
    fragment = live(request, "console/desk/rows.html", context, key=str(count))
    if wants_fragment(request) and fragment.is_seen:
        return nothing_new()
    template = "live_desk" if wants_fragment(request) else "desk"
    return render(request, f"console/desk/{template}.html", {**context, "live": fragment})


def operation(request: HttpRequest, operation_id: int) -> HttpResponse:
    """One operation with its evidence, and what can be done about it."""
    sight = desk_sights.see(_find(request, operation_id))
    if wants_fragment(request):
        return _state(request, sight)
    return _page(request, sight)


def check(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Ask the shop now. What it shows becomes evidence, and settles what it proves."""
    found, by = _find(request, operation_id), user_of(request).actor
    try:
        if found.is_on_its_way:
            return _back(found, arrivals.look_now(operation_id=found.pk, by=by))
        checked = settlement.check_now(operation_id=found.pk, by=by)
    except settlement.SettlementError as exc:
        return _refuse(request, found, exc, "check")
    return _back(found, checked.showed)


def settle(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Say how it ended. The shop is asked first: its own word comes before anybody's."""
    found = _find(request, operation_id)
    form = desk_forms.SettleForm(request.POST)
    if not form.is_valid():
        return _page(request, desk_sights.see(found), Refusal(422, MALFORMED, "settle"))
    doubt = _doubt(request, form.cleaned_data, "settle")
    if doubt is not None:
        return _page(request, desk_sights.see(found), doubt)
    try:
        if _shop_shows_it(request, found):
            return _back(found, Showed.DONE)
        settlement.propose(
            operation_id=found.pk,
            user_id=user_of(request).pk,
            outcome=State(form.cleaned_data["outcome"]),
            reference=form.cleaned_data["reference"],
            evidence=form.cleaned_data["evidence"],
        )
    except settlement.SettlementError as exc:
        return _refuse(request, found, exc, "settle")
    return _back(found)


def confirm(request: HttpRequest, operation_id: int) -> HttpResponse:
    """The second person's yes."""
    found = _find(request, operation_id)
    form = desk_forms.ConfirmForm(request.POST)
    if not form.is_valid():
        return _page(request, desk_sights.see(found), Refusal(422, MALFORMED, "confirm"))
    settlement_id = _settlement_of(found, form.cleaned_data["settlement"])
    doubt = _doubt(request, form.cleaned_data, "confirm")
    if doubt is not None:
        return _page(request, desk_sights.see(found), doubt)
    try:
        if _shop_shows_it(request, found):
            return _back(found, Showed.DONE)
        settlement.confirm(settlement_id=settlement_id, user_id=user_of(request).pk)
    except settlement.SettlementError as exc:
        return _refuse(request, found, exc, "confirm")
    return _back(found)


def turn_down(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Refuse what was proposed, or take one's own proposal back."""
    found = _find(request, operation_id)
    form = desk_forms.TurnDownForm(request.POST)
    if not form.is_valid():
        refusal = Refusal(422, "Say why. Nothing was changed.", "turn-down")
        return _page(request, desk_sights.see(found), refusal)
    try:
        settlement.turn_down(
            settlement_id=_settlement_of(found, form.cleaned_data["settlement"]),
            user_id=user_of(request).pk,
            reason=form.cleaned_data["reason"],
        )
    except settlement.SettlementError as exc:
        return _refuse(request, found, exc, "turn-down")
    return _back(found)


def close_case(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Say what was done about money that came back, or found out about what is asked."""
    found = _find(request, operation_id)
    close = reversals.close_case if desk_sights.see(found).is_open_case else inquiries.close
    form = desk_forms.CloseCaseForm(request.POST)
    if not form.is_valid():
        refusal = Refusal(422, "Say what was done about it. The case stays open.", "case")
        return _page(request, desk_sights.see(found), refusal)
    try:
        close(operation_id=found.pk, user_id=user_of(request).pk, note=form.cleaned_data["note"])
    except (reversals.CaseError, inquiries.InquiryError) as exc:
        return _page(request, desk_sights.see(found), Refusal(409, str(exc), "case"))
    return _back(found)


def _find(request: HttpRequest, operation_id: int) -> Operation:
    found = desk_sights.get_operation(user_of(request), operation_id)
    if found is None:
        raise Http404
    return found


def _settlement_of(found: Operation, settlement_id: int) -> int:
    """Raises Http404 for another operation's settlement as for none."""
    if not Settlement.objects.filter(pk=settlement_id, operation=found).exists():
        raise Http404
    return settlement_id


def _doubt(request: HttpRequest, given: dict[str, Any], form: str) -> Refusal | None:
    """Money may have moved, so we make sure that it is them."""
    doubt = doubt_about(request, password=given["password"], code=given["code"])
    return Refusal(doubt.status, f"{doubt.value} Nothing was settled.", form) if doubt else None


def _shop_shows_it(request: HttpRequest, found: Operation) -> bool:
    if found.state != State.NEEDS_PERSON or not settlement.can_be_looked_up(found):
        return False
    checked = settlement.check_now(operation_id=found.pk, by=user_of(request).actor)
    return checked.showed == Showed.DONE


def _refuse(
    request: HttpRequest, found: Operation, exc: settlement.SettlementError, form: str
) -> HttpResponse:
    status, message = REFUSALS[type(exc)]
    sight = desk_sights.see(_find(request, found.pk))
    return _page(request, sight, Refusal(status, message, form))


def _back(found: Operation, showed: Showed | None = None) -> HttpResponse:
    address = reverse("console:desk-operation", args=[found.pk])
    return redirect(f"{address}?looked={showed.value}" if showed else address)


def _page(request: HttpRequest, sight: DeskSight, refusal: Refusal | None = None) -> HttpResponse:
    found = sight.operation
    looked = {showed.value: text for showed, text in SHOWN.items()}
    context = {
        **_panel(request, sight, refusal),
        "live": _live_state(request, sight),
        "looked": looked.get(request.GET.get("looked", "")),
        "operation": found,
        "approvals": list(found.approvals.order_by("pk")),
        "settlements": desk_sights.list_settlements(found),
        "facts": look_up(found.customer, sight.content) if sight.is_about_an_order else None,
        "timeline": desk_sights.list_timeline(found),
        "conversation": conversation_of(found.ticket_id),
    }
    status = refusal.status if refusal else 200
    return render(request, "console/desk/operation.html", context, status=status)


def _state(request: HttpRequest, sight: DeskSight) -> HttpResponse:
    """What has become of it; with the panel when that is not what the page shows any more."""
    fragment = _live_state(request, sight)
    if fragment.is_seen:
        return nothing_new()
    context = {**_panel(request, sight, None), "live": fragment}
    return render(request, "console/desk/live_state.html", context)


def _live_state(request: HttpRequest, sight: DeskSight) -> Live:
    here = reverse("console:desk-operation", args=[sight.operation.pk])
    return live(request, "console/desk/state.html", {"sight": sight}, key=sight.state, at=here)


def _panel(request: HttpRequest, sight: DeskSight, refusal: Refusal | None) -> dict[str, Any]:
    user = user_of(request)
    is_own = sight.proposed is not None and sight.proposed.proposed_by_user_id == user.pk
    return {
        "sight": sight,
        "refusal": refusal,
        "given": request.POST,
        "may_check": has_right(user, Right.WORK),
        "may_settle": has_right(user, Right.DECIDE),
        "is_own": is_own,
    }
