"""How long a question has waited in the hours in which its shop is at work, and what that means."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db import transaction

from accounts.models import Shop, User
from approvals.models import Attention, Level
from audit import services as audit

# No question is as old as this; it bounds the counting.
LONGEST = timedelta(days=120)


@dataclass(frozen=True)
class Hours:
    """When a shop is at work. `weekdays` are ISO numbers, times of day are in `zone`."""

    opens_at: time
    closes_at: time
    weekdays: frozenset[int]
    zone: ZoneInfo

    def worked(self, start: datetime, end: datetime) -> timedelta:
        """How much of the stretch from `start` to `end` lies in working hours."""
        if end <= start:
            return timedelta()
        start = max(start, end - LONGEST)
        day, last = start.astimezone(self.zone).date(), end.astimezone(self.zone).date()
        total = timedelta()
        while day <= last:
            total += self._of_day(day, start, end)
            day += timedelta(days=1)
        return total

    def _of_day(self, day: date, start: datetime, end: datetime) -> timedelta:
        if day.isoweekday() not in self.weekdays:
            return timedelta()
        # By the clock on the wall, so that a day on which it is put forward has an hour less.
        opens = datetime.combine(day, self.opens_at, self.zone).timestamp()
        closes = datetime.combine(day, self.closes_at, self.zone).timestamp()
        seconds = min(closes, end.timestamp()) - max(opens, start.timestamp())
        return timedelta(seconds=max(0.0, seconds))


def attention_of(shop: Shop) -> Attention:
    """What the shop has set, or what holds while it has set nothing."""
    found: Attention | None = getattr(shop, "attention", None)
    return found or Attention(shop=shop)


def hours_of(attention: Attention) -> Hours:
    return Hours(
        opens_at=attention.opens_at,
        closes_at=attention.closes_at,
        weekdays=frozenset(attention.weekdays),
        zone=ZoneInfo(attention.shop.time_zone),
    )


def level_of(shop: Shop, *, asked_at: datetime, now: datetime) -> Level | None:
    """Has a question waited long enough to warn of it, or too long? None while it has not."""
    attention = attention_of(shop)
    minutes = hours_of(attention).worked(asked_at, now) / timedelta(minutes=1)
    if minutes >= attention.late_minutes:
        return Level.LATE
    return Level.WARNING if minutes >= attention.warn_minutes else None


@transaction.atomic
def set_attention(*, shop_id: int, by: User, now: datetime, **values: Any) -> None:
    """Set a shop's working hours and reminders (the fields of `Attention`). Counts from now on."""
    Attention.objects.update_or_create(shop_id=shop_id, defaults=values)
    shown = {
        name: value if isinstance(value, bool | int) else str(value)
        for name, value in values.items()
        if name != "escalate_to"
    }
    audit.record(
        actor=by.actor,
        action="attention.changed",
        subject=f"shop:{shop_id}",
        at=now,
        shop_id=shop_id,
        data={**shown, "escalate_to": len(values.get("escalate_to", []))},
    )
