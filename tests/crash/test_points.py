"""Every point of the crash table with every fault and every kind of change; then the oracle.

Each test is one customer's whole request. At one point of it the process that comes by is struck,
once. Afterwards leases run out, messages are as lost as the fault left them, the sweep goes round,
people answer when they are asked; and the shop's ledger shows the change once.
"""

import hashlib

import pytest

from agents.models import Task
from tests.crash import oracle
from tests.crash.evidence import gather
from tests.crash.faults import (
    CommitFault,
    CommitStrike,
    Fault,
    Strike,
    around_commits,
    struck,
)
from tests.crash.points import at_every_point
from tests.crash.world import KINDS, Case, World
from tools.trigger import Point

pytestmark = pytest.mark.django_db(transaction=True)

# How often a request that nothing happens to comes by each point, and commits, for each kind.
LONG = {
    "C01": 1, "C02": 7, "C03": 7, "C04": 7, "C05": 6, "C06": 3, "C07": 3, "C08": 2, "C09": 1,
    "C10": 2, "C11": 2, "C12": 1, "C13": 1, "C14": 1, "C15": 1, "C16": 1, "C17": 1, "C18": 6,
    "C19": 15, "C20": 20,
}  # fmt: skip
SHORT = LONG | {
    "C02": 5, "C03": 5, "C04": 5, "C05": 4, "C06": 2, "C07": 2, "C08": 1, "C18": 4, "C19": 11,
    "C20": 13,
}  # fmt: skip
HITS = {kind: SHORT if kind == "close_ticket" else LONG for kind in KINDS}
POINTS = [point for point in Point if point is not Point.C20]


def a_hit(point: Point, fault: Fault, kind: str) -> int:
    """Which of its visits to the point is struck: another one for each test, always the same."""
    seed = hashlib.sha256(f"{point.name} {fault.name} {kind}".encode()).digest()
    return seed[0] % HITS[kind][point.name] + 1


def assert_all_is_well(case: Case, task: Task) -> None:
    """The change happened once, as approved, and its customer was told so, once."""
    world = case.world
    seen = gather(case.customer, world.shop, world.postbox, world.model.calls())
    assert oracle.wrong(seen) == []
    (operation,) = case.operations
    if operation.state == "needs_person":
        # An e-mail of which nobody knows is never sent again, and the customer is told just that.
        assert (case.kind, task.reason) == ("close_ticket", "mail_outcome_unknown")
        assert "not be sent twice" in case.reply
        return
    assert operation.state == "succeeded"
    assert (task.status, task.outcome) == ("succeeded", "done"), case.reply
    assert seen.happened(operation) == 1
    assert case.kind == "close_ticket" or operation.reference in case.reply


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_passes_every_point_as_often_as_the_tests_below_count_on(world: World, kind: str):
    case = world.case(kind)
    seen: dict[str, int] = {}
    commits = CommitStrike(CommitFault.TOOK_EFFECT, hit=0)

    def count(point: Point) -> None:
        seen[point.name] = seen.get(point.name, 0) + 1

    with at_every_point(count), around_commits(commits.around_commit):
        task = case.live()

    assert seen | {"C20": commits.seen} == HITS[kind]
    assert_all_is_well(case, task)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name.lower())
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_whoever_is_struck_at_a_point_the_change_happens_once(
    world: World, point: Point, fault: Fault, kind: str
):
    case = world.case(kind)

    with struck(Strike(case, point, fault, a_hit(point, fault, kind))) as strike:
        task = case.live()

    assert strike.is_spent
    assert_all_is_well(case, task)


@pytest.mark.parametrize("fault", CommitFault, ids=lambda fault: fault.name.lower())
@pytest.mark.parametrize(
    ("kind", "hit"),
    [(kind, hit) for kind in KINDS for hit in range(1, HITS[kind]["C20"] + 1)],
)
def test_whichever_commit_goes_unacknowledged_the_change_happens_once(
    world: World, kind: str, hit: int, fault: CommitFault
):
    case = world.case(kind)
    strike = CommitStrike(fault, hit)

    with around_commits(strike.around_commit):
        task = case.live()

    assert strike.seen >= hit
    assert_all_is_well(case, task)


def test_the_trail_of_all_this_holds(world: World):
    world.case("refund").live()

    assert oracle.trail_faults() == []
