"""Guards taken away on purpose: each flag takes away the one it names, and only in a demo."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from approvals.services import is_still_granted
from tests.tools.desk import approved, lease, look, send, trail
from tools import ablation, reconcile, sending
from tools.clients import capabilities
from tools.models import Operation, State

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _quick_provider(monkeypatch):
    """Look-ups do not lag, and keys are forgotten at once as far as we know."""
    record = capabilities.for_provider("orders_stub")
    brief = replace(record, lookup_lag_seconds=0, key_window_seconds=0)
    monkeypatch.setitem(capabilities._PROVIDERS, "orders_stub", brief)


@pytest.fixture
def without(settings):
    def take_away(guard):
        settings.ABLATE = [guard]

    return take_away


def lost(buyer, fault, **fields):
    """A refund whose send met a fault; returns what a second worker then makes of it."""
    operation = approved(buyer, buyer.order(4000), **fields)
    buyer.shop.fault(fault, scope={"path": "/refunds"}, times=1)
    assert send(operation).state == State.UNKNOWN
    return operation


def settled(operation):
    return reconcile.reconcile(
        operation_id=operation.pk, lease=lease(2), still_granted=is_still_granted
    )


def effects(buyer, operation):
    return buyer.shop.effects(order_id=operation.order_id)


@pytest.mark.parametrize("guard", [None, "stable_key"])
def test_without_a_stable_key_the_shop_gets_another_one(buyer, without, guard):
    operation = approved(buyer, buyer.order(4000))
    without(guard)

    send(operation)

    (effect,) = effects(buyer, operation)
    assert (effect["idempotency_key"] == operation.idempotency_key) is (guard is None)


@pytest.mark.parametrize("guard", [None, "deadline"])
def test_without_a_deadline_a_worker_that_overslept_sends(buyer, without, guard):
    operation = approved(buyer, buyer.order(4000))
    without(guard)

    sending.send(
        operation_id=operation.pk, lease=lease(1, seconds=0), still_granted=is_still_granted
    )

    assert len(effects(buyer, operation)) == (0 if guard is None else 1)


@pytest.mark.parametrize("guard", [None, "fence"])
def test_without_a_fence_a_stale_worker_changes_the_state(buyer, without, guard):
    operation = approved(buyer, buyer.order(4000))
    started, attempt = sending._begin(
        operation.pk, look(buyer, operation.order_id), lease(1), is_still_granted
    )
    assert attempt is not None
    Operation.objects.filter(pk=operation.pk).update(epoch=2)
    without(guard)

    carrier = sending.carrier_of(*sending.look_at_subject(started))
    sent = sending.transmit(started, attempt, carrier, lease(1))

    assert sent.state == (State.SENDING if guard is None else State.SUCCEEDED)


@pytest.mark.parametrize("guard", [None, "look_up"])
def test_without_a_look_up_a_person_is_asked_about_what_the_shop_could_tell(buyer, without, guard):
    operation = lost(buyer, "error_after")
    without(guard)

    assert settled(operation).state == (State.SUCCEEDED if guard is None else State.NEEDS_PERSON)


@pytest.mark.parametrize("guard", [None, "window"])
def test_without_a_window_it_is_sent_again_for_ever(buyer, without, guard):
    operation = lost(buyer, "error_before")
    without(guard)

    assert settled(operation).state == (State.NEEDS_PERSON if guard is None else State.SUCCEEDED)
    assert len(trail(operation)) == (1 if guard is None else 2)


@pytest.mark.parametrize(
    ("demo", "named", "fault"),
    [
        ("false", "fence", "nothing is safe with it"),
        ("true", "fences", "there is no guard 'fences'"),
        ("true", ",".join(ablation.GUARDS), ""),
    ],
)
def test_the_start_is_refused_outside_the_demo_and_for_unknown_names(demo, named, fault):
    env = os.environ | {"COUNTERSIGN_DEMO": demo, "COUNTERSIGN_ABLATE": named}
    done = subprocess.run(
        [sys.executable, "-c", "import config.settings"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode == 0) is (fault == "")
    assert fault in done.stderr
