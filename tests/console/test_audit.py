"""The trail in the console: filters, one event's proof, and exports that are themselves recorded."""

from datetime import datetime

import pytest
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
        ("currency", "EUR"),
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
        {"decision": "maybe"},
        {"amount_from": "100"},
        {"amount_from": "lots", "currency": "USD"},
        {"amount_from": "2", "amount_to": "1", "currency": "USD"},
        {"amount_from": "1.005", "currency": "USD"},
        {"amount_from": "1.5", "currency": "JPY"},
        {"currency": "DOLLARS"},
    ],
)
def test_a_filter_that_cannot_be_read_shows_nothing(shop, auditor, sign_in, query):
    record(shop)

    answer = sign_in(auditor).get(reverse("console:audit"), query)

    assert answer.status_code == 400
    assert "That filter cannot be read" in text_of(answer)
    assert "Take it away" not in text_of(answer)  # it would take everything
    assert answer.context["page"].events == []


@pytest.mark.parametrize(
    ("query", "amounts"),
    [
        ({"amount_from": "100.01", "currency": "usd"}, [40_000, 10_001]),
        ({"amount_to": "100.00", "currency": "USD"}, [10_000]),
        ({"amount_from": "100", "amount_to": "100.01", "currency": "USD"}, [10_001, 10_000]),
        ({"amount_from": "10000", "currency": "JPY"}, [10_000]),
    ],
)
def test_a_range_of_amounts_holds_both_its_ends_in_its_own_currency(
    shop, auditor, sign_in, query, amounts
):
    made = {
        record(shop, amount=amount, currency=currency).pk: amount
        for amount, currency in [(10_000, "USD"), (10_001, "USD"), (40_000, "USD"), (10_000, "JPY")]
    }

    assert [made[pk] for pk in shown(sign_in(auditor), **query)] == amounts


def test_decisions_are_found_with_whoever_made_them(shop, auditor, sign_in):
    record(shop, action="approval.granted", actor="staff:erin")
    wanted = record(shop, action="approval.rejected", actor="staff:erin")
    record(shop, action="approval.rejected", actor="customer:ada")
    record(shop, action="refund.rejected", actor="staff:erin")

    assert shown(sign_in(auditor), decision="rejected", actor="staff:erin") == [wanted.pk]


def test_what_is_hidden_of_the_filter_is_in_view_once_it_is_used(shop, auditor, sign_in):
    client = sign_in(auditor)

    assert '<details class="all">' in text_of(client.get(reverse("console:audit")))
    assert '<details class="all" open>' in text_of(
        client.get(reverse("console:audit"), {"tool": "refund_order"})
    )


def test_pages_lead_back_to_newer_ones_and_to_the_newest(shop, auditor, sign_in, monkeypatch):
    monkeypatch.setattr("audit.views.PAGE", 2)
    made = [record(shop).pk for _ in range(6)][::-1]
    client = sign_in(auditor)

    def visit(query):
        page = client.get(reverse("console:audit") + query).context
        return [event.pk for event in page["page"].events], page

    first, page = visit("?customer=ada")
    second, page = visit(page["older"])
    third, page = visit(page["older"])
    back, page = visit(page["newer"])
    top, _ = visit(page["newest"])

    assert first + second + third == made
    assert (back, top) == (second, first)


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
