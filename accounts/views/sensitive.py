"""Customers whose cases nobody opens without a reason: marking them, and taking the mark away."""

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from accounts import looks
from accounts.console import user_of
from accounts.models import Customer, Shop

UNKNOWN = "The shop has no customer with this id here. Nothing was changed."
SAY_WHY = "Say why, in at most 500 characters. Nothing was changed."
ALREADY = "That customer is marked like this already. Nothing was changed."


def overview(request: HttpRequest, shop_id: int) -> HttpResponse:
    """Everybody of the shop who is marked."""
    return _page(request, _find(request, shop_id))


def mark(request: HttpRequest, shop_id: int) -> HttpResponse:
    """Mark somebody, or take the mark away."""
    shop = _find(request, shop_id)
    named = request.POST.get("customer", "").strip()[:120]
    customer = Customer.objects.filter(shop=shop, external_id=named).first()
    if customer is None:
        return _page(request, shop, UNKNOWN, given=named, status=422)
    try:
        looks.mark_sensitive(
            customer_id=customer.pk,
            is_sensitive=request.POST.get("mark") == "on",
            reason=request.POST.get("reason", ""),
            by=user_of(request),
            now=timezone.now(),
        )
    except looks.ReasonNeededError:
        return _page(request, shop, SAY_WHY, given=named, status=422)
    except looks.SensitivityError:
        return _page(request, shop, ALREADY, given=named, status=409)
    return redirect("console:sensitive", shop_id=shop.pk)


def _find(request: HttpRequest, shop_id: int) -> Shop:
    user = user_of(request)
    whose = Q() if user.shop_id is None else Q(pk=user.shop_id)
    found = Shop.objects.filter(whose, pk=shop_id).first()
    if found is None:
        raise Http404
    return found


def _page(
    request: HttpRequest, shop: Shop, refusal: str = "", *, given: str = "", status: int = 200
) -> HttpResponse:
    marked = Customer.objects.filter(shop=shop, is_sensitive=True).order_by("external_id")
    context = {"shop": shop, "customers": list(marked), "refusal": refusal, "given": given}
    return render(request, "console/settings/customers.html", context, status=status)
