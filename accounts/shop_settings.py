"""Changing a shop's settings. Money is tightened by one admin and loosened by two.

A change that loosens is a proposal until another admin confirms exactly it; whatever else is changed
takes effect at once. Neither reaches back: what was proposed to a customer keeps the approvals that
were asked for then, or needs more. The database holds the rule too (migration 0008).
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import JSONField, QuerySet, Value

from accounts.models import ChangeStatus, Role, Shop, ShopChange, User
from accounts.rights import is_same_person
from audit import services as audit
from audit.canonical import canonical_json

CHANGE_LIVES = timedelta(hours=72)
MAX_REASON = 500
# More than any shop turns over, and exact in every reader of the trail.
HUGE = 10**15
UPSIDE_DOWN = "Two of staff cannot be asked below the limit above which one is."


class SettingsError(Exception):
    """Nothing was changed."""


class NotAllowedError(SettingsError):
    """This person is no admin of this shop (any more)."""


class StaleError(SettingsError):
    """Somebody has changed these settings since they were shown."""


class InvalidSettingError(SettingsError):
    """A value that the shop cannot have. `errors` says why, by setting."""

    def __init__(self, errors: Mapping[str, list[str]]) -> None:
        super().__init__(", ".join(errors))
        self.errors = errors


class ReasonNeededError(SettingsError):
    """Loosening money and turning a change down say why."""


class AlreadyProposedError(SettingsError):
    """Exactly this is proposed already; it waits for a second person."""


class SamePersonError(SettingsError):
    """Nobody confirms what they have proposed themselves."""


class NewcomerError(SettingsError):
    """Whoever confirms was there before it was proposed."""


class EndedError(SettingsError):
    """The change is not open any more: decided, superseded, or out of time."""


@dataclass
class Outcome:
    """What came of one request: the settings that hold now, and the changes that wait."""

    applied: list[str] = field(default_factory=list)
    proposed: list[ShopChange] = field(default_factory=list)


def mark(shop: Shop, names: Iterable[str]) -> str:
    """A digest of these settings' values, by which a form shows what it was filled in from."""
    values = {name: getattr(shop, name) for name in names}
    return hashlib.sha256(canonical_json(values)).hexdigest()


def is_looser(name: str, old: Any, new: Any) -> bool:
    """Would the new value let more money out than the old one?"""
    match name:
        case "second_limit":
            return old is not None and (new is None or new > old)
        case "staff_also_for_cancel":
            return bool(old) and not new
        case "countries_served":
            return not set(new) <= set(old)
        case "currency":
            return bool(old != new)
        case _:
            return name in Shop.RAISED_BY_TWO and bool(new > old)


@transaction.atomic
def change_settings(
    *,
    shop_id: int,
    user_id: int,
    wanted: Mapping[str, Any],
    seen: str,
    reason: str = "",
    now: datetime,
) -> Outcome:
    """Set what may be set by one person, and propose what takes two; values as they are now stay.

    `seen` is the `mark` of exactly these settings as they were shown. Raises NotAllowedError,
    StaleError, InvalidSettingError, ReasonNeededError or AlreadyProposedError, and then nothing
    was changed or proposed.
    """
    shop = _lock(shop_id)
    user = _admin(user_id, shop)
    if mark(shop, wanted) != seen:
        raise StaleError
    changed = {name: new for name, new in wanted.items() if getattr(shop, name) != new}
    _require_valid(shop, changed)
    looser = {
        name: new for name, new in changed.items() if is_looser(name, getattr(shop, name), new)
    }
    if looser and not reason.strip():
        raise ReasonNeededError
    outcome = Outcome()
    at_once = {name: new for name, new in changed.items() if name not in looser}
    if at_once:
        _apply(shop, at_once, by=user, now=now, data={"reason": reason[:MAX_REASON]})
        outcome.applied = list(at_once)
    for name, new in looser.items():
        outcome.proposed.append(_propose(shop, name, new, user, reason, now))
    return outcome


@transaction.atomic
def confirm(*, change_id: int, user_id: int, now: datetime) -> ShopChange:
    """The second person's yes: the setting has its new value from this commit on.

    Raises NotAllowedError, SamePersonError, NewcomerError or EndedError. Of two at once, one.
    """
    shop, change = _lock_change(change_id)
    user = _admin(user_id, shop)
    if _is_same_person(user, change):
        raise SamePersonError
    if not _still_stands(change, shop, now):
        raise EndedError
    if user.date_joined > change.proposed_at:
        raise NewcomerError
    change.confirm(by=user.actor, user_id=user.pk, at=now)
    _save_end(change)
    _record(change, "confirmed", actor=user.actor, now=now)
    people = {"change": change.pk, "people": [change.proposed_by, user.actor]}
    _apply(shop, {change.setting: change.new_value}, by=user, now=now, data=people)
    change.refresh_from_db(fields=["applied_at"])
    return change


@transaction.atomic
def turn_down(*, change_id: int, user_id: int, reason: str, now: datetime) -> ShopChange:
    """Refuse a change, or take one's own back. Raises NotAllowedError, ReasonNeededError or EndedError."""
    shop, change = _lock_change(change_id)
    user = _admin(user_id, shop)
    if change.status != ChangeStatus.OPEN:
        raise EndedError
    if not reason.strip():
        raise ReasonNeededError
    change.turn_down(by=user.actor, user_id=user.pk, note=reason.strip()[:MAX_REASON], at=now)
    _save_end(change)
    _record(change, "turned_down", actor=user.actor, now=now, note=change.note)
    return change


def list_open(*, shop_id: int, now: datetime) -> list[ShopChange]:
    """The changes that wait for a second person, oldest first."""
    waiting = _open(shop_id).filter(expires_at__gt=now)
    return list(waiting.order_by("pk"))


def list_ended(*, shop_id: int, now: datetime, limit: int) -> list[ShopChange]:
    """What became of earlier changes, newest first; those out of time among them."""
    ended = ShopChange.objects.filter(shop_id=shop_id).exclude(
        status=ChangeStatus.OPEN, expires_at__gt=now
    )
    return list(ended.order_by("-pk")[:limit])


def _lock(shop_id: int) -> Shop:
    return Shop.objects.select_for_update().get(pk=shop_id)


def _lock_change(change_id: int) -> tuple[Shop, ShopChange]:
    shop_id = ShopChange.objects.values_list("shop_id", flat=True).get(pk=change_id)
    shop = _lock(shop_id)
    return shop, ShopChange.objects.select_for_update().get(pk=change_id)


def _admin(user_id: int, shop: Shop) -> User:
    user = User.objects.filter(pk=user_id, is_active=True, role=Role.ADMIN).first()
    if user is None or user.shop_id not in {None, shop.pk}:
        raise NotAllowedError
    return user


def _is_same_person(user: User, change: ShopChange) -> bool:
    if user.pk == change.proposed_by_user_id:
        return True
    proposer = User.objects.filter(pk=change.proposed_by_user_id).first()
    return proposer is not None and is_same_person(user, proposer)


def _still_stands(change: ShopChange, shop: Shop, now: datetime) -> bool:
    return bool(
        change.status == ChangeStatus.OPEN
        and change.expires_at > now
        and getattr(shop, change.setting) == change.old_value
    )


def _require_valid(shop: Shop, values: Mapping[str, Any]) -> None:
    """What the shop would be with all of it must be a shop."""
    wished = Shop.objects.get(pk=shop.pk)
    for name, value in values.items():
        setattr(wished, name, value)
    others = {each.name for each in Shop._meta.fields} - set(values)
    huge = [name for name, value in values.items() if type(value) is int and value > HUGE]
    if huge:
        raise InvalidSettingError({name: ["This is more than there is."] for name in huge})
    if {"staff_limit", "second_limit"} & set(values) and _is_upside_down(wished):
        raise InvalidSettingError({"second_limit": [UPSIDE_DOWN]})
    try:
        wished.clean_fields(exclude=others)
        wished.validate_constraints()
    except ValidationError as exc:
        raise InvalidSettingError(exc.message_dict) from exc


def _is_upside_down(shop: Shop) -> bool:
    """Would two be asked below what asks one? Harmless, as two are then asked; but nobody means it."""
    return shop.second_limit is not None and shop.second_limit < shop.staff_limit


def _propose(shop: Shop, name: str, new: Any, user: User, reason: str, now: datetime) -> ShopChange:
    for earlier in _open(shop.pk).filter(setting=name).select_for_update():
        if _still_stands(earlier, shop, now) and earlier.new_value == new:
            raise AlreadyProposedError
        _make_way(earlier, user, now)
    change = ShopChange.objects.create(
        shop=shop,
        setting=name,
        old_value=_json(getattr(shop, name)),
        new_value=_json(new),
        reason=reason.strip()[:MAX_REASON],
        proposed_by=user.actor,
        proposed_by_user_id=user.pk,
        proposed_at=now,
        expires_at=now + CHANGE_LIVES,
    )
    change.refresh_from_db(fields=["old_value", "new_value"])
    _record(change, "proposed", actor=user.actor, now=now, reason=change.reason)
    return change


def _json(value: Any) -> Any:
    """The value as a JSON column keeps it: a plain None would be no value at all."""
    return Value(None, JSONField()) if value is None else value


def _apply(
    shop: Shop, values: Mapping[str, Any], *, by: User, now: datetime, data: dict[str, object]
) -> None:
    """Set these values, and end every open change that started from another one."""
    changes = {name: [getattr(shop, name), new] for name, new in values.items()}
    for name, new in values.items():
        setattr(shop, name, new)
    shop.save(update_fields=list(values))
    audit.record(
        actor=by.actor,
        action="shop.changed",
        subject=f"shop:{shop.pk}",
        at=now,
        shop_id=shop.pk,
        data={"changes": changes} | data,
    )
    for change in _open(shop.pk).filter(setting__in=values).select_for_update():
        _make_way(change, by, now)


def _make_way(change: ShopChange, user: User, now: datetime) -> None:
    """The setting has moved on, or something else is proposed for it, or time is over."""
    if change.expires_at <= now:
        change.expire(at=now)
        actor = "system"
    else:
        change.supersede(by=user.actor, user_id=user.pk, at=now)
        actor = user.actor
    _save_end(change)
    _record(change, change.status, actor=actor, now=now)


def _open(shop_id: int) -> QuerySet[ShopChange]:
    return ShopChange.objects.filter(shop_id=shop_id, status=ChangeStatus.OPEN)


def _save_end(change: ShopChange) -> None:
    change.save(update_fields=["status", "ended_by", "ended_by_user_id", "ended_at", "note"])


def _record(change: ShopChange, what: str, *, actor: str, now: datetime, **data: object) -> None:
    audit.record(
        actor=actor,
        action=f"shop_change.{what}",
        subject=f"shop_change:{change.pk}",
        at=now,
        shop_id=change.shop_id,
        data={
            "setting": change.setting,
            "from": change.old_value,
            "to": change.new_value,
            "proposed_by": change.proposed_by,
            **data,
        },
    )
