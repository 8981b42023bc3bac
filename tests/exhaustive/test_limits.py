"""What the design does not promise, shown as plainly as what it does."""

import sys
from dataclasses import replace

import pytest

from tests.exhaustive import life
from tests.exhaustive.checker import Found, explore
from tests.exhaustive.invariants import invariants
from tests.exhaustive.variants import AT_ONCE, BLIND, CAPPED, HALF_TICKS, STATE_FIRST, VARIANTS
from tests.exhaustive.world import Setting, World


def look_for(invariant: str, setting: Setting) -> Found[World]:
    return explore(life.model(setting), {invariant: invariants(setting)[invariant]})


def ticks_between(found: Found[World], action: str, then: str) -> int:
    """How long the same worker stands still between two things that it does."""
    assert found.violation is not None
    now, since = 0, {}
    for step in found.violation.trace:
        now += step.actor == life.TIME
        if step.action == action:
            since[step.actor] = now
    last = found.violation.trace[-1]
    assert last.action.startswith(then)
    return now - since[last.actor]


def test_frozen_at_the_socket_for_longer_than_the_key_window_it_pays_twice():
    setting = replace(VARIANTS[AT_ONCE], can_freeze=True)

    found = look_for("I-01", setting)

    frozen = ticks_between(found, "finds its lease long enough", then="sends, paid")
    assert frozen >= (setting.provider.memory or 0) > setting.lease
    sys.stdout.write(f"{life.story(found.violation)}\n")


@pytest.mark.parametrize("name", [CAPPED, STATE_FIRST])
def test_frozen_as_long_a_full_refund_of_a_provider_that_caps_totals_is_paid_once(name):
    found = look_for("I-01", replace(VARIANTS[name], can_freeze=True))

    assert found.violation is None


def test_frozen_past_its_lease_it_may_pay_what_a_refusal_had_ended():
    """The provider refused the second send and forgot it; the first one then arrives."""
    setting = replace(VARIANTS[AT_ONCE], can_freeze=True)

    found = look_for("I-05", setting)

    frozen = ticks_between(found, "finds its lease long enough", then="sends, paid")
    assert frozen >= setting.lease
    sys.stdout.write(f"{life.story(found.violation)}\n")


def test_a_margin_of_the_window_shorter_than_the_lease_pays_twice():
    safe = VARIANTS[HALF_TICKS]
    setting = replace(safe, provider=replace(safe.provider, memory=safe.provider.known_window))

    found = look_for("I-01", setting)

    assert setting.provider == VARIANTS[BLIND].provider
    assert found.violation is not None
    sys.stdout.write(f"{life.story(found.violation)}\n")
