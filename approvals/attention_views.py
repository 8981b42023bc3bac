"""When staff are at work and how they are reminded: read by everybody, set by an admin of the shop."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from accounts.console import Right, has_right, user_of
from accounts.models import Shop, User
from approvals.attention import attention_of, set_attention
from approvals.attention_form import DAYS, AttentionForm


def overview(request: HttpRequest) -> HttpResponse:
    """What holds now, and a form for whoever may change it."""
    shop = _shop_of(user_of(request), request.GET.get("shop", ""))
    return _page(request, shop, AttentionForm.of(attention_of(shop)))


def save(request: HttpRequest) -> HttpResponse:
    """Set it anew; a malformed one changes nothing."""
    user = user_of(request)
    shop = _shop_of(user, request.POST.get("shop", ""))
    form = AttentionForm(request.POST)
    if not form.is_valid():
        return _page(request, shop, form, status=422)
    set_attention(shop_id=shop.pk, by=user, now=timezone.now(), **form.values())
    return redirect(f"{request.path.removesuffix('save/')}?shop={shop.slug}")


def _shop_of(user: User, slug: str) -> Shop:
    """One's own shop; whoever sees all names one, and sees the first without."""
    if user.shop_id is not None:
        return Shop.objects.select_related("attention").get(pk=user.shop_id)
    shops = Shop.objects.select_related("attention").order_by("name")
    found = shops.filter(slug=slug).first() if slug else shops.first()
    if found is None:
        raise Http404
    return found


def _page(
    request: HttpRequest, shop: Shop, form: AttentionForm, *, status: int = 200
) -> HttpResponse:
    user = user_of(request)
    context = {
        "shop": shop,
        "shops": [] if user.shop_id else list(Shop.objects.order_by("name")),
        "form": form,
        "days": DAYS,
        "may_edit": has_right(user, Right.TEXTS),
    }
    return render(request, "console/attention.html", context, status=status)
