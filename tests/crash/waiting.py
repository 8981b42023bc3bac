"""Tasks that wait for people, and what is asked of them afterwards."""

from typing import Any

from accounts.models import Customer
from agents.models import ENDED, Task
from tests.crash import oracle
from tests.crash.evidence import gather
from tests.crash.world import Case, World


def waiting(world: World, kind: str, when: str = "asked", **fields: Any) -> Case:
    """A task that waits for its customer's yes; or has it, and no worker has come by yet."""
    case = world.case(kind, **fields)
    case.ask()
    world.work(case.task_id)
    if when == "agreed":
        agree(case)
    return case


def agree(case: Case) -> None:
    """Everybody who is asked says yes, and nobody does anything about it yet."""
    while (question := case.question()) is not None:
        case.decide(question)
    case.world.queue.messages.clear()


def go_on(case: Case, *, until_asked: bool = False) -> Task:
    """Workers come by; whoever is asked says yes."""
    for _ in range(6):
        task = case.world.work(case.task_id)
        if task.status in ENDED or (until_asked and case.question() is not None):
            return task
        agree(case)
    raise AssertionError(f"{task} does not end: {task.status}")


def states(case: Case) -> list[tuple[str, str]]:
    return [(operation.state, operation.reason) for operation in case.operations]


def effects(case: Case) -> list[tuple[str, int | None]]:
    found = case.world.shop.effects(order_id=case.order_id)
    return [(effect["kind"], effect["amount"]) for effect in found if effect["idempotency_key"]]


def assert_true(case: Case) -> None:
    """Nothing that the oracle knows is otherwise."""
    seen = gather(Customer.objects.get(pk=case.customer.pk), case.world.shop, case.world.postbox)
    assert oracle.wrong(seen) == []
