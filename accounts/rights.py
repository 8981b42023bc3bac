"""Who may decide for a shop about one of its customers."""

from django.db.models import Q, QuerySet

from accounts import second_factor
from accounts.models import Customer, User


def get_countersigner(user_id: int | None, *, customer: Customer) -> User | None:
    """This member of staff, if they may decide about this customer's changes now; else None.

    Needs the right, for this customer's shop, and somebody other than the customer: staff shop as
    well, but nobody countersigns for themselves. Where a second factor is required: with one.
    """
    user = None if user_id is None else User.objects.filter(pk=user_id).first()
    if user is None or not user.can_approve or user.shop_id not in {None, customer.shop_id}:
        return None
    if second_factor.is_missing(user):
        return None
    return None if _is_customer_too(user, customer) else user


def is_same_person(one: User, other: User) -> bool:
    """The same account, or a second account of the same address."""
    return one.pk == other.pk or _is_same_address(one.email, other.email)


def same_people(user: User) -> "QuerySet[User]":
    """This account, and every other one of its address."""
    same = Q(pk=user.pk)
    if address := user.email.strip():
        same |= Q(email__iexact=address)
    return User.objects.filter(same)


def _is_customer_too(user: User, customer: Customer) -> bool:
    return _is_same_address(user.email, customer.email)


def _is_same_address(one: str, other: str) -> bool:
    return bool(one.strip()) and one.strip().casefold() == other.strip().casefold()
