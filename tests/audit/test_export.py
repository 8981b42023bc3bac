"""Exports: complete, exact or inert, streamed, and themselves on record."""

import asyncio
import csv
import hashlib
import io
import json
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from audit import export, services
from audit.canonical import content_digest, event_digest
from audit.export import inert, stream_async, stream_csv, stream_jsonl
from audit.models import Event
from audit.selectors import EventFilter
from tests.audit.facts import NOW, SHOP, full_entry, plain_entry, record_committed, tamper

OURS = EventFilter(shop_id=SHOP)


def clock():
    return NOW + timedelta(days=1)


def read_csv(chunks):
    return list(csv.DictReader(io.StringIO(b"".join(chunks).decode(), newline="")))


def read_jsonl(chunks):
    return [json.loads(line) for line in b"".join(chunks).splitlines()]


def test_csv_holds_every_column_of_every_matching_event(db):
    event = record_committed(full_entry(), plain_entry())[0]

    rows = read_csv(stream_csv(OURS, actor="staff:audrey"))

    assert rows == [
        {
            "id": str(event.pk),
            "at": "2026-03-01T12:30:15.123456Z",
            "shop_id": "7",
            "actor": "staff:dana",
            "action": "refund.succeeded",
            "subject": "operation:12",
            "task_id": "81",
            "ticket_id": "5",
            "customer": "ada",
            "order_id": "1042",
            "tool": "refund_order",
            "outcome": "succeeded",
            "amount": "4000",
            "currency": "USD",
            "data": '{"days":12,"late":false,"lines":["1042-1"],"rule":"refund_window"}',
            "personal_digest": bytes(event.personal_digest or b"").hex(),
            "digest": bytes(event.digest).hex(),
        }
    ]


def test_csv_lines_end_and_quote_as_rfc_4180_says(db):
    record_committed(plain_entry(actor='staff:"D", é'))

    text = b"".join(stream_csv(EventFilter(shop_id=None), actor="staff:audrey")).decode()

    header, row, rest = text.split("\r\n")
    assert header.startswith('"id","at","shop_id",')
    assert ',"staff:""D"", é",' in row
    assert rest == ""


def test_json_lines_are_exact_enough_to_recompute_each_digest(db):
    record_committed(full_entry(), full_entry(actor="customer:=1+1"))

    rows = read_jsonl(stream_jsonl(OURS, actor="staff:audrey"))

    assert [row["actor"] for row in rows] == ["staff:dana", "customer:=1+1"]
    for row in rows:
        stored, number = row.pop("digest"), row.pop("id")
        assert event_digest(number, content_digest(row)).hex() == stored


def test_both_forms_have_the_same_columns(db):
    record_committed(full_entry())

    assert set(read_jsonl(stream_jsonl(OURS, actor="staff:audrey"))[0]) == set(export.COLUMNS)
    assert {field.column for field in Event._meta.concrete_fields} == set(export.COLUMNS)


def test_an_export_of_nothing_is_a_header_alone(db):
    assert read_csv(stream_csv(OURS, actor="staff:audrey")) == []
    assert list(stream_jsonl(EventFilter(shop_id=SHOP + 1), actor="staff:audrey")) == []


def test_personal_text_is_in_no_export(db):
    record_committed(full_entry(personal="CANARY"))

    assert b"CANARY" not in b"".join(stream_csv(OURS, actor="staff:audrey"))
    assert b"CANARY" not in b"".join(stream_jsonl(OURS, actor="staff:audrey"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("=1+1", "'=1+1"),
        ("+49 30 1234", "'+49 30 1234"),
        ("-2", "'-2"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\uff1d1", "'\uff1d1"),
        ("\uff0b1", "'\uff0b1"),
        ("\uff0d1", "'\uff0d1"),
        ("\uff20A1", "'\uff20A1"),
        ("\t=1", "'\t'=1"),
        ("\rx", "'\rx"),
        ("\tx", "'\tx"),
        ("\nx", "'\nx"),
        ("  =1", "'  =1"),
        ("\u00a0=1", "'\u00a0=1"),
        ("\ufeff\u200b=1", "'\ufeff\u200b=1"),
        ('"=1', "'\"=1"),
        ("a;=1", "a;'=1"),
        ("a|=cmd", "a|'=cmd"),
        ("a\n=1", "a\n'=1"),
        ("a\r\n =1", "a\r\n' =1"),
        ("a\t@x", "a\t'@x"),
        ("refund.succeeded", "refund.succeeded"),
        ("a=b", "a=b"),
        ("e-mail", "e-mail"),
        ("", ""),
        ('{"a":[1,-2]}', '{"a":[1,-2]}'),
    ],
)
def test_a_cell_cannot_become_a_formula(text, expected):
    assert inert(text) == expected


def test_every_text_column_is_made_inert(db):
    evil = "=HYPERLINK()"
    record_committed(
        full_entry(
            customer=evil, order_id=evil, tool=evil, outcome=evil, amount=-5, data={"a": ";=1"}
        )
    )

    row = read_csv(stream_csv(OURS, actor="staff:audrey"))[0]

    assert {row[name] for name in ("customer", "order_id", "tool", "outcome")} == {f"'{evil}"}
    assert row["amount"] == "-5"
    assert row["data"] == '{"a":";\'=1"}'


def test_the_export_is_on_record_with_who_what_and_how_much(db):
    record_committed(full_entry(), full_entry())
    asked = EventFilter(shop_id=SHOP, since=NOW, action="refund", customer="ada")

    content = b"".join(stream_csv(asked, actor="staff:audrey", clock=clock))

    started, created = Event.objects.filter(action__startswith="export.").order_by("id")
    facts = {
        "format": "csv",
        "filter": {
            "shop_id": SHOP,
            "since": "2026-03-01T12:30:15.123456Z",
            "action": "refund",
            "customer": "ada",
        },
    }
    assert (started.action, started.data) == ("export.started", facts)
    assert (created.action, created.outcome) == ("export.created", "succeeded")
    assert created.data == facts | {"count": 2, "sha256": hashlib.sha256(content).hexdigest()}
    assert (created.actor, created.shop_id, created.at) == ("staff:audrey", SHOP, clock())
    assert created.subject == started.subject
    assert created.subject.startswith("export:")


def test_an_export_that_is_broken_off_is_on_record_too(db, monkeypatch):
    monkeypatch.setattr(export, "PAGE", 2)
    record_committed(*[full_entry() for _ in range(5)])
    chunks = stream_jsonl(OURS, actor="staff:audrey")
    next(chunks)

    chunks.close()  # type: ignore[attr-defined]  # what a server does when the reader went away

    last = Event.objects.latest("id")
    assert (last.action, last.outcome, last.data["count"]) == ("export.aborted", "failed", 2)
    assert not Event.objects.filter(action="export.created").exists()


def test_nothing_is_sent_when_the_export_cannot_be_recorded(db):
    record_committed(full_entry())

    with pytest.raises(services.InvalidEntryError):
        next(stream_csv(OURS, actor="nobody!"))

    assert not Event.objects.filter(action__startswith="export.").exists()


def test_an_export_is_read_in_pages_and_ends_where_the_trail_ended_at_its_start(db, monkeypatch):
    monkeypatch.setattr(export, "PAGE", 2)
    events = record_committed(*[full_entry() for _ in range(5)])
    chunks = stream_jsonl(OURS, actor="staff:audrey")

    first = next(chunks)
    record_committed(full_entry())
    rest = list(chunks)

    assert [len(chunk.splitlines()) for chunk in [first, *rest]] == [2, 2, 1]
    assert [row["id"] for row in read_jsonl([first, *rest])] == [event.pk for event in events]


def test_a_row_changed_by_hand_is_exported_as_it_stands(db):
    victim = record_committed(full_entry())[0]
    tamper("UPDATE audit_event SET data = '{\"share\": 0.5}' WHERE id = %s", [victim.pk])

    assert read_jsonl(stream_jsonl(OURS, actor="staff:audrey"))[0]["data"] == {"share": 0.5}


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_between_two_pages(monkeypatch):
    monkeypatch.setattr(export, "PAGE", 1)
    record_committed(full_entry(), full_entry())
    chunks = stream_jsonl(OURS, actor="staff:audrey")

    next(chunks)

    assert not connection.in_atomic_block
    list(chunks)


@pytest.mark.django_db(transaction=True)
def test_an_asgi_response_gets_the_same_chunks_and_its_end_is_recorded(monkeypatch):
    monkeypatch.setattr(export, "PAGE", 1)
    record_committed(full_entry(), full_entry())

    async def read_one():
        stream = stream_async(stream_jsonl(OURS, actor="staff:audrey"))
        chunk = await anext(stream)
        await stream.aclose()
        await sync_to_async(lambda: connection.close())()
        return chunk

    assert json.loads(asyncio.run(read_one()))["order_id"] == "1042"
    assert Event.objects.latest("id").action == "export.aborted"

    async def read_all():
        stream = stream_async(stream_jsonl(OURS, actor="staff:audrey"))
        chunks = [chunk async for chunk in stream]
        await sync_to_async(lambda: connection.close())()
        return chunks

    assert len(asyncio.run(read_all())) == 4
    assert Event.objects.latest("id").action == "export.created"
