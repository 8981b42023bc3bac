"""A bundle: the data, what proves it, and what is needed to check it without us.

First `gather` writes the files from one snapshot, then `pack` puts them into one zip file, and last
`sign` adds the manifest, which names every file's digest, and its signature. Memory holds a few
thousand rows at any time.
"""

import hashlib
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Protocol, cast

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from audit.canonical import canonical_json, rfc3339
from audit.export_models import ExportForm
from audit.inclusion import prove
from audit.keys import Signer
from audit.selectors import EventFilter
from audit.shapes import Row, csv_head
from audit.snapshot import SealedRows, Snapshot, Totals, snapshot
from audit.verify_export import CSV, EVENTS, FORMAT, MANIFEST, SEALS, SIGNATURE

GENERATOR = "countersign 0.1.0, bundle 1"
PARQUET = "events.parquet"
SCHEMA, README, VERIFIER, KEY = "schema.json", "README.txt", "verify_export.py", "public-key.pem"
PAPERS = {
    SCHEMA: Path(__file__).with_name("bundle_schema.json"),
    README: Path(__file__).with_name("bundle_readme.txt"),
    VERIFIER: Path(__file__).with_name("verify_export.py"),
}
BLOCK = 256 * 1024

Progress = Callable[[int], None]


class RowFile(Protocol):
    """A form of the rows that is written in pieces."""

    def add(self, rows: list[Row]) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a bundle is to hold."""

    export_id: str
    actor: str
    wanted: EventFilter
    form: str
    is_redacted: bool
    reason: str

    @property
    def every_seal(self) -> bool:
        """Whether nothing is filtered out, so that completeness can be proven."""
        return not self.wanted.describe()


@dataclass
class Gathered:
    """The files that were written, and what the manifest says of them."""

    folder: Path
    totals: Totals
    rows: int = 0
    unsealed: int = 0
    first_event: int | None = None
    last_event: int | None = None
    first_seal: int | None = None
    last_seal: int | None = None
    files: dict[str, dict[str, object]] = field(default_factory=dict)


# --- First: the files -----------------------------------------------------------------------------


def gather(order: Order, folder: Path, *, started: Progress, progress: Progress) -> Gathered:
    """Write the data files into the folder, as of one moment.

    started: told the number of rows once it is known. progress: told how many are written, every few
    thousand; whatever it raises ends the work. Raises TrailBrokenError, and OSError for a full disk.
    """
    with snapshot() as source, _Files(folder, order.form) as files:
        totals = source.totals(order.wanted)
        started(totals.count)
        gathered = Gathered(folder, totals)
        _write(order, source, files, gathered, progress)
    for name in files.names:
        gathered.files[name] = _about(folder / name, rows=gathered.rows)
    gathered.files[SEALS] = _about(folder / SEALS)
    return gathered


def _write(
    order: Order, source: Snapshot, files: "_Files", gathered: Gathered, progress: Progress
) -> None:
    with_words = not order.is_redacted
    for sealed in source.sealed(
        order.wanted, gathered.totals, every_seal=order.every_seal, with_words=with_words
    ):
        files.seal(sealed)
        _count(gathered, [row for _, row in sealed.rows], sealed.seal.pk)
        progress(gathered.rows)
    for rows in source.waiting(order.wanted, with_words=with_words):
        files.add(rows)
        _count(gathered, rows, None)
        progress(gathered.rows)


def _count(gathered: Gathered, rows: list[Row], seal: int | None) -> None:
    for row in rows:
        event_id = cast(int, row.values["id"])
        gathered.first_event = min(gathered.first_event or event_id, event_id)
        gathered.last_event = max(gathered.last_event or event_id, event_id)
    gathered.rows += len(rows)
    if seal is None:
        gathered.unsealed += len(rows)
    else:
        gathered.first_seal, gathered.last_seal = gathered.first_seal or seal, seal


class _Files:
    """The open data files of one bundle."""

    def __init__(self, folder: Path, form: str) -> None:
        self.names = [EVENTS]
        self._seals = (folder / SEALS).open("wb")
        self._events = (folder / EVENTS).open("wb")
        self._csv = None
        self._parquet: RowFile | None = None
        if form in {ExportForm.CSV, ExportForm.ALL}:
            self.names.append(CSV)
            self._csv = (folder / CSV).open("wb")
            self._csv.write(csv_head())
        if form in {ExportForm.PARQUET, ExportForm.ALL}:
            self.names.append(PARQUET)
            # Not at the top: pyarrow costs every process that loads it 30 MB.
            self._parquet = import_module("audit.parquet").ParquetFile(folder / PARQUET)

    def __enter__(self) -> "_Files":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for file in (self._seals, self._events, self._csv, self._parquet):
            if file is not None:
                file.close()

    def seal(self, sealed: SealedRows) -> None:
        """One line for the seal with what proves its rows, and the rows."""
        self._seals.write(canonical_json(seal_entry(sealed)) + b"\n")
        self.add([row for _, row in sealed.rows])

    def add(self, rows: list[Row]) -> None:
        self._events.writelines(row.jsonl() for row in rows)
        if self._csv is not None:
            self._csv.writelines(row.csv() for row in rows)
        if self._parquet is not None:
            self._parquet.add(rows)


def seal_entry(sealed: SealedRows) -> dict[str, object]:
    """The seal as seals.jsonl holds it: its document and signature, which of its events are in the
    bundle, and the hashes that stand for the others."""
    seal = sealed.seal
    positions = [place for place, _ in sealed.rows]
    is_whole = len(positions) == seal.count
    return {
        "seal": seal.content().document(),
        "digest": bytes(seal.digest).hex(),
        "signature": bytes(seal.signature).hex(),
        "ids": [row.values["id"] for _, row in sealed.rows],
        "positions": None if is_whole else positions,
        "leaves": b"".join(sealed.leaves[place] for place in positions).hex(),
        "proof": [one.hex() for one in prove(sealed.leaves, positions)],
    }


# --- Then: one file -------------------------------------------------------------------------------


def pack(gathered: Gathered, target: Path, signer: Signer, *, progress: Progress) -> None:
    """Put everything but the manifest into a new zip file. progress: told the bytes read so far."""
    sources = {name: gathered.folder / name for name in gathered.files} | PAPERS
    public = gathered.folder / KEY
    public.write_bytes(public_pem(signer))
    sources[KEY] = public
    for name in (*PAPERS, KEY):
        gathered.files[name] = _about(sources[name])
    done = 0
    with zipfile.ZipFile(target, "w") as archive:
        for name, source in sources.items():
            info = _member(name, gathered.totals.taken_at)
            with source.open("rb") as content, archive.open(info, "w", force_zip64=True) as member:
                while block := content.read(BLOCK):
                    member.write(block)
                    done += len(block)
                    progress(done)
    _flush(target)


def public_pem(signer: Signer) -> bytes:
    """The key that checks the signatures, as people and tools exchange it."""
    return signer.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


# --- Last: the signature --------------------------------------------------------------------------


def manifest_of(order: Order, gathered: Gathered, signer: Signer, previous: bytes | None) -> bytes:
    """The manifest in its canonical form. previous: the digest of the manifest before this one."""
    totals = gathered.totals
    head = totals.head
    document: dict[str, object] = {
        "format": FORMAT,
        "generator": GENERATOR,
        "export": order.export_id,
        "actor": order.actor,
        "filter": order.wanted.describe(),
        "shop_id": order.wanted.shop_id,
        "redacted": order.is_redacted,
        "reason": order.reason,
        "snapshot_at": rfc3339(totals.taken_at),
        "count": gathered.rows,
        "unsealed": gathered.unsealed,
        "first_event": gathered.first_event,
        "last_event": gathered.last_event,
        "first_seal": gathered.first_seal,
        "last_seal": gathered.last_seal,
        "every_seal": order.every_seal,
        "head": None if head is None else {"number": head.pk, "digest": bytes(head.digest).hex()},
        "files": gathered.files,
        "key_id": signer.key_id,
        "previous": None if previous is None else previous.hex(),
    }
    return canonical_json(document)


def sign(target: Path, manifest: bytes, signer: Signer, *, at: datetime) -> bytes:
    """Add the manifest and its signature to the zip file, on disk for good; returns its digest."""
    digest = hashlib.sha256(manifest).digest()
    with zipfile.ZipFile(target, "a") as archive:
        archive.writestr(_member(MANIFEST, at), manifest)
        archive.writestr(_member(SIGNATURE, at), f"{signer.sign(digest).hex()}\n")
    _flush(target)
    return digest


def clear(folder: Path) -> None:
    """Remove a folder that files were gathered in."""
    shutil.rmtree(folder, ignore_errors=True)


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _member(name: str, moment: datetime) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, moment.timetuple()[:6])
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info


def _about(path: Path, **more: object) -> dict[str, object]:
    seen = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            seen.update(block)
    return {"sha256": seen.hexdigest(), "bytes": path.stat().st_size, **more}
