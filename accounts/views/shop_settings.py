"""A shop's settings: look, change, and confirm what another has proposed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from accounts import setting_forms, shop_settings
from accounts.console import user_of
from accounts.models import ChangeStatus, Shop, ShopChange, User
from accounts.setting_forms import SECTIONS, Section, SectionForm
from accounts.shop_settings import MAX_REASON, InvalidSettingError, SettingsError
from accounts.step_up import doubt_about

ENDED_SHOWN = 20
# Gives what a layer above knows of the tools of a shop: which are switched off.
SwitchesOf = Callable[[Shop], Any]

NOTHING = " Nothing was changed."
REFUSALS: dict[type[SettingsError], tuple[int, str]] = {
    shop_settings.NotAllowedError: (403, "You may not change the settings of this shop."),
    shop_settings.StaleError: (
        409,
        "Somebody has changed these settings since you opened the page. Look at them again.",
    ),
    shop_settings.ReasonNeededError: (422, "Say why: whoever decides with you reads it."),
    shop_settings.AlreadyProposedError: (
        409,
        "Exactly this is proposed already. It is listed above.",
    ),
    shop_settings.SamePersonError: (
        403,
        "It takes a second person. You have proposed this yourself.",
    ),
    shop_settings.NewcomerError: (
        403,
        "Only somebody who was an admin before it was proposed can confirm it.",
    ),
    shop_settings.EndedError: (409, "This change does not wait for anybody any more."),
}


@dataclass(frozen=True)
class Refusal:
    """Why nothing was changed. `form` names the form, `field` what in it to put right."""

    status: int
    message: str
    form: str
    field: str = ""


@dataclass(frozen=True)
class ChangeSight:
    """A proposed change in words."""

    change: ShopChange
    label: str
    old: str
    new: str
    is_own: bool
    status: str


@dataclass
class Page:
    """What a page shows besides the shop: a refusal, and forms as they were filled in."""

    refusal: Refusal | None = None
    forms: dict[str, SectionForm] = field(default_factory=dict)


class DecisionForm(forms.Form):
    """A yes to a change, or a no with its reason."""

    reason = forms.CharField(max_length=MAX_REASON, required=False)
    password = forms.CharField(max_length=500, required=False, strip=False)
    code = forms.CharField(max_length=100, required=False)


def overview(request: HttpRequest) -> HttpResponse:
    """The shops whose settings this person may change; with one alone, its page."""
    shops = list(
        _shops(user_of(request)).annotate(
            waiting=Count(
                "changes",
                filter=Q(changes__status=ChangeStatus.OPEN, changes__expires_at__gt=timezone.now()),
            )
        )
    )
    if len(shops) == 1:
        return redirect("console:shop-settings", shop_id=shops[0].pk)
    return render(request, "console/settings/shops.html", {"shops": shops})


def shop(request: HttpRequest, shop_id: int, *, switches_of: SwitchesOf) -> HttpResponse:
    """One shop's settings, and the changes that wait."""
    return _page(request, _find(request, shop_id), Page(), switches_of)


def change(request: HttpRequest, shop_id: int, *, switches_of: SwitchesOf) -> HttpResponse:
    """Take one section's values: tighter ones count, looser ones are proposed."""
    found = _find(request, shop_id)
    section = setting_forms.BY_KEY.get(request.POST.get("section", ""))
    if section is None:
        refusal = Refusal(422, "That is not a form of this page." + NOTHING, "")
        return _page(request, found, Page(refusal), switches_of)
    form = SectionForm(section, found, request.POST)
    page = Page(forms={section.key: form})
    if not form.is_valid():
        page.refusal = Refusal(422, "Some of it cannot be read." + NOTHING, section.key)
        return _page(request, found, page, switches_of)
    page.refusal = _doubt(request, form.cleaned_data, section.key) if section.takes_two else None
    if page.refusal is not None:
        return _page(request, found, page, switches_of)
    try:
        outcome = _change(request, found, form)
    except InvalidSettingError as exc:
        for name, errors in exc.errors.items():
            form.add_error(name if name in form.fields else None, errors)
        page.refusal = Refusal(422, "The shop cannot be like that." + NOTHING, section.key)
        return _page(request, found, page, switches_of)
    except SettingsError as exc:
        page.refusal = _refused(exc, section.key)
        return _page(request, found, page, switches_of)
    return _back(found, section, outcome)


def confirm(
    request: HttpRequest, shop_id: int, change_id: int, *, switches_of: SwitchesOf
) -> HttpResponse:
    """The second admin's yes to exactly one change."""
    found = _find(request, shop_id)
    wanted = _change_of(found, change_id)
    key = f"change-{change_id}"
    form = DecisionForm(request.POST)
    if not form.is_valid():
        refusal = Refusal(422, "That is not an answer." + NOTHING, key)
        return _page(request, found, Page(refusal), switches_of)
    refusal_or_none = _doubt(request, form.cleaned_data, key)
    if refusal_or_none is not None:
        return _page(request, found, Page(refusal_or_none), switches_of)
    try:
        shop_settings.confirm(change_id=wanted.pk, user_id=user_of(request).pk, now=timezone.now())
    except SettingsError as exc:
        return _page(request, found, Page(_refused(exc, key)), switches_of)
    return redirect("console:shop-settings", shop_id=found.pk)


def turn_down(
    request: HttpRequest, shop_id: int, change_id: int, *, switches_of: SwitchesOf
) -> HttpResponse:
    """A no, or one's own proposal taken back."""
    found = _find(request, shop_id)
    wanted = _change_of(found, change_id)
    try:
        shop_settings.turn_down(
            change_id=wanted.pk,
            user_id=user_of(request).pk,
            reason=request.POST.get("reason", ""),
            now=timezone.now(),
        )
    except SettingsError as exc:
        refusal = _refused(exc, f"change-{change_id}")
        return _page(request, found, Page(refusal), switches_of)
    return redirect("console:shop-settings", shop_id=found.pk)


def _change(request: HttpRequest, found: Shop, form: SectionForm) -> shop_settings.Outcome:
    return shop_settings.change_settings(
        shop_id=found.pk,
        user_id=user_of(request).pk,
        wanted=form.wanted(),
        seen=form.cleaned_data["seen"],
        reason=form.cleaned_data["reason"],
        now=timezone.now(),
    )


def _doubt(request: HttpRequest, given: dict[str, Any], form: str) -> Refusal | None:
    doubt = doubt_about(request, password=given["password"], code=given["code"])
    if doubt is None:
        return None
    return Refusal(doubt.status, doubt.value + NOTHING, form, doubt.field)


def _refused(exc: SettingsError, form: str) -> Refusal:
    status, message = REFUSALS[type(exc)]
    wrong = "reason" if isinstance(exc, shop_settings.ReasonNeededError) else ""
    return Refusal(status, message + NOTHING, form, wrong)


def _back(found: Shop, section: Section, outcome: shop_settings.Outcome) -> HttpResponse:
    """Back to the page, which says how much is in effect and how much waits."""
    told = urlencode({"set": len(outcome.applied), "waits": len(outcome.proposed)})
    return redirect(f"{reverse('console:shop-settings', args=[found.pk])}?{told}#{section.key}")


def _shops(user: User) -> Any:
    whose = Q() if user.shop_id is None else Q(pk=user.shop_id)
    return Shop.objects.filter(whose).order_by("name")


def _find(request: HttpRequest, shop_id: int) -> Shop:
    found: Shop | None = _shops(user_of(request)).filter(pk=shop_id).first()
    if found is None:
        raise Http404
    return found


def _change_of(found: Shop, change_id: int) -> ShopChange:
    """Raises Http404 for another shop's change as for none."""
    wanted = ShopChange.objects.filter(pk=change_id, shop=found).first()
    if wanted is None:
        raise Http404
    return wanted


def _page(request: HttpRequest, found: Shop, page: Page, switches_of: SwitchesOf) -> HttpResponse:
    user = user_of(request)
    now = timezone.now()
    waiting = shop_settings.list_open(shop_id=found.pk, now=now)
    ended = shop_settings.list_ended(shop_id=found.pk, now=now, limit=ENDED_SHOWN)
    context = {
        "shop": found,
        "forms": [page.forms.get(section.key) or _form(section, found) for section in SECTIONS],
        "waiting": [_sight(each, found, user) for each in waiting],
        "ended": [_sight(each, found, user) for each in ended],
        "switches": switches_of(found),
        "refusal": page.refusal,
        "told": _told(request),
    }
    status = page.refusal.status if page.refusal else 200
    return render(request, "console/settings/shop.html", context, status=status)


def _form(section: Section, found: Shop) -> SectionForm:
    return SectionForm(section, found, seen=shop_settings.mark(found, section.names))


def _sight(each: ShopChange, found: Shop, user: User) -> ChangeSight:
    return ChangeSight(
        change=each,
        label=setting_forms.label_of(each.setting),
        old=setting_forms.in_words(each.setting, each.old_value, found),
        new=setting_forms.in_words(each.setting, each.new_value, found),
        is_own=each.proposed_by_user_id == user.pk,
        status="expired" if each.status == ChangeStatus.OPEN else each.status,
    )


def _told(request: HttpRequest) -> dict[str, int]:
    """What the request before came to, from the address; {} when it says nothing of it."""
    given = {name: request.GET.get(name, "") for name in ("set", "waits")}
    if not all(text.isascii() and text.isdigit() and len(text) < 3 for text in given.values()):
        return {}
    return {name: int(text) for name, text in given.items()}
