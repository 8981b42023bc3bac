"""The people of a shop's console, for its admins: who may do what, who has a second factor."""

from django.db.models import Exists, OuterRef, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from accounts import second_factor
from accounts.console import user_of
from accounts.models import SecondFactor, User
from accounts.second_factor import NotAllowedError
from accounts.step_up import doubt_about

SAY_WHY = "Say why. Nothing was changed."
NOT_YOURS = "You may not reset this person's second factor. Nothing was changed."


def overview(request: HttpRequest) -> HttpResponse:
    """Everybody who signs in for this admin's shop, without one for every shop."""
    return _page(request)


def reset_factor(request: HttpRequest, user_id: int) -> HttpResponse:
    """Take away the second factor of somebody who has lost it; they are signed out everywhere."""
    by = user_of(request)
    person = next((each for each in _people(by) if each.pk == user_id), None)
    if person is None or person.pk == by.pk:
        raise Http404
    reason = request.POST.get("reason", "").strip()[:500]
    if not reason:
        return _page(request, SAY_WHY, person=person, status=422)
    doubt = doubt_about(
        request,
        password=request.POST.get("password", "")[:500],
        code=request.POST.get("code", "")[:100],
    )
    if doubt is not None:
        refusal = f"{doubt.value} Nothing was changed."
        return _page(request, refusal, person=person, status=doubt.status)
    try:
        second_factor.remove(user_id=person.pk, by=by, reason=reason, now=timezone.now())
    except NotAllowedError:
        return _page(request, NOT_YOURS, person=person, status=403)
    return redirect("console:people")


def _people(user: User) -> list[User]:
    whose = Q() if user.shop_id is None else Q(shop_id=user.shop_id)
    confirmed = SecondFactor.objects.filter(user=OuterRef("pk"), confirmed_at__isnull=False)
    people = User.objects.filter(whose).select_related("shop")
    return list(people.annotate(has_factor=Exists(confirmed)).order_by("-is_active", "username"))


def _page(
    request: HttpRequest, refusal: str = "", *, person: User | None = None, status: int = 200
) -> HttpResponse:
    context = {
        "people": _people(user_of(request)),
        "refusal": refusal,
        "refused": person.pk if person else None,
    }
    return render(request, "console/people.html", context, status=status)
