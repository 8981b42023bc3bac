"""Making a bundle: claim, gather, pack, sign.

Whoever makes it holds a lease and an epoch. A worker that dies leaves a row whose lease runs out; the
next one starts afresh under the next epoch, in files of its own, and the first changes nothing any
more. The row says `ready` only in the transaction that has the whole, signed file in its place.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from audit import bundle
from audit.export_models import Export, ExportState
from audit.exports import lock, make_room, record
from audit.functions import ClockTimestamp
from audit.keys import get_signer
from audit.selectors import EventFilter
from audit.snapshot import TrailBrokenError
from audit.verify_export import EVENTS

RUNNING_AT_ONCE = 2  # in the whole deployment: the rest wait
LEASE = timedelta(minutes=2)
MOST_TRIES = 3
BEAT_SECONDS = 1.0
# How the bar moves: reading is the longer part.
READ, PACKED = 80, 99

logger = logging.getLogger(__name__)


class OvertakenError(RuntimeError):
    """The export was stopped, or another worker has taken it over; this one leaves no trace."""


def run(export_id: UUID, *, clock: Callable[[], datetime] = timezone.now) -> bool:
    """Make the bundle, if it is this worker's turn; True when it is ready.

    Safe to call at any time and any number of times: one worker makes it, and what cannot be made is
    marked as failed with the reason. Raises what the database raises; the sweep then tries again.
    """
    export = claim(export_id, now=clock())
    return export is not None and make(export, clock=clock)


def make(export: Export, *, clock: Callable[[], datetime] = timezone.now) -> bool:
    """Make the bundle of an export that `claim` gave; True when it is ready. Otherwise as `run`."""
    work = export.path.with_suffix(".part")
    draft = work / "bundle.zip"
    try:
        _make(export, work, draft, clock)
    except OvertakenError:
        return False
    except TrailBrokenError as exc:
        _fail(export, f"The trail itself does not hold: {exc}. Run audit_verify.", clock())
        return False
    except OSError as exc:
        logger.exception("Export %s could not be written", export.pk)
        _fail(
            export, f"The file could not be written: {exc.strerror or 'no reason given'}.", clock()
        )
        return False
    finally:
        bundle.clear(work)
    return True


def claim(export_id: UUID, *, now: datetime) -> Export | None:
    """Take the export up under a new epoch.

    None when there is nothing to do, when another worker holds it, or when enough are being made. One
    that has been taken up MOST_TRIES times in vain is marked as failed.
    """
    with transaction.atomic():
        lock()
        alive = Q(state=ExportState.RUNNING, lease_until__gte=ClockTimestamp())
        if Export.objects.filter(alive).count() >= RUNNING_AT_ONCE:
            return None
        free = Q(state=ExportState.QUEUED) | Q(
            state=ExportState.RUNNING, lease_until__lt=ClockTimestamp()
        )
        taken = Export.objects.filter(free, pk=export_id).update(
            state=ExportState.RUNNING,
            epoch=F("epoch") + 1,
            lease_until=ClockTimestamp() + LEASE,
            done=0,
            percent=0,
        )
        if not taken:
            return None
        export = Export.objects.get(pk=export_id)
    if export.epoch > MOST_TRIES:
        _fail(export, f"It was begun {MOST_TRIES} times and never ended.", now)
        return None
    return export


def _make(export: Export, work: Path, draft: Path, clock: Callable[[], datetime]) -> None:
    work.mkdir(parents=True, exist_ok=True, mode=0o700)
    order = order_of(export)
    beat = _Beat(export)
    signer = get_signer()
    gathered = bundle.gather(order, work, started=beat.started, progress=beat.read)
    beat.size = sum(path.stat().st_size for path in work.iterdir())
    bundle.pack(gathered, draft, signer, progress=beat.packed)
    with transaction.atomic():
        lock()
        mine = Export.objects.select_for_update().filter(
            pk=export.pk, epoch=export.epoch, state=ExportState.RUNNING
        )
        held = mine.first()
        if held is None:
            raise OvertakenError
        manifest = bundle.manifest_of(order, gathered, signer, _previous(export))
        digest = bundle.sign(draft, manifest, signer, at=gathered.totals.taken_at)
        draft.replace(export.path)
        _finish(held, gathered, digest, clock())


def order_of(export: Export) -> bundle.Order:
    """What the row asks for."""
    return bundle.Order(
        export_id=str(export.pk),
        actor=export.actor,
        wanted=EventFilter.restore(export.filter, shop_id=export.shop_id),
        form=export.form,
        is_redacted=export.is_redacted,
        reason=export.reason,
    )


def _previous(export: Export) -> bytes | None:
    """The digest of the manifest that was made last for this shop (or for all shops together)."""
    made = Export.objects.filter(shop_id=export.shop_id, manifest_digest__isnull=False)
    last = made.order_by("-finished_at", "-id").first()
    return None if last is None or last.manifest_digest is None else bytes(last.manifest_digest)


def _finish(export: Export, gathered: bundle.Gathered, digest: bytes, now: datetime) -> None:
    export.state = ExportState.READY
    export.total = export.done = gathered.rows
    export.percent = 100
    export.snapshot_at = gathered.totals.taken_at
    export.finished_at = now
    export.expires_at = now + timedelta(hours=settings.EXPORT_HOURS)
    export.size = export.path.stat().st_size
    export.manifest_digest = digest
    export.save(
        update_fields=[
            *("state", "total", "done", "percent", "snapshot_at", "finished_at", "expires_at"),
            *("size", "manifest_digest"),
        ]
    )
    events = gathered.files[EVENTS]
    record(
        export,
        "created",
        actor=export.actor,
        at=now,
        outcome="succeeded",
        count=gathered.rows,
        sha256=events["sha256"],
        manifest=digest.hex(),
    )
    make_room(export, now=now)


def _fail(export: Export, why: str, now: datetime) -> None:
    """Mark it as failed, if it is still this worker's."""
    with transaction.atomic():
        failed = Export.objects.filter(
            pk=export.pk, epoch=export.epoch, state=ExportState.RUNNING
        ).update(state=ExportState.FAILED, error=why[:300], finished_at=now)
        if failed:
            record(export, "failed", actor="system", at=now, outcome="failed", error=why[:300])


class _Beat:
    """Tells the row how far it is, about once a second, and learns from it whether to go on."""

    def __init__(self, export: Export) -> None:
        self.export = export
        self.total = 0
        self.size = 1
        self._done = 0
        self._next = 0.0

    def started(self, total: int) -> None:
        self.total = total
        self._tell(total=total)

    def read(self, done: int) -> None:
        self._done = done
        self._soon(READ * done // max(self.total, 1))

    def packed(self, size: int) -> None:
        self._soon(READ + (PACKED - READ) * size // max(self.size, size, 1))

    def _soon(self, percent: int) -> None:
        if time.monotonic() >= self._next:
            self._tell(done=self._done, percent=min(percent, PACKED))

    def _tell(self, **facts: int) -> None:
        self._next = time.monotonic() + BEAT_SECONDS
        told = Export.objects.filter(
            pk=self.export.pk, epoch=self.export.epoch, state=ExportState.RUNNING
        ).update(lease_until=ClockTimestamp() + LEASE, **facts)
        if not told:
            raise OvertakenError
