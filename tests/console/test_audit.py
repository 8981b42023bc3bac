"""The trail in the console: filters, one event's proof, and exports that are themselves recorded."""

import csv
import io
import json
from datetime import datetime
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient
from django.urls import reverse
from django.utils import timezone

from accounts.models import Role
from audit import sealer, services
from audit.models import Event
from tests.audit.facts import full_entry, record_committed
from tests.console.desk import make_person, text_of
from tests.factories import make_shop

# Not before 1st and not at or after 3rd March, New York time.
DAYS = {"since": "2026-03-01T00:00", "until": "2026-03-03T00:00"}


def record(shop, **fields) -> Event:
    event: Event = record_committed(full_entry(shop_id=shop.pk, **fields))[0]
    return event


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def shown(client, **query) -> list[int]:
    page = client.get(reverse("console:audit"), query)
    assert page.status_code == 200
    return [event.pk for event in page.context["page"].events]


def export(client, **fields):
    page = client.get(reverse("console:audit"))
    return client.post(
        reverse("console:export"), {"csrfmiddlewaretoken": page.context["csrf_token"]} | fields
    )


def body(answer) -> str:
    return b"".join(answer.streaming_content).decode()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("actor", "staff:erin"),
        ("action", "refund.failed"),
        ("outcome", "failed"),
        ("customer", "bob"),
        ("order_id", "2000"),
        ("tool", "cancel_order"),
        ("ticket_id", 77),
        ("task_id", 990),
    ],
)
def test_each_field_of_the_filter_narrows_the_trail(shop, auditor, sign_in, name, value):
    record(shop)
    wanted = record(shop, **{name: value})

    assert shown(sign_in(auditor), **{name: value}) == [wanted.pk]


def test_an_action_is_found_by_its_noun(shop, auditor, sign_in):
    first, second = record(shop), record(shop, action="refund.failed")
    record(shop, action="cancel.failed")

    assert shown(sign_in(auditor), action="refund") == [second.pk, first.pk]


def test_the_range_holds_its_start_and_not_its_end_in_the_shops_own_zone(db, sign_in):
    shop = make_shop(time_zone="America/New_York")
    auditor = make_person(shop, "audrey", role=Role.AUDITOR)
    before = record(shop, at=at("2026-03-01T04:59:59Z"))
    first = record(shop, at=at("2026-03-01T05:00:00Z"))
    last = record(shop, at=at("2026-03-03T04:59:59Z"))
    after = record(shop, at=at("2026-03-03T05:00:00Z"))
    client = sign_in(auditor)

    assert shown(client, **DAYS) == [last.pk, first.pk]
    assert before.pk in shown(client, until=DAYS["since"])
    assert after.pk in shown(client, since=DAYS["until"])
    assert "America/New_York" in text_of(client.get(reverse("console:audit"), DAYS))


@pytest.mark.parametrize(
    "query",
    [
        {"since": "yesterday"},
        {"since": DAYS["until"], "until": DAYS["since"]},
        {"task_id": "x"},
        {"task_id": "9" * 30},
        {"action": "refund; drop"},
        {"customer": "a\x00b"},
        {"actor": "x" * 300},
    ],
)
def test_a_filter_that_cannot_be_read_shows_nothing(shop, auditor, sign_in, query):
    record(shop)

    answer = sign_in(auditor).get(reverse("console:audit"), query)

    assert answer.status_code == 400
    assert "That filter cannot be read" in text_of(answer)
    assert answer.context["page"].events == []


def test_pages_follow_each_other_without_gap_or_repeat(shop, auditor, sign_in, monkeypatch):
    monkeypatch.setattr("audit.views.PAGE", 2)
    made = [record(shop).pk for _ in range(5)]
    client, seen, address = sign_in(auditor), [], reverse("console:audit") + "?customer=ada"
    while address:
        page = client.get(address)
        seen += [event.pk for event in page.context["page"].events]
        address = page.context["older"] and reverse("console:audit") + page.context["older"]

    assert seen == made[::-1]


def test_another_shops_events_are_not_there(shop, auditor, sign_in):
    foreign = record(make_shop())
    client = sign_in(auditor)

    assert shown(client) == []
    assert client.get(reverse("console:event", args=[foreign.pk])).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_an_event_shows_its_digest_its_words_and_its_seal(shop, auditor, sign_in):
    event = record(shop, personal="It came <b>broken</b>", at=timezone.now())
    client = sign_in(auditor)
    page = text_of(client.get(reverse("console:event", args=[event.pk])))
    assert bytes(event.digest).hex() in page
    assert "It came &lt;b&gt;broken&lt;/b&gt;" in page
    assert "It waits for the next seal." in page

    seal = sealer.seal_once()
    assert seal is not None

    page = text_of(client.get(reverse("console:event", args=[event.pk])))
    assert f"number {seal.pk}, of {seal.count} event" in page


def test_erased_words_are_said_to_be_erased(shop, auditor, sign_in):
    event = record(shop, personal="It came broken")
    services.erase_customer(shop_id=shop.pk, customer="ada", actor="system", at=timezone.now())

    page = text_of(sign_in(auditor).get(reverse("console:event", args=[event.pk])))

    assert "It came broken" not in page
    assert "They were erased" in page


def test_an_export_holds_the_filtered_events_and_is_recorded(shop, auditor, sign_in):
    record(shop)
    wanted = record(shop, order_id="2000")

    answer = export(sign_in(auditor), form="jsonl", order_id="2000")

    assert answer.headers["Content-Type"] == "application/x-ndjson"
    (line,) = body(answer).splitlines()
    assert json.loads(line)["id"] == wanted.pk
    started, created = Event.objects.filter(action__startswith="export.").order_by("id")
    assert started.actor == created.actor == "auditor:audrey"
    assert created.data["count"] == 1
    assert created.data["filter"] == {"shop_id": shop.pk, "order_id": "2000"}


def test_no_cell_of_an_export_is_a_formula(shop, auditor, sign_in):
    record(shop, customer="=HYPERLINK(1)", order_id="@SUM(A1)", outcome="-1+1")

    rows = list(csv.DictReader(io.StringIO(body(export(sign_in(auditor), form="csv")))))

    assert [(row["customer"], row["order_id"], row["outcome"]) for row in rows] == [
        ("'=HYPERLINK(1)", "'@SUM(A1)", "'-1+1")
    ]


def test_an_export_never_holds_another_shops_events(shop, auditor, sign_in):
    record(make_shop())

    assert body(export(sign_in(auditor), form="jsonl")) == ""


@pytest.mark.parametrize("fields", [{}, {"form": "exe"}, {"form": "csv", "task_id": "x"}])
def test_an_export_that_cannot_be_read_is_not_begun(shop, auditor, sign_in, fields):
    assert export(sign_in(auditor), **fields).status_code == 422
    assert not Event.objects.exists()


def test_staff_are_not_offered_an_export(shop, approver, sign_in):
    assert "Download CSV" not in text_of(sign_in(approver).get(reverse("console:audit")))


@pytest.mark.django_db(transaction=True)
def test_an_export_streams_under_asgi_as_well(shop, auditor):
    wanted = record(shop)
    client = AsyncClient()
    client.force_login(auditor, backend="accounts.backends.ConsoleBackend")

    async def take() -> bytes:
        answer: Any = await client.post(reverse("console:export"), {"form": "jsonl"})
        assert answer.is_async
        return b"".join([chunk async for chunk in answer.streaming_content])

    (line,) = async_to_sync(take)().splitlines()

    assert json.loads(line)["id"] == wanted.pk
    assert Event.objects.filter(action="export.created").count() == 1
