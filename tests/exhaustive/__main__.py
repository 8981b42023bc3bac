"""Print the table of variants and every counterexample: `python -m tests.exhaustive`."""

import sys
from functools import partial

from tests.exhaustive import life
from tests.exhaustive.checker import explore, settling
from tests.exhaustive.invariants import invariants
from tests.exhaustive.test_ablations import ABLATIONS, without
from tests.exhaustive.variants import VARIANTS, explored


def main() -> None:
    for name, setting in VARIANTS.items():
        found = explored(name)
        settled = settling(found.states, partial(life.calm, setting=setting), life.is_settled)
        sys.stdout.write(
            f"| {name} | {len(found.states):,} | {found.steps:,} | {settled.longest} |\n"
        )
    for guards, name, invariant in ABLATIONS:
        setting = without(guards, name)
        found = explore(life.model(setting), {invariant: invariants(setting)[invariant]})
        if found.violation is not None:
            sys.stdout.write(f"\nwithout {guards}: {name}: {life.story(found.violation)}\n")


if __name__ == "__main__":
    main()
