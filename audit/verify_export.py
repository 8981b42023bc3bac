#!/usr/bin/env python3
"""Checks an audit bundle of Countersign, offline and alone.

    python verify_export.py BUNDLE --key public-key.pem

BUNDLE is the zip file, or the folder it was unpacked into. Take the key from whoever runs the
service, not from the bundle: whoever made a false bundle put their own key into it.

Exit 0: everything holds. 1: something does not; the first bad row is named. 2: it could not be
checked. Needs Python 3.10 and `cryptography`, no database and no network; memory is bounded by one
seal, whatever the number of rows.
"""

import argparse
import csv
import hashlib
import hmac
import io
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, cast

HOLDS, BROKEN, UNCHECKED = 0, 1, 2
MANIFEST, SIGNATURE, EVENTS, SEALS, CSV = (
    "manifest.json", "manifest.sig", "events.jsonl", "seals.jsonl", "events.csv",
)  # fmt: skip
FORMAT, EVENT_FORMAT, SEAL_FORMAT = (
    "countersign.export/1",
    "countersign.event/1",
    "countersign.seal/1",
)
# What an event's digest covers, besides its id.
CONTENT = (
    "at", "shop_id", "actor", "action", "subject", "task_id", "ticket_id", "customer", "order_id",
    "tool", "outcome", "amount", "currency", "data", "personal_digest",
)  # fmt: skip
COLUMNS = ("id", *CONTENT, "digest", "seal", "personal", "personal_text", "personal_nonce")
LONGEST_LINE = 64 * 1024 * 1024
BLOCK = 1024 * 1024
LOOK_AHEAD = 10_000

# A spreadsheet takes a cell as a formula when it begins so, after blanks it drops; and where its own
# separator is `;`, `|` or TAB, or a line break splits the cell, also in the middle.
_BLANKS = "\x00\ufeff\u200b\u200c\u200d\u2060"
_FORMULA = re.compile(
    rf"(^|[;|\t\r\n])((?:[^\S\t\r\n]|[{_BLANKS}\"'])*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])"
)
_CONTROL_FIRST = re.compile(r"^[\t\r\n]")


class BrokenError(Exception):
    """The bundle is not what was signed; says where."""


class UncheckedError(Exception):
    """Nothing can be said: the bundle, a key or a library cannot be read."""


# --- The same bytes everywhere --------------------------------------------------------------------


def canonical(value: object) -> bytes:
    """RFC 8785 for what a trail holds: no floats. Raises BrokenError."""
    try:
        _check(value)
        return _ENCODER.encode(_ordered(value)).encode()
    except (UnicodeEncodeError, RecursionError, ValueError) as exc:
        raise BrokenError(f"not canonical JSON ({exc})") from exc


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _check(value: object) -> None:
    if isinstance(value, float):
        raise BrokenError("not canonical JSON (a fraction)")
    if isinstance(value, dict):
        for item in value.values():
            _check(item)
    elif isinstance(value, list):
        for item in value:
            _check(item)


def _ordered(value: Any) -> Any:
    """Keys in the order of their UTF-16 code units."""
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value, key=_utf16)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def event_digest(row: Mapping[str, Any]) -> bytes:
    """SHA-256(id as 8 bytes || SHA-256(canonical content)). Raises BrokenError."""
    content = {"format": EVENT_FORMAT, **{name: row[name] for name in CONTENT}}
    inner = hashlib.sha256(canonical(content)).digest()
    return hashlib.sha256(row["id"].to_bytes(8, "big", signed=True) + inner).digest()


def root_of(count: int, known: Mapping[int, bytes], proof: Iterable[bytes]) -> bytes:
    """The root of an RFC 6962 tree of `count` leaves from some of them and the hashes between.

    Raises BrokenError when the proof has too few hashes or too many.
    """
    level = {at: hashlib.sha256(b"\x00" + leaf).digest() for at, leaf in known.items()}
    rest = iter(proof)
    while count > 1:
        above: dict[int, bytes] = {}
        for at in sorted({position // 2 for position in level}):
            left, right = 2 * at, 2 * at + 1
            if right >= count:
                above[at] = level[left]
                continue
            pair = [level[n] if n in level else next(rest, b"") for n in (left, right)]
            if not all(pair):
                raise BrokenError("its proof is too short")
            above[at] = hashlib.sha256(b"\x01" + b"".join(pair)).digest()
        level, count = above, (count + 1) // 2
    if next(rest, None) is not None:
        raise BrokenError("its proof is too long")
    return level[0]


def inert(text: str) -> str:
    """The text with a `'` before whatever a spreadsheet would take for a formula."""
    guarded = _FORMULA.sub(r"\1'\2", text)
    return f"'{guarded}" if _CONTROL_FIRST.match(guarded) else guarded


def csv_line(cells: Sequence[object]) -> bytes:
    """One line of RFC 4180, every cell quoted."""
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerow(cells)
    return line.getvalue().encode()


def csv_row(row: Mapping[str, Any], data: str) -> bytes:
    """The row's line; numbers are ours and stay numbers, whatever is text is made inert."""
    cells = {**row, "data": data}
    return csv_line(
        [inert(cell) if isinstance(cell := cells[name], str) else cell for name in COLUMNS]
    )


# --- Reading a bundle -----------------------------------------------------------------------------

# What Python's zipfile raises for an archive that is damaged, or not of a kind that it can read: of
# a later version, packed otherwise, encrypted (RuntimeError), with names that are no text (ValueError).
UNREADABLE = (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error)


class Bundle:
    """A zip file or a folder, read as it stands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.archive: zipfile.ZipFile | None = None
        try:
            if path.is_dir():
                self.names = sorted(str(one.relative_to(path)) for one in path.rglob("*") if one.is_file())  # fmt: skip
            else:
                self.archive = zipfile.ZipFile(path)
                self.names = self.archive.namelist()
        except UNREADABLE as exc:
            raise UncheckedError(f"{path} cannot be read: {exc}") from exc

    def close(self) -> None:
        if self.archive:
            self.archive.close()

    def open(self, name: str) -> BinaryIO:
        if name not in self.names:
            raise BrokenError(f"{name} is missing")
        if self.archive:
            return cast(BinaryIO, self.archive.open(name))
        return (self.path / name).open("rb")

    def read(self, name: str) -> bytes:
        """A small file, whole. Raises BrokenError."""
        with self.open(name) as file:
            content = file.read(BLOCK + 1)
        if len(content) > BLOCK:
            raise BrokenError(f"{name} is too long")
        return content


class Lines:
    """The lines of a file, counted and hashed on the way."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.file, self.name = file, name
        self.number = 0
        self.hash = hashlib.sha256()
        self.ahead: list[bytes] = []

    def next(self) -> bytes | None:
        """The next line with its end; None after the last."""
        if self.ahead:
            self.number += 1
            return self.ahead.pop(0)
        line = self.file.readline(LONGEST_LINE + 1)
        if len(line) > LONGEST_LINE:
            self.fail("the line is too long")
        if not line:
            return None
        self.number += 1
        self.hash.update(line)
        return line

    def document(self) -> dict[str, Any] | None:
        """The next line as the object that it must be, in canonical form. Raises BrokenError."""
        line = self.next()
        if line is None:
            return None
        try:
            value = json.loads(line)
            exact = canonical(value) + b"\n" == line
        except (ValueError, RecursionError, BrokenError) as exc:
            return self.fail(f"not a row ({exc})")
        if not isinstance(value, dict):
            return self.fail("not a row")
        if not exact:
            return self.fail(f"{_row_name(value)}not in its canonical form")
        return value

    def peek_ids(self) -> list[object]:
        """The ids of the lines that follow, as far as they can be read."""
        while len(self.ahead) < LOOK_AHEAD and (line := self.file.readline(LONGEST_LINE)):
            self.hash.update(line)
            self.ahead.append(line)
        return [_id_in(line) for line in self.ahead]

    def fail(self, what: str) -> NoReturn:
        raise BrokenError(f"{self.name}, line {self.number}: {what}")


def _id_in(line: bytes) -> object:
    try:
        return json.loads(line).get("id")
    except (ValueError, AttributeError, RecursionError):
        return None


def _row_name(row: Mapping[str, Any]) -> str:
    return f"event {row['id']}: " if isinstance(row.get("id"), int) else ""


# --- Keys -----------------------------------------------------------------------------------------


class Keys:
    """The public keys that are believed."""

    def __init__(self, paths: Iterable[Path]) -> None:
        try:
            # Here and not above, so that a missing library is said in words.
            from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
            from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
                Ed25519PublicKey,
            )
            from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
                load_pem_public_key,
            )
        except ImportError:
            raise UncheckedError("signatures need a library: pip install cryptography") from None
        self.invalid = InvalidSignature
        self.known = {}
        for path in paths:
            try:
                key = load_pem_public_key(path.read_bytes())
            except (OSError, ValueError) as exc:
                raise UncheckedError(f"{path} is not a public key: {exc}") from exc
            if not isinstance(key, Ed25519PublicKey):
                raise UncheckedError(f"{path} is not an Ed25519 public key")
            self.known[hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]] = key

    def check(self, key_id: str, signature: str, digest: bytes) -> None:
        """Raises BrokenError unless the key of that id made this signature."""
        key = self.known.get(key_id)
        if key is None:
            raise BrokenError(f"signed with the key {key_id}, which is none of those given")
        try:
            key.verify(bytes.fromhex(signature), digest)
        except (self.invalid, ValueError):
            raise BrokenError("its signature is false") from None


# --- The check ------------------------------------------------------------------------------------


class Result(NamedTuple):
    """What was found in a bundle that holds."""

    rows: int
    unsealed: int
    seals: int
    first_seal: int
    last_seal: int
    not_here: int  # events of those seals that the bundle does not hold
    linked: bool  # the seals follow each other without a gap


class Walk:
    """Goes through seals and rows side by side, in the chain's order."""

    def __init__(self, rows: Lines, seals: Lines, csv_lines: Lines | None, keys: Keys) -> None:
        self.rows, self.seals, self.csv, self.keys = rows, seals, csv_lines, keys
        self.first_seal = self.last_seal = 0
        self.previous = ""
        self.linked = True
        self.sealed = self.members = self.unsealed = self.seal_count = 0
        self.heads: dict[int, str] = {}

    def run(self, wanted: Mapping[int, str]) -> Result:
        """Raises BrokenError at the first row that does not hold. wanted: published heads, by number."""
        if self.csv and self.csv.next() != csv_line(COLUMNS):
            self.csv.fail("the columns are not those of this format")
        while (entry := self.seals.document()) is not None:
            try:
                self._seal(entry)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as exc:
                self.seals.fail(f"not a seal ({exc})")
            if entry["seal"]["number"] in wanted:
                self.heads[entry["seal"]["number"]] = entry["digest"]
        self._waiting()
        if self.csv and self.csv.next() is not None:
            self.csv.fail("a row that is not in events.jsonl")
        return Result(
            rows=self.sealed + self.unsealed,
            unsealed=self.unsealed,
            seals=self.seal_count,
            first_seal=self.first_seal,
            last_seal=self.last_seal,
            not_here=self.members - self.sealed,
            linked=self.linked,
        )

    def _seal(self, entry: dict[str, Any]) -> None:
        document, digest = entry["seal"], bytes.fromhex(entry["digest"])
        number, where = document["number"], f"seal {document['number']}"
        if document["format"] != SEAL_FORMAT or hashlib.sha256(canonical(document)).digest() != digest:  # fmt: skip
            self.seals.fail(f"{where}: its content does not match its digest")
        self._place(number, document["previous"], entry["digest"])
        ids, count = entry["ids"], document["count"]
        positions = list(range(count)) if entry["positions"] is None else entry["positions"]
        joined = bytes.fromhex(entry["leaves"])
        leaves = [joined[at : at + 32] for at in range(0, len(joined), 32)]
        is_sound = len(ids) == len(positions) == len(leaves) and len(joined) == 32 * len(ids)
        if not is_sound or positions != sorted({p for p in positions if 0 <= p < count}):
            self.seals.fail(f"{where}: its ids, positions and leaves disagree")
        if len(ids) == count and _members(ids) != document["members"]:
            self.seals.fail(f"{where}: its ids are not those that were sealed")
        for event_id, leaf in zip(ids, leaves, strict=True):
            self._row(event_id, leaf, number, ids)
        try:
            self.keys.check(document["key_id"], entry["signature"], digest)
            proof = [bytes.fromhex(one) for one in entry["proof"]]
            known = dict(zip(positions, leaves, strict=True))
            root = root_of(count, known, proof).hex() if ids else document["root"]
        except BrokenError as exc:
            self.seals.fail(f"{where}: {exc}")
        if root != document["root"]:
            self.seals.fail(f"{where}: its rows do not make its root")
        self.members += count
        self.sealed += len(ids)

    def _place(self, number: int, previous: str, digest: str) -> None:
        """Keep count of the chain: seals go up, and neighbours are linked."""
        before = self.last_seal
        if number <= before:
            self.seals.fail(f"seal {number}: out of its order")
        if number > before + 1:
            # The first seal of a bundle may be any; after it, a gap means that not all are here.
            self.linked = self.linked and not before
        elif previous != (self.previous or "0" * 64):
            self.seals.fail(f"seal {number}: does not continue the seal before it")
        self.first_seal, self.last_seal = self.first_seal or number, number
        self.previous = digest
        self.seal_count += 1

    def _row(self, event_id: int, leaf: bytes, seal: int, ids: Sequence[int]) -> None:
        row = self.rows.document()
        if row is None:
            end = f"{EVENTS} ends after line {self.rows.number}"
            raise BrokenError(f"{end}: event {event_id} of seal {seal} is missing")
        if row.get("id") != event_id:
            self.rows.fail(self._displaced(row, event_id, seal, ids))
        if row.get("seal") != seal:
            self.rows.fail(
                f"event {event_id}: it says seal {row.get('seal')} and is in seal {seal}"
            )
        computed = self._digest(row)
        if computed != leaf:
            self.rows.fail(f"event {event_id}: {_difference(row, computed, leaf)}")
        self._beside(row)

    def _displaced(self, row: Mapping[str, Any], wanted: int, seal: int, ids: Sequence[int]) -> str:
        """In words why another row stands where `wanted` should."""
        found = row.get("id")
        following = self.rows.peek_ids()
        if wanted not in following:
            return f"event {wanted} of seal {seal} is missing: event {found} stands in its place"
        if found in ids or following[0] != wanted:
            return f"event {found} is out of its order: event {wanted} of seal {seal} comes first"
        return (
            f"event {found} was put in: it is not in seal {seal}, and event {wanted} should be here"
        )

    def _digest(self, row: Mapping[str, Any]) -> bytes:
        if set(row) != set(COLUMNS) or type(row["id"]) is not int:
            self.rows.fail(f"{_row_name(row)}its columns are not those of this format")
        try:
            return event_digest(row)
        except (BrokenError, OverflowError) as exc:
            self.rows.fail(f"{_row_name(row)}{exc}")

    def _waiting(self) -> None:
        """The rows behind the last seal: vouched for by the manifest alone."""
        last = 0
        while (row := self.rows.document()) is not None:
            computed = self._digest(row)
            if row["seal"] is not None:
                self.rows.fail(f"event {row['id']} was put in: no seal of this bundle holds it")
            if row["digest"] != computed.hex():
                self.rows.fail(f"event {row['id']}: its content does not match its digest")
            if row["id"] <= last:
                self.rows.fail(f"event {row['id']} is out of its order")
            last = row["id"]
            self.unsealed += 1
            self._beside(row)

    def _beside(self, row: Mapping[str, Any]) -> None:
        """The words that came with the row, and the same row in the CSV file."""
        if row["personal_nonce"] is not None:
            try:
                nonce, words = bytes.fromhex(row["personal_nonce"]), row["personal_text"].encode()
            except (TypeError, ValueError, AttributeError) as exc:
                self.rows.fail(f"event {row['id']}: its words cannot be read ({exc})")
            if hmac.new(nonce, words, hashlib.sha256).hexdigest() != row["personal_digest"]:
                self.rows.fail(f"event {row['id']}: its words are not those that were recorded")
        if self.csv and self.csv.next() != csv_row(row, canonical(row["data"]).decode()):
            self.csv.fail(f"not what events.jsonl says of event {row['id']}")


def _members(ids: Sequence[int]) -> str:
    return hashlib.sha256(b"".join(one.to_bytes(8, "big", signed=True) for one in ids)).hexdigest()


def _difference(row: Mapping[str, Any], computed: bytes, leaf: bytes) -> str:
    if row["digest"] == leaf.hex():
        return "its content does not match its digest"
    if row["digest"] == computed.hex():
        return "its content and its digest are not those that were sealed"
    return "neither its content nor its digest is what was sealed"


class Report(NamedTuple):
    """What came out: faults, the first bad row first; none when everything holds."""

    faults: list[str]
    manifest: dict[str, Any]
    result: Result | None


def check(path: Path, keys: Keys, *, expect: str = "", heads: Mapping[int, str] | None = None, previous: str = "") -> Report:  # fmt: skip
    """Check a bundle. Raises UncheckedError when nothing can be said of it."""
    with closing(Bundle(path)) as bundle:
        return _check_all(bundle, keys, expect, heads or {}, previous)


def _check_all(bundle: Bundle, keys: Keys, expect: str, heads: Mapping[int, str], previous: str) -> Report:  # fmt: skip
    faults: list[str] = []
    manifest = _collect(faults, lambda: _manifest(bundle, keys, expect, previous)) or {}
    named = manifest.get("files")
    files: dict[str, Any] = named if isinstance(named, dict) else {}
    hashes: dict[str, str] = {}
    result = _collect(faults, lambda: _walk(bundle, keys, heads, manifest, hashes))
    # A bad row says more than a bad signature over all of them, so it comes first.
    if result is None and faults:
        faults.insert(0, faults.pop())
    _collect(faults, lambda: _names(bundle, files))
    for name, about in sorted(files.items()):
        _collect(faults, partial(_file, bundle, name, about, hashes))
    return Report(faults, manifest, result)


def _collect(faults: list[str], step: Callable[[], Any]) -> Any:
    """What the step gives; None and a fault more when it finds something broken."""
    try:
        return step()
    except BrokenError as exc:
        if str(exc) not in faults:
            faults.append(str(exc))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as exc:
        faults.append(f"something in it cannot be read: {exc!r}")
    except UNREADABLE as exc:
        faults.append(f"it cannot be unpacked: {exc}")
    return None


def _manifest(bundle: Bundle, keys: Keys, expect: str, previous: str) -> dict[str, Any]:
    """The manifest, once its signature was found good; read all the same when it is not."""
    content = bundle.read(MANIFEST)
    digest = hashlib.sha256(content).digest()
    manifest: dict[str, Any] = json.loads(content)
    if manifest["format"] != FORMAT:
        raise BrokenError(
            f"{MANIFEST}: {manifest['format']!r} is not the format that this file checks"
        )
    if canonical(manifest) != content:
        raise BrokenError(f"{MANIFEST}: not in its canonical form")
    try:
        keys.check(manifest["key_id"], bundle.read(SIGNATURE).decode("ascii").strip(), digest)
    except BrokenError as exc:
        raise BrokenError(f"{MANIFEST}: {exc}") from exc
    if expect and expect.lower() != digest.hex():
        raise BrokenError(f"{MANIFEST}: another bundle: its digest is {digest.hex()}")
    if previous and previous.lower() != manifest["previous"]:
        raise BrokenError(f"{MANIFEST}: it names another bundle before it: {manifest['previous']}")
    return manifest


def _walk(bundle: Bundle, keys: Keys, heads: Mapping[int, str], manifest: Mapping[str, Any], hashes: dict[str, str]) -> Result:  # fmt: skip
    with ExitStack() as stack:
        rows, seals = (
            Lines(stack.enter_context(bundle.open(name)), name) for name in (EVENTS, SEALS)
        )
        beside = None
        if CSV in bundle.names:
            beside = Lines(stack.enter_context(bundle.open(CSV)), CSV)
        walk = Walk(rows, seals, beside, keys)
        result = walk.run(heads)
    for one in filter(None, (rows, seals, beside)):
        hashes[one.name] = one.hash.hexdigest()
    _totals(result, walk, manifest)
    for number, digest in heads.items():
        if walk.heads.get(number, digest) != digest:
            raise BrokenError(f"seal {number}: not the one that was published")
    return result


def _totals(result: Result, walk: Walk, manifest: Mapping[str, Any]) -> None:
    if not manifest:
        return
    found = {"count": result.rows, "unsealed": result.unsealed}
    for name, number in found.items():
        if manifest[name] != number:
            raise BrokenError(f"{MANIFEST} says {name} {manifest[name]}, and it is {number}")
    head = manifest["head"]
    if head and (head["number"], head["digest"]) != (walk.last_seal, walk.previous):
        raise BrokenError(f"{SEALS} does not end with the head of the chain, seal {head['number']}")
    if manifest["every_seal"] and not (walk.linked and walk.first_seal in {0, 1}):
        raise BrokenError(f"{SEALS} does not hold every seal, and {MANIFEST} says that it does")


def _names(bundle: Bundle, files: Mapping[str, Any]) -> None:
    twice = sorted({name for name in bundle.names if bundle.names.count(name) > 1})
    if twice:
        raise BrokenError(f"{twice[0]} is there twice")
    strange = sorted(set(bundle.names) - set(files) - {MANIFEST, SIGNATURE})
    if files and strange:
        raise BrokenError(f"{strange[0]} was put in: {MANIFEST} does not name it")


def _file(bundle: Bundle, name: str, about: Mapping[str, Any], hashes: dict[str, str]) -> None:
    if name not in hashes:
        seen = hashlib.sha256()
        with bundle.open(name) as file:
            while block := file.read(BLOCK):
                seen.update(block)
        hashes[name] = seen.hexdigest()
    if hashes[name] != about["sha256"]:
        raise BrokenError(f"{name} is not the file that was signed")


# --- The command ----------------------------------------------------------------------------------


def _published(path: Path) -> dict[int, str]:
    """The heads of a file that the service published, by number of the seal."""
    try:
        lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        return {line["seal"]["number"]: line["digest"] for line in lines}
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise UncheckedError(f"{path} holds no published head: {exc}") from exc


def _manifest_digest(path: Path) -> str:
    try:
        with closing(Bundle(path)) as bundle:
            return hashlib.sha256(bundle.read(MANIFEST)).hexdigest()
    except (BrokenError, *UNREADABLE) as exc:
        raise UncheckedError(f"{path}: {exc}") from exc


def summary(report: Report) -> Iterator[str]:
    """What a bundle that holds proves, in words."""
    result, manifest = report.result, report.manifest
    assert result is not None  # noqa: S101 - only called when nothing was found
    yield f"The bundle holds: {result.rows:,} rows, {result.seals:,} seals, signed with {manifest['key_id']}."
    yield f"Taken {manifest['snapshot_at']} by {manifest['actor']}; filter {json.dumps(manifest['filter'])}."
    if result.seals and manifest["every_seal"] and not result.not_here:
        yield f"Complete: every event of seals {result.first_seal} to {result.last_seal} is here."
    elif result.seals:
        yield f"Its seals hold {result.not_here:,} further events, which are not here."
        yield "Each row is proven to be in the trail; that no other matches the filter is the signer's word."
    if result.unsealed:
        yield f"{result.unsealed:,} rows were not sealed yet: the manifest alone vouches for them."
    if head := manifest["head"]:
        yield f"Head of the chain: seal {head['number']}, {head['digest']}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Check what the command line names, say what was found, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="verify_export.py",
        description="Check an audit bundle. Exit 0: it holds. 1: it does not. 2: it could not be checked.",
    )
    parser.add_argument(
        "bundle", type=Path, help="the zip file, or the folder it was unpacked into"
    )
    parser.add_argument("--key", type=Path, action="append", required=True, metavar="PEM", help="a public key to believe; may be given again for retired keys")  # fmt: skip
    parser.add_argument("--expect", default="", metavar="SHA256", help="the manifest's digest that the console shows")  # fmt: skip
    parser.add_argument("--head", type=Path, metavar="FILE", help="heads published by the service: their seals must be the same here")  # fmt: skip
    parser.add_argument("--previous", type=Path, metavar="BUNDLE", help="the bundle that this one must name as the one before it")  # fmt: skip
    given = parser.parse_args(arguments)
    try:
        report = check(
            given.bundle,
            Keys(given.key),
            expect=given.expect,
            heads=_published(given.head) if given.head else {},
            previous=_manifest_digest(given.previous) if given.previous else "",
        )
    except UncheckedError as exc:
        sys.stderr.write(f"The bundle could not be checked: {exc}\n")
        return UNCHECKED
    if report.faults:
        sys.stdout.write(f"BROKEN. {report.faults[0]}\n")
        sys.stdout.writelines(f"Also: {fault}\n" for fault in report.faults[1:20])
        return BROKEN
    sys.stdout.writelines(f"{line}\n" for line in summary(report))
    return HOLDS


if __name__ == "__main__":
    sys.exit(main())
