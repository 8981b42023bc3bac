"""Exports as people ask for them, fetch them and lose them again. `export_work` makes the files.

Who asked is the only one who may fetch: an export of somebody else's is not there. Each step is on the
trail, in the transaction that makes it.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q

from audit import dispatch, services
from audit.bundle import clear
from audit.export_models import UNDER_WAY, Export, ExportState
from audit.functions import ClockTimestamp
from audit.models import Event
from audit.selectors import EventFilter

PER_SHOP = 3  # under way at once
KEPT = 5  # ready bundles of one person
# Any constant will do, as long as nothing else in this database locks it.
ADVISORY_LOCK = 0x0A0D_17_EC50
ERASURES = ("customer.erased", "texts.erased")
_FILE = re.compile(r"([0-9a-f-]{36})\.(\d+)\.(?:zip|part)")


class TooManyExportsError(RuntimeError):
    """One more export is not begun; the message says in words why. Nothing was written."""


class ReasonMissingError(ValueError):
    """An export with people's words needs a reason. Nothing was written."""


class ExportGoneError(RuntimeError):
    """The bundle cannot be fetched; the message says in words why."""


def lock() -> None:
    """One decision about exports at a time, until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ADVISORY_LOCK])


def record(export: Export, action: str, *, actor: str, at: datetime, outcome: str = "", **data: object) -> None:  # fmt: skip
    """An event about the export: who, which filter, which form, and what else is given."""
    services.record(
        actor=actor,
        action=f"export.{action}",
        subject=export.subject,
        at=at,
        shop_id=export.shop_id,
        outcome=outcome,
        data={
            "format": export.form,
            "filter": export.filter,
            "redacted": export.is_redacted,
            **({"reason": export.reason} if export.reason else {}),
            **data,
        },
    )


@transaction.atomic
def request_export(
    *,
    owner_id: int,
    actor: str,
    wanted: EventFilter,
    form: str,
    now: datetime,
    is_redacted: bool = True,
    reason: str = "",
    is_queued: bool = True,
) -> Export:
    """Ask for a bundle of the matching events; a worker makes it, or the caller if it is not queued.

    Raises TooManyExportsError while this person has one under way, or the shop PER_SHOP of them;
    ReasonMissingError.
    """
    if not is_redacted and not reason.strip():
        raise ReasonMissingError("say why people's words are needed")
    lock()
    under_way = Export.objects.filter(state__in=UNDER_WAY)
    if under_way.filter(owner_id=owner_id).exists():
        raise TooManyExportsError("You have an export under way. Wait for it, or stop it.")
    if under_way.filter(shop_id=wanted.shop_id).count() >= PER_SHOP:
        raise TooManyExportsError(
            f"{PER_SHOP} exports of this shop are under way already. Try again when one has ended."
        )
    export = Export.objects.create(
        shop_id=wanted.shop_id,
        owner_id=owner_id,
        actor=actor,
        form=form,
        filter=wanted.describe(),
        is_redacted=is_redacted,
        reason=reason.strip(),
        created_at=now,
    )
    record(export, "requested", actor=actor, at=now)
    if is_queued:
        dispatch.export(export.pk)
    return export


@transaction.atomic
def cancel(*, export_id: UUID, owner_id: int, now: datetime) -> Export:
    """Stop an export that is under way; one that has ended stays as it is.

    Raises Export.DoesNotExist for somebody else's.
    """
    lock()
    export = Export.objects.select_for_update().get(pk=export_id, owner_id=owner_id)
    if export.is_under_way:
        _end(export, ExportState.CANCELLED, now)
        record(export, "cancelled", actor=export.actor, at=now, outcome="cancelled")
    return export


def get_export(export_id: UUID, *, owner_id: int, shop_id: int | None) -> Export:
    """This person's export within the shop they now have. Raises Export.DoesNotExist."""
    return Export.objects.get(pk=export_id, owner_id=owner_id, shop_id=shop_id)


def list_exports(*, owner_id: int, shop_id: int | None, limit: int = 20) -> list[Export]:
    """This person's exports, newest first."""
    mine = Export.objects.filter(owner_id=owner_id, shop_id=shop_id)
    return list(mine.order_by("-created_at", "id")[:limit])


@transaction.atomic
def fetch(*, export_id: UUID, owner_id: int, shop_id: int | None, actor: str, now: datetime) -> Export:  # fmt: skip
    """The export, whose file may now be read; the trail records who fetched it.

    Raises Export.DoesNotExist, or ExportGoneError.
    """
    export = get_export(export_id, owner_id=owner_id, shop_id=shop_id)
    if export.state != ExportState.READY or export.expires_at is None or export.expires_at <= now:
        raise ExportGoneError("This bundle is not there any more. Export again.")
    if is_overtaken(export):
        raise ExportGoneError("Words in this bundle have since been erased. Export again.")
    if not export.path.is_file():
        raise ExportGoneError("The file is not on this server. Tell whoever runs it.")
    record(export, "downloaded", actor=actor, at=now, **_proof(export))
    return export


def is_overtaken(export: Export) -> bool:
    """Whether the bundle holds words of which some were erased after it was taken."""
    if export.is_redacted or export.snapshot_at is None:
        return False
    erasures = Event.objects.filter(action__in=ERASURES, at__gte=export.snapshot_at)
    if export.shop_id is not None:
        erasures = erasures.filter(shop_id=export.shop_id)
    return erasures.exists()


def make_room(export: Export, *, now: datetime) -> None:
    """Let go of the owner's oldest bundles beyond KEPT. Inside the transaction that finished one."""
    ready = Export.objects.filter(owner_id=export.owner_id, state=ExportState.READY)
    _expire(ready.order_by("-finished_at", "id")[KEPT:], now)


def sweep(*, now: datetime) -> None:
    """Start what a lost message or worker left behind, and remove what has had its time."""
    with transaction.atomic():
        lock()
        ready = list(Export.objects.filter(state=ExportState.READY).order_by("finished_at", "id"))
        _expire([one for one in ready if _is_over(one, now)], now)
    tidy(Path(settings.EXPORT_FOLDER))
    left = Export.objects.filter(
        Q(state=ExportState.QUEUED) | Q(state=ExportState.RUNNING, lease_until__lt=ClockTimestamp())
    )
    for export_id in left.order_by("created_at", "id").values_list("pk", flat=True)[:20]:
        dispatch.export(export_id)


def tidy(folder: Path) -> None:
    """Delete the files of exports that are neither ready nor being made by the worker that wrote them."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        named = _FILE.fullmatch(path.name)
        if named and not _is_wanted(path, named[1], int(named[2])):
            if path.is_dir():
                clear(path)
            else:
                path.unlink(missing_ok=True)


def _is_wanted(path: Path, export_id: str, epoch: int) -> bool:
    states = {ExportState.RUNNING, ExportState.READY} if path.suffix == ".zip" else {ExportState.RUNNING}  # fmt: skip
    return Export.objects.filter(pk=export_id, epoch=epoch, state__in=states).exists()


def _is_over(export: Export, now: datetime) -> bool:
    return (export.expires_at is not None and export.expires_at <= now) or is_overtaken(export)


def _expire(exports: Iterable[Export], now: datetime) -> None:
    for export in exports:
        _end(export, ExportState.EXPIRED, now)
        record(export, "expired", actor="system", at=now, **_proof(export))
        transaction.on_commit(partial(export.path.unlink, missing_ok=True))


def _end(export: Export, state: ExportState, now: datetime) -> None:
    export.state = state
    export.finished_at = export.finished_at or now
    export.save(update_fields=["state", "finished_at"])


def _proof(export: Export) -> dict[str, Any]:
    digest = export.manifest_digest
    return {"count": export.done, "manifest": bytes(digest).hex() if digest else ""}
