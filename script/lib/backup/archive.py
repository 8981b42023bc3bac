"""One backup, one file: a zip with the dump and a manifest that says what it is.

Both lie in it as they are, so that any zip program gives out a dump that `pg_restore` reads. The
digest finds a dump that was cut or exchanged, and the signature a manifest that was.
"""

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import IO, Any

from script.lib.bootstrap import SetupError

FORMAT = "countersign.backup/1"
DUMP, MANIFEST = "database.dump", "manifest.json"
LONGEST_MANIFEST = 16 * 1024 * 1024
CHUNK = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Head:
    """Where the trail's chain ended."""

    seal: int
    digest: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a backup is. Nothing in it is secret."""

    taken_at: str  # RFC 3339 in UTC; what was committed later is not in it
    version: str  # of the product
    postgres: int  # the server's major version
    migrations: list[str]
    head: Head | None
    last_event: int
    rows: dict[str, int]  # of every table
    roles: list[str]  # that have grants in it
    keys: dict[str, list[str]]  # ids of the keys that it cannot be read or checked without
    signed_by: str  # the id of the seal key
    dump_bytes: int = 0
    dump_sha256: str = ""
    format: str = FORMAT
    signature: str = ""

    def content(self) -> bytes:
        """What the signature is of: everything else."""
        told = asdict(replace(self, signature=""))
        return json.dumps(told, sort_keys=True, separators=(",", ":")).encode()


class NoBackupError(SetupError):
    """The file is no whole backup of ours; the text says why."""


@contextmanager
def writing(path: Path) -> Iterator["Draft"]:
    """A draft that becomes the file at `path` when `finish` was called, and is gone otherwise.

    Only its owner can read it.
    """
    draft_path = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(draft_path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w+b") as file:
            draft = Draft(file)
            try:
                yield draft
            finally:
                draft.close()
            draft.require_finished()
            file.flush()
            os.fsync(file.fileno())
        draft_path.replace(path)
        _sync_folder(path.parent)
    finally:
        draft_path.unlink(missing_ok=True)


class Draft:
    """A backup that is being written: first all of the dump, then `finish`."""

    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        self._is_finished = False
        self._total = hashlib.sha256()
        self._bytes = 0

    def write_dump(self, source: IO[bytes]) -> None:
        """Take the dump from here to its end."""
        with self._zip.open(DUMP, "w", force_zip64=True) as entry:
            while chunk := source.read(CHUNK):
                entry.write(chunk)
                self._total.update(chunk)
                self._bytes += len(chunk)

    def finish(self, manifest: dict[str, Any], sign: Callable[[bytes], bytes]) -> Manifest:
        """Write the manifest with the dump's size and digest, signed, and close the zip."""
        whole = Manifest(**manifest, dump_bytes=self._bytes, dump_sha256=self._total.hexdigest())
        whole = replace(whole, signature=sign(whole.content()).hex())
        self._zip.writestr(MANIFEST, json.dumps(asdict(whole), indent=2) + "\n")
        self._zip.close()
        self._is_finished = True
        return whole

    def close(self) -> None:
        """Let go of the file, whatever became of it."""
        with suppress(OSError):
            self._zip.close()

    def require_finished(self) -> None:
        if not self._is_finished:
            raise NoBackupError("the backup was not finished")


@dataclass(frozen=True)
class Backup:
    """A backup that was found to be whole."""

    manifest: Manifest
    _zip: zipfile.ZipFile

    @contextmanager
    def dump(self) -> Iterator[IO[bytes]]:
        with self._zip.open(DUMP) as entry:
            yield entry


@contextmanager
def reading(path: Path) -> Iterator[Backup]:
    """The backup at this path, its digest compared. Raises NoBackupError when it is not whole."""
    with _checked(path) as file:
        yield Backup(_manifest(file), file)


def _checked(path: Path) -> zipfile.ZipFile:
    try:
        file = zipfile.ZipFile(path)
        try:
            _compare(Backup(_manifest(file), file))
        except BaseException:
            file.close()
            raise
    except OSError as exc:
        raise NoBackupError(f"{path} cannot be read: {exc.strerror}") from exc
    except (zipfile.BadZipFile, EOFError) as exc:
        raise NoBackupError(f"{path} is cut, damaged or no backup: {exc}") from exc
    return file


def _manifest(file: zipfile.ZipFile) -> Manifest:
    found = {entry.filename: entry for entry in file.infolist()}
    if found.keys() != {DUMP, MANIFEST} or len(found) != len(file.infolist()):
        raise NoBackupError("the file does not hold a dump and a manifest, and so is no backup")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in found.values()):
        raise NoBackupError("the file was packed anew; take the backup as it was written")
    if found[MANIFEST].file_size > LONGEST_MANIFEST:
        raise NoBackupError("the manifest is longer than any of ours")
    try:
        told = json.loads(file.read(MANIFEST))
        if told["format"] != FORMAT:
            raise NoBackupError(f"the file is of the form {told['format']!r}, not {FORMAT!r}")
        told["head"] = Head(**told["head"]) if told["head"] else None
        manifest = Manifest(**{field.name: told[field.name] for field in fields(Manifest)})
        _require_shape(manifest)
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise NoBackupError(f"the manifest cannot be read: {exc!r}") from exc
    return manifest


def _require_shape(manifest: Manifest) -> None:
    """Raise TypeError, KeyError or AttributeError where a list or a number is something else."""
    keys = manifest.keys["encryption"] + manifest.keys["seal"]
    bytes.fromhex(manifest.signature)
    "".join(
        [
            manifest.signed_by,
            manifest.taken_at,
            *manifest.migrations,
            *manifest.roles,
            *manifest.rows,
            *keys,
        ]
    )
    sum([manifest.postgres, manifest.dump_bytes, *manifest.rows.values()])


def _compare(backup: Backup) -> None:
    total, size = hashlib.sha256(), 0
    with backup.dump() as dump:
        while chunk := dump.read(CHUNK):
            total.update(chunk)
            size += len(chunk)
    manifest = backup.manifest
    if (size, total.hexdigest()) != (manifest.dump_bytes, manifest.dump_sha256):
        raise NoBackupError("the dump is not the one that the manifest names: its digest differs")


def _sync_folder(folder: Path) -> None:
    """Make the new name outlive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
