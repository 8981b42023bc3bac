"""Exports for auditors: CSV for people's spreadsheets, JSON lines for exact reading.

Both stream: memory holds one page, whatever the size. A page is one short query for the ids after the
last page's, up to the newest id at the start; so no transaction and no connection is held while a slow
reader takes its time, and the trail being append-only, nothing read can change on the way.
"""

import csv
import hashlib
import io
import json
import re
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Sequence
from datetime import datetime
from uuid import uuid4

from asgiref.sync import sync_to_async
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from audit import services
from audit.canonical import NotCanonicalError, canonical_json
from audit.models import Event
from audit.selectors import EventFilter, filter_events

__all__ = ["EventFilter", "filter_events", "stream_async", "stream_csv", "stream_jsonl"]

PAGE = 1_000
COLUMNS = (
    "id", "at", "shop_id", "actor", "action", "subject", "task_id", "ticket_id", "customer", "order_id",
    "tool", "outcome", "amount", "currency", "data", "personal_digest", "digest",
)  # fmt: skip

# A spreadsheet takes a cell as a formula when it begins so, after blanks it drops; and where its own
# separator is `;`, `|` or TAB, or a line break splits the cell, also in the middle.
_BLANKS = "\x00\ufeff\u200b\u200c\u200d\u2060"
_FORMULA = re.compile(
    rf"(^|[;|\t\r\n])((?:[^\S\t\r\n]|[{_BLANKS}\"'])*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])"
)
_CONTROL_FIRST = re.compile(r"^[\t\r\n]")

Clock = Callable[[], datetime]
Format = Callable[[Sequence[Event]], bytes]


def stream_csv(
    event_filter: EventFilter, *, actor: str, clock: Clock = timezone.now
) -> Iterator[bytes]:
    """The matching events, oldest first, as CSV (RFC 4180, UTF-8, a header line, every text inert).

    The trail records `export.started` before the first byte, and then `export.created` with count and
    SHA-256 of all bytes, or `export.aborted` when the reader went away.
    """
    return _stream(event_filter, "csv", _csv([COLUMNS]), _csv_page, actor, clock)


def stream_jsonl(
    event_filter: EventFilter, *, actor: str, clock: Clock = timezone.now
) -> Iterator[bytes]:
    """The matching events, oldest first, one RFC 8785 object a line, exact. Recorded as stream_csv is."""
    return _stream(event_filter, "jsonl", b"", _jsonl_page, actor, clock)


async def stream_async(chunks: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The same chunks for an ASGI response, which would otherwise gather them all in memory first."""
    step = sync_to_async(lambda: next(chunks, None))
    try:
        while (chunk := await step()) is not None:
            yield chunk
    finally:
        if isinstance(chunks, Generator):
            await sync_to_async(chunks.close)()


def inert(text: str) -> str:
    """The text with a `'` before whatever a spreadsheet would take for a formula."""
    guarded = _FORMULA.sub(r"\1'\2", text)
    return f"'{guarded}" if _CONTROL_FIRST.match(guarded) else guarded


def _stream(
    event_filter: EventFilter, form: str, head: bytes, write: Format, actor: str, clock: Clock
) -> Iterator[bytes]:
    newest = filter_events(event_filter).aggregate(newest=Max("id"))["newest"] or 0
    journal = _Journal(event_filter, form, actor, clock)
    journal.write("export.started", "")
    checksum = hashlib.sha256()
    count = 0
    try:
        if head:
            checksum.update(head)
            yield head
        for page in _pages(event_filter, newest):
            chunk = write(page)
            checksum.update(chunk)
            count += len(page)
            yield chunk
    except BaseException:  # a reader that went away (GeneratorExit) as much as a fault
        journal.write("export.aborted", "failed", count=count)
        raise
    journal.write("export.created", "succeeded", count=count, sha256=checksum.hexdigest())


def _pages(event_filter: EventFilter, newest: int) -> Iterator[list[Event]]:
    events = filter_events(event_filter).filter(id__lte=newest).order_by("id")
    last = 0
    while page := list(events.filter(id__gt=last)[:PAGE]):
        yield page
        last = page[-1].pk


class _Journal:
    """Writes what happens to one export into the trail."""

    def __init__(self, event_filter: EventFilter, form: str, actor: str, clock: Clock) -> None:
        self.filter = event_filter
        self.form = form
        self.actor = actor
        self.clock = clock
        self.subject = f"export:{uuid4()}"

    def write(self, action: str, outcome: str, **facts: object) -> None:
        with transaction.atomic():
            services.record(
                actor=self.actor,
                action=action,
                subject=self.subject,
                at=self.clock(),
                shop_id=self.filter.shop_id,
                outcome=outcome,
                data={"format": self.form, "filter": self.filter.describe(), **facts},
            )


def _csv(rows: Iterable[Sequence[object]]) -> bytes:
    lines = io.StringIO()
    csv.writer(lines, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
    return lines.getvalue().encode()


def _csv_page(events: Sequence[Event]) -> bytes:
    return _csv([_cell(value) for value in _values(event).values()] for event in events)


def _cell(value: object) -> object:
    """Numbers are ours and stay numbers; whatever is text is made inert."""
    if value is None or isinstance(value, int):
        return value
    return inert(value if isinstance(value, str) else _json(value))


def _jsonl_page(events: Sequence[Event]) -> bytes:
    return "".join(f"{_json(_values(event))}\n" for event in events).encode()


def _values(event: Event) -> dict[str, object]:
    """The event's columns in the order of COLUMNS."""
    content = {"id": event.pk, **event.content(), "digest": bytes(event.digest).hex()}
    return {name: content[name] for name in COLUMNS}


def _json(value: object) -> str:
    try:
        return canonical_json(value).decode()
    except NotCanonicalError:
        # Only a row changed by hand is not canonical; the export shows it and the verifier names it.
        return json.dumps(value, sort_keys=True)
