"""Each guard of a send carries weight: with it the shop's ledger is right, without it it is not."""

import time
from collections.abc import Callable

import pytest

from tests.crash.evidence import Evidence, gather
from tests.crash.faults import Fault, Strike, struck
from tests.crash.travel import pass_hours
from tests.crash.world import Case, World
from tests.factories import ADDRESS
from tools import ablation
from tools.clients import capabilities
from tools.trigger import Point

pytestmark = pytest.mark.django_db(transaction=True)

PART = "I would like $7.00 back for order {order}, please. It arrived damaged."
FOREVER = 10**6


def part_refund(world: World) -> Case:
    """A refund of a part: the shop's own cap would not stop a second one."""
    case = world.case("refund")
    case.text = PART.format(order=case.order_id)
    return case


def deadline(world: World) -> Evidence:
    """A worker sleeps before its first byte until another has sent and the key is forgotten."""
    case = part_refund(world)
    world.shop.fault("key_window", seconds=0)
    with struck(Strike(case, Point.C14, Fault.OVERSLEPT, 1)):
        case.live()
    return gather(case.customer, world.shop)


def stable_key(world: World) -> Evidence:
    """The first request is still on its way when the second one goes out."""
    case = part_refund(world)
    world.shop.fault("latency", scope={"path": "/refunds"}, times=1, ms=1800)
    case.live()
    time.sleep(1.2)
    return gather(case.customer, world.shop)


def look_up(world: World) -> Evidence:
    """The money moves and the shop answers with an error."""
    case = part_refund(world)
    world.shop.fault("error_after", scope={"path": "/refunds"}, times=1)
    case.live()
    return gather(case.customer, world.shop)


def window(world: World) -> Evidence:
    """Nothing shows the change, its answer was lost, and a day later the shop has forgotten the key.

    Its staff have put the old address back meanwhile, so that the order looks as it did.
    """
    case = world.case("change_address")
    order = case.order_id
    world.shop.fault("error_after", scope={"path": "/address", "method": "PUT"}, times=1)
    world.shop.fault("lookup_lag", seconds=FOREVER)
    case.ask()
    world.work(case.task_id)
    question = case.question()
    assert question is not None
    case.decide(question)
    world.drain()
    assert case.operations[0].state == "unknown"
    world.shop.edit_order(order, shipping_address=ADDRESS)
    world.shop.fault("key_window", seconds=0)
    pass_hours(case.customer, 25)
    world.work(case.task_id)
    return gather(case.customer, world.shop)


def fence(world: World) -> Evidence:
    """A worker sleeps with the shop's answer in its hand until another has taken over."""
    case = part_refund(world)
    with pytest.MonkeyPatch.context() as patch:
        lags = vars(capabilities.for_provider("orders_stub")) | {"lookup_lag_seconds": 60}
        patch.setitem(capabilities._PROVIDERS, "orders_stub", capabilities.Capabilities(**lags))
        world.shop.fault("lookup_lag", seconds=FOREVER)
        with struck(Strike(case, Point.C16, Fault.OVERSLEPT, 1)):
            case.live()
    return gather(case.customer, world.shop)


def paid_once(seen: Evidence) -> bool:
    return len(seen.effects) == 1


def known_to_have_succeeded(seen: Evidence) -> bool:
    return [operation.state for operation in seen.operations] == ["succeeded"]


def kept_as_evidence(seen: Evidence) -> bool:
    return "stale_worker" in [observation.source for observation in seen.observations]


GUARDS: dict[str, tuple[Callable[[World], Evidence], Callable[[Evidence], bool]]] = {
    "deadline": (deadline, paid_once),
    "stable_key": (stable_key, paid_once),
    "look_up": (look_up, known_to_have_succeeded),
    "window": (window, paid_once),
    "fence": (fence, kept_as_evidence),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_with_its_guard_all_is_well(world: World, guard: str):
    scenario, is_well = GUARDS[guard]

    assert is_well(scenario(world))


@pytest.mark.parametrize("guard", GUARDS)
def test_without_its_guard_it_is_not(world: World, settings, guard: str):
    settings.ABLATE = (guard,)
    scenario, is_well = GUARDS[guard]

    assert not is_well(scenario(world))


def test_every_guard_that_can_be_taken_away_is_here():
    assert set(GUARDS) == set(ablation.GUARDS)
