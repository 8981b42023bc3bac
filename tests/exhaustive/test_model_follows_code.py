"""The model describes this product and no other: its decisions are compared with the code's own.

Every state that a variant reaches is put before the product's functions, as rows in memory, and
each must leave the rows just as the model says.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from unittest.mock import Mock

import pytest
from django.conf import settings

from agents import runner
from tests.exhaustive import life, rows, world
from tests.exhaustive.in_memory import NOW, OUTCOMES, Desk, capabilities, sit_at
from tests.exhaustive.variants import (
    BLIND,
    LAGS,
    LAGS_UNKNOWN,
    MAIL,
    STATE_FIRST,
    STRANGER,
    VARIANTS,
    explored,
)
from tests.exhaustive.world import Operation, Setting, Worker
from tools import execution, reconcile, sending
from tools.carriers import Carried
from tools.clients import capabilities as on_record
from tools.clients import errors
from tools.models import AttemptOutcome, State
from tools.outcome import Outcome as Shown
from tools.sending import Lease


@dataclass(frozen=True)
class Case:
    """A worker about to decide on a row. `forbidden`: gate six has something against a send."""

    row: Operation
    worker: Worker
    forbidden: bool = False

    @property
    def lease(self) -> Lease:
        return Lease(epoch=self.worker.epoch, ends_at=0.0)


# What the model says: the row after, and whether the worker goes on.
Said = tuple[Operation, bool]


def _begin(case: Case, setting: Setting) -> Said:
    return rows.begin(case.row, case.worker.epoch, setting.guards, forbidden=case.forbidden)


def _begin_again(case: Case, setting: Setting) -> Said:
    return rows.begin_again(case.row, case.worker.epoch, setting.guards, forbidden=case.forbidden)


def _settle(case: Case, setting: Setting) -> Said:
    worker = case.worker
    row = rows.settle(case.row, worker.carries, worker.epoch, worker.attempt, setting.guards)
    return row, False


def _take_over(case: Case, setting: Setting) -> Said:
    return rows.take_over(case.row, case.worker.epoch, setting.guards)


def _decide(case: Case, setting: Setting) -> Said:
    if setting.provider.is_mail:
        return rows.leave_to_person(case.row, case.worker.epoch, setting.guards), False
    return rows.should_send_again(case.row, case.worker.epoch, setting)


def _cannot_look_up(case: Case, setting: Setting) -> Said:
    return rows.wait_or_give_up(case.row, case.worker.epoch, setting), False


def _hand_over(case: Case, setting: Setting) -> Said:
    return rows.hand_over(case.row, case.worker.epoch, setting.guards), False


MODEL: dict[str, Callable[[Case, Setting], Said]] = {
    "begin": _begin,
    "begin_again": _begin_again,
    "settle": _settle,
    "drive": _take_over,
    "decide": _decide,
    "look_up": _cannot_look_up,
    "give_up": _hand_over,
}


def _ask_product(at: str, case: Case, setting: Setting) -> bool:
    """Let the product decide the same; returns whether its worker would go on."""
    lease, subject = case.lease, object()
    match at:
        case "begin":
            return sending._begin(1, subject, lease, bool)[1] is not None  # type: ignore[arg-type]
        case "begin_again":
            return reconcile._begin_again(1, subject, lease, bool)[1] is not None  # type: ignore[arg-type]
        case "settle":
            attempt = None if case.worker.attempt == world.NEVER else case.worker.attempt
            sending.settle(1, OUTCOMES[case.worker.carries], lease, attempt_id=attempt)
        case "drive":
            taken = reconcile._take_over(1, lease)
            seen = reconcile._seen_by_a_stale_worker(taken)
            assert (seen is not None) == case.row.evidence
            return taken.state == State.UNKNOWN and taken.epoch == lease.epoch
        case "decide" if setting.provider.is_mail:
            reconcile._leave_to_person(1, lease, "mail")
        case "decide":
            return reconcile._should_send_again(1, lease, capabilities(setting))
        case "look_up":
            reconcile._wait_or_give_up(1, lease, errors.UnavailableError("connect"))
        case "give_up":
            reconcile.hand_over(operation_id=1, lease=lease, why="hopeless")
    return False


def cases(name: str) -> Iterator[tuple[str, Case]]:
    """Every decision that some worker meets in a variant, once."""
    met = {
        (worker.at, Case(state.operation, worker._replace(lease=0)))
        for state in explored(name).states
        for worker in state.workers
        if worker.at in MODEL
    }
    for at, case in met:
        yield at, case
        if at in {"begin", "begin_again"}:
            yield at, Case(case.row, case.worker, forbidden=True)


def disagreements(name: str) -> Iterator[tuple[str, Case]]:
    """The decisions in which model and product part."""
    setting = VARIANTS[name]
    for at, case in cases(name):
        said, goes_on = MODEL[at](case, setting)
        for has_unsent in (False, True):
            desk = Desk(case.row)
            if has_unsent:
                desk.add_unsent()
            desk.refusal = execution.ORDER_CHANGED if case.forbidden else None
            with pytest.MonkeyPatch.context() as patch:
                sit_at(desk, setting, patch)
                went_on = _ask_product(at, case, setting)
            stored = desk.as_modelled(setting)
            if not stored.attempts:  # without a try that counts there is no news of one
                stored, said = stored._replace(since_news=0), said._replace(since_news=0)
            if (stored, went_on) != (said, goes_on):
                yield at, case


# One for each record that decisions can rest on; the other variants differ in what the provider does.
@pytest.mark.parametrize("name", [LAGS_UNKNOWN, LAGS, BLIND, STATE_FIRST, STRANGER, MAIL])
def test_the_code_decides_in_every_state_as_the_model_does(name):
    assert {at for at, _ in cases(name)} >= {"begin", "settle", "drive", "decide", "give_up"}
    assert next(disagreements(name), None) is None


def is_noticed(name: str) -> bool:
    try:
        return next(disagreements(name), None) is not None
    except AssertionError:
        return True


@pytest.mark.parametrize(
    ("module", "rule", "changed", "where"),
    [
        (reconcile, "_is_credible", lambda *_: True, LAGS),
        (reconcile, "_may_resend", lambda *_: True, STRANGER),
        (reconcile, "_close_attempts", lambda *_: None, MAIL),
        (reconcile, "_seen_by_a_stale_worker", lambda _: None, MAIL),
        (
            reconcile,
            "_end_refused",
            lambda row, *_: reconcile._ask_person(row, "x", NOW),
            STATE_FIRST,
        ),
        (sending, "_move", lambda row, *_: row.lose_sight(reason="x"), MAIL),
        (sending, "_observe", lambda *_: None, MAIL),
    ],
)
def test_a_rule_that_changes_in_the_code_alone_is_noticed(
    monkeypatch, module, rule, changed, where
):
    monkeypatch.setattr(module, rule, changed)

    assert is_noticed(where)


@pytest.mark.parametrize("window", [None, 0, 1, 3, 24])
def test_a_key_window_is_judged_alike(window):
    hour = 3600
    record = capabilities(Setting(world.Provider(known_window=window)))

    for age in range(-1, 30):
        assert rows.can_resend(window, age) == record.can_resend(age_seconds=age * hour)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, world.SUCCEEDED),
        (errors.RefusedError("order_state", "No.", 409), world.REFUSED),
        (errors.UnauthorizedError(401), world.TURNED_AWAY),
        (errors.UnknownOutcomeError("timeout"), world.UNKNOWN),
        (errors.UnknownOutcomeError("reset"), world.UNKNOWN),
        (errors.UnknownOutcomeError("error", 500), world.UNKNOWN),
        (errors.UnknownOutcomeError("unreadable"), world.UNKNOWN),
        (errors.InProgressError(), world.UNKNOWN),
        (errors.UnavailableError("connect"), world.NOT_SENT),
    ],
)
def test_a_reply_means_the_same(error, outcome):
    def carrier(*_):
        if error is not None:
            raise error
        return Carried("re_1")

    shown = sending._outcome_of_call(Desk(Operation()).get(), {}, carrier)

    assert isinstance(shown, Shown)
    assert (shown.kind, shown.needs_person) == (OUTCOMES[outcome].kind, False)
    if outcome in {world.REFUSED, world.TURNED_AWAY}:
        assert shown.detail == OUTCOMES[outcome].detail


@pytest.mark.parametrize("timeouts_left", [-1, 0, 0.5, 1])
def test_an_overslept_lease_is_found_at_the_wire(monkeypatch, timeouts_left):
    monkeypatch.setattr(sending, "open_seal", lambda *_: {})
    carrier = Mock(return_value=Carried("re_1"))
    lease = Lease(epoch=1, ends_at=time.monotonic() + settings.SHOP_TIMEOUT * timeouts_left)

    shown = sending._over_the_wire(Desk(Operation()).get(), carrier, lease)

    assert (shown.kind, shown.detail) == (AttemptOutcome.NOT_SENT, "lease_too_short")
    carrier.assert_not_called()


def test_the_margin_of_every_key_window_on_record_is_at_least_a_lease_long():
    """test_limits.py shows what a shorter one costs."""
    for name, record in on_record._PROVIDERS.items():
        window = record.key_window_seconds
        # The brief one is for instances whose leases are brief too, and never for a real shop.
        if window is not None and name != "orders_stub_brief":
            assert not record.can_resend(age_seconds=window - settings.LEASE_SECONDS)


@pytest.mark.parametrize("state", [world.APPROVED, *sorted(world.UNDECIDED), *sorted(world.CLOSED)])
def test_a_worker_takes_the_same_way(monkeypatch, state):
    desk = Desk(Operation(state))
    taken: list[str] = []
    monkeypatch.setattr(sending, "get", desk.get)
    monkeypatch.setattr(sending, "send", lambda **_: taken.append("begin"))
    monkeypatch.setattr(reconcile, "reconcile", lambda **_: taken.append("decide"))
    blind = Setting(world.Provider(look_up=False))
    at = world.World(Operation(state), workers=(Worker("drive", 1, 1), world.IDLE))

    runner._drive(desk.get(), Lease(epoch=1, ends_at=0.0))

    (step,) = life._drive(at, 0, blind)
    assert (taken or ["record"]) == [step.after.workers[0].at]


def test_in_memory_rows_lose_what_a_save_does_not_name():
    desk = Desk(Operation(world.SENDING, 1, 0, (world.OPEN,)))
    row = desk.get()
    row.lose_sight(reason="timeout")

    desk.save(row, update_fields=["reason"])

    assert desk.stored["state"] == State.SENDING
    assert desk.stored["reason"] == "timeout"
