"""What people keep for themselves: saved views of the lists, and whether single keys are commands."""

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from django import forms
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from accounts.console import user_of
from accounts.models import User
from agents.casework import MAX_QUERY, Habits, SavedView
from agents.console.forms import TicketFilterForm
from approvals.forms import InboxFilterForm

# So many views of one list are kept for one person.
MOST_VIEWS = 20
FIELDS = {
    SavedView.Page.QUEUE.value: frozenset(InboxFilterForm.base_fields),
    SavedView.Page.TICKETS.value: frozenset(TicketFilterForm.base_fields),
}


class ViewForm(forms.Form):
    """A name for a filter."""

    page = forms.ChoiceField(choices=SavedView.Page.choices)
    name = forms.CharField(max_length=60)
    query = forms.CharField(max_length=MAX_QUERY)


@dataclass(frozen=True)
class Views:
    """The saved views of a list, and the filter that is shown now."""

    page: str
    saved: list[SavedView]
    query: str

    @property
    def is_new(self) -> bool:
        """Is the filter shown under no name yet?"""
        return all(view.query != self.query for view in self.saved)


def views_of(user: User, page: str, query: QueryDict) -> Views | None:
    """What a person has saved for a page; None for a page that is no list."""
    if page not in FIELDS:
        return None
    saved = list(SavedView.objects.filter(user=user, page=page))
    return Views(page, saved, _plain(page, query.urlencode()))


def has_keys(user: User) -> bool:
    """Are single keys commands for this person? Unless they said otherwise, yes."""
    habits = Habits.objects.filter(user=user).first()
    return habits is None or habits.has_keys


def save_view(request: HttpRequest) -> HttpResponse:
    """Keep a filter under a name; the same name again is another filter."""
    form = ViewForm(request.POST)
    if not form.is_valid():
        return render(request, "console/no_view.html", status=422)
    user, given = user_of(request), form.cleaned_data
    page, query = given["page"], _plain(given["page"], given["query"])
    mine = SavedView.objects.filter(user=user, page=page)
    if not query or mine.exclude(name=given["name"]).count() >= MOST_VIEWS:
        return render(request, "console/no_view.html", {"most": MOST_VIEWS}, status=422)
    SavedView.objects.update_or_create(
        user=user, page=page, name=given["name"], defaults={"query": query}
    )
    return redirect(f"{reverse(f'console:{page}')}?{query}")


def forget_view(request: HttpRequest, view_id: int) -> HttpResponse:
    """Drop a view of one's own; anybody else's is not there."""
    view = SavedView.objects.filter(pk=view_id, user=user_of(request)).first()
    if view is None:
        raise Http404
    view.delete()
    return redirect(f"console:{view.page}")


def keys(request: HttpRequest) -> HttpResponse:
    """The keys and what they do, and a switch for all of them."""
    return render(request, "console/keys.html", {"has_keys": has_keys(user_of(request))})


def switch_keys(request: HttpRequest) -> HttpResponse:
    """Let single keys be commands, or not."""
    wanted = request.POST.get("keys")
    if wanted not in {"on", "off"}:
        return render(request, "console/keys.html", {"has_keys": True}, status=422)
    Habits.objects.update_or_create(user=user_of(request), defaults={"has_keys": wanted == "on"})
    return redirect("console:keys")


def _plain(page: str, query: str) -> str:
    """The filter of a query and nothing else of it, always in the same order."""
    pairs = [pair for pair in parse_qsl(query) if pair[0] in FIELDS[page]]
    return urlencode(sorted(dict(pairs).items()))
