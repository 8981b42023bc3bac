"""Checks the whole trail against itself and against heads published elsewhere.

Streams: memory is bounded by one seal's ids and one chunk of its events, whatever the trail's length.
Everything is read from one snapshot, so a trail that is being written is judged at one instant.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TypeVar

from django.db import DataError, connection, transaction
from django.db.models import Count, Manager, Min, Model
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
SEAL_CHUNK = 20
MAX_FAULTS = 20
LATEST = datetime(9999, 12, 31, tzinfo=UTC)
UNREADABLE = "its content cannot be read"

T = TypeVar("T")
M = TypeVar("M", bound=Model)

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
        numbers = Seal.objects.order_by("id").values_list("id", flat=True)
        for batch in _batches(numbers.iterator(chunk_size=CHUNK), SEAL_CHUNK):
            seals = _read(Seal.objects, batch)
            for number in batch:
                seal = seals.get(number)
                if number != expected:
                    yield Fault(_range(expected, number - 1), "missing from the chain")
                if seal is None:
                    yield Fault(f"seal {number}", UNREADABLE)
                    expected, previous = number + 1, b""
                    continue
                if number == expected and bytes(seal.previous) != previous and previous:
                    yield Fault(f"seal {number}", "does not continue the seal before it")
                yield from self._seal(seal)
                expected, previous = number + 1, bytes(seal.digest)
                self.report.seals += 1
                self.report.sealed += len(seal.event_ids)
                self.report.newest = seal
                self.progress(self.report)

    def _seal(self, seal: Seal) -> Iterator[Fault]:
        where = f"seal {seal.pk}"
        if not all(isinstance(event_id, int) for event_id in seal.event_ids):
            yield Fault(where, UNREADABLE)
            return
        leaves = _leaves(seal)
        if len(leaves) != len(seal.event_ids) or len(leaves) != seal.count or not leaves:
            yield Fault(where, "its count, its ids and its leaves disagree")
        elif merkle_root(leaves) != bytes(seal.root):
            yield Fault(where, "its leaves do not make its root")
        try:
            digest = seal_digest(seal.content().document())
        except (NotCanonicalError, OverflowError):
            digest = b""
        if digest != bytes(seal.digest):
            yield Fault(where, "its content does not match its digest")
        signature = self.keyring.fault(seal.key_id, bytes(seal.signature), bytes(seal.digest))
        if signature:
            yield Fault(where, signature)
        if seal.pk >= self.first_seal:
            for batch in _batches(zip(seal.event_ids, leaves, strict=False), CHUNK):
                yield from self._events(dict(batch), f"missing, though seal {seal.pk} holds it")

    def _waiting(self) -> Iterator[Fault]:
        ids = Unsealed.objects.order_by("event_id").values_list("event_id", flat=True)
        for batch in _batches(ids.iterator(chunk_size=CHUNK), CHUNK):
            yield from self._events(dict.fromkeys(batch), "missing, though it waits for its seal")
        waiting = Event.objects.filter(pk__in=Unsealed.objects.values("event_id"))
        oldest = waiting.filter(at__lt=LATEST).aggregate(count=Count("*"), since=Min("at"))
        self.report.unsealed, self.report.unsealed_since = oldest["count"], oldest["since"]

    def _events(self, leaves: dict[int, bytes | None], if_missing: str) -> Iterator[Fault]:
        """Check these events, by id, each against the leaf that its seal holds when it has one."""
        events = _read(Event.objects, leaves)
        personal = self.personal.check(events.values())
        for event_id, leaf in leaves.items():
            event = events.get(event_id)
            if event is None:
                there = Event.objects.filter(pk=event_id).exists()
                yield Fault(f"event {event_id}", UNREADABLE if there else if_missing)
                continue
            what = _event_fault(event, leaf) or personal.get(event_id)
            if what:
                yield Fault(_name(event), what)

    def _membership(self) -> Iterator[Fault]:
        for event_id, places in _rows(_MEMBERSHIP):
            what = (
                "it is in no seal and does not wait for one: it did not come through the trail"
                if places == 0
                else f"it is sealed or awaits its seal {places} times"
            )
            event = _read(Event.objects, [event_id]).get(event_id)
            yield Fault(f"event {event_id}" if event is None else _name(event), what)


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


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _read(manager: Manager[M], ids: Iterable[int]) -> dict[int, M]:
    """The rows by id, without those that cannot be read: a time set to infinity stops the whole query."""
    wanted = list(ids)
    try:
        return manager.in_bulk(wanted)
    except DataError:
        rows: dict[int, M] = {}
        for one in wanted:
            with suppress(DataError):
                rows |= manager.in_bulk([one])
        return rows


def _leaves(seal: Seal) -> list[bytes]:
    joined = bytes(seal.leaves)
    return [joined[at : at + DIGEST_BYTES] for at in range(0, len(joined), DIGEST_BYTES)]


def _range(first: int, last: int) -> str:
    return f"seal {first}" if first == last else f"seals {first} to {last}"


def _name(event: Event) -> str:
    return f"event {event.pk} ({event.action}, {event.at.date().isoformat()})"
