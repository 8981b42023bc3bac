"""The product's own decisions over rows that are held in memory: no database, no clock, no wire.

`Desk` stands in for what sending.py and reconcile.py read and write. Their code runs unchanged: the
state machine of the row, the fields that each save names, the conditions on epoch and state.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db.models import Q

from accounts.models import Shop
from tests.exhaustive import world
from tests.exhaustive.world import Setting
from tools import execution, history, operations, reconcile, sending
from tools.clients.capabilities import Capabilities
from tools.execution import Refusal
from tools.models import FINAL, AttemptOutcome, Kind, Operation, State
from tools.outcome import Outcome

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TICK = timedelta(hours=1)

_ATTEMPTS: dict[str, tuple[str, str]] = {
    world.OPEN: ("", ""),
    world.UNKNOWN: (AttemptOutcome.UNKNOWN, "timeout"),
    world.SUCCEEDED: (AttemptOutcome.SUCCEEDED, "confirmed"),
    world.REFUSED: (AttemptOutcome.REFUSED, "order_state"),
    world.TURNED_AWAY: (AttemptOutcome.REFUSED, sending.ACCESS_REVOKED),
    world.NOT_SENT: (AttemptOutcome.NOT_SENT, "lease_too_short"),
}
OUTCOMES = {
    name: Outcome(AttemptOutcome(kind), detail, "re_1")
    for name, (kind, detail) in _ATTEMPTS.items()
    if kind
}


@dataclass
class Try:
    """A row of attempts."""

    pk: int
    outcome: str
    detail: str
    started_at: datetime
    finished_at: datetime | None


def _tried(pk: int, name: str, at: datetime) -> Try:
    outcome, detail = _ATTEMPTS[name]
    return Try(pk, outcome, detail, at, None if name == world.OPEN else at)


@dataclass
class Table:
    """Rows, with as much of a query set as the product asks for."""

    rows: list[Any] = field(default_factory=list)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def order_by(self, _: str) -> "Table":
        return self

    def filter(self, **wanted: Any) -> "Table":
        wanted.pop("operation", None)
        return Table([row for row in self.rows if _fits(row, Q(**wanted))])

    def exclude(self, unwanted: Q) -> "Table":
        return Table([row for row in self.rows if not _fits(row, unwanted)])

    def exists(self) -> bool:
        return bool(self.rows)

    def update(self, **values: Any) -> None:
        for row in self.rows:
            vars(row).update(values)

    def create(self, **values: Any) -> None:
        self.rows.append(SimpleNamespace(**values))


def _fits(row: Any, wanted: Q) -> bool:
    assert not wanted.negated
    found = (_has(row, part) for part in wanted.children)
    return any(found) if wanted.connector == Q.OR else all(found)


def _has(row: Any, part: Any) -> bool:
    if isinstance(part, Q):
        return _fits(row, part)
    lookup, value = part
    name, _, how = lookup.partition("__")
    assert how in {"", "in"}
    return getattr(row, name) in value if how else bool(getattr(row, name) == value)


class Desk:
    """One operation as stored: what a save did not name is lost, as it would be in a database."""

    def __init__(self, row: world.Operation) -> None:
        first = None if row.first_sent == world.NEVER else NOW - row.first_sent * TICK
        state = State.SUPERSEDED if row.state == world.ENDED else State(row.state)
        at = NOW - row.since_news * TICK
        self.stored: dict[str, Any] = {
            "state": state,
            "epoch": row.epoch,
            "first_sent_at": first,
            "finished_at": NOW if state in FINAL else None,
        }
        self.attempts = Table([_tried(pk, name, at) for pk, name in enumerate(row.attempts)])
        body = {"outcome": AttemptOutcome.SUCCEEDED, "reference": "re_1"}
        seen = SimpleNamespace(source=sending.STALE_WORKER, body=body)
        self.observations = Table([seen] if row.evidence else [])
        self.refusal: Refusal | None = None

    def add_unsent(self) -> None:
        """A try of long ago that certainly sent nothing."""
        self.attempts.rows.insert(0, _tried(-1, world.NOT_SENT, NOW - 9 * TICK))

    def get(self, *_: Any) -> Operation:
        shop = Shop(provider="orders_stub")
        return Operation(pk=1, shop=shop, kind=Kind.REFUND, expires_at=NOW + TICK, **self.stored)

    def save(self, row: Operation, *, update_fields: list[str]) -> None:
        self.stored |= {name: getattr(row, name) for name in update_fields}

    def new_attempt(self, *_: Any) -> Try:
        made = Try(len(self.attempts.rows), "", "", NOW, None)
        self.attempts.rows.append(made)
        return made

    def end_unsent(self, row: Operation, refusal: Refusal, now: datetime) -> Operation:
        row.supersede(reason=refusal.reason, at=now)
        row.save(update_fields=["state", "reason", "finished_at"])
        return row

    def cancel(self, *, by: str, reason: str, now: datetime, **_: Any) -> None:
        row = self.get()
        row.cancel(reason=reason, at=now)
        row.save(update_fields=["state", "reason", "finished_at"])

    def as_modelled(self, setting: Setting) -> world.Operation:
        """The stored rows in the model's terms."""
        state = self.stored["state"]
        is_unsent_end = state in {State.SUPERSEDED, State.CANCELLED, State.EXPIRED}
        first = self.stored["first_sent_at"]
        names = {value: name for name, value in _ATTEMPTS.items()}
        attempts = tuple(
            world.UNKNOWN
            if row.outcome == AttemptOutcome.UNKNOWN
            else names[row.outcome, row.detail]
            for row in self.attempts
            if row.outcome != AttemptOutcome.NOT_SENT
        )
        news = [row.finished_at or row.started_at for row in self.attempts]
        since = (NOW - max(news)) // TICK if news else 0
        seen = self.observations.filter(source=sending.STALE_WORKER)
        return world.Operation(
            state=world.ENDED if is_unsent_end else str(state),
            epoch=self.stored["epoch"],
            first_sent=world.NEVER if first is None else (NOW - first) // TICK,
            attempts=attempts,
            since_news=min(since, setting.provider.known_lag),
            evidence=any(row.body["outcome"] == AttemptOutcome.SUCCEEDED for row in seen),
        )


def sit_at(desk: Desk, setting: Setting, patch: pytest.MonkeyPatch) -> None:
    """Let the product's code read and write this desk."""
    patch.setattr(Operation, "attempts", property(lambda _: desk.attempts))
    patch.setattr(Operation, "observations", property(lambda _: desk.observations))
    patch.setattr(Operation, "save", lambda row, **fields: desk.save(row, **fields))
    for module in (sending, reconcile):
        patch.setattr(module, "transaction", SimpleNamespace(atomic=lambda **_: nullcontext()))
        patch.setattr(module, "database_now", lambda: NOW)
        patch.setattr(module, "get", desk.get)
        patch.setattr(module, "new_attempt", desk.new_attempt)
        patch.setattr(module, "Attempt", SimpleNamespace(objects=desk.attempts))
        patch.setattr(module, "Observation", SimpleNamespace(objects=desk.observations))
    patch.setattr(operations, "lock", desk.get)
    patch.setattr(operations, "cancel", desk.cancel)
    patch.setattr(operations, "record", lambda *_, **__: None)
    patch.setattr(operations, "announce", lambda _: None)
    patch.setattr(history, "still_holds", lambda _: True)
    patch.setattr(execution, "is_off", lambda _: False)
    patch.setattr(execution, "why_not", lambda *_: desk.refusal)
    patch.setattr(execution, "keep_refusal", lambda *_: None)
    patch.setattr(execution, "end_unsent", desk.end_unsent)
    patch.setattr(reconcile, "MAX_SENDS", setting.max_sends)
    patch.setattr(reconcile, "GIVE_UP_AFTER", setting.give_up_after * TICK)


def capabilities(setting: Setting) -> Capabilities:
    """The record that the product would keep of the modelled provider."""
    provider, tick = setting.provider, int(TICK.total_seconds())
    return Capabilities(
        key_window_seconds=None if provider.known_window is None else provider.known_window * tick,
        errors_cached=provider.keeps_refusals,
        body_compared=True,
        lookup_by_key=provider.look_up,
        lookup_lag_seconds=provider.known_lag * tick,
        totals_capped=provider.repeat == world.Repeat.REFUSES,
        throttles_before_execution=True,
    )
