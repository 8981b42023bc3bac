"""The console's admin site, and what the frame of every console page shows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.admin import AdminSite, ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, resolve_url
from django.urls import reverse
from django.utils import timezone
from typing_extensions import override

from accounts.console import Right, has_right
from accounts.models import User
from accounts.second_factor import is_enrolled
from agents.console import habits
from approvals.inbox import count_waiting
from config.lists import CarefulLists
from tools.unresolved import count_for_people


class ConsoleSite(AdminSite):
    """Django's admin site, for superusers, behind the console's own sign-in."""

    site_header = "Countersign"
    site_title = "Countersign console"
    index_title = "Administration"
    site_url = "/console/"
    enable_nav_sidebar = False

    @override
    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        found = admin_class or ModelAdmin
        careful = type(found.__name__, (CarefulLists, found), {"__module__": found.__module__})
        super().register(model_or_iterable, careful, **options)

    @override
    def has_permission(self, request: HttpRequest) -> bool:
        user = request.user
        return isinstance(user, User) and user.is_active and user.is_superuser

    @override
    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """There is one door to sign in by; whoever has come through it is told no here."""
        if request.user.is_authenticated:
            return redirect("console:queue")
        return redirect(f"{resolve_url('console:login')}?next={reverse('admin:index')}")


@dataclass(frozen=True)
class MenuItem:
    name: str
    url: str
    is_here: bool
    count: int | None = None
    # Names the number in the page, for whoever keeps it up to date.
    count_id: str = ""


def frame(request: HttpRequest) -> dict[str, Any]:
    """A context processor: the menu and the zone of a console page, worked out when it is drawn."""
    user = getattr(request, "user", None)
    if not isinstance(user, User) or not request.path.startswith("/console/"):
        return {}
    return {
        "console": {
            "menu": _menu_for(request, user),
            "at_desk": lambda: count_for_people(shop_id=user.shop_id),
            "rights": [right.value for right in Right if has_right(user, right)],
            "views": lambda: habits.views_of(user, _route_of(request), request.GET),
            "has_keys": lambda: habits.has_keys(user),
            "has_factor": lambda: is_enrolled(user.pk),
            "factor_required": settings.APPROVERS_NEED_CODE and user.can_approve,
            "zone": timezone.get_current_timezone_name(),
        }
    }


def _route_of(request: HttpRequest) -> str:
    return str(request.resolver_match.url_name) if request.resolver_match else ""


def _menu_for(request: HttpRequest, user: User) -> Callable[[], list[MenuItem]]:
    def menu() -> list[MenuItem]:
        waiting = count_waiting(user, now=timezone.now()).for_them
        at_desk = count_for_people(shop_id=user.shop_id)
        entries: list[tuple[str, str, Right, int | None, str]] = [
            ("Approvals", "console:queue", Right.READ, waiting, "nav-count"),
            ("Desk", "console:desk", Right.READ, at_desk, "nav-desk"),
            ("Tickets", "console:tickets", Right.READ, None, ""),
            ("Dashboard", "console:dashboard", Right.READ, None, ""),
            ("Audit", "console:audit", Right.READ, None, ""),
            ("Customers", "console:customers", Right.KEEP, None, ""),
            ("Switches", "console:switches", Right.SWITCH, None, ""),
            ("Settings", "console:settings", Right.CONFIGURE, None, ""),
        ]
        items = [
            MenuItem(name, reverse(route), _is_here(request, reverse(route)), count, count_id)
            for name, route, needs, count, count_id in entries
            if has_right(user, needs)
        ]
        if user.is_superuser:
            items.append(MenuItem("Admin", reverse("admin:index"), is_here=False))
        return items

    return menu


def _is_here(request: HttpRequest, url: str) -> bool:
    if url == reverse("console:queue"):
        return request.path == url or request.path.startswith(f"{url}approvals/")
    return request.path.startswith(url)
