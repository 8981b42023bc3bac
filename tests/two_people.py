"""Loosening a shop's money in tests, as it is done in life: by two people."""

import itertools
from typing import Any

from django.utils import timezone

from accounts import shop_settings
from accounts.models import Role, Shop, ShopChange, User

_numbers = itertools.count(1)


def make_admin(shop: Shop | None = None, **fields: Any) -> User:
    """Somebody who may change settings; without a shop those of every shop."""
    details = {"username": f"chief-{next(_numbers)}", "role": Role.ADMIN, "shop": shop}
    return User.objects.create_user(**details | fields)


def propose_change(shop: Shop, by: User | None = None, **values: Any) -> ShopChange:
    """A change that waits for a second person."""
    wanted = values or {"staff_limit": 25_000}
    outcome = shop_settings.change_settings(
        shop_id=shop.pk,
        user_id=(by or make_admin()).pk,
        wanted=wanted,
        seen=shop_settings.mark(Shop.objects.get(pk=shop.pk), wanted),
        reason="The season begins.",
        now=timezone.now(),
    )
    (change,) = outcome.proposed
    return change


def loosen(shop: Shop, **values: Any) -> None:
    """Give the shop these values, some of them looser; `shop` itself has them afterwards."""
    first, second = make_admin(), make_admin()
    shop.refresh_from_db()
    outcome = shop_settings.change_settings(
        shop_id=shop.pk,
        user_id=first.pk,
        wanted=values,
        seen=shop_settings.mark(shop, values),
        reason="a test",
        now=timezone.now(),
    )
    for change in outcome.proposed:
        shop_settings.confirm(change_id=change.pk, user_id=second.pk, now=timezone.now())
    shop.refresh_from_db()
