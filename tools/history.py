"""Has the database lost commits? From then on the shop is asked before each first send.

A failover to a replica that lagged, or a restore from a backup, takes back what was known of sends.
PostgreSQL tells: its timeline, or the identity of the whole system, is another than the one that our
own row remembers. Where it cannot be read, or where the files were simply put back, an operator says
so (`manage.py verify_before_send`).

What was approved at that moment may have been sent: it becomes `unknown` and is looked up like any
other. What comes later is asked about before its first send (first_look.py): its key may be one that
was used already, since numbers went back too.
"""

import hashlib
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import DatabaseError, connection, transaction

from accounts.models import Shop
from audit import services as audit
from tools import operations, tickets
from tools.clients.capabilities import for_provider
from tools.clock import ClockTimestamp, database_now
from tools.models import Attempt, AttemptOutcome, History, Kind, LookFirst, Operation, State
from tools.seal import BrokenSealError, open_seal, request_body

COMMITS_LOST = "commits_lost"
# How exactly it is known until when the row was there; and the least time to look first.
SEEN_EVERY = timedelta(minutes=1)
AT_LEAST = timedelta(hours=24)

logger = logging.getLogger(__name__)


class LookFirstError(Exception):
    """It cannot be switched like this; nothing was changed."""


@dataclass(frozen=True)
class Identity:
    """Which system the database is, and which of its timelines: both change by no other means."""

    system: str
    timeline: int


def is_looking_first() -> LookFirst | None:
    """The time that is on now; begun here and now if the database has lost commits.

    Never inside a transaction.
    """
    now = _look()
    if now.running is not None and now.remembered is None:
        _remember(now.running)
    elif now.running is not None and now.running != now.remembered:
        return _begin_for(now.running)
    return LookFirst.objects.get(pk=now.period) if now.period is not None else None


def still_holds(period: LookFirst | None) -> bool:
    """Is all of this still so, in the transaction that is about to commit a send?"""
    now = _look()
    if now.running is not None and now.remembered not in {now.running, None}:
        return False
    return now.period == (period.pk if period is not None else None)


def watch() -> None:
    """Look after it: note that the history goes on, begin when it does not, end what is over."""
    period = is_looking_first()
    if period is not None and period.until <= database_now():
        _end_in_time(period.pk)
    History.objects.filter(seen_at__lt=ClockTimestamp() - SEEN_EVERY).update(
        seen_at=ClockTimestamp()
    )


def begin(*, since: datetime, reason: str, by: str) -> LookFirst:
    """Look first from now on, since what was committed after `since` may be missing.

    One that is on already goes on with the earlier `since`. Raises LookFirstError for a time to come.
    """
    with transaction.atomic(durable=True):
        _lock()
        return _begin(since=since, reason=reason, by=by)


def end(*, by: str) -> None:
    """Send as usual again. Raises LookFirstError when that is so already."""
    with transaction.atomic(durable=True):
        _lock()
        period = LookFirst.objects.select_for_update().filter(is_on=True).first()
        if period is None:
            raise LookFirstError("Nothing is looked up before a first send now")
        _end(period, by, database_now())


def read_identity() -> Identity | None:
    """Which history the database is on now; None where it does not say."""
    if not _Readable.is_known():
        return None
    with connection.cursor() as cursor:
        cursor.execute(IDENTITY)
        system, timeline = cursor.fetchone()
    return Identity(system, timeline)


# The control file shows a new timeline only with the next checkpoint, the log's own name at once.
IDENTITY = """
    SELECT (SELECT system_identifier::text FROM pg_control_system()),
           ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint
"""


class _Readable:
    """Whether this database says who it is; found out once in each process."""

    found: bool | None = None

    @classmethod
    def is_known(cls) -> bool:
        if cls.found is None:
            try:
                with transaction.atomic(), connection.cursor() as cursor:
                    cursor.execute(IDENTITY)
                cls.found = True
            except DatabaseError as exc:
                if connection.connection is None or connection.connection.closed:
                    raise
                logger.warning("a failover will not be noticed by itself: %s", exc)
                cls.found = False
        return cls.found


@dataclass(frozen=True)
class _Now:
    """What our row remembers, what the database says, and the time that is on."""

    remembered: Identity | None
    running: Identity | None
    period: int | None


# In one question, since every send asks it twice.
_LOOK = """
    SELECT h.system, h.timeline, l.id, running.* FROM (SELECT 1) AS always
    LEFT JOIN tools_history h ON h.is_only LEFT JOIN tools_lookfirst l ON l.is_on
"""


def _look() -> _Now:
    running = f"({IDENTITY})" if _Readable.is_known() else "(SELECT NULL, NULL)"
    with connection.cursor() as cursor:
        cursor.execute(f"{_LOOK} CROSS JOIN {running} AS running")
        kept_system, kept_timeline, period, system, timeline = cursor.fetchone()
    return _Now(
        remembered=None if kept_system is None else Identity(kept_system, kept_timeline),
        running=None if system is None else Identity(system, timeline),
        period=period,
    )


def _remember(running: Identity) -> None:
    History.objects.bulk_create(
        [History(system=running.system, timeline=running.timeline, seen_at=database_now())],
        ignore_conflicts=True,
    )


def _lock() -> History | None:
    return History.objects.select_for_update().first()


def _begin_for(running: Identity) -> LookFirst | None:
    """Begin because of what the database says. Of many who notice at once, one does."""
    with transaction.atomic(durable=True):
        remembered = _lock()
        if remembered is None or Identity(remembered.system, remembered.timeline) == running:
            return LookFirst.objects.filter(is_on=True).first()
        reason = (
            f"timeline {remembered.timeline} became {running.timeline}"
            if remembered.system == running.system
            else "another database system holds the data"
        )
        since = remembered.seen_at
        remembered.system, remembered.timeline = running.system, running.timeline
        remembered.save(update_fields=["system", "timeline"])
        return _begin(since=since, reason=reason, by="system")


def _begin(*, since: datetime, reason: str, by: str) -> LookFirst:
    now = database_now()
    if since > now:
        raise LookFirstError("The time since which commits may be missing is still to come")
    before = LookFirst.objects.select_for_update().filter(is_on=True).first()
    if before is not None:
        since = min(since, before.since)
        _end(before, by, now)
    period = LookFirst.objects.create(
        since=since,
        started_at=now,
        until=now + _longest_memory(),
        started_by=by,
        reason=reason[:200],
    )
    doubted = _doubt_all(now)
    _record(period, "begun", by, now, {"reason": reason[:200], "doubted": doubted})
    logger.warning("commits since %s may be missing (%s): looking first", since, reason)
    return period


def _end(period: LookFirst, by: str, now: datetime) -> None:
    period.is_on, period.ended_at, period.ended_by = False, now, by
    period.save(update_fields=["is_on", "ended_at", "ended_by"])
    _record(period, "ended", by, now, {})


def _end_in_time(period_id: int) -> None:
    with transaction.atomic(durable=True):
        period = LookFirst.objects.select_for_update().filter(pk=period_id, is_on=True).first()
        if period is not None:
            _end(period, "system", database_now())


def _longest_memory() -> timedelta:
    """How long any of the shops may still know a key that we have lost."""
    windows = (
        for_provider(name).key_window_seconds
        for name in Shop.objects.values_list("provider", flat=True).distinct()
    )
    return max([AT_LEAST, *(timedelta(seconds=seconds) for seconds in windows if seconds)])


def _doubt_all(now: datetime) -> int:
    """What is approved may have been sent, and that was lost: it is unknown from here on."""
    approved = Operation.objects.filter(state=State.APPROVED).order_by("pk")
    doubted = 0
    for operation_id in list(approved.values_list("pk", flat=True)):
        operation = operations.lock(operation_id)
        if operation.state == State.APPROVED:
            _doubt(operation, now)
            doubted += 1
    return doubted


def _doubt(operation: Operation, now: datetime) -> None:
    """As if a worker had been lost in the middle of its send, no sooner than it was proposed."""
    operation.start(epoch=operation.epoch, at=operation.created_at)
    operation.save(update_fields=["state", "epoch", "first_sent_at"])
    if operation.kind == Kind.CLOSE_TICKET:
        tickets.desk().close(
            ticket_id=operation.ticket_id, closure=operation.idempotency_key, now=now
        )
    Attempt.objects.create(
        operation=operation,
        n=operation.attempts.count() + 1,
        epoch=operation.epoch,
        request_digest=_digest_of_request(operation),
        started_at=now,
        finished_at=now,
        outcome=AttemptOutcome.UNKNOWN,
        detail=COMMITS_LOST,
    )
    operation.lose_sight(reason=COMMITS_LOST)
    operation.save(update_fields=["state", "reason"])
    operations.record(operation, "unknown", actor="system", at=now, data={"detail": COMMITS_LOST})
    operations.announce(operation)


def _digest_of_request(operation: Operation) -> str:
    try:
        body = request_body(open_seal(operation.seal, operation.digest))
    except BrokenSealError:
        return ""
    return hashlib.sha256(body).hexdigest()


def _record(
    period: LookFirst, what: str, by: str, now: datetime, data: dict[str, str | int]
) -> None:
    audit.record(
        actor=by,
        action=f"look_first.{what}",
        subject=f"look_first:{period.pk}",
        at=now,
        data={"since": period.since.isoformat(), "until": period.until.isoformat(), **data},
    )
