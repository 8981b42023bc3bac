"""How an event is written in an export: one row, the same in JSON lines, CSV and Parquet."""

import json
from dataclasses import dataclass

from audit.canonical import NotCanonicalError, canonical_json
from audit.models import Event
from audit.verify_export import COLUMNS, csv_line, csv_row

__all__ = ["COLUMNS", "NO_WORDS", "Row", "Words", "csv_head", "row_of"]


@dataclass(frozen=True)
class Words:
    """A person's words beside an event, or the mark that stands in their place.

    state: `redacted`, `erased`, `missing`, `unreadable` or `shown`; None when there were none.
    nonce: hex, proves shown words against the event's personal_digest.
    """

    state: str | None = None
    text: str | None = None
    nonce: str | None = None


NO_WORDS = Words()


@dataclass(frozen=True)
class Row:
    """One event as every form shows it."""

    values: dict[str, object]  # by COLUMNS

    def jsonl(self) -> bytes:
        """The row as RFC 8785 and a line feed: exact."""
        return _json(self.values) + b"\n"

    def csv(self) -> bytes:
        """The row as RFC 4180, every text inert."""
        return csv_row(self.values, self.data())

    def data(self) -> str:
        """The event's data as canonical JSON text."""
        return _json(self.values["data"]).decode()


def row_of(event: Event, *, seal: int | None, words: Words) -> Row:
    """The event as a row; `seal` is the number of the seal that holds it."""
    return Row(
        {
            "id": event.pk,
            **event.content(),
            "digest": bytes(event.digest).hex(),
            "seal": seal,
            "personal": words.state,
            "personal_text": words.text,
            "personal_nonce": words.nonce,
        }
    )


def csv_head() -> bytes:
    return csv_line(COLUMNS)


def _json(value: object) -> bytes:
    try:
        return canonical_json(value)
    except NotCanonicalError:
        # Only a row changed by hand is not canonical; the export shows it and the verifier names it.
        return json.dumps(value, sort_keys=True).encode()
