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
from agents.console.forms import NoteForm, ReplyForm, TicketFilterForm
from agents.models import Speaker, Ticket, TicketStatus
from agents.services import canned, notes, speaking
from approvals.inbox_views import currency_of

CLOSED = "This ticket is closed, so nobody can speak in it any more."
AGENT_SPEAKS = "The agent speaks in this ticket now. Take it over first; your words were not sent."
SAY_SOMETHING = "Write something first, in at most 4,000 characters."
NOTE_SOMETHING = "A note says something, in at most 4,000 characters. None was kept."
NOT_SENT = "Your words were not sent."
UNFILLED = "Put something in the place of {{{}}} first; nothing was sent."


def ticket_list(request: HttpRequest) -> HttpResponse:
    """The shop's tickets, last changed first; the filter is in the address."""
    user = user_of(request)
    form = TicketFilterForm(request.GET)
    is_sound = form.is_valid()
    before = request.GET.get("before", "")
    wanted, page = selectors.TicketFilter(), selectors.TicketPage([], "")
    if is_sound:
        wanted = form.filter_for(currency_of(user))
        page = selectors.list_tickets(user, wanted, now=timezone.now(), before=before)
    is_filtered = not is_sound or wanted != selectors.TicketFilter()
    fragment = live(
        request, "console/tickets/rows.html", {"page": page, "is_filtered": is_filtered}
    )
    context = {
        "form": form,
        "live": fragment,
        "people": selectors.list_colleagues(user),
        "is_first": not before and is_sound,
        "is_filtered": is_filtered,
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
    """Speak instead of the agent, or of the colleague whom the page named."""
    found = _find(request, ticket_id)
    if found.status == TicketStatus.CLOSED:
        return _page(request, found, refusal=CLOSED)
    held_by = request.POST.get("held_by", "")
    try:
        speaking.take_over(
            ticket_id=found.pk,
            user=user_of(request),
            now=timezone.now(),
            instead_of=int(held_by) if is_number(held_by) else None,
        )
    except speaking.ColleagueSpeaksError as exc:
        return _page(request, _find(request, ticket_id), refusal=_held(exc))
    return _back(found)


def give_back(request: HttpRequest, ticket_id: int) -> HttpResponse:
    found = _find(request, ticket_id)
    if found.status == TicketStatus.CLOSED:
        return _page(request, found, refusal=CLOSED)
    try:
        speaking.give_back(ticket_id=found.pk, user=user_of(request), now=timezone.now())
    except speaking.ColleagueSpeaksError as exc:
        return _page(request, _find(request, ticket_id), refusal=_held(exc))
    return _back(found)


def reply(request: HttpRequest, ticket_id: int) -> HttpResponse:
    """Say something to the customer; only in a ticket that one holds."""
    found = _find(request, ticket_id)
    form = ReplyForm(request.POST)
    if found.status == TicketStatus.CLOSED:
        return _page(request, found, refusal=CLOSED)
    if not form.is_valid():
        return _page(request, found, refusal=SAY_SOMETHING, status=422)
    text = form.cleaned_data["text"]
    unfilled = canned.unfilled_in(text)
    if unfilled:
        return _page(request, found, refusal=UNFILLED.format(unfilled[0]), status=422)
    try:
        speaking.reply_as_staff(
            ticket_id=found.pk, user=user_of(request), text=text, now=timezone.now()
        )
    except speaking.AgentSpeaksError:
        return _page(request, found, refusal=AGENT_SPEAKS)
    except speaking.ColleagueSpeaksError as exc:
        return _page(request, _find(request, ticket_id), refusal=f"{_held(exc)} {NOT_SENT}")
    except services.TicketClosedError:
        return _page(request, _find(request, ticket_id), refusal=CLOSED)
    return _back(found)


def note(request: HttpRequest, ticket_id: int) -> HttpResponse:
    """Leave a note for colleagues, in an open or a closed ticket."""
    found = _find(request, ticket_id)
    form = NoteForm(request.POST)
    if not form.is_valid():
        return _page(request, found, refusal=NOTE_SOMETHING, status=422)
    notes.add_note(
        ticket_id=found.pk,
        user=user_of(request),
        text=form.cleaned_data["text"],
        now=timezone.now(),
    )
    return redirect(f"{reverse('console:ticket', args=[found.pk])}#notes")


def _held(exc: speaking.ColleagueSpeaksError) -> str:
    if exc.holder is None:
        return "Nobody has taken this ticket over yet. Take it over first."
    name = exc.holder.get_full_name() or exc.holder.get_username()
    return f"{name} speaks in this ticket now."


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
        "notes": selectors.list_notes_of(found),
    }
    key = f"{found.status}-{found.speaker}-{found.assigned_to_id}"
    fragment = live(request, "console/tickets/case.html", told, key=key, at=at)
    context = {**told, **_actions(request, found), "live": fragment, "refusal": refusal}
    if wants_fragment(request):
        if fragment.is_seen:
            return nothing_new()
        return render(request, "console/tickets/live_case.html", context)
    context["said"] = _draft(request, found, refusal)
    return render(
        request, "console/tickets/ticket.html", context, status=status if refusal else 200
    )


def _actions(request: HttpRequest, found: Ticket) -> dict[str, Any]:
    """What this person may do here now."""
    user = user_of(request)
    may_work = has_right(user, Right.WORK) and found.status == TicketStatus.OPEN
    staff_speak = found.speaker == Speaker.STAFF
    is_mine = staff_speak and found.assigned_to_id == user.pk
    return {
        "may_take_over": may_work and not is_mine,
        "may_speak": may_work and is_mine,
        "may_give_back": may_work and staff_speak and found.assigned_to_id in {None, user.pk},
        "may_note": has_right(user, Right.WORK),
        "has_live_task": selectors.has_live_task(found),
        "canned": [
            reply for reply in selectors.list_canned(user) if reply.shop_id == found.shop_id
        ],
    }


def _draft(request: HttpRequest, found: Ticket, refusal: str) -> str:
    """What stands in the field to begin with: what was not sent, or the ready-made answer chosen."""
    if refusal:
        return request.POST.get("text", "")
    chosen = request.GET.get("canned", "")
    for reply in selectors.list_canned(user_of(request)):
        if chosen == str(reply.pk) and reply.shop_id == found.shop_id:
            return canned.fill(reply.text, ticket=found, user=user_of(request))
    return ""


def _find(request: HttpRequest, ticket_id: int) -> Ticket:
    found = selectors.get_ticket(user_of(request), ticket_id)
    if found is None:
        raise Http404
    return found


def _back(found: Ticket) -> HttpResponse:
    return redirect(f"{reverse('console:ticket', args=[found.pk])}#speak")


def _filter_of(request: HttpRequest) -> dict[str, str]:
    names = TicketFilterForm.base_fields
    return {name: request.GET[name] for name in names if request.GET.get(name)}


def is_number(text: str) -> bool:
    """Could it be an id?"""
    return text.isascii() and text.isdigit() and len(text) < 19
