"""Before a page about a case is shown: is it theirs to open, and is it noted that they did?"""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from accounts import looks
from accounts.console import user_of
from accounts.live import wants_fragment
from accounts.looks import Case
from accounts.models import User
from agents.console.cases import case_of

SAFE = ("GET", "HEAD")
SAY_WHY = "Say why, in at most 500 characters. The case stays shut."


def look_into(request: HttpRequest, user: User, given: dict[str, Any]) -> HttpResponse | None:
    """The page that asks for a reason, or None: then the look is on the trail.

    A case that is not there, or not this shop's, is left to the page itself.
    """
    case = case_of(user, given)
    if case is None:
        return None
    now = timezone.now()
    if not looks.may_open(user, case, now=now):
        return _ask(request, case)
    if request.method in SAFE:
        where = request.resolver_match.url_name if request.resolver_match else ""
        is_poll = wants_fragment(request)
        looks.note_look(user, case, where=where or "", is_poll=is_poll, now=now)
    return None


def explain(request: HttpRequest, **given: int) -> HttpResponse:
    """Take the reason for opening a sensitive case, and open it."""
    user = user_of(request)
    case = case_of(user, given)
    if case is None:
        return render(request, "console/not_found.html", status=404)
    try:
        looks.explain(user, case, reason=request.POST.get("reason", ""), now=timezone.now())
    except looks.ReasonNeededError:
        return _ask(request, case, SAY_WHY, status=422)
    wanted = request.POST.get("next", "")
    is_ours = wanted.startswith("/console/") and url_has_allowed_host_and_scheme(wanted, None)
    return redirect(wanted if is_ours else _page_of(case))


def _page_of(case: Case) -> str:
    if case.ticket_id is None:
        return reverse("console:customer", args=[case.customer.pk])
    return reverse("console:ticket", args=[case.ticket_id])


def _ask(request: HttpRequest, case: Case, refusal: str = "", status: int = 403) -> HttpResponse:
    if wants_fragment(request):
        context = {"page": _page_of(case)}
        return render(request, "console/reason_panel.html", context, status=status)
    back = request.get_full_path() if request.method in SAFE else request.POST.get("next", "")
    shown = {"case": case, "page": _page_of(case), "refusal": refusal, "back": back}
    return render(request, "console/reason.html", shown, status=status)
