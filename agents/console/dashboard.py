"""The dashboard: what became of tasks, what it cost and how things stand, drawn by the server."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from accounts.console import user_of
from accounts.live import live, nothing_new, wants_fragment
from agents.console.charts import HEIGHT, LEFT, WIDTH
from agents.console.numbers import SPANS, Numbers


def dashboard(request: HttpRequest) -> HttpResponse:
    """The plots of a span of time (`?span=`; an odd one is the week), asked again every minute."""
    span = SPANS.get(request.GET.get("span", ""), SPANS["week"])
    numbers = Numbers(user_of(request), span, now=timezone.now())
    told = {
        "charts": numbers.charts(),
        "tools": numbers.tools(),
        "now": numbers.now(),
        "box": {"width": WIDTH, "height": HEIGHT, "left": LEFT},
    }
    fragment = live(request, "console/dashboard/plots.html", told)
    context = {"live": fragment, "span": span, "spans": SPANS.values()}
    if wants_fragment(request):
        if fragment.is_seen:
            return nothing_new()
        return render(request, "console/dashboard/section.html", context)
    return render(request, "console/dashboard/dashboard.html", context)
