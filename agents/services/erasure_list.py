"""The list of erasures, kept outside the database, so that a restored backup can be told of them.

A file of JSON lines that only grows: which customer of which shop, and when. It names people by the
shop's numbers alone. A line that stands there twice says the same thing twice.
"""

import json
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from accounts import keeping
from accounts.models import Customer, Erasure, ErasureCause
from agents.services.erasure import erase_customer

FORMAT = "countersign.erasure/1"
Whom = tuple[str, str]  # the shop's short name, and its number for the customer

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Replay:
    """What came of a list: how many were erased anew, and what is left to people."""

    erased: int
    waiting: int  # under way or on hold; on record where possible
    unreadable: list[int]  # numbers of lines that are none of ours


_looked_at: dict[Path, tuple[int, int]] = {}


def line_of(erasure: Erasure) -> str:
    """The line of an erasure that is done, with its shop and customer at hand."""
    if erasure.done_at is None:
        raise ValueError(f"{erasure} is not done")
    return json.dumps(
        {
            "format": FORMAT,
            "shop": erasure.shop.slug,
            "customer": erasure.customer.external_id,
            "done_at": erasure.done_at.isoformat(),
        }
    )


def keep_list(*, now: datetime) -> None:
    """Write what is new to the configured list, and erase anew what only the list knows of."""
    if not settings.ERASURE_LIST_FILE:
        return
    path = Path(settings.ERASURE_LIST_FILE)
    _catch_up(path, now)
    publish(path, now=now)


@transaction.atomic
def publish(path: Path, *, now: datetime, limit: int = 1000) -> int:
    """Add the erasures that are not on the list yet. Returns how many.

    The line is on the disk before the row says so: after a crash in between it is written twice.
    """
    unlisted = list(
        Erasure.objects.select_for_update(of=("self",), skip_locked=True)
        .select_related("shop", "customer")
        .filter(ticket_id=None, done_at__isnull=False, listed_at=None)
        .order_by("pk")[:limit]
    )
    if unlisted:
        _append(path, [line_of(erasure) for erasure in unlisted])
        Erasure.objects.filter(pk__in=[one.pk for one in unlisted]).update(listed_at=now)
    return len(unlisted)


def replay(lines: Iterable[str], *, now: datetime) -> Replay:
    """Erase again whoever the list has erased and this database has not, or not since.

    Never inside a transaction. Whoever this database does not know has nothing here to erase.
    """
    listed, unreadable = _read(lines)
    known = _erased_here({shop for shop, _ in listed})
    erased = waiting = 0
    for (shop, customer), done_at in listed.items():
        before = known.get((shop, customer))
        if before is not None and before >= done_at:
            continue
        found = Customer.objects.filter(shop__slug=shop, external_id=customer).first()
        if found is None:
            continue
        if _erase(found, now):
            erased += 1
        else:
            waiting += 1
    return Replay(erased, waiting, unreadable)


def _erase(customer: Customer, now: datetime) -> bool:
    try:
        erasure = erase_customer(
            customer_id=customer.pk, cause=ErasureCause.REPLAY, by="system", now=now
        )
    except keeping.HeldError:
        logger.warning("customer %s is on hold; the erasure on the list waits", customer.pk)
        return False
    return erasure.done_at is not None


def _catch_up(path: Path, now: datetime) -> None:
    """Replay the list when it has changed since this process last looked, or was never looked at."""
    try:
        state = path.stat()
    except FileNotFoundError:
        return
    seen = (state.st_mtime_ns, state.st_size)
    if _looked_at.get(path) == seen:
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        came = replay(lines, now=now)
    if came.erased or came.waiting:
        logger.warning(
            "The list knew of more erasures than the database: %s done again, %s wait",
            came.erased,
            came.waiting,
        )
    if came.unreadable:
        logger.error("Lines of the list of erasures cannot be read: %s", came.unreadable[:20])
    if not came.waiting:
        _looked_at[path] = seen


def _read(lines: Iterable[str]) -> tuple[dict[Whom, datetime], list[int]]:
    """The latest moment for each customer, and the numbers of lines that say nothing."""
    latest: dict[Whom, datetime] = {}
    unreadable = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            whom, done_at = _parse(line)
        except (ValueError, KeyError, TypeError):
            unreadable.append(number)
            continue
        latest[whom] = max(done_at, latest.get(whom, done_at))
    return latest, unreadable


def _parse(line: str) -> tuple[Whom, datetime]:
    """Whom a line is about, and when. Raises ValueError, KeyError or TypeError for anything else."""
    told = json.loads(line)
    whom = (str(told["shop"]), str(told["customer"]))
    done_at = datetime.fromisoformat(told["done_at"])
    if told["format"] != FORMAT or done_at.tzinfo is None or "\0" in "".join(whom):
        raise ValueError(FORMAT)
    return whom, done_at


def _erased_here(shops: set[str]) -> dict[Whom, datetime]:
    done = Erasure.objects.filter(shop__slug__in=shops, ticket_id=None, done_at__isnull=False)
    rows = done.values_list("shop__slug", "customer__external_id").annotate(at=Max("done_at"))
    return {(shop, customer): at for shop, customer, at in rows.order_by()}


def _append(path: Path, lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines).encode()
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            text = b"\n" + text  # what a crash cut off stays a line of its own
        os.write(descriptor, text)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
