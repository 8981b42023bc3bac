"""The trail in the console: browse it, and look at one event."""

from typing import Protocol, cast
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render

from audit import selectors, services
from audit.export_models import ExportForm
from audit.forms import EventFilterForm
from audit.models import Event
from audit.personal_text import PersonalTextError

PAGE = 50


class Reader(Protocol):
    """What this app knows of whoever is signed in; the guard of the route has let them in."""

    shop_id: int | None
    actor: str


def browse(request: HttpRequest) -> HttpResponse:
    """Events, newest first; the filter is in the address."""
    form = EventFilterForm(request.GET)
    if not form.is_valid():
        context = {"form": form, "page": selectors.EventPage([], None)}
        return render(request, "console/audit/browse.html", context, status=400)
    wanted = form.filter_for(_reader(request).shop_id)
    before, after = (_number(request.GET.get(name, "")) for name in ("before", "after"))
    page = selectors.list_events(wanted, before=before, after=after, limit=PAGE)
    filled = filled_in(request.GET)
    context = {
        "form": form,
        "page": page,
        "filled": filled,
        "forms": ExportForm.choices,
        "newest": f"?{urlencode(filled)}" if page.after else "",
        "newer": f"?{urlencode([*filled, ('after', page.after)])}" if page.after else "",
        "older": f"?{urlencode([*filled, ('before', page.before)])}" if page.before else "",
    }
    return render(request, "console/audit/browse.html", context)


def event(request: HttpRequest, event_id: int) -> HttpResponse:
    """One event with its digest and the seal that holds it."""
    try:
        found = selectors.get_event(event_id, shop_id=_reader(request).shop_id)
    except Event.DoesNotExist as exc:
        raise Http404 from exc
    context = {
        "event": found,
        "digest": bytes(found.digest).hex(),
        "seal": selectors.get_seal_of(found),
        "personal": _personal(found),
        "has_personal": found.personal_digest is not None,
    }
    return render(request, "console/audit/event.html", context)


def filled_in(given: QueryDict) -> list[tuple[str, str]]:
    """The parts of a filter that ask for something."""
    return [(name, str(given[name])) for name in EventFilterForm.base_fields if given.get(name)]


def _personal(found: Event) -> str | None:
    try:
        return services.read_personal(found)
    except PersonalTextError as exc:
        return f"({exc})"


def _reader(request: HttpRequest) -> Reader:
    return cast(Reader, request.user)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
