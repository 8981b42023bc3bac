"""The trail in the console: browse it, look at one event, take it away in a file."""

from typing import Protocol, cast
from urllib.parse import urlencode

from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from audit import export, selectors, services
from audit.forms import CSV, EventFilterForm, ExportForm, file_name
from audit.models import Event
from audit.personal_text import PersonalTextError

PAGE = 50
TYPES = {CSV: "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
STREAMS = {CSV: export.stream_csv, "jsonl": export.stream_jsonl}


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
    before = _number(request.GET.get("before", ""))
    page = selectors.list_events(wanted, before=before, limit=PAGE)
    filled = filled_in(request.GET)
    context = {
        "form": form,
        "page": page,
        "filled": filled,
        "older": f"?{urlencode([*filled, ('before', page.before)])}" if page.before else "",
        "is_first": before is None,
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


def download(request: HttpRequest) -> HttpResponseBase:
    """The matching events as a file, streamed; the trail records who took what."""
    form = ExportForm(request.POST)
    if not form.is_valid():
        return HttpResponse(
            "That filter cannot be read; nothing was exported.\n",
            status=422,
            content_type="text/plain; charset=utf-8",
        )
    kind = form.cleaned_data["form"]
    reader = _reader(request)
    chunks = STREAMS[kind](form.filter_for(reader.shop_id), actor=reader.actor)
    return StreamingHttpResponse(
        export.stream_async(chunks) if isinstance(request, ASGIRequest) else chunks,
        content_type=TYPES[kind],
        headers={"Content-Disposition": f'attachment; filename="{file_name(kind)}"'},
    )


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
