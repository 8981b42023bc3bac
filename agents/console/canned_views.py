"""The console's ready-made answers: what there is, and an admin's changes to it."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from accounts.console import Right, has_right, user_of
from accounts.models import Shop, User
from agents.casework import CannedReply
from agents.console import selectors
from agents.console.forms import CannedForm
from agents.services import canned

MALFORMED = "An answer has a name of at most 80 and a text of at most 4,000 characters."
UNKNOWN = "Nothing fills in {{{}}}. Use one of the placeholders that are listed."
TAKEN = "There is an answer of that name."


def overview(request: HttpRequest) -> HttpResponse:
    """The shop's ready-made answers; `?reply=` has one of them in the form."""
    return _page(request)


def save(request: HttpRequest) -> HttpResponse:
    """Write a new answer, or change one."""
    user, form = user_of(request), CannedForm(request.POST)
    if not form.is_valid():
        return _page(request, refusal=MALFORMED, status=422)
    given = form.cleaned_data
    try:
        canned.save(
            shop_id=_shop_of(user, given["shop"], given["reply"]),
            by=user,
            name=given["name"],
            text=given["text"].replace("\r\n", "\n"),
            reply_id=given["reply"],
        )
    except CannedReply.DoesNotExist as exc:
        raise Http404 from exc
    except canned.UnknownPlaceholderError as exc:
        return _page(request, refusal=UNKNOWN.format(exc.name), status=422)
    except canned.NameTakenError:
        return _page(request, refusal=TAKEN, status=409)
    return redirect("console:canned")


def remove(request: HttpRequest, reply_id: int) -> HttpResponse:
    """Take an answer away."""
    user = user_of(request)
    try:
        shop_id = _shop_of(user, None, reply_id)
        canned.remove(shop_id=shop_id, by=user, reply_id=reply_id)
    except CannedReply.DoesNotExist as exc:
        raise Http404 from exc
    return redirect("console:canned")


def _shop_of(user: User, shop_id: int | None, reply_id: int | None) -> int:
    """The shop that is written for: one's own, or the one that whoever sees all has named."""
    if user.shop_id is not None:
        return user.shop_id
    if reply_id is not None:
        return CannedReply.objects.get(pk=reply_id).shop_id
    if shop_id is None or not Shop.objects.filter(pk=shop_id).exists():
        raise Http404
    return shop_id


def _page(request: HttpRequest, *, refusal: str = "", status: int = 200) -> HttpResponse:
    user = user_of(request)
    replies = selectors.list_canned(user)
    chosen = request.GET.get("reply", "")
    shown: dict[str, Any] = next(
        (
            {"reply": reply.pk, "name": reply.name, "text": reply.text, "shop": reply.shop_id}
            for reply in replies
            if str(reply.pk) == chosen
        ),
        {},
    )
    if refusal:
        shown = {name: request.POST.get(name, "") for name in CannedForm.base_fields}
    context = {
        "replies": replies,
        "shown": shown,
        "refusal": refusal,
        "may_edit": has_right(user, Right.TEXTS),
        "placeholders": canned.PLACEHOLDERS,
        "shops": [] if user.shop_id else list(Shop.objects.order_by("name")),
    }
    return render(request, "console/canned.html", context, status=status)
