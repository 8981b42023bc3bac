"""Reads: the right rows, one shop at a time, newest first."""

from datetime import timedelta

import pytest

from audit.models import Event
from audit.selectors import EventFilter, filter_events, get_event, list_events
from tests.audit.facts import NOW, SHOP, full_entry, plain_entry, record_committed

OTHERS = {
    "task_id": 82,
    "ticket_id": 6,
    "customer": "bob",
    "order_id": "1043",
    "tool": "cancel_order",
    "action": "refund.failed",
    "outcome": "failed",
    "actor": "agent",
}


@pytest.mark.parametrize("name", OTHERS)
def test_each_field_of_the_filter_narrows(db, name):
    wanted, _ = record_committed(full_entry(), full_entry(**{name: OTHERS[name]}))

    found = filter_events(EventFilter(shop_id=SHOP, **{name: getattr(wanted, name)}))

    assert list(found) == [wanted]


def test_a_filter_shows_one_shop_only(db):
    ours, _, _ = record_committed(full_entry(), full_entry(shop_id=SHOP + 1), plain_entry())

    assert list(filter_events(EventFilter(shop_id=SHOP))) == [ours]
    assert filter_events(EventFilter(shop_id=None)).count() == 3


def test_a_filter_without_a_shop_is_a_mistake():
    with pytest.raises(TypeError, match="shop_id"):
        EventFilter(customer="ada")  # type: ignore[call-arg]


def test_since_is_inclusive_and_until_is_not(db):
    moments = [NOW + timedelta(seconds=n) for n in range(3)]
    events = record_committed(*[full_entry(at=at) for at in moments])

    found = filter_events(EventFilter(shop_id=SHOP, since=moments[0], until=moments[2]))

    assert list(found.order_by("id")) == events[:2]


def test_a_noun_finds_all_its_actions_and_no_longer_noun(db):
    events = record_committed(
        full_entry(action="refund.succeeded"),
        full_entry(action="refund.failed"),
        full_entry(action="refund_limit.changed"),
    )

    found = filter_events(EventFilter(shop_id=SHOP, action="refund"))

    assert list(found.order_by("id")) == events[:2]


def test_pages_go_from_the_newest_to_the_oldest_without_gap_or_repeat(db):
    events = record_committed(*[full_entry() for _ in range(5)])

    first = list_events(EventFilter(shop_id=SHOP), limit=2)
    record_committed(full_entry())
    second = list_events(EventFilter(shop_id=SHOP), before=first.before, limit=2)
    third = list_events(EventFilter(shop_id=SHOP), before=second.before, limit=2)

    assert first.events + second.events + third.events == events[::-1]
    assert third.before is None


def test_a_full_last_page_has_no_next_one(db):
    record_committed(full_entry(), full_entry())

    assert list_events(EventFilter(shop_id=SHOP), limit=2).before is None


def test_another_shops_event_is_not_there(db):
    event = record_committed(full_entry())[0]

    assert get_event(event.pk, shop_id=SHOP) == event
    with pytest.raises(Event.DoesNotExist):
        get_event(event.pk, shop_id=SHOP + 1)
