"""Kill switches, for every registered tool and every scope: nothing is sent, what waits stays."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.utils import timezone

from tests.agents.desk import line
from tests.crash import oracle
from tests.crash.evidence import gather
from tests.crash.waiting import assert_true, go_on, states, waiting
from tests.crash.world import World
from tools import registry, switches
from tools.models import Switch

pytestmark = pytest.mark.django_db(transaction=True)

SCOPES = ("everything", "shop", "tool", "tool of this shop")
EFFECTS = {
    "refund_order": "refund",
    "cancel_order": "cancel",
    "change_address": "change_address",
    "close_ticket": "close_ticket",
}
ASKED: dict[str, dict[str, Any]] = {
    "find_orders": {},
    "track_parcel": {"order_id": "ORDER"},
    "search_policy": {"question": "How long may I return things?"},
    "hand_off": {"reason": "asked"},
    "refund_order": {"order_id": "ORDER", "reason": "damaged"},
    "cancel_order": {"order_id": "ORDER", "reason": "other"},
    "change_address": {
        "order_id": "ORDER",
        "address": {
            "name": "Ada Lovelace",
            "line1": "12 High Street",
            "city": "Springfield",
            "region": "IL",
            "postal_code": "62704",
            "country": "US",
        },
    },
    "close_ticket": {"resolution": "All is well."},
}


@pytest.fixture
def throw(world: World) -> Iterator[Callable[[str, str], Callable[[], None]]]:
    """Throw a kill switch; gives what releases it again. None stays thrown after the test."""

    def throw(scope: str, tool: str) -> Callable[[], None]:
        where: dict[str, Any] = {
            "shop": world.row if "shop" in scope else None,
            "tool": tool if "tool" in scope else "",
            "reason": "An incident.",
            "by": "admin:root",
            "now": timezone.now(),
        }
        switches.throw(**where)

        def release() -> None:
            switches.release(**where)

        return release

    yield throw
    Switch.objects.update(is_off=False)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("tool", EFFECTS)
def test_what_was_agreed_waits_while_its_switch_is_thrown_and_then_happens_once(
    world: World, throw: Callable[..., Callable[[], None]], tool: str, scope: str
):
    case = waiting(world, EFFECTS[tool], "agreed")
    release = throw(scope, tool)
    world.shop.forget_calls()

    world.queue.messages.append(case.task_id)
    world.drain()
    assert states(case) == [("approved", "")]
    assert case.task.status == "waiting_approval"
    assert gather(case.customer, world.shop).sends == []
    assert case.operations[0].attempts.count() == 0
    assert world.postbox.taken == []
    assert case.task.ticket.status == "open"

    release()
    task = go_on(case)
    assert (task.status, task.outcome) == ("succeeded", "done")
    seen = gather(case.customer, world.shop, world.postbox)
    assert seen.happened(case.operations[0]) == 1
    assert oracle.wrong(seen) == []


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("tool", list(registry.TOOLS))
def test_no_call_of_any_tool_is_taken_while_its_switch_is_thrown(
    world: World, throw: Callable[..., Callable[[], None]], settings, tool: str, scope: str
):
    case = world.case(EFFECTS.get(tool, "refund"))
    arguments = {
        name: case.order_id if value == "ORDER" else value for name, value in ASKED[tool].items()
    }
    settings.MODEL = world.model.script(
        f"ask-{tool}",
        [
            {"tool_calls": [{"name": tool, "arguments": arguments}]},
            {"content": "A person can help with this."},
        ],
    )
    throw(scope, tool)
    world.shop.forget_calls()

    case.text = "Please do it"
    case.ask()
    task = world.work(case.task_id)

    assert line(task) == ["model", f"{tool}:tool_off", "model"]
    assert (task.status, case.operations) == ("succeeded", [])
    assert world.shop.calls() == []
    assert world.postbox.taken == []
    assert_true(case)


def test_the_switches_are_shown_for_every_registered_tool():
    assert set(ASKED) == set(registry.TOOLS)
    assert set(EFFECTS) == {tool.name for tool in registry.EFFECTS.values()}
