"""The sealer: chains committed events in signed batches.

Events take no shared lock when they are recorded; this one process does the chaining behind them.
It takes what the outbox shows as committed, so that a row of a transaction still in flight is neither
waited for nor passed over: it goes into a later seal.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError, connection, transaction
from django.utils import timezone

from audit.canonical import GENESIS, SealContent, merkle_root, seal_digest
from audit.heads import HeadConflictError, HeadFileError, publish_newest
from audit.keys import Signer, get_signer
from audit.models import Seal

logger = logging.getLogger(__name__)

BATCH = 5_000
LONGEST_PAUSE = 30.0  # seconds between attempts while the database is away
PUBLISH_AGAIN = 30.0  # seconds between attempts while the head cannot be published
# Any constant will do, as long as nothing else in this database locks it.
ADVISORY_LOCK = 0x0A0D_17_5EA1

# An event that is gone from under its outbox row stays there, for the verifier to name.
_TAKE = """
    DELETE FROM audit_unsealed AS waiting
    USING (
        SELECT event.id, event.digest
        FROM audit_unsealed JOIN audit_event AS event ON event.id = audit_unsealed.event_id
        ORDER BY event.id LIMIT %s
    ) AS taken
    WHERE waiting.event_id = taken.id
    RETURNING taken.id, taken.digest
"""


def seal_once(now: datetime | None = None) -> Seal | None:
    """Seal the oldest waiting events, at most BATCH, in a transaction of its own.

    None when there is nothing to seal or another sealer is at it. Safe to call from anywhere and any
    number of times at once: an advisory lock lets one through, and `unique(previous)` forbids a fork.
    Raises RuntimeError inside a transaction, ImproperlyConfigured when SEAL_KEY is unusable.
    """
    signer = get_signer()
    with transaction.atomic(durable=True):
        if not _lock():
            return None
        taken = _take()
        if not taken:
            return None
        newest = Seal.objects.order_by("-id").first()
        seal = _make(newest, taken, signer, now or timezone.now())
        Seal.objects.bulk_create([seal])
    return seal


def run(wait: Callable[[float], bool], *, interval: float = 1.0) -> None:
    """Seal every `interval` seconds; full batches follow each other at once.

    Returns when `wait(seconds)` returns True (`threading.Event.wait` fits). Outlives the database:
    while it is away, tries again after longer and longer pauses. A head that could not be published
    is tried again after each seal, and every half a minute while there is none.
    """
    failures = 0
    unpublished_for: float | None = PUBLISH_AGAIN
    pause = 0.0
    while not wait(pause):
        try:
            seal = seal_once()
            if unpublished_for is not None:
                unpublished_for += pause
            is_due = unpublished_for is not None and unpublished_for >= PUBLISH_AGAIN
            if seal is not None or is_due:
                unpublished_for = None if publish() else 0.0
            failures = 0
            pause = 0.0 if seal is not None and seal.count == BATCH else interval
        except (OperationalError, InterfaceError, InternalError) as exc:
            connection.close()
            pause = min(interval * 2**failures, LONGEST_PAUSE)
            failures = min(failures + 1, 16)
            logger.warning("The sealer lost the database; trying again in %.1f s: %s", pause, exc)


def publish() -> bool:
    """Publish the newest head where SEAL_HEAD_FILE says, if it says; what prevents it is logged.

    False when it was not published. Sealing goes on without: a chain that cannot be published is
    better than none.
    """
    path = getattr(settings, "SEAL_HEAD_FILE", "")
    if not path:
        return True
    try:
        publish_newest(Path(path))
    except (HeadConflictError, HeadFileError) as exc:
        logger.critical("The trail's head was not published: %s", exc)
    except OSError as exc:
        logger.error("The trail's head was not published: %s", exc)  # noqa: TRY400 - no traceback needed
    else:
        return True
    return False


def _lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [ADVISORY_LOCK])
        return bool(cursor.fetchone()[0])


def _take() -> list[tuple[int, bytes]]:
    """Id and digest of the events now taken from the outbox, by id."""
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [BATCH])
        return sorted((event_id, bytes(digest)) for event_id, digest in cursor.fetchall())


def _make(
    newest: Seal | None, taken: list[tuple[int, bytes]], signer: Signer, now: datetime
) -> Seal:
    leaves = [digest for _, digest in taken]
    content = SealContent(
        number=1 if newest is None else newest.pk + 1,
        previous=GENESIS if newest is None else bytes(newest.digest),
        event_ids=[event_id for event_id, _ in taken],
        root=merkle_root(leaves),
        signed_at=now,
        key_id=signer.key_id,
    )
    digest = seal_digest(content.document())
    return Seal(
        id=content.number,
        previous=content.previous,
        event_ids=content.event_ids,
        leaves=b"".join(leaves),
        count=len(leaves),
        root=content.root,
        signed_at=content.signed_at,
        key_id=content.key_id,
        signature=signer.sign(digest),
        digest=digest,
    )
