"""The trail as of one moment, read in the chain's order with bounded memory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, connections, transaction
from django.db.models import Min, QuerySet

from audit.canonical import DIGEST_BYTES
from audit.models import Event, PersonalText, Seal, Unsealed
from audit.personal_text import PersonalTextError, open_with_nonce
from audit.selectors import CLOCKS_DIFFER, EventFilter, filter_events
from audit.shapes import NO_WORDS, Row, Words, row_of

ALIAS = "audit_snapshot"
TOGETHER = 2_000  # events read with one query
SEALS_TOGETHER = 20
# While a file is written nothing is asked of the database; no lock is held, only old rows are kept.
IDLE = "5min"


@dataclass(frozen=True)
class SealedRows:
    """A seal, and those of its events that are asked for: each row with its place in the seal."""

    seal: Seal
    leaves: Sequence[bytes]
    rows: list[tuple[int, Row]]


@dataclass(frozen=True)
class Totals:
    """What there is to read."""

    taken_at: datetime
    count: int
    unsealed: int
    head: Seal | None  # the newest seal


class TrailBrokenError(RuntimeError):
    """The trail itself does not hold, so no export of it can; `audit_verify` says where."""


@contextmanager
def snapshot() -> Iterator["Snapshot"]:
    """A connection of its own to one REPEATABLE READ, read-only snapshot, gone with the block.

    What the caller writes meanwhile, on the usual connection, commits by itself.
    """
    own = connection.copy(ALIAS)
    options = dict(own.settings_dict.get("OPTIONS") or {})
    options.pop("pool", None)
    own.settings_dict["OPTIONS"] = options
    connections[ALIAS] = own
    try:
        with transaction.atomic(using=ALIAS):
            with own.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                cursor.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{IDLE}'")
                cursor.execute("SELECT clock_timestamp()")
                taken_at = cursor.fetchone()[0]
            yield Snapshot(taken_at)
    finally:
        own.close()
        del connections[ALIAS]


class Snapshot:
    """Reads of one moment. Only inside `snapshot()`."""

    def __init__(self, taken_at: datetime) -> None:
        self.taken_at = taken_at

    def totals(self, wanted: EventFilter) -> Totals:
        return Totals(
            taken_at=self.taken_at,
            count=self._matching(wanted).count(),
            unsealed=self._waiting(wanted).count(),
            head=Seal.objects.using(ALIAS).defer("leaves").order_by("-id").first(),
        )

    def sealed(
        self, wanted: EventFilter, totals: Totals, *, every_seal: bool, with_words: bool
    ) -> Iterator[SealedRows]:
        """The seals in order, each with its matching rows: all seals, or only those that have some.

        The newest seal comes in any case, last. Raises TrailBrokenError when a matching event is in no
        seal or in two.
        """
        left = totals.count - totals.unsealed
        last = None
        for batch in self._batches(self._seals(wanted, totals, every_seal=every_seal)):
            rows = self._rows(wanted, batch, with_words=with_words)
            for one in batch:
                found = [
                    (place, rows[event_id])
                    for place, event_id in enumerate(one.event_ids)
                    if event_id in rows
                ]
                left -= len(found)
                if found or every_seal:
                    last = one.pk
                    yield SealedRows(one, _leaves(one), found)
            if left <= 0 and not every_seal:
                break
        if left:
            raise TrailBrokenError(f"{abs(left):,} events are not in exactly one seal")
        if totals.head is not None and totals.head.pk != last:
            yield SealedRows(totals.head, [], [])

    def waiting(self, wanted: EventFilter, *, with_words: bool) -> Iterator[list[Row]]:
        """The matching rows that no seal holds yet, by id."""
        events = self._waiting(wanted).order_by("id").iterator(chunk_size=TOGETHER)
        batch: list[Event] = []
        for event in events:
            batch.append(event)
            if len(batch) == TOGETHER:
                yield self._written(batch, {}, with_words=with_words)
                batch = []
        if batch:
            yield self._written(batch, {}, with_words=with_words)

    def _matching(self, wanted: EventFilter) -> QuerySet[Event]:
        return filter_events(wanted).using(ALIAS)

    def _waiting(self, wanted: EventFilter) -> QuerySet[Event]:
        return self._matching(wanted).filter(
            pk__in=Unsealed.objects.using(ALIAS).values("event_id")
        )

    def _seals(self, wanted: EventFilter, totals: Totals, *, every_seal: bool) -> Iterator[Seal]:
        seals = Seal.objects.using(ALIAS).order_by("id")
        if not every_seal:
            oldest = self._matching(wanted).aggregate(at=Min("at"))["at"]
            if oldest is None:
                return iter(())
            # An event is sealed after it happened, give or take what clocks differ.
            seals = seals.filter(signed_at__gte=oldest - CLOCKS_DIFFER)
        return seals.iterator(chunk_size=SEALS_TOGETHER)

    def _batches(self, seals: Iterator[Seal]) -> Iterator[list[Seal]]:
        """Seals together that hold about TOGETHER events."""
        batch: list[Seal] = []
        size = 0
        for one in seals:
            batch.append(one)
            size += one.count
            if size >= TOGETHER:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _rows(
        self, wanted: EventFilter, batch: Sequence[Seal], *, with_words: bool
    ) -> dict[int, Row]:
        """The matching events of these seals as rows, by id."""
        holders = {event_id: one.pk for one in batch for event_id in one.event_ids}
        events = list(self._matching(wanted).filter(pk__in=list(holders)))
        rows = self._written(events, holders, with_words=with_words)
        return {event.pk: row for event, row in zip(events, rows, strict=True)}

    def _written(
        self, events: Sequence[Event], holders: dict[int, int], *, with_words: bool
    ) -> list[Row]:
        words = _words_of(events, with_words=with_words)
        return [
            row_of(event, seal=holders.get(event.pk), words=words.get(event.pk, NO_WORDS))
            for event in events
        ]


def _words_of(events: Sequence[Event], *, with_words: bool) -> dict[int, Words]:
    """The words of these events, or the mark that stands for them, by event id."""
    spoken = {event.pk: event for event in events if event.personal_digest is not None}
    if not spoken:
        return {}
    texts = PersonalText.objects.using(ALIAS).select_related("key").in_bulk(list(spoken))
    return {
        event_id: _words(event, texts.get(event_id), with_words=with_words)
        for event_id, event in spoken.items()
    }


def _words(event: Event, text: PersonalText | None, *, with_words: bool) -> Words:
    if text is None:
        return Words("missing")
    if text.key.destroyed_at is not None or not text.ciphertext:
        return Words("erased")
    if not with_words:
        return Words("redacted")
    try:
        found = open_with_nonce(text, event.personal_digest)
    except PersonalTextError:
        return Words("unreadable")
    if found is None:
        return Words("erased")
    nonce, shown = found
    try:
        shown.encode()
    except UnicodeEncodeError:
        # Half a surrogate pair has no UTF-8, so what can be shown of it proves nothing.
        return Words("shown", shown.encode("utf-8", "replace").decode())
    return Words("shown", shown, nonce.hex())


def _leaves(seal: Seal) -> list[bytes]:
    joined = bytes(seal.leaves)
    return [joined[at : at + DIGEST_BYTES] for at in range(0, len(joined), DIGEST_BYTES)]
