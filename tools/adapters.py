"""The way to each shop: one that does not work is not walked by everybody.

After FAILURES failed calls in a row within WINDOW nobody calls that shop any more; reads answer at
once, and what is to be sent waits. So it is, at the first refusal, when the shop does not take our
own name and secret. Then one call at a time is let through to try, with growing pauses, and the
first that succeeds opens the way again for all.

It is a row for each shop, judged by the database's clock, so all workers hold to it. A shop's
answers of any kind, a refusal too, show that the way works. Nothing here decides about an outcome:
what is unknown stays so until somebody is let through to look.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import F, QuerySet

from accounts import services as accounts
from accounts.models import Shop
from accounts.services import ClientRefusedError, ShopUnavailableError
from audit import services as audit
from tools.clients.errors import (
    ShopError,
    UnavailableError,
    UnavailableKind,
    UnknownKind,
    UnknownOutcomeError,
)
from tools.clock import ClockTimestamp, database_now
from tools.models import Adapter, AdapterState
from tools.outside import leave_database
from tools.signals import shop_answers

FAILURES = 5
WINDOW = timedelta(seconds=60)
FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = {
    AdapterState.AWAY: timedelta(seconds=60),
    AdapterState.REFUSED: timedelta(minutes=5),
}
CLIENT_REFUSED = "client_refused"

logger = logging.getLogger(__name__)


class RestingError(UnavailableError):
    """Nobody was called: the way to this shop is known not to work. `retry_after` is in seconds."""

    def __init__(self, state: str, retry_after: float) -> None:
        super().__init__("resting")
        self.state = state
        self.retry_after = max(retry_after, 1.0)


@dataclass(frozen=True)
class _Leave:
    """Leave to call: what was known of the way when it was given."""

    state: str = AdapterState.WORKING
    failures: int = 0


def list_stopped(*, shop_id: int | None = None) -> QuerySet[Adapter]:
    """The ways that do not work now, longest first: of one shop, or of all."""
    stopped = Adapter.objects.exclude(state=AdapterState.WORKING)
    if shop_id is not None:
        stopped = stopped.filter(shop_id=shop_id)
    return stopped.select_related("shop").order_by("stopped_at", "pk")


@contextmanager
def through(shop: Shop) -> Iterator[None]:
    """Call the shop inside this, never in a transaction; what the call shows of the way is kept.

    Raises RestingError without a call while the way is known not to work, and when the shop
    turns out not to take our own name and secret.
    """
    leave = _enter(shop)
    try:
        yield
    except ClientRefusedError as exc:
        raise pause(shop) from exc
    except ShopUnavailableError as exc:
        if exc.retry_after is None:
            note_failure(shop, "error")
        raise
    except (UnavailableError, UnknownOutcomeError) as exc:
        if is_failure(exc.kind, exc.status):
            note_failure(shop, exc.kind)
        raise
    except ShopError:
        _note_answer(shop, leave)
        raise
    _note_answer(shop, leave)


def is_failure(kind: UnavailableKind | UnknownKind, status: int | None) -> bool:
    """Does this end of a call speak against the way itself?

    Not a strange status that stays below 500, and not an answer about something else.
    """
    if kind == "error":
        return status is None or status >= 500
    return kind in {"connect", "timeout", "reset", "unreadable"}


@contextmanager
def _on_the_side(shop: Shop) -> Iterator[None]:
    """What a call showed of the way is worth less than what it brought: it is not lost for that."""
    try:
        yield
    except DatabaseError:
        logger.warning("what a call showed of the way to shop %s was not kept", shop.slug)


def note_failure(shop: Shop, reason: str) -> None:
    """A call failed; with enough of them in a row nobody calls that shop any more.

    Raises nothing when the database is away: then it is not counted.
    """
    with _on_the_side(shop), transaction.atomic(durable=True):
        adapter = _locked(shop)
        now = database_now()
        if adapter.state != AdapterState.WORKING:
            return
        if adapter.failing_since is None or now - adapter.failing_since > WINDOW:
            adapter.failing_since, adapter.failures = now, 0
        adapter.failures += 1
        if adapter.failures >= FAILURES:
            _stop(adapter, AdapterState.AWAY, reason, now)
        adapter.save()


def pause(shop: Shop) -> RestingError:
    """The shop does not take our own name and secret: nobody calls it until it does.

    Gives the error to raise. Of many who find out at once, one writes it down.
    """
    with transaction.atomic(durable=True):
        adapter = _locked(shop)
        now = database_now()
        if adapter.state != AdapterState.REFUSED:
            _stop(adapter, AdapterState.REFUSED, CLIENT_REFUSED, now)
            adapter.save()
    return _resting(adapter, now)


def _enter(shop: Shop) -> _Leave:
    adapter = Adapter.objects.filter(shop=shop).first()
    if adapter is None or adapter.state == AdapterState.WORKING:
        return _Leave(failures=adapter.failures if adapter else 0)
    if not _is_ours_to_try(adapter):
        adapter.refresh_from_db()
        if adapter.state == AdapterState.WORKING:
            return _Leave(failures=adapter.failures)
        raise _resting(adapter, database_now())
    if adapter.state == AdapterState.REFUSED:
        _try_client(shop, adapter)
        return _Leave()
    return _Leave(state=adapter.state)


def _is_ours_to_try(adapter: Adapter) -> bool:
    """Take the one try that is due, if it is. Whoever takes it has put off the next."""
    pause_now = _pause_after(adapter.state, adapter.probes + 1)
    return bool(
        Adapter.objects.filter(
            pk=adapter.pk,
            state=adapter.state,
            probes=adapter.probes,
            next_try_at__lte=ClockTimestamp(),
        ).update(probes=F("probes") + 1, next_try_at=ClockTimestamp() + pause_now)
    )


def _try_client(shop: Shop, adapter: Adapter) -> None:
    """Ask about our own name and secret first: an old token that still works says nothing of them."""
    as_it_is_now = Shop.objects.get(pk=shop.pk)  # the secret may just have been put right
    leave_database()
    try:
        accounts.check_client(as_it_is_now)
    except ShopUnavailableError as exc:
        adapter.refresh_from_db()
        raise _resting(adapter, database_now()) from exc
    _open(shop)


def _note_answer(shop: Shop, leave: _Leave) -> None:
    if leave.state == AdapterState.WORKING and not leave.failures:
        return
    with _on_the_side(shop):
        _open(shop, unless=AdapterState.REFUSED)


def _open(shop: Shop, *, unless: str = "") -> None:
    with transaction.atomic(durable=True):
        adapter = _locked(shop)
        if adapter.state == unless:
            return
        stopped_at, was = adapter.stopped_at, adapter.state
        probes = adapter.probes
        adapter.state, adapter.reason = AdapterState.WORKING, ""
        adapter.failures, adapter.failing_since = 0, None
        adapter.stopped_at = adapter.next_try_at = None
        adapter.probes = 0
        adapter.save()
        if stopped_at is None:
            return
        now = database_now()
        away = round((now - stopped_at).total_seconds())
        _record(shop, "resumed", now, {"was": was, "seconds": away, "tries": probes})
        transaction.on_commit(partial(shop_answers.send, sender=Adapter, shop_id=shop.pk))


def _stop(adapter: Adapter, state: AdapterState, reason: str, now: datetime) -> None:
    adapter.state, adapter.reason = state, reason
    adapter.stopped_at = now
    adapter.next_try_at = now + FIRST_PAUSE
    adapter.probes = 0
    _record(
        adapter.shop,
        "paused",
        now,
        {"state": state, "reason": reason, "failures": adapter.failures},
    )


def _pause_after(state: str, probes: int) -> timedelta:
    longest = LONGEST_PAUSE[AdapterState(state)]
    return min(FIRST_PAUSE * float(2 ** min(probes, 10)), longest)


def _resting(adapter: Adapter, now: datetime) -> RestingError:
    until = adapter.next_try_at or now
    return RestingError(adapter.state, (until - now).total_seconds())


def _locked(shop: Shop) -> Adapter:
    """The shop's row, locked; made where there is none."""
    Adapter.objects.bulk_create([Adapter(shop=shop)], ignore_conflicts=True)
    return Adapter.objects.select_for_update(of=("self",)).select_related("shop").get(shop=shop)


def _record(shop: Shop, what: str, now: datetime, data: dict[str, Any]) -> None:
    audit.record(
        actor="system",
        action=f"adapter.{what}",
        subject=f"shop:{shop.slug}",
        at=now,
        shop_id=shop.pk,
        data=data,
    )
