"""The console's customers: their holds, their own copy, and their erasure. For admins alone."""

from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from accounts import keeping
from accounts.console import user_of
from accounts.models import Customer, Erasure, ErasureCause, Hold, User
from agents.models import Ticket
from agents.services.erasure import erase_customer
from agents.subject_copy import make_copy

SHOWN = 50
CAUSES = (ErasureCause.ASKED, ErasureCause.SHOP)
NAME_THEM = "Type “{name}” exactly, and say why. Nothing was erased."
HELD = "This customer is on hold, so nothing was erased. Lift the hold first."
NO_REASON = "Say why, in at most 300 characters. Nothing was held."
NO_TICKET = "That is no ticket of this customer. Nothing was held."
HELD_ALREADY = "That is on hold already."
LIFTED_ALREADY = "That hold was lifted already."


class EraseForm(forms.Form):
    """Which customer, in so many words, and why."""

    confirm = forms.CharField(max_length=200)
    cause = forms.ChoiceField(choices=[(cause.value, cause.label) for cause in CAUSES])


class HoldForm(forms.Form):
    """Why something is kept. Without a ticket it is everything of the customer's."""

    reason = forms.CharField(max_length=keeping.MAX_REASON)
    ticket = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)


class LiftForm(forms.Form):
    hold = forms.IntegerField(min_value=1, max_value=2**63 - 1)


def overview(request: HttpRequest) -> HttpResponse:
    """The shop's customers, newest first, found by a part of their name, address or number."""
    wanted = request.GET.get("q", "").strip()[:200].replace("\0", "")
    found = _customers(user_of(request))
    if wanted:
        found = found.filter(
            Q(external_id__icontains=wanted)
            | Q(name__icontains=wanted)
            | Q(email__icontains=wanted)
        )
    customers = list(found.order_by("-pk")[: SHOWN + 1])
    context = {"customers": customers[:SHOWN], "wanted": wanted, "has_more": len(customers) > SHOWN}
    return render(request, "console/customers/list.html", context)


def customer(request: HttpRequest, customer_id: int) -> HttpResponse:
    """One customer: what is kept of them, what keeps it, and what may be done about it."""
    return _page(request, _find(request, customer_id))


def copy(request: HttpRequest, customer_id: int) -> HttpResponse:
    """Everything that is the customer's, as a file for them."""
    found = _find(request, customer_id)
    made = make_copy(customer_id=found.pk, by=user_of(request).actor, now=timezone.now())
    name = f"{found.shop.slug}-customer-{found.pk}-{made.made_at:%Y%m%d}.json"
    return HttpResponse(
        made.model_dump_json(indent=2),
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def hold(request: HttpRequest, customer_id: int) -> HttpResponse:
    """Keep everything of the customer's, or one ticket, until the hold is lifted."""
    found = _find(request, customer_id)
    form = HoldForm(request.POST)
    if not form.is_valid():
        return _page(request, found, refusal=NO_REASON, at="hold", status=422)
    ticket_id = form.cleaned_data["ticket"]
    if ticket_id and not Ticket.objects.filter(pk=ticket_id, customer=found).exists():
        return _page(request, found, refusal=NO_TICKET, at="hold", status=422)
    try:
        keeping.place_hold(
            customer_id=found.pk,
            ticket_id=ticket_id,
            reason=form.cleaned_data["reason"],
            by=user_of(request).actor,
            now=timezone.now(),
        )
    except keeping.HoldExistsError:
        return _page(request, found, refusal=HELD_ALREADY, at="hold", status=409)
    return redirect("console:customer", customer_id=found.pk)


def lift(request: HttpRequest, customer_id: int) -> HttpResponse:
    """Let what was held go again when it is due."""
    found = _find(request, customer_id)
    form = LiftForm(request.POST)
    if not form.is_valid():
        return _page(request, found, refusal=LIFTED_ALREADY, at="hold", status=422)
    mine = Hold.objects.filter(pk=form.cleaned_data["hold"], customer=found).first()
    if mine is None:
        raise Http404
    try:
        keeping.lift_hold(hold_id=mine.pk, by=user_of(request).actor, now=timezone.now())
    except keeping.HoldOverError:
        return _page(request, found, refusal=LIFTED_ALREADY, at="hold", status=409)
    return redirect("console:customer", customer_id=found.pk)


def erase(request: HttpRequest, customer_id: int) -> HttpResponse:
    """Erase the customer's words for good, once they are named in so many words."""
    found = _find(request, customer_id)
    form = EraseForm(request.POST)
    name = name_of(found)
    if not form.is_valid() or form.cleaned_data["confirm"] != name:
        refusal = NAME_THEM.format(name=name)
        return _page(request, found, refusal=refusal, at="erase", status=422)
    try:
        erase_customer(
            customer_id=found.pk,
            cause=ErasureCause(form.cleaned_data["cause"]),
            by=user_of(request).actor,
            now=timezone.now(),
        )
    except keeping.HeldError:
        return _page(request, found, refusal=HELD, at="erase", status=409)
    return redirect("console:customer", customer_id=found.pk)


def name_of(customer: Customer) -> str:
    """What has to be typed before somebody is erased."""
    return customer.name.strip() or customer.external_id


def _page(
    request: HttpRequest, found: Customer, *, refusal: str = "", at: str = "", status: int = 200
) -> HttpResponse:
    holds = list(Hold.objects.filter(customer=found).order_by("-pk"))
    erasures = list(Erasure.objects.filter(customer=found, ticket_id=None).order_by("-pk"))
    context: dict[str, Any] = {
        "customer": found,
        "name": name_of(found),
        "tickets": Ticket.objects.filter(customer=found).count(),
        "holds": [one for one in holds if one.lifted_at is None],
        "lifted": [one for one in holds if one.lifted_at is not None],
        "erasures": erasures,
        "is_leaving": any(one.done_at is None for one in erasures),
        "causes": CAUSES,
        "refusal": refusal,
        "refused_at": at,
        "given": request.POST,
    }
    return render(request, "console/customers/customer.html", context, status=status)


def _find(request: HttpRequest, customer_id: int) -> Customer:
    """Raises Http404 for another shop's as for nobody."""
    found = _customers(user_of(request)).filter(pk=customer_id).first()
    if found is None:
        raise Http404
    return found


def _customers(user: User) -> QuerySet[Customer]:
    customers = Customer.objects.select_related("shop")
    return customers if user.shop_id is None else customers.filter(shop_id=user.shop_id)
