"""With every guard in place nothing breaks, whatever workers, wires and clocks do."""

from functools import partial
from pathlib import Path

import pytest

from tests.exhaustive import life
from tests.exhaustive.checker import settling
from tests.exhaustive.variants import VARIANTS, explored

PAGE = Path(__file__).parents[2] / "docs" / "decisions" / "exhaustive-model.md"


@pytest.mark.parametrize("name", VARIANTS)
def test_no_invariant_breaks_and_all_settles_once_faults_stop(name):
    setting = VARIANTS[name]

    found = explored(name)
    settled = settling(found.states, partial(life.calm, setting=setting), life.is_settled)

    assert found.violation is None, life.story(found.violation)
    assert settled.never is None, "I-07"
    row = f"| {name} | {len(found.states):,} | {found.steps:,} | {settled.longest} |"
    assert row in PAGE.read_text(), f"the page about the model should say: {row}"
