"""Moments as the shop writes them: RFC 3339, UTC, microseconds, so that text order is time order."""

import re
from datetime import UTC, datetime, timedelta

RELATIVE = re.compile(r"([+-])(\d{1,6})([dhms])")
UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


def now() -> datetime:
    """The present moment, in UTC."""
    return datetime.now(UTC)


def to_text(moment: datetime) -> str:
    """Write a moment as the API and the database do, for example 2026-03-01T09:30:00.000000Z."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def from_text(text: str) -> datetime:
    """Read an RFC 3339 moment. Raises ValueError when it is none, or names no time zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time needs a zone, for example 2026-03-01T09:30:00Z")
    return moment.astimezone(UTC)


def from_catalogue(text: str, *, at: datetime) -> datetime:
    """Read a moment of a catalogue: RFC 3339, or relative to `at` ("now", "-5d", "+90m").

    Raises ValueError when it is neither.
    """
    if text == "now":
        return at
    relative = RELATIVE.fullmatch(text)
    if relative is None:
        return from_text(text)
    sign, count, unit = relative.groups()
    delta = timedelta(**{UNITS[unit]: int(count)})
    return at + delta if sign == "+" else at - delta
