"""The states that count as one can do the same: leaving out the rest loses and invents nothing."""

from dataclasses import replace
from functools import partial

import pytest

from tests.exhaustive import life
from tests.exhaustive.checker import explore
from tests.exhaustive.variants import AT_ONCE, MAIL, STATE_FIRST, VARIANTS
from tests.exhaustive.world import canonical, ranked


@pytest.mark.parametrize(
    "setting",
    [
        VARIANTS[MAIL],
        replace(VARIANTS[MAIL], freeze=2),
        replace(VARIANTS[AT_ONCE], max_sends=1, freeze=1),
        replace(VARIANTS[STATE_FIRST], max_sends=1),
    ],
)
def test_leaving_out_what_can_never_matter_again_loses_and_invents_no_state(setting):
    small = life.model(setting)

    reduced = explore(small, {}).states
    whole = explore(replace(small, canonical=ranked), {}).states

    assert len(whole) > 4 * len(reduced)
    shrink = partial(canonical, guards=setting.guards)
    assert {shrink(state) for state in whole} == reduced
