"""What a shop signs with: its customers' identities, and what it tells us. Adding and retiring.

A new one counts beside the old one; the old one is retired with time for what is on its way.
"""

import json
import secrets
from datetime import timedelta
from typing import Any

from django import forms
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from accounts import keyring, webhooks
from accounts.console import user_of
from accounts.keyring import BadKeyError
from accounts.models import Shop, SigningKey, WebhookSecret
from accounts.step_up import doubt_about
from accounts.webhooks import BadSecretError

NOTHING = " Nothing was changed."
WEBHOOK, SHARED, PUBLIC = "webhook", "shared", "public"
WHEN = [("0", "now"), ("1", "in an hour"), ("24", "in a day"), ("168", "in a week")]


class SureForm(forms.Form):
    """What every form of this page brings to make sure that it is them."""

    password = forms.CharField(max_length=500, required=False, strip=False)
    code = forms.CharField(max_length=100, required=False)


class AddForm(SureForm):
    """A new secret under a name, or a public key as the shop shows it."""

    what = forms.ChoiceField(choices=[(WEBHOOK, ""), (SHARED, ""), (PUBLIC, "")])
    name = forms.CharField(max_length=120, required=False)
    jwk = forms.CharField(max_length=4000, required=False)


class RetireForm(SureForm):
    """Which one, and when it stops counting."""

    what = forms.ChoiceField(choices=[(WEBHOOK, ""), (SHARED, "")])
    name = forms.CharField(max_length=120)
    hours = forms.TypedChoiceField(choices=WHEN, coerce=int)


def overview(request: HttpRequest, shop_id: int) -> HttpResponse:
    """The secrets and keys of a shop by name; what they are is never shown again."""
    return _page(request, _find(request, shop_id))


def add(request: HttpRequest, shop_id: int) -> HttpResponse:
    """Make a secret and show it this once, or take a public key."""
    found = _find(request, shop_id)
    form = AddForm(request.POST)
    if not form.is_valid():
        return _page(request, found, "That cannot be read." + NOTHING, status=422)
    refused = _doubt(request, found, form)
    if refused is not None:
        return refused
    given = form.cleaned_data
    try:
        fresh = _add(request, found, given)
    except (BadKeyError, BadSecretError) as exc:
        return _page(request, found, f"{exc}." + NOTHING, form=given["what"], status=422)
    if not fresh:
        return redirect("console:shop-secrets", shop_id=found.pk)
    return _page(request, found, fresh={"name": given["name"], "secret": fresh})


def retire(request: HttpRequest, shop_id: int) -> HttpResponse:
    """Let one run out; until then both count."""
    found = _find(request, shop_id)
    form = RetireForm(request.POST)
    if not form.is_valid():
        return _page(request, found, "Say which one, and when." + NOTHING, status=422)
    refused = _doubt(request, found, form)
    if refused is not None:
        return refused
    given = form.cleaned_data
    now = timezone.now()
    # A key retires after it began to count, by a rule of the database.
    at = now + timedelta(hours=given["hours"])
    said: dict[str, Any] = {
        "shop_id": found.pk,
        "at": at,
        "actor": user_of(request).actor,
        "now": now,
    }
    try:
        if given["what"] == WEBHOOK:
            webhooks.retire_webhook_secret(name=given["name"], **said)
        else:
            keyring.retire_key(kid=given["name"], **said)
    except (BadKeyError, BadSecretError) as exc:
        return _page(request, found, f"{exc}." + NOTHING, status=409)
    return redirect("console:shop-secrets", shop_id=found.pk)


def _add(request: HttpRequest, found: Shop, given: dict[str, Any]) -> str:
    """The secret that was made; "" for a public key."""
    said: dict[str, Any] = {
        "shop_id": found.pk,
        "actor": user_of(request).actor,
        "now": timezone.now(),
    }
    match given["what"]:
        case "webhook":
            fresh = webhooks.new_webhook_secret()
            webhooks.add_webhook_secret(name=given["name"], secret=fresh, **said)
        case "shared":
            fresh = secrets.token_urlsafe(48)
            keyring.add_secret(kid=given["name"], secret=fresh, **said)
        case _:
            fresh = ""
            keyring.add_public_key(jwk=_jwk(given["jwk"]), **said)
    return fresh


def _jwk(text: str) -> dict[str, Any]:
    """Raises BadKeyError for what is no JSON object."""
    try:
        found = json.loads(text)
    except ValueError as exc:
        raise BadKeyError("A public key is given as a JWK, a JSON object") from exc
    if not isinstance(found, dict):
        raise BadKeyError("A public key is given as a JWK, a JSON object")
    return found


def _doubt(request: HttpRequest, found: Shop, form: SureForm) -> HttpResponse | None:
    given = form.cleaned_data
    doubt = doubt_about(request, password=given["password"], code=given["code"])
    if doubt is None:
        return None
    return _page(request, found, doubt.value + NOTHING, form=given["what"], status=doubt.status)


def _find(request: HttpRequest, shop_id: int) -> Shop:
    user = user_of(request)
    whose = Q() if user.shop_id is None else Q(pk=user.shop_id)
    found = Shop.objects.filter(whose, pk=shop_id).first()
    if found is None:
        raise Http404
    return found


def _page(
    request: HttpRequest,
    found: Shop,
    refusal: str = "",
    *,
    form: str = "",
    fresh: dict[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    now = timezone.now()
    context = {
        "shop": found,
        "webhook_secrets": _with_state(WebhookSecret.objects.filter(shop=found), now),
        "signing_keys": _with_state(SigningKey.objects.filter(shop=found), now),
        "widget_keys": list(found.widget_keys.order_by("key")),
        "when": WHEN,
        "refusal": refusal,
        "refused": form,
        "fresh": fresh,
    }
    return render(request, "console/settings/secrets.html", context, status=status)


def _with_state(rows: Any, now: Any) -> list[dict[str, Any]]:
    """Each with whether it counts now; the newest first."""
    return [
        {"row": row, "counts": row.retired_at is None or row.retired_at > now}
        for row in rows.order_by("-pk")
    ]
