"""Who may open which page of the console. A route is made by `page` or `action`, or not at all."""

from collections.abc import Callable
from functools import wraps
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render, resolve_url
from django.urls import URLPattern, path
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers
from django_htmx.http import HttpResponseClientRedirect

from accounts import second_factor
from accounts.console import Right, has_right
from accounts.live import wants_fragment
from accounts.models import User
from config.looks import look_into

View = Callable[..., HttpResponseBase]

# What moves money or its limits asks for a second factor, where the deployment requires one.
NEED_FACTOR = frozenset({Right.DECIDE, Right.CONFIGURE})


def page(route: str, view: View, *, needs: Right, name: str, **given: object) -> URLPattern:
    """A page that is read, and that changes nothing. `given` goes to the view as it is.

    When its address leads to a customer's case, that it was opened is on the trail (config.looks).
    """
    return path(route, require_safe(_guarded(view, needs)), given, name=name)


def action(
    route: str, view: View, *, needs: Right, name: str, is_reason: bool = False, **given: object
) -> URLPattern:
    """Something that is done: by POST alone, with a CSRF token.

    `is_reason`: it is what opens a case that asks for a reason, and so is open itself.
    """
    return path(route, require_POST(_guarded(view, needs, is_reason=is_reason)), given, name=name)


def _guarded(view: View, needs: Right, *, is_reason: bool = False) -> View:
    """Let in whoever holds the right now; times on the page are in the zone of their shop."""

    @wraps(view)
    def guard(request: HttpRequest, **given: object) -> HttpResponseBase:
        user = request.user
        if not isinstance(user, User) or not user.is_authenticated:
            return _to_sign_in(request)
        with timezone.override(_zone_of(user)):
            if not has_right(user, needs):
                return render(request, "console/forbidden.html", status=403)
            if needs in NEED_FACTOR and second_factor.is_missing(user):
                return _needs_factor(request)
            asked = None if is_reason else look_into(request, user, given)
            if asked is not None:
                return asked
            try:
                return view(request, **given)
            except Http404:
                return render(request, "console/not_found.html", status=404)
            except PermissionDenied:
                return render(request, "console/forbidden.html", status=403)

    return never_cache(vary_on_headers("HX-Request")(guard))


def _to_sign_in(request: HttpRequest) -> HttpResponse:
    """Back to where they wanted to go, unless that was to do something."""
    target = resolve_url("console:login")
    if wants_fragment(request):
        return HttpResponseClientRedirect(target)
    if request.method == "GET":
        target = f"{target}?{urlencode({'next': request.get_full_path()})}"
    return redirect(target)


def _needs_factor(request: HttpRequest) -> HttpResponse:
    panel = "_panel" if wants_fragment(request) else ""
    return render(request, f"console/needs_factor{panel}.html", status=403)


def _zone_of(user: User) -> ZoneInfo:
    return ZoneInfo(user.shop.time_zone if user.shop else "UTC")


def locked_out(request: HttpRequest, *_: object, **__: object) -> HttpResponse:
    """What axes answers with after too many wrong passwords."""
    template = (
        "registration/locked_out_panel.html"
        if wants_fragment(request)
        else "registration/locked_out.html"
    )
    return render(request, template, status=429)


def cross_site(request: HttpRequest, reason: str = "") -> HttpResponse:
    """What Django answers a form with that does not carry this session's token."""
    template = (
        "console/cross_site_panel.html" if wants_fragment(request) else "console/cross_site.html"
    )
    return render(request, template, status=403)
