"""The standalone verifier: what holds, and each way in which a bundle can be spoiled."""

import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.management import call_command
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from audit.bundle import public_pem
from audit.canonical import canonical_json, content_digest, event_digest, merkle_root
from audit.heads import head_line
from audit.inclusion import prove
from audit.keys import Signer, key_id
from audit.models import Seal
from audit.selectors import EventFilter
from audit.verify_export import COLUMNS, BrokenError, canonical, root_of
from tests.audit.bundles import (
    EVERYTHING,
    edit_lines,
    make_export,
    unpack,
    verify,
    verify_alone,
    write_key,
)
from tests.audit.facts import SHOP, full_entry, record_committed, seal, sealed_trail

with_database = pytest.mark.django_db(transaction=True)


@pytest.fixture
def key(tmp_path) -> Path:
    return write_key(tmp_path)


@pytest.fixture(scope="module")
def made(django_db_setup, django_db_blocker, tmp_path_factory) -> Iterator[Path]:
    """Two seals of three rows of ours and one of another shop's, and two rows that wait."""
    place = tmp_path_factory.mktemp("made")
    with django_db_blocker.unblock(), override_settings(EXPORT_FOLDER=place):
        for _ in range(2):
            record_committed(*[full_entry() for _ in range(3)], full_entry(shop_id=SHOP + 1))
            seal()
        record_committed(full_entry())
        path = make_export().path
        call_command("flush", verbosity=0, interactive=False)
    yield path
    path.unlink()


@pytest.fixture
def bundle(made, tmp_path) -> Path:
    """The bundle, unpacked."""
    return unpack(made, tmp_path / "unpacked")


def change_row(bundle: Path, number: int, **fields) -> dict[str, Any]:
    """Change fields of a row, and leave everything else as it is."""
    changed: dict[str, Any] = {}

    def change(lines):
        changed.update(json.loads(lines[number - 1]) | fields)
        lines[number - 1] = canonical_json(changed) + b"\n"

    edit_lines(bundle / "events.jsonl", change)
    return changed


def ids_of(bundle: Path) -> list[int]:
    return [json.loads(line)["id"] for line in (bundle / "events.jsonl").read_bytes().splitlines()]


def broken(bundle: Path, key: Path, *options: str) -> str:
    """The first thing that the verifier says is wrong."""
    code, said = verify(bundle, key, *options)
    assert code == 1, said
    first = said.splitlines()[0]
    assert first.startswith("BROKEN. ")
    return first.removeprefix("BROKEN. ")


# --- What holds -----------------------------------------------------------------------------------


def test_a_bundle_holds_as_a_file_and_as_a_folder(made, bundle, key):
    for form in (made, bundle):
        code, said = verify(form, key)
        assert code == 0, said
        assert said.startswith("The bundle holds: 8 rows, 2 seals")
        assert "Its seals hold 2 further events, which are not here." in said
        assert "2 rows were not sealed yet" in said


def test_the_verifier_of_the_bundle_needs_nothing_else(made, bundle, key):
    for path, expected in ((made, 0), (bundle, 1)):
        change_row(bundle, 1, amount=1)
        code, said = verify_alone(bundle / "verify_export.py", path, key)
        assert (code, "Traceback" in said) == (expected, False)


@with_database
def test_the_digest_that_the_console_shows_and_the_bundle_before_are_compared(folder, key):
    sealed_trail()
    export = make_export()
    digest = bytes(export.manifest_digest or b"").hex()
    second = make_export()

    assert verify(export.path, key, "--expect", digest)[0] == 0
    assert verify(second.path, key, "--previous", str(export.path))[0] == 0
    assert "another bundle: its digest is" in broken(second.path, key, "--expect", digest)
    assert "it names another bundle before it" in broken(
        export.path, key, "--previous", str(second.path)
    )


@with_database
def test_a_published_head_is_compared(key, tmp_path):
    sealed_trail()
    export = make_export()
    heads = tmp_path / "heads"
    newest = Seal.objects.latest("id")
    heads.write_bytes(head_line(newest))
    assert verify(export.path, key, "--head", str(heads))[0] == 0

    false = json.loads(heads.read_bytes()) | {"digest": "0" * 64}
    heads.write_text(json.dumps(false))

    assert broken(export.path, key, "--head", str(heads)) == (
        f"seal {newest.pk}: not the one that was published"
    )


# --- The seven ways, and more ---------------------------------------------------------------------


def test_1_a_changed_field_names_the_row(bundle, key):
    changed = change_row(bundle, 5, amount=9_900)

    assert broken(bundle, key) == (
        f"events.jsonl, line 5: event {changed['id']}: its content does not match its digest"
    )


def test_1_a_row_changed_together_with_its_digest_is_named(bundle, key):
    row = change_row(bundle, 5, amount=9_900)
    digest = event_digest(row["id"], content_digest({name: row[name] for name in COLUMNS[1:16]}))
    change_row(bundle, 5, digest=digest.hex())

    assert "line 5" in broken(bundle, key)
    assert "its content and its digest are not those that were sealed" in broken(bundle, key)


@pytest.mark.parametrize("column", [name for name in COLUMNS if name != "id"])
def test_1_no_column_of_a_row_can_be_changed(bundle, key, column):
    row = json.loads((bundle / "events.jsonl").read_bytes().splitlines()[1])
    value = {"changed": True} if column == "data" else "f" * 64
    change_row(bundle, 2, **{column: value if isinstance(row[column], str | dict | None) else 77})

    assert verify(bundle, key)[0] == 1


def test_1_a_row_that_waits_for_its_seal_cannot_be_changed(bundle, key):
    changed = change_row(bundle, 7, order_id="2000")

    assert broken(bundle, key) == (
        f"events.jsonl, line 7: event {changed['id']}: its content does not match its digest"
    )


def test_2_a_deleted_row_is_named(bundle, key):
    ids = ids_of(bundle)
    edit_lines(bundle / "events.jsonl", lambda lines: lines.pop(1))

    found = broken(bundle, key)

    assert f"event {ids[1]} of seal" in found
    assert found.endswith(f"is missing: event {ids[2]} stands in its place")


def test_2_a_row_deleted_from_every_file_is_missed_by_the_seal(bundle, key):
    """Whoever also takes it out of the proof breaks the seal's root; and the signature, in any case."""
    edit_lines(bundle / "events.jsonl", lambda lines: lines.pop(1))
    edit_lines(bundle / "events.csv", lambda lines: lines.pop(2))

    def forget(lines):
        entry = json.loads(lines[0])
        del entry["ids"][1], entry["positions"][1]
        entry["leaves"] = entry["leaves"][:64] + entry["leaves"][128:]
        lines[0] = canonical_json(entry) + b"\n"

    edit_lines(bundle / "seals.jsonl", forget)

    assert "its proof is too short" in broken(bundle, key)


def test_3_a_row_that_was_put_in_is_named(bundle, key):
    row = json.loads((bundle / "events.jsonl").read_bytes().splitlines()[0]) | {"id": 424_242}
    row["digest"] = event_digest(
        row["id"], content_digest({name: row[name] for name in COLUMNS[1:16]})
    ).hex()
    edit_lines(bundle / "events.jsonl", lambda lines: lines.insert(1, canonical_json(row) + b"\n"))

    found = broken(bundle, key)

    assert found.startswith("events.jsonl, line 2: event 424242 was put in")


def test_3_a_row_added_at_the_end_is_named(bundle, key):
    row = json.loads((bundle / "events.jsonl").read_bytes().splitlines()[-1])
    row["id"] += 1
    row["digest"] = event_digest(
        row["id"], content_digest({name: row[name] for name in COLUMNS[1:16]})
    ).hex()
    edit_lines(bundle / "events.jsonl", lambda lines: lines.append(canonical_json(row) + b"\n"))

    code, said = verify(bundle, key)

    assert code == 1
    assert "events.csv, line 9: not what events.jsonl says" in said


def test_4_rows_in_another_order_are_named(bundle, key):
    ids = ids_of(bundle)

    def swap(lines):
        lines[1], lines[2] = lines[2], lines[1]

    edit_lines(bundle / "events.jsonl", swap)

    assert broken(bundle, key).startswith(
        f"events.jsonl, line 2: event {ids[2]} is out of its order: event {ids[1]}"
    )


def test_4_seals_in_another_order_are_named(bundle, key):
    edit_lines(bundle / "seals.jsonl", lambda lines: lines.reverse())

    assert verify(bundle, key)[0] == 1


@pytest.mark.parametrize("left", [0, 1, 5, 6, 7])
def test_5_a_cut_tail_is_found(bundle, key, left):
    ids = ids_of(bundle)

    def cut(lines):
        del lines[left:]

    edit_lines(bundle / "events.jsonl", cut)

    found = broken(bundle, key)
    if left < 6:
        assert found.startswith(f"events.jsonl ends after line {left}: event {ids[left]} of seal")
    else:
        assert found.startswith("events.csv")


def test_5_a_tail_cut_from_all_files_is_found(bundle, key):
    edit_lines(bundle / "events.jsonl", lambda lines: lines.__delitem__(slice(3, None)))
    edit_lines(bundle / "events.csv", lambda lines: lines.__delitem__(slice(4, None)))
    edit_lines(bundle / "seals.jsonl", lambda lines: lines.pop())

    assert broken(bundle, key) == "manifest.json says count 8, and it is 3"


@pytest.mark.parametrize(
    "name",
    ["events.jsonl", "events.csv", "events.parquet", "seals.jsonl", "manifest.json", "manifest.sig",
     "schema.json", "README.txt", "verify_export.py", "public-key.pem"],
)  # fmt: skip
def test_6_a_missing_file_is_named(bundle, key, name):
    (bundle / name).unlink()

    code, said = verify(bundle, key)

    assert code == 1
    assert f"{name} is missing" in said


def test_6_a_file_that_nobody_signed_is_named(bundle, key):
    (bundle / "more.jsonl").write_bytes(b"{}\n")

    assert "more.jsonl was put in" in broken(bundle, key)


def test_7_another_signature_is_no_signature(bundle, key):
    (bundle / "manifest.sig").write_text("0" * 128)

    assert broken(bundle, key) == "manifest.json: its signature is false"


def test_7_a_bundle_signed_by_somebody_else_is_not_believed(bundle, key):
    private = Ed25519PrivateKey.generate()
    forger = Signer(private, key_id(private.public_key()))
    (bundle / "public-key.pem").write_bytes(public_pem(forger))
    manifest = json.loads((bundle / "manifest.json").read_bytes()) | {"key_id": forger.key_id}
    (bundle / "manifest.json").write_bytes(canonical_json(manifest))

    assert f"signed with the key {forger.key_id}" in broken(bundle, key)


@with_database
def test_7_the_data_of_another_bundle_is_not_this_ones(bundle, key, tmp_path):
    other = unpack(make_export(EventFilter(shop_id=SHOP + 1)).path, tmp_path / "other")
    for name in ("manifest.json", "manifest.sig"):
        shutil.copy(other / name, bundle / name)

    count = json.loads((other / "manifest.json").read_bytes())["count"]
    assert count != 8
    assert broken(bundle, key) == f"manifest.json says count {count}, and it is 8"


def test_a_changed_manifest_is_not_what_was_signed(bundle, key):
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    (bundle / "manifest.json").write_bytes(canonical_json(manifest | {"actor": "auditor:bob"}))

    assert broken(bundle, key) == "manifest.json: its signature is false"


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [(3, b'"4000"', b'"9000"'), (1, b'"amount"', b'"sum"'), (8, b'"USD"', b'"EUR"')],
)
def test_a_changed_cell_of_the_spreadsheet_names_its_line(bundle, key, line, old, new):
    def change(lines):
        assert old in lines[line - 1]
        lines[line - 1] = lines[line - 1].replace(old, new)

    edit_lines(bundle / "events.csv", change)

    assert broken(bundle, key).startswith(f"events.csv, line {line}: ")


def test_a_changed_parquet_file_is_not_what_was_signed(bundle, key):
    content = bytearray((bundle / "events.parquet").read_bytes())
    content[100] ^= 1
    (bundle / "events.parquet").write_bytes(content)

    assert broken(bundle, key) == "events.parquet is not the file that was signed"


@pytest.mark.parametrize(
    ("field", "value"),
    [("root", "0" * 64), ("previous", "1" * 64), ("signed_at", "2020-01-01T00:00:00.000000Z")],
)
def test_a_changed_seal_names_it(bundle, key, field, value):
    def change(lines):
        entry = json.loads(lines[0])
        entry["seal"][field] = value
        lines[0] = canonical_json(entry) + b"\n"

    edit_lines(bundle / "seals.jsonl", change)

    assert "its content does not match its digest" in broken(bundle, key)


@with_database
def test_words_that_were_never_said_are_found(tmp_path, key):
    record_committed(full_entry(personal="It came broken"))
    seal()
    export = make_export(is_redacted=False, reason="Case 12")
    bundle = unpack(export.path, tmp_path / "unpacked")
    change_row(bundle, 1, personal_text="It is fine")

    assert "its words are not those that were recorded" in broken(bundle, key)


@with_database
def test_a_complete_bundle_without_one_of_its_seals_is_not_complete(tmp_path, key):
    sealed_trail(seals=3, events=1)
    bundle = unpack(make_export(EVERYTHING).path, tmp_path / "unpacked")
    edit_lines(bundle / "events.jsonl", lambda lines: lines.pop(1))
    edit_lines(bundle / "events.csv", lambda lines: lines.pop(2))
    edit_lines(bundle / "seals.jsonl", lambda lines: lines.pop(1))

    assert broken(bundle, key) == "manifest.json says count 4, and it is 3"


# --- What cannot be read --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row", [b"\n", b"[]\n", b"{\n", b'{"id": 1}\n', b'{"id":1}\n', b"[" * 5000]
)
def test_a_line_that_is_no_row_is_named(bundle, key, row):
    edit_lines(bundle / "events.jsonl", lambda lines: lines.__setitem__(2, row))

    assert broken(bundle, key).startswith("events.jsonl, line 3: ")


@pytest.mark.parametrize("name", ["seals.jsonl", "manifest.json"])
@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"seal":{}}\n', b"\xff\xfe", b"[" * 100_000]
)
def test_whatever_stands_in_a_file_the_answer_is_broken(bundle, key, name, content):
    (bundle / name).write_bytes(content)

    assert verify(bundle, key)[0] == 1


def test_a_file_that_is_there_twice_is_named(made, key, tmp_path):
    copy = shutil.copy(made, tmp_path / "copy.zip")
    with zipfile.ZipFile(copy, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("events.jsonl", b"")

    code, said = verify(copy, key)

    assert (code, "events.jsonl is there twice" in said) == (1, True)


def test_an_archive_with_a_damaged_byte_is_never_taken_for_another(made, key, tmp_path):
    """Bytes that carry nothing (a date, a flag) may differ; what is read out may not."""
    content = made.read_bytes()
    damaged = tmp_path / "damaged.zip"
    whole = verify(made, key)
    for at in range(40, len(content), len(content) // 150):
        damaged.write_bytes(content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :])
        code, said = verify(damaged, key)
        assert code in {1, 2} or (code, said) == whole
    damaged.write_bytes(content[: len(content) // 2])
    assert verify(damaged, key)[0] == 2


@pytest.mark.parametrize(
    ("at", "flipped"),
    [
        pytest.param(6, 255, id="of a later version"),
        pytest.param(8, 1, id="encrypted"),
        pytest.param(10, 255, id="packed otherwise"),
        pytest.param(28, 255, id="with a longer name"),
    ],
)
def test_an_archive_of_a_kind_that_cannot_be_read_is_said_to_be_one(
    made, key, at: int, flipped: int, tmp_path
):
    content = bytearray(made.read_bytes())
    directory = int.from_bytes(content[content.rfind(b"PK\5\6") + 16 :][:4], "little")
    content[directory + at] ^= flipped
    strange = tmp_path / "strange.zip"
    strange.write_bytes(content)

    assert verify(strange, key)[0] in {1, 2}
    assert verify(made, key, "--previous", str(strange))[0] in {1, 2}


@pytest.mark.parametrize("option", ["--head", "--previous"])
def test_what_cannot_be_read_is_said_and_exits_2(made, key, option, tmp_path):
    assert verify(made, key, option, str(tmp_path / "nowhere"))[0] == 2


def test_without_a_bundle_or_a_key_nothing_can_be_said(made, key, tmp_path):
    not_a_key = tmp_path / "not-a-key.pem"
    not_a_key.write_text("hello")

    assert verify(tmp_path / "nowhere.zip", key)[0] == 2
    assert verify(made, tmp_path / "nowhere.pem")[0] == 2
    assert verify(made, not_a_key)[0] == 2


# --- Its arithmetic against ours ------------------------------------------------------------------


@given(st.integers(1, 70).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1))))  # fmt: skip
def test_any_choice_of_leaves_is_proven_by_what_is_given_for_the_others(choice):
    count, places = choice
    leaves = [bytes([n]) * 32 for n in range(count)]
    known = {place: leaves[place] for place in places}
    proof = prove(leaves, places)

    assert root_of(count, known, proof) == merkle_root(leaves)
    with pytest.raises(BrokenError, match="too long"):
        root_of(count, known, [*proof, b"x" * 32])
    if proof:
        with pytest.raises(BrokenError, match="too short"):
            root_of(count, known, proof[:-1])
        false = [*proof[:-1], b"x" * 32]
        assert root_of(count, known, false) != merkle_root(leaves)


def test_all_leaves_need_no_proof_and_a_place_outside_is_none():
    leaves = [bytes([n]) * 32 for n in range(5)]

    assert prove(leaves, range(5)) == []
    assert prove(leaves, []) == []
    with pytest.raises(IndexError):
        prove(leaves, [5])


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)


@given(VALUES)
def test_its_canonical_json_is_ours(value):
    assert canonical(value) == canonical_json(value)
