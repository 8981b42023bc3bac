"""What the design does not promise, shown as plainly as what it does."""

import sys
from dataclasses import replace

import pytest

from tests.exhaustive import life
from tests.exhaustive.checker import Found, explore
from tests.exhaustive.invariants import invariants
from tests.exhaustive.variants import AT_ONCE, BLIND, CAPPED, HALF_TICKS, STATE_FIRST, VARIANTS
from tests.exhaustive.world import Provider, Setting, World

WINDOW = 3
# A send is allowed up to two ticks after the first; a memory of five leaves three to spare.
BLIND_WITH_MARGIN = Setting(Provider(memory=5, known_window=WINDOW, look_up=False))


def look_for(invariant: str, setting: Setting) -> Found[World]:
    return explore(life.model(setting), {invariant: invariants(setting)[invariant]})


def assert_paid_twice(setting: Setting) -> None:
    found = look_for("I-01", setting)

    assert found.violation is not None
    assert found.violation.trace[-1].after.ledger.effects == 2
    sys.stdout.write(f"{life.story(found.violation)}\n")


def test_frozen_at_the_socket_for_longer_than_the_key_window_it_pays_twice():
    assert_paid_twice(replace(VARIANTS[AT_ONCE], freeze=WINDOW))


def test_frozen_at_the_socket_past_the_margin_it_pays_twice_where_nothing_can_be_looked_up():
    assert_paid_twice(replace(BLIND_WITH_MARGIN, freeze=3))


@pytest.mark.parametrize(
    "setting",
    [replace(VARIANTS[AT_ONCE], freeze=WINDOW - 1), replace(BLIND_WITH_MARGIN, freeze=2)],
)
def test_frozen_for_a_tick_less_than_that_it_breaks_nothing(setting):
    found = explore(life.model(setting), invariants(setting))

    assert found.violation is None, life.story(found.violation)


@pytest.mark.parametrize("name", [CAPPED, STATE_FIRST])
def test_however_long_it_is_frozen_a_full_refund_is_paid_once_where_totals_are_capped(name):
    found = look_for("I-01", replace(VARIANTS[name], freeze=WINDOW + 1))

    assert found.violation is None, life.story(found.violation)


def test_a_margin_of_the_window_shorter_than_the_lease_pays_twice():
    safe = VARIANTS[HALF_TICKS]
    assert safe.provider == replace(VARIANTS[BLIND].provider, memory=WINDOW + 1)

    assert_paid_twice(replace(safe, provider=VARIANTS[BLIND].provider))
