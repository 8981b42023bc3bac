"""Reads of the trail."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from django.db.models import QuerySet

from audit.canonical import rfc3339
from audit.models import Event, Seal, Unsealed

CLOCKS_DIFFER = timedelta(minutes=15)


@dataclass(frozen=True, kw_only=True)
class EventFilter:
    """Which events; an empty field asks for nothing.

    shop_id has no default, so that nobody reads across shops by forgetting it: None is every shop and
    the events of none. since is inclusive, until exclusive. action is a whole action
    (`refund.succeeded`) or its noun (`refund`); decision is what people answered (`granted`,
    `rejected`, …). Amounts are minor units, both ends included, and mean nothing without a currency.
    """

    shop_id: int | None
    since: datetime | None = None
    until: datetime | None = None
    task_id: int | None = None
    ticket_id: int | None = None
    customer: str = ""
    order_id: str = ""
    tool: str = ""
    action: str = ""
    outcome: str = ""
    actor: str = ""
    decision: str = ""
    amount_min: int | None = None
    amount_max: int | None = None
    currency: str = ""

    @classmethod
    def restore(cls, described: Mapping[str, Any], *, shop_id: int | None) -> Self:
        """The filter that `describe` gave, within this shop. Raises TypeError for a field that is none."""
        fields: dict[str, Any] = {
            name: datetime.fromisoformat(value) if name in {"since", "until"} else value
            for name, value in described.items()
        }
        return cls(**fields | {"shop_id": shop_id})

    def describe(self) -> dict[str, object]:
        """The fields that ask for something, as JSON values."""
        fields = {
            name: rfc3339(value) if isinstance(value, datetime) else value
            for name, value in vars(self).items()
        }
        return {name: value for name, value in fields.items() if value not in {None, ""}}


@dataclass(frozen=True)
class EventPage:
    """Some events, newest first; `before` asks for the page of older ones, None when it is the last,
    and `after` for the page of newer ones, None when it is the first."""

    events: list[Event]
    before: int | None
    after: int | None = None


def filter_events(event_filter: EventFilter) -> QuerySet[Event]:
    """The events that match, in no order."""
    exact = (
        *("shop_id", "task_id", "ticket_id", "customer", "order_id", "tool", "outcome", "actor"),
        "currency",
    )
    wanted = {name: getattr(event_filter, name) for name in exact}
    events = Event.objects.filter(
        **{name: value for name, value in wanted.items() if value not in {None, ""}}
    )
    if event_filter.since is not None:
        events = events.filter(at__gte=event_filter.since)
    if event_filter.until is not None:
        events = events.filter(at__lt=event_filter.until)
    if event_filter.amount_min is not None:
        events = events.filter(amount__gte=event_filter.amount_min)
    if event_filter.amount_max is not None:
        events = events.filter(amount__lte=event_filter.amount_max)
    if event_filter.decision:
        events = events.filter(action=f"approval.{event_filter.decision}")
    if "." in event_filter.action:
        events = events.filter(action=event_filter.action)
    elif event_filter.action:
        events = events.filter(action__startswith=f"{event_filter.action}.")
    return events


def list_events(
    event_filter: EventFilter,
    *,
    before: int | None = None,
    after: int | None = None,
    limit: int = 50,
) -> EventPage:
    """A page of matching events, newest first: older than the event `before`, or newer than `after`."""
    events = filter_events(event_filter)
    if after is not None:
        found = list(events.filter(id__gt=after).order_by("id")[: limit + 1])
        if not found:  # nothing newer has come: the newest page
            return list_events(event_filter, limit=limit)
        page = found[:limit][::-1]
        return EventPage(page, page[-1].pk, page[0].pk if len(found) > limit else None)
    events = events.order_by("-id")
    if before is not None:
        events = events.filter(id__lt=before)
    found = list(events[: limit + 1])
    page = found[:limit]
    return EventPage(
        page,
        page[-1].pk if len(found) > limit else None,
        page[0].pk if page and before is not None else None,
    )


def get_event(event_id: int, *, shop_id: int | None) -> Event:
    """The event, if it is this shop's (None: any shop's). Raises Event.DoesNotExist."""
    return filter_events(EventFilter(shop_id=shop_id)).get(pk=event_id)


def get_seal_of(event: Event) -> Seal | None:
    """The seal that holds the event; None while it still waits for one."""
    if Unsealed.objects.filter(event_id=event.pk).exists():
        return None
    holding = Seal.objects.filter(event_ids__contains=[event.pk]).defer("leaves").order_by("id")
    # Nearly always among the first seals signed after it, so the others need not be looked through.
    soon = holding.filter(signed_at__gte=event.at - CLOCKS_DIFFER).first()
    return soon or holding.first()
