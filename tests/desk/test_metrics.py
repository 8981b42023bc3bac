"""What an operator sees of outcomes that nobody knows, and of events that came."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.desk.telling import about_refund
from tests.desk.world import lost, stuck
from tools import unresolved

pytestmark = pytest.mark.django_db


def figures(name: str) -> dict[str, float]:
    """The samples of one metric, by their labels."""
    text = Client().get("/metrics").content.decode()
    lines = [line for line in text.splitlines() if line.startswith(f"{name}{{")]
    return {
        labels: float(value)
        for labels, value in (line.removeprefix(name).rsplit(" ", 1) for line in lines)
    }


def test_what_has_no_end_after_a_day_is_counted(buyer):
    stuck(buyer)
    lost(buyer)
    assert figures("countersign_outcomes_overdue") == {
        '{state="unknown"}': 0,
        '{state="needs_person"}': 0,
    }

    later = timezone.now() + timedelta(hours=24)

    assert unresolved.count_overdue(now=later) == {"unknown": 1, "needs_person": 1}
    assert unresolved.count_overdue(now=later - timedelta(hours=1)) == {
        "unknown": 0,
        "needs_person": 0,
    }


def test_events_are_counted_by_what_became_of_them(buyer, teller):
    operation = lost(buyer)
    before = figures("countersign_webhooks_total")
    document = about_refund(operation)
    for _ in range(2):
        teller.told(document, event_id="evt_1")
    teller.post(b"{}", {})

    after = figures("countersign_webhooks_total")

    gained = {name: after[name] - before.get(name, 0) for name in after}
    assert {name: n for name, n in gained.items() if n} == {
        '{answer="accepted"}': 1,
        '{answer="repeated"}': 1,
        '{answer="refused"}': 1,
    }
