"""A bundle holds what was asked for, as of one moment, and everything that is needed to check it."""

import csv
import hashlib
import io
import json
import zipfile
from datetime import timedelta

import jsonschema  # type: ignore[import-untyped]
import pyarrow.parquet as pq
import pytest
from django.db import connections
from django.utils.connection import ConnectionDoesNotExist

from audit import export_work, sealer, services, snapshot
from audit.canonical import content_digest, event_digest
from audit.export_models import Export
from audit.models import Event, Seal
from audit.selectors import EventFilter
from audit.verify_export import COLUMNS
from tests.audit.bundles import (
    EVERYTHING,
    ask,
    make_export,
    manifest_of,
    read,
    rows_of,
    verify,
    write_key,
)
from tests.audit.facts import (
    NOW,
    SHOP,
    full_entry,
    plain_entry,
    record_committed,
    seal,
    sealed_trail,
    tamper,
)

pytestmark = pytest.mark.django_db(transaction=True)
WORDS = "It came broken, Ada"


def csv_of(export: Export) -> list[dict[str, str]]:
    text = read(export, "events.csv").decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_bundle_holds_the_rows_their_proof_and_what_checks_them(folder):
    sealed_trail()

    export = make_export()

    with zipfile.ZipFile(export.path) as bundle:
        assert set(bundle.namelist()) == {
            "events.jsonl", "events.csv", "events.parquet", "seals.jsonl", "schema.json",
            "README.txt", "verify_export.py", "public-key.pem", "manifest.json", "manifest.sig",
        }  # fmt: skip
        assert bundle.testzip() is None
    assert [path.name for path in folder.iterdir()] == [export.path.name]


@pytest.mark.parametrize(
    ("form", "files"),
    [("csv", {"events.csv"}), ("jsonl", set()), ("parquet", {"events.parquet"})],
)
def test_each_form_stands_beside_the_lines_that_prove_it(form, files):
    sealed_trail()

    export = make_export(form=form)

    with zipfile.ZipFile(export.path) as bundle:
        data = {name for name in bundle.namelist() if name.startswith("events.")}
    assert data == files | {"events.jsonl"}


def test_json_lines_are_exact_enough_to_recompute_each_digest():
    record_committed(full_entry(), full_entry(actor="customer:=1+1"))
    seal()

    rows = rows_of(make_export())

    assert [row["actor"] for row in rows] == ["staff:dana", "customer:=1+1", "auditor:audrey"]
    for row in rows:
        content = {name: row[name] for name in COLUMNS[1:16]}
        assert event_digest(row["id"], content_digest(content)).hex() == row["digest"]


def test_csv_holds_every_column_of_every_matching_event():
    event = record_committed(full_entry(), plain_entry())[0]
    made = seal()

    (row,) = csv_of(make_export(EventFilter(shop_id=SHOP, action="refund")))

    assert row == {
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
        "seal": str(made.pk),
        "personal": "redacted",
        "personal_text": "",
        "personal_nonce": "",
    }


def test_parquet_has_the_same_rows_with_types():
    record_committed(full_entry(), full_entry(amount=None, currency="", personal=None))
    seal()

    export = make_export(EventFilter(shop_id=SHOP, action="refund"))

    table = pq.read_table(io.BytesIO(read(export, "events.parquet")))
    first, second = table.to_pylist()
    assert {name: str(table.schema.field(name).type) for name in ("id", "at", "amount", "digest")} == {
        "id": "int64",
        "at": "timestamp[us, tz=UTC]",
        "amount": "int64",
        "digest": "fixed_size_binary[32]",
    }  # fmt: skip
    assert (first["at"], first["amount"], first["currency"]) == (NOW, 4000, "USD")
    assert (second["amount"], second["personal_digest"], second["personal"]) == (None, None, None)
    assert [row["digest"].hex() for row in (first, second)] == [
        r["digest"] for r in rows_of(export)
    ]
    assert json.loads(first["data"])["rule"] == "refund_window"


def test_every_text_of_a_spreadsheet_is_made_inert():
    evil = "=HYPERLINK()"
    record_committed(
        full_entry(
            customer=evil, order_id=evil, tool=evil, outcome=evil, amount=-5, data={"a": ";=1"}
        )
    )
    seal()

    row = csv_of(make_export(EventFilter(shop_id=SHOP, action="refund")))[0]

    assert {row[name] for name in ("customer", "order_id", "tool", "outcome")} == {f"'{evil}"}
    assert row["amount"] == "-5"
    assert row["data"] == '{"a":";\'=1"}'


def test_the_schema_describes_every_line_of_the_bundle():
    record_committed(full_entry(), plain_entry(shop_id=SHOP))
    seal()
    export = make_export()
    schema = json.loads(read(export, "schema.json"))

    def check(name, value):
        jsonschema.validate(value, {**schema, "$ref": f"#/$defs/{name}"})

    for row in rows_of(export):
        check("row", row)
    for line in read(export, "seals.jsonl").splitlines():
        check("seal", json.loads(line))
    check("manifest", manifest_of(export))
    assert set(schema["$defs"]["row"]["properties"]) == set(COLUMNS)


def test_the_manifest_says_what_the_bundle_is():
    events = sealed_trail(seals=2, events=3)
    asked = EventFilter(shop_id=SHOP, since=NOW, action="refund", customer="ada")

    export = make_export(asked)

    manifest = manifest_of(export)
    head = Seal.objects.latest("id")
    files = manifest.pop("files")
    assert manifest == {
        "format": "countersign.export/1",
        "generator": manifest["generator"],
        "export": str(export.pk),
        "actor": "auditor:audrey",
        "filter": asked.describe(),
        "shop_id": SHOP,
        "redacted": True,
        "reason": "",
        "snapshot_at": manifest["snapshot_at"],
        "count": 6,
        "unsealed": 0,
        "first_event": events[0].pk,
        "last_event": events[-1].pk,
        "first_seal": head.pk - 1,
        "last_seal": head.pk,
        "every_seal": False,
        "head": {"number": head.pk, "digest": bytes(head.digest).hex()},
        "key_id": head.key_id,
        "previous": None,
    }
    assert files["events.csv"]["rows"] == 6
    for name, about in files.items():
        content = read(export, name)
        assert (about["sha256"], about["bytes"]) == (
            hashlib.sha256(content).hexdigest(),
            len(content),
        )


def test_each_manifest_names_the_one_before_it_in_its_shop():
    sealed_trail()
    first = make_export()
    other = make_export(EventFilter(shop_id=SHOP + 1))

    second = make_export()

    assert manifest_of(second)["previous"] == bytes(first.manifest_digest or b"").hex()
    assert manifest_of(other)["previous"] is None


def test_personal_text_is_left_out_and_its_place_is_marked():
    record_committed(
        full_entry(personal=WORDS), plain_entry(shop_id=SHOP), full_entry(customer="bob")
    )
    services.erase_customer(shop_id=SHOP, customer="bob", actor="system", at=NOW)
    seal()

    export = make_export()

    assert [row["personal"] for row in rows_of(export)[:3]] == ["redacted", None, "erased"]
    with zipfile.ZipFile(export.path) as bundle:
        assert all(WORDS.encode() not in bundle.read(name) for name in bundle.namelist())


def test_with_a_reason_the_words_are_there_and_proven(tmp_path):
    record_committed(full_entry(personal=WORDS), full_entry(personal="half \ud800"))
    seal()

    export = make_export(is_redacted=False, reason="Case 12 of the ombudsman")

    first, second = rows_of(export)[:2]
    assert (first["personal"], first["personal_text"]) == ("shown", WORDS)
    assert (second["personal_text"], second["personal_nonce"]) == ("half ?", None)
    manifest = manifest_of(export)
    assert (manifest["redacted"], manifest["reason"]) == (False, "Case 12 of the ombudsman")
    assert verify(export.path, write_key(tmp_path))[0] == 0


def test_rows_come_in_the_order_of_the_chain_and_say_their_seal():
    early = record_committed(full_entry())[0]
    seal()
    late = record_committed(full_entry())[0]
    seal()
    waiting = record_committed(full_entry())[0]

    rows = rows_of(make_export(EventFilter(shop_id=SHOP, action="refund")))

    numbers = list(Seal.objects.order_by("id").values_list("id", flat=True))
    assert [(row["id"], row["seal"]) for row in rows] == [
        (early.pk, numbers[0]),
        (late.pk, numbers[1]),
        (waiting.pk, None),
    ]


def test_a_bundle_shows_one_moment_whatever_happens_while_it_is_made(monkeypatch):
    """Events that come, and texts that are erased, while it is read are not seen in part."""
    monkeypatch.setattr(snapshot, "TOGETHER", 2)
    events = sealed_trail(seals=3, events=2)
    write = snapshot.Snapshot._written
    before = Event.objects.count()

    def meanwhile(self, *args, **options):
        record_committed(full_entry())
        services.erase_customer(shop_id=SHOP, customer="ada", actor="system", at=NOW)
        return write(self, *args, **options)

    monkeypatch.setattr(snapshot.Snapshot, "_written", meanwhile)
    export = make_export(EventFilter(shop_id=SHOP, action="refund"))

    rows = rows_of(export)
    assert [row["id"] for row in rows] == [event.pk for event in events]
    assert {row["personal"] for row in rows} == {"redacted"}
    assert Event.objects.count() >= before + 3


def test_another_shops_rows_are_in_no_file_and_their_digests_only_where_the_proof_needs_them():
    record_committed(full_entry(), full_entry(shop_id=SHOP + 1, order_id="CANARY"))
    seal()

    export = make_export()

    with zipfile.ZipFile(export.path) as bundle:
        assert all(b"CANARY" not in bundle.read(name) for name in bundle.namelist())
    (line,) = read(export, "seals.jsonl").splitlines()
    assert len(json.loads(line)["proof"]) == 1


def test_an_export_of_everything_holds_every_seal(tmp_path):
    sealed_trail(seals=3)
    make_export(EventFilter(shop_id=SHOP + 1), owner_id=9)
    seal()

    export = make_export(EVERYTHING)

    code, said = verify(export.path, write_key(tmp_path))
    assert code == 0
    assert manifest_of(export)["every_seal"] is True
    assert "Complete: every event of seals" in said


def test_a_filter_that_matches_nothing_gives_a_bundle_that_says_so(tmp_path):
    sealed_trail()

    export = make_export(EventFilter(shop_id=SHOP, customer="nobody"))

    assert (rows_of(export), csv_of(export), export.done) == ([], [], 0)
    assert manifest_of(export)["head"]["number"] == Seal.objects.latest("id").pk
    assert verify(export.path, write_key(tmp_path))[0] == 0


def test_before_anything_was_sealed_there_is_no_head(tmp_path):
    record_committed(full_entry())

    export = make_export(EVERYTHING)

    assert manifest_of(export)["head"] is None
    code, said = verify(export.path, write_key(tmp_path))
    assert (code, "2 rows were not sealed yet" in said) == (0, True)


def test_an_export_is_refused_when_an_event_is_in_no_seal():
    event = sealed_trail()[0]
    tamper(
        "INSERT INTO audit_event SELECT (jsonb_populate_record(e, '{\"id\": 999999}')).* "
        "FROM audit_event e WHERE id = %s",
        [event.pk],
    )
    export = ask()

    assert not export_work.run(export.pk, clock=lambda: NOW)

    export.refresh_from_db()
    assert export.state == "failed"
    assert export.error == (
        "The trail itself does not hold: 1 events are not in exactly one seal. Run audit_verify."
    )
    assert not export.path.exists()


def test_a_row_changed_by_hand_is_exported_as_it_stands_and_named_by_the_verifier(tmp_path):
    victim = sealed_trail()[3]
    tamper("UPDATE audit_event SET data = '{\"share\": 0.5}' WHERE id = %s", [victim.pk])

    export = make_export()

    assert rows_of(export)[3]["data"] == {"share": 0.5}
    code, said = verify(export.path, write_key(tmp_path))
    assert code == 1
    assert "events.jsonl, line 4" in said


def test_a_long_trail_is_read_in_chunks(monkeypatch, tmp_path):
    monkeypatch.setattr(snapshot, "TOGETHER", 2)
    sealed_trail(seals=3, events=3)
    record_committed(*[full_entry() for _ in range(5)])

    export = make_export(EventFilter(shop_id=SHOP, action="refund"))

    assert [row["id"] for row in rows_of(export)] == list(
        Event.objects.filter(action="refund.succeeded").order_by("id").values_list("id", flat=True)
    )
    assert verify(export.path, write_key(tmp_path))[0] == 0


def test_seals_from_before_the_oldest_match_are_not_read(monkeypatch):
    sealed_trail(seals=2)
    record_committed(full_entry(order_id="2000", at=NOW + timedelta(days=2)))
    sealer.seal_once(now=NOW + timedelta(days=2))
    read_seals: list[int] = []
    rows = snapshot.Snapshot._rows

    def counted(self, wanted, batch, **options):
        read_seals.extend(one.pk for one in batch)
        return rows(self, wanted, batch, **options)

    monkeypatch.setattr(snapshot.Snapshot, "_rows", counted)

    make_export(EventFilter(shop_id=SHOP, order_id="2000"))

    assert read_seals == [Seal.objects.latest("id").pk]


def test_the_snapshots_connection_is_gone_afterwards():
    sealed_trail()

    make_export()

    with pytest.raises(ConnectionDoesNotExist):
        connections[snapshot.ALIAS]
