"""The console's tickets: the list, one case, and speaking in it."""

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from accounts.console import Right, has_right, user_of
from accounts.live import live, nothing_new, wants_fragment
from agents import services
from agents.console import selectors
from agents.console.conversation import conversation_of
from agents.console.forms import ReplyForm, TicketFilterForm
from agents.models import Speaker, Ticket, TicketStatus

CLOSED = "This ticket is closed, so nobody can speak in it any more."
AGENT_SPEAKS = "The agent speaks in this ticket now. Take it over first; your words were not sent."
SAY_SOMETHING = "Write something first, in at most 4,000 characters."


def ticket_list(request: HttpRequest) -> HttpResponse:
    """The shop's tickets, last changed first; the filter is in the address."""
    form = TicketFilterForm(request.GET)
    is_sound = form.is_valid()
    wanted = selectors.TicketFilter(
        status=form.cleaned_data.get("status", ""),
        speaker=form.cleaned_data.get("speaker", ""),
        text=form.cleaned_data.get("q", ""),
    )
    before = request.GET.get("before", "")
    page = (
        selectors.list_tickets(user_of(request), wanted, before=before)
        if is_sound
        else selectors.TicketPage([], "")
    )
    fragment = live(request, "console/tickets/rows.html", {"page": page, "wanted": wanted})
    context = {
        "form": form,
        "live": fragment,
        "is_first": not before and is_sound,
        "is_filtered": wanted != selectors.TicketFilter(),
        "older": f"?{urlencode(_filter_of(request) | {'before': page.before})}"
        if page.before
        else "",
    }
    if wants_fragment(request):
        if fragment.is_seen:
            return nothing_new()
        return render(request, "console/tickets/list_section.html", context)
    return render(request, "console/tickets/list.html", context, status=200 if is_sound else 400)


def ticket(request: HttpRequest, ticket_id: int) -> HttpResponse:
    """One case: what was said, what was done, and by whom it goes on."""
    return _page(request, _find(request, ticket_id))


def take_over(request: HttpRequest, ticket_id: int) -> HttpResponse:
    found = _find(request, ticket_id)
    if found.status == TicketStatus.CLOSED:
        return _page(request, found, refusal=CLOSED)
    services.take_over(ticket_id=found.pk, user=user_of(request), now=timezone.now())
    return _back(found)


def give_back(request: HttpRequest, ticket_id: int) -> HttpResponse:
    found = _find(request, ticket_id)
    if found.status == TicketStatus.CLOSED:
        return _page(request, found, refusal=CLOSED)
    services.give_back(ticket_id=found.pk, user=user_of(request), now=timezone.now())
    return _back(found)


def reply(request: HttpRequest, ticket_id: int) -> HttpResponse:
    """Say something to the customer; only in a ticket that staff have taken over."""
    found = _find(request, ticket_id)
    form = ReplyForm(request.POST)
    if found.status == TicketStatus.CLOSED:
        return _page(request, found, refusal=CLOSED)
    if not form.is_valid():
        return _page(request, found, refusal=SAY_SOMETHING, status=422)
    try:
        services.reply_as_staff(
            ticket_id=found.pk,
            user=user_of(request),
            text=form.cleaned_data["text"],
            now=timezone.now(),
        )
    except services.AgentSpeaksError:
        return _page(request, found, refusal=AGENT_SPEAKS)
    return _back(found)


def _page(
    request: HttpRequest, found: Ticket, *, refusal: str = "", status: int = 409
) -> HttpResponse:
    at = reverse("console:ticket", args=[found.pk])
    told = {
        "ticket": found,
        "summary": selectors.hand_off_summary(found) if found.speaker == Speaker.STAFF else "",
        "conversation": conversation_of(found.pk),
        "tasks": selectors.list_tasks_of(found),
        "operations": selectors.list_operations_of(found),
    }
    key = f"{found.status}-{found.speaker}-{found.assigned_to_id}"
    fragment = live(request, "console/tickets/case.html", told, key=key, at=at)
    context = {**told, **_actions(request, found), "live": fragment, "refusal": refusal}
    if wants_fragment(request):
        if fragment.is_seen:
            return nothing_new()
        return render(request, "console/tickets/live_case.html", context)
    if refusal:
        context["said"] = request.POST.get("text", "")
    return render(
        request, "console/tickets/ticket.html", context, status=status if refusal else 200
    )


def _actions(request: HttpRequest, found: Ticket) -> dict[str, Any]:
    """What this person may do here now."""
    user = user_of(request)
    may_work = has_right(user, Right.WORK) and found.status == TicketStatus.OPEN
    staff_speak = found.speaker == Speaker.STAFF
    return {
        "may_take_over": may_work and (not staff_speak or found.assigned_to_id != user.pk),
        "may_speak": may_work and staff_speak,
        "has_live_task": selectors.has_live_task(found),
    }


def _find(request: HttpRequest, ticket_id: int) -> Ticket:
    found = selectors.get_ticket(user_of(request), ticket_id)
    if found is None:
        raise Http404
    return found


def _back(found: Ticket) -> HttpResponse:
    return redirect(f"{reverse('console:ticket', args=[found.pk])}#speak")


def _filter_of(request: HttpRequest) -> dict[str, str]:
    return {name: request.GET[name] for name in ("q", "status", "speaker") if request.GET.get(name)}
