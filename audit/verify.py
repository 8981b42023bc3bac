"""Checks the whole trail against itself and against heads published elsewhere.

Streams: memory is bounded by one seal's ids and one chunk of its events, whatever the trail's length.
Everything is read from one snapshot, so a trail that is being written is judged at one instant.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from django.db import connection, transaction
from typing_extensions import override

from audit.canonical import (
    DIGEST_BYTES,
    GENESIS,
    NotCanonicalError,
    content_digest,
    event_digest,
    merkle_root,
    seal_digest,
)
from audit.heads import Head
from audit.keys import Keyring
from audit.models import Event, Seal, Unsealed
from audit.verify_personal import PersonalChecker

CHUNK = 1_000
MAX_FAULTS = 20

# Each event is in one seal or waits for one: never both, never twice, never neither.
_MEMBERSHIP = """
    WITH member AS (
        SELECT unnest(event_ids) AS event_id FROM audit_seal
        UNION ALL SELECT event_id FROM audit_unsealed
    ), counted AS (SELECT event_id, count(*) AS places FROM member GROUP BY event_id)
    SELECT event.id, coalesce(counted.places, 0)
    FROM audit_event AS event LEFT JOIN counted ON counted.event_id = event.id
    WHERE counted.places IS DISTINCT FROM 1
    ORDER BY event.id LIMIT %s
"""
_WAITING_WITHOUT_EVENT = """
    SELECT event_id FROM audit_unsealed
    WHERE NOT EXISTS (SELECT FROM audit_event WHERE audit_event.id = event_id)
    ORDER BY event_id LIMIT %s
"""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: which row, and what about it."""

    where: str
    what: str

    @override
    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass
class Report:
    """What was checked and what is wrong, first in the trail first; at most MAX_FAULTS faults."""

    seals: int = 0
    sealed: int = 0
    unsealed: int = 0
    unsealed_since: datetime | None = None
    erased: int = 0
    newest: Seal | None = None
    heads: int = 0
    faults: list[Fault] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.faults


def verify(
    *,
    heads: Iterable[Head] = (),
    first_seal: int = 1,
    progress: Callable[[Report], None] = lambda _: None,
) -> Report:
    """Check every seal, signature, event and personal text, and that each event is sealed once.

    heads: published heads that must be in the chain. first_seal: the seals before it are checked, but
    their events are not read again. progress: called after each seal. Raises what the database raises,
    ImproperlyConfigured, and heads.HeadFileError from reading `heads`.
    """
    report = Report()
    checker = _Checker(report, first_seal, progress)
    with _snapshot():
        for fault in checker.faults(heads):
            report.faults.append(fault)
            if len(report.faults) >= MAX_FAULTS:
                break
    return report


@contextmanager
def _snapshot() -> Iterator[None]:
    """One REPEATABLE READ snapshot, read only; a caller's own transaction is taken as it is."""
    nested = connection.in_atomic_block
    with transaction.atomic():
        if not nested:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


class _Checker:
    """Walks the trail once and yields what is wrong, filling the report on the way."""

    def __init__(self, report: Report, first_seal: int, progress: Callable[[Report], None]) -> None:
        self.report = report
        self.first_seal = first_seal
        self.progress = progress
        self.keyring = Keyring()
        self.personal = PersonalChecker()

    def faults(self, heads: Iterable[Head]) -> Iterator[Fault]:
        yield from self._chain()
        yield from self._waiting()
        yield from self._membership()
        yield from (Fault(*found) for found in self.personal.orphans(MAX_FAULTS))
        for head in heads:
            self.report.heads += 1
            yield from _check_head(head)
        self.report.erased = self.personal.erased

    def _chain(self) -> Iterator[Fault]:
        expected, previous = 1, GENESIS
        for seal in Seal.objects.order_by("id").iterator(chunk_size=20):
            if seal.pk != expected:
                yield Fault(_range(expected, seal.pk - 1), "missing from the chain")
            elif bytes(seal.previous) != previous:
                yield Fault(f"seal {seal.pk}", "does not continue the seal before it")
            yield from self._seal(seal)
            if seal.pk >= self.first_seal:
                yield from self._members(seal)
            expected, previous = seal.pk + 1, bytes(seal.digest)
            self.report.seals += 1
            self.report.sealed += len(seal.event_ids)
            self.report.newest = seal
            self.progress(self.report)

    def _seal(self, seal: Seal) -> Iterator[Fault]:
        leaves = _leaves(seal)
        if len(leaves) != len(seal.event_ids) or len(leaves) != seal.count or not leaves:
            yield Fault(f"seal {seal.pk}", "its count, its ids and its leaves disagree")
        elif merkle_root(leaves) != bytes(seal.root):
            yield Fault(f"seal {seal.pk}", "its leaves do not make its root")
        try:
            digest = seal_digest(seal.content().document())
        except (NotCanonicalError, OverflowError):
            digest = b""
        if digest != bytes(seal.digest):
            yield Fault(f"seal {seal.pk}", "its content does not match its digest")
        signature = self.keyring.fault(seal.key_id, bytes(seal.signature), bytes(seal.digest))
        if signature:
            yield Fault(f"seal {seal.pk}", signature)

    def _members(self, seal: Seal) -> Iterator[Fault]:
        leaves = _leaves(seal)
        for start in range(0, len(seal.event_ids), CHUNK):
            ids = seal.event_ids[start : start + CHUNK]
            events = Event.objects.in_bulk(ids)
            personal = self.personal.check(events.values())
            for event_id, leaf in zip(ids, leaves[start : start + CHUNK], strict=False):
                event = events.get(event_id)
                if event is None:
                    yield Fault(f"event {event_id}", f"missing, though seal {seal.pk} holds it")
                    continue
                what = _event_fault(event, leaf) or personal.get(event_id)
                if what:
                    yield Fault(_name(event), what)

    def _waiting(self) -> Iterator[Fault]:
        for (event_id,) in _rows(_WAITING_WITHOUT_EVENT):
            yield Fault(f"event {event_id}", "missing, though it waits for its seal")
        waiting = Event.objects.filter(pk__in=Unsealed.objects.values("event_id")).order_by("id")
        for events in _batches(waiting.iterator(chunk_size=CHUNK)):
            self.report.unsealed += len(events)
            oldest = min(event.at for event in events)
            since = self.report.unsealed_since
            self.report.unsealed_since = oldest if since is None else min(since, oldest)
            personal = self.personal.check(events)
            for event in events:
                what = _event_fault(event, None) or personal.get(event.pk)
                if what:
                    yield Fault(_name(event), what)

    def _membership(self) -> Iterator[Fault]:
        for event_id, places in _rows(_MEMBERSHIP):
            what = (
                "it is in no seal and does not wait for one: it did not come through the trail"
                if places == 0
                else f"it is sealed or awaits its seal {places} times"
            )
            yield Fault(_name(Event.objects.get(pk=event_id)), what)


def _event_fault(event: Event, leaf: bytes | None) -> str | None:
    """What is wrong with the row, judged by its own digest and by the leaf that its seal holds."""
    try:
        computed = event_digest(event.pk, content_digest(event.content()))
    except NotCanonicalError as exc:
        return f"its content does not match its digest ({exc})"
    stored = bytes(event.digest)
    if leaf is None or stored == leaf:
        return None if computed == stored else "its content does not match its digest"
    if computed == leaf:
        return "its digest was changed after it was sealed"
    if computed == stored:
        return "its content and digest were changed after it was sealed"
    return "its content does not match its digest, nor its digest its seal"


def _check_head(head: Head) -> Iterator[Fault]:
    seal = Seal.objects.filter(pk=head.number).only("digest").first()
    where = f"seal {head.number}"
    if seal is None:
        yield Fault(
            where, f"missing, though it was published on {head.signed_at}: the tail was cut"
        )
    elif bytes(seal.digest) != head.digest:
        yield Fault(where, f"not the one published on {head.signed_at}: the chain was rewritten")


def _rows(query: str) -> list[tuple[int, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, [MAX_FAULTS])
        return list(cursor.fetchall())


def _batches(events: Iterator[Event]) -> Iterator[list[Event]]:
    while batch := list(islice(events, CHUNK)):
        yield batch


def _leaves(seal: Seal) -> list[bytes]:
    joined = bytes(seal.leaves)
    return [joined[at : at + DIGEST_BYTES] for at in range(0, len(joined), DIGEST_BYTES)]


def _range(first: int, last: int) -> str:
    return f"seal {first}" if first == last else f"seals {first} to {last}"


def _name(event: Event) -> str:
    return f"event {event.pk} ({event.action}, {event.at.date().isoformat()})"
