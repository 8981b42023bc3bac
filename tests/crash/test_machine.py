"""Whatever happens, in whatever order: every invariant holds after each step, and at rest."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.crash.machine import Shopfloor
from tests.crash.world import World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]

# The same runs each time, so that a failure is a failure for everybody.
BOUNDED = settings(
    max_examples=15,
    stateful_step_count=12,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_no_order_of_events_breaks_an_invariant(world: World):
    machine = type("Machine", (Shopfloor,), {"world": world})

    run_state_machine_as_test(machine, settings=BOUNDED)
