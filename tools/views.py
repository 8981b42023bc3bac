"""The console's kill switches."""

from typing import Any

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from accounts.console import user_of
from accounts.models import Shop, User
from tools import adapters, registry, switches
from tools.forms import EVERY_SHOP, OFF, SwitchForm
from tools.models import LookFirst, Switch

NEEDS_ALL = "Give the tool, the shop and a reason. Nothing was switched."
NOT_YOURS = "Only an admin of every shop may set this switch. Nothing was switched."


def overview(request: HttpRequest) -> HttpResponse:
    """What is switched off now, and the form to switch more off."""
    return _page(request)


def turn(request: HttpRequest) -> HttpResponse:
    """Throw a switch, or take back one that is thrown."""
    user = user_of(request)
    form = SwitchForm(request.POST)
    if not form.is_valid():
        return _page(request, refusal=NEEDS_ALL, status=422)
    named = form.cleaned_data["shop"]
    if named == EVERY_SHOP and user.shop_id is not None:
        return _page(request, refusal=NOT_YOURS, status=403)
    shop = None if named == EVERY_SHOP else _shop(user, int(named))
    set_it = switches.throw if form.cleaned_data["turn"] == OFF else switches.release
    try:
        set_it(
            shop=shop,
            tool=form.cleaned_data["tool"],
            reason=form.cleaned_data["reason"],
            by=user.actor,
            now=timezone.now(),
        )
    except switches.SwitchError as exc:
        return _page(request, refusal=f"{exc}. Nothing was switched.", status=409)
    return redirect("console:switches")


def _page(request: HttpRequest, *, refusal: str = "", status: int = 200) -> HttpResponse:
    user = user_of(request)
    context: dict[str, Any] = {
        "thrown": [
            {"switch": switch, "may_release": _is_theirs(user, switch)} for switch in _thrown(user)
        ],
        "stopped": adapters.list_stopped(shop_id=user.shop_id),
        "looking_first": LookFirst.objects.filter(is_on=True).first(),
        "shops": _shops(user),
        "may_stop_all": user.shop_id is None,
        "tools": list(registry.TOOLS.values()),
        "refusal": refusal,
        "given": request.POST,
    }
    return render(request, "console/switches.html", context, status=status)


def _thrown(user: User) -> list[Switch]:
    """The switches that hold for this person's shop, the widest first."""
    return [
        switch
        for switch in switches.list_thrown()
        if user.shop_id is None or switch.shop_id in {None, user.shop_id}
    ]


def _is_theirs(user: User, switch: Switch) -> bool:
    return user.shop_id is None or switch.shop_id == user.shop_id


def _shops(user: User) -> list[Shop]:
    whose = Q() if user.shop_id is None else Q(pk=user.shop_id)
    return list(Shop.objects.filter(whose).order_by("name"))


def _shop(user: User, shop_id: int) -> Shop:
    """Raises Http404 for another's shop as for none."""
    for shop in _shops(user):
        if shop.pk == shop_id:
            return shop
    raise Http404
