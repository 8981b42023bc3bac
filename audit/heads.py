"""The newest seal, published outside the database, so that a cut tail or a rewrite is found.

A head is one line of JSON: the seal's document, its digest and its signature. It proves itself with
the public key alone. Keep it where whoever can write the database cannot.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.db.models import Min, Q

from audit.canonical import NotCanonicalError, canonical_json, seal_digest
from audit.keys import Keyring
from audit.models import Event, Seal, Unsealed

HEAD_FORMAT = "countersign.head/1"


class HeadFileError(ValueError):
    """The file holds no head that can be believed; nothing can be said by it."""


class HeadConflictError(RuntimeError):
    """The published head is not in this database's chain; it was left as it is."""


@dataclass(frozen=True)
class Head:
    """A seal as it was published."""

    number: int
    digest: bytes
    signed_at: str


def head_line(seal: Seal) -> bytes:
    """The line that is published for a seal."""
    return (
        canonical_json(
            {
                "format": HEAD_FORMAT,
                "seal": seal.content().document(),
                "digest": bytes(seal.digest).hex(),
                "signature": bytes(seal.signature).hex(),
            }
        )
        + b"\n"
    )


def read_heads(path: Path, keyring: Keyring) -> Iterator[Head]:
    """Every head in the file, oldest first. Raises HeadFileError when a line is not a signed head."""
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _parse(line, f"{path}, line {number}", keyring)
    except OSError as exc:
        raise HeadFileError(f"{path} cannot be read: {exc.strerror}") from exc


def publish_newest(path: Path) -> None:
    """Replace the file with the newest seal's head, unless that is what it holds.

    Raises HeadConflictError when what the file holds is not part of the chain: the file is then the
    evidence that the chain was cut or rewritten. Raises HeadFileError when it cannot be understood.
    """
    newest = Seal.objects.order_by("-id").first()
    held = list(read_heads(path, Keyring())) if path.exists() else []
    for head in held:
        if Seal.objects.filter(id=head.number, digest=head.digest).exists():
            continue
        raise HeadConflictError(
            f"the head in {path}, seal {head.number}, is not in the chain; the file was left as it is"
        )
    if newest is not None and (not held or held[-1].number != newest.pk):
        _replace(path, head_line(newest))


def uncovered_since(path: Path) -> datetime | None:
    """When the oldest event was that no published head covers; None while all are covered.

    A file that is not there, or holds no head that can be believed, covers nothing.
    """
    try:
        held = list(read_heads(path, Keyring())) if path.exists() else []
    except HeadFileError:
        held = []
    covered = held[-1].number if held else 0
    after = Seal.objects.filter(id__gt=covered).order_by("id").first()
    waiting = Q(id__in=Unsealed.objects.values("event_id"))
    sealed = Q(id__in=after.event_ids) if after is not None else Q(pk__in=[])
    oldest: datetime | None = Event.objects.filter(waiting | sealed).aggregate(Min("at"))["at__min"]
    return oldest


def _parse(line: bytes, where: str, keyring: Keyring) -> Head:
    try:
        head = json.loads(line)
        document = head["seal"]
        digest = bytes.fromhex(head["digest"])
        signature = bytes.fromhex(head["signature"])
        number, key_id, signed_at = document["number"], document["key_id"], document["signed_at"]
        genuine = head["format"] == HEAD_FORMAT and seal_digest(document) == digest
    except (ValueError, KeyError, TypeError, NotCanonicalError) as exc:
        raise HeadFileError(f"{where}: not a published head") from exc
    if not genuine or type(number) is not int:
        raise HeadFileError(f"{where}: its digest does not match its seal")
    fault = keyring.fault(str(key_id), signature, digest)
    if fault:
        raise HeadFileError(f"{where}: {fault}")
    return Head(number, digest, str(signed_at))


def _replace(path: Path, content: bytes) -> None:
    """Write beside and rename, so that a reader sees the old head or the new one, never half."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
