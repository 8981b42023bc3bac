"""Each guard carries weight: without it, there is a way to break what it protects."""

import sys
from dataclasses import replace
from functools import partial

import pytest

from tests.exhaustive import life
from tests.exhaustive.checker import explore, settling
from tests.exhaustive.invariants import invariants
from tests.exhaustive.variants import (
    AT_ONCE,
    BLIND,
    FROZEN,
    LAGS_UNKNOWN,
    MAIL,
    STATE_FIRST,
    STRANGER,
    TWO_SENDS,
    VARIANTS,
)
from tests.exhaustive.world import GUARDS, Setting

ABLATIONS = [
    ("epoch", TWO_SENDS, "I-08"),
    ("epoch state_condition", AT_ONCE, "I-11"),
    ("intent_first", AT_ONCE, "I-03"),
    ("intent_first", MAIL, "I-01"),
    ("stable_key", BLIND, "I-01"),
    ("stable_key", LAGS_UNKNOWN, "I-01"),
    ("look_up_first", STATE_FIRST, "I-05"),
    ("wait_for_lag", STATE_FIRST, "I-05"),
    ("window", BLIND, "I-01"),
    ("window", STRANGER, "I-01"),
    ("kept_refusals", FROZEN, "I-05"),
    ("send_cap", AT_ONCE, "I-08"),
    ("deadline", AT_ONCE, "I-01"),
    ("unknown_on_timeout", AT_ONCE, "I-05"),
    ("unknown_on_timeout", AT_ONCE, "I-06"),
]


def without(guards: str, name: str) -> Setting:
    setting = VARIANTS[name]
    return replace(setting, guards=setting.guards.without(*guards.split()))


@pytest.mark.parametrize(("guards", "name", "invariant"), ABLATIONS)
def test_without_a_guard_what_it_protects_breaks(guards, name, invariant):
    setting = without(guards, name)

    found = explore(life.model(setting), {invariant: invariants(setting)[invariant]})

    assert found.violation is not None
    assert found.violation.invariant == invariant
    sys.stdout.write(f"without {guards}: {name}: {life.story(found.violation)}\n")


def test_without_handing_over_an_unknown_outcome_is_left_with_nobody():
    setting = without("hand_over", MAIL)

    found = explore(life.model(setting), invariants(setting))
    never = settling(found.states, partial(life.calm, setting=setting), life.is_settled).never

    assert found.violation is None
    assert never is not None
    assert never.task.told == "a colleague is checking"
    assert never.operation.state in {"approved", "sending", "unknown"}


def test_every_guard_is_taken_away_once():
    tried = {guard for guards, _, _ in ABLATIONS for guard in guards.split()}

    assert tried | {"hand_over"} == set(GUARDS)
