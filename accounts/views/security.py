"""One's own sign-in: the second factor, recovery codes, the password, other sessions."""

from contextlib import suppress
from typing import Any

import segno
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from accounts import second_factor
from accounts.console import user_of
from accounts.models import User
from accounts.second_factor import AlreadyThereError, NotAllowedError
from accounts.step_up import Doubt, doubt_about
from audit import services as audit

WRONG_FIRST_CODE = "That is not the code that your app shows for this secret. Nothing is on yet."
REQUIRED = (
    "Your rights ask for a second factor, so it stays. Ask an admin if you change your phone."
)


def overview(request: HttpRequest) -> HttpResponse:
    """What protects this person's sign-in, and what they can do about it."""
    return _page(request)


def begin(request: HttpRequest) -> HttpResponse:
    """Make a secret for the app, after the password."""
    user = user_of(request)
    doubt = _doubt(request)
    if doubt is not None:
        return _refuse(request, doubt, "begin")
    with suppress(AlreadyThereError):  # two tabs: the page shows that it is on
        second_factor.begin(user_id=user.pk, now=timezone.now())
    return redirect("console:security")


def confirm(request: HttpRequest) -> HttpResponse:
    """Turn it on with the app's first code, and show the recovery codes, this once."""
    user = user_of(request)
    try:
        codes = second_factor.confirm(
            user_id=user.pk, code=request.POST.get("code", "")[:100], now=timezone.now()
        )
    except AlreadyThereError:
        return redirect("console:security")
    if not codes:
        return _page(request, WRONG_FIRST_CODE, form="confirm", status=422)
    _keep_this_session(request)
    return _page(request, codes=codes)


def renew_codes(request: HttpRequest) -> HttpResponse:
    """Fresh recovery codes, after a code of the app."""
    doubt = _doubt(request)
    if doubt is not None:
        return _refuse(request, doubt, "codes")
    codes = second_factor.renew_codes(user_id=user_of(request).pk, now=timezone.now())
    return _page(request, codes=codes)


def remove(request: HttpRequest) -> HttpResponse:
    """Take the factor away, after a code of the app; not where it is required."""
    user = user_of(request)
    doubt = _doubt(request)
    if doubt is not None:
        return _refuse(request, doubt, "remove")
    try:
        second_factor.remove(user_id=user.pk, by=user, now=timezone.now())
    except NotAllowedError:
        return _page(request, REQUIRED, form="remove", status=403)
    _keep_this_session(request)
    return redirect("console:security")


def sign_out_others(request: HttpRequest) -> HttpResponse:
    """End every session of this person but this one."""
    with transaction.atomic():
        user = User.objects.select_for_update().get(pk=user_of(request).pk)
        second_factor.end_sessions(user)
        _record(user, "user.signed_out_elsewhere")
    _keep_this_session(request)
    return redirect("console:security")


def change_password(request: HttpRequest) -> HttpResponse:
    """A new password; every other session ends."""
    form = PasswordChangeForm(user_of(request), request.POST)
    if not form.is_valid():
        wrong = " ".join(str(error) for errors in form.errors.values() for error in errors)
        return _page(request, wrong, form="password", status=422)
    with transaction.atomic():
        form.save()
        _record(user_of(request), "user.password_changed")
    _keep_this_session(request)
    return redirect("console:security")


def _doubt(request: HttpRequest) -> Doubt | None:
    return doubt_about(
        request,
        password=request.POST.get("password", "")[:500],
        code=request.POST.get("code", "")[:100],
    )


def _refuse(request: HttpRequest, doubt: Doubt, form: str) -> HttpResponse:
    return _page(request, f"{doubt.value} Nothing was changed.", form=form, status=doubt.status)


def _keep_this_session(request: HttpRequest) -> None:
    """All sessions of before have ended; this one goes on under a new key."""
    user = User.objects.get(pk=user_of(request).pk)
    request.user = user
    update_session_auth_hash(request, user)


def _page(
    request: HttpRequest,
    refusal: str = "",
    *,
    form: str = "",
    codes: list[str] | None = None,
    status: int = 200,
) -> HttpResponse:
    user = user_of(request)
    pending = second_factor.get_pending(user.pk)
    context: dict[str, Any] = {
        "is_enrolled": second_factor.is_enrolled(user.pk),
        "is_missing": user.can_approve and second_factor.is_missing(user),
        "codes_left": second_factor.count_recovery_codes(user.pk),
        "codes": codes,
        "pending": pending,
        "refusal": refusal,
        "refused": form,
    }
    if pending is not None:
        address = second_factor.address_of(pending)
        context["secret"] = second_factor.secret_of(pending)
        context["picture"] = segno.make(address, error="m", micro=False).svg_data_uri(
            scale=5, border=4, dark="#000", light="#fff"
        )
    return render(request, "console/security.html", context, status=status)


def _record(user: User, action: str) -> None:
    audit.record(
        actor=user.actor,
        action=action,
        subject=f"user:{user.pk}",
        at=timezone.now(),
        shop_id=user.shop_id,
        data={"user": user.username},
    )
