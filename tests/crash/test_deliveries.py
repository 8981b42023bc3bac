"""Messages only wake: doubled, shuffled, delivered to two workers at once or lost, nothing differs.

All the stories run side by side, so that each one's messages come between the others'.
"""

import random
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import connection

from agents import services
from agents.models import ENDED
from tests.agents.desk import line
from tests.crash import oracle
from tests.crash.evidence import gather
from tests.crash.world import Case, World, is_quiet, pass_time, process

pytestmark = pytest.mark.django_db(transaction=True)

Deliver = Callable[[World], None]


@dataclass(frozen=True)
class Story:
    """What a customer wants, who says what, and what must come of it however messages travel."""

    name: str
    kind: str
    outcome: str
    steps: list[str]
    effects: list[tuple[str, int | None]]
    reply: str
    price: int = 4000
    text: str = ""
    answers: list[bool] = field(default_factory=lambda: [True])


_LOOK = ["model", "find_orders:ok", "model"]
STORIES = [
    Story(
        "a broken mug", "refund", "done", [*_LOOK, "refund_order:succeeded", "model"],
        [("refund", 4000)], r"I have refunded \$40\.00 for order ORDER \(reference re_\w+\)\.",
    ),
    Story(
        "an expensive chair", "refund", "done", [*_LOOK, "refund_order:succeeded", "model"],
        [("refund", 40_000)], r"I have refunded \$400\.00 for order ORDER .*", price=40_000,
        answers=[True, True],
    ),
    Story(
        "staff say no", "refund", "refused", [*_LOOK, "refund_order:rejected", "model"],
        [], r".*No\..*", price=40_000, answers=[True, False],
    ),
    Story(
        "the customer says no", "refund", "refused", [*_LOOK, "refund_order:rejected", "model"],
        [], r".*", answers=[False],
    ),
    Story(
        "a cancellation", "cancel", "done", [*_LOOK, "cancel_order:succeeded", "model"],
        [("cancel", None)], r"I have cancelled order ORDER \(reference ch_\w+\)\.",
    ),
    Story(
        "a new address", "change_address", "done",
        [*_LOOK, "change_address:succeeded", "model"],
        [("change_address", None)], r"I have changed the delivery address of order ORDER .*",
    ),
    Story(
        "the end of a talk", "close_ticket", "done", ["model", "close_ticket:succeeded", "model"],
        [], r"I have closed this ticket\..*",
    ),
    Story(
        "where is it", "question", "answered", ["find_orders:ok", "model"],
        [], r".*delivered.*", text="Where is my order ORDER?", answers=[],
    ),
    Story(
        "not theirs", "question", "answered", ["model", "find_orders:not_found", "model"],
        [], r".*", text="Please refund order 9999", answers=[],
    ),
]  # fmt: skip


def in_order(world: World) -> None:
    world.drain()


def doubled_and_shuffled(seed: int) -> Deliver:
    """Every message twice, at any time, between any others."""
    dice = random.Random(seed)  # noqa: S311 - repeatable on purpose

    def deliver(world: World) -> None:
        waiting: list[int] = []
        while world.queue.messages or waiting:
            waiting += [task_id for task_id in world.queue.messages for _ in range(2)]
            world.queue.messages.clear()
            world.deliver(waiting.pop(dice.randrange(len(waiting))))

    return deliver


def to_two_workers_at_once(world: World) -> None:
    while world.queue.messages:
        task_id = world.queue.messages.pop(0)
        start = threading.Barrier(2)
        workers = [
            threading.Thread(target=_come_by, args=(world, task_id, start)) for _ in range(2)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


def lost(world: World) -> None:
    """No message but those of the sweep arrives."""
    world.queue.messages.clear()
    process(services.sweep)
    found = list(world.queue.messages)
    world.queue.messages.clear()
    for task_id in found:
        world.deliver(task_id)


def _come_by(world: World, task_id: int, start: threading.Barrier) -> None:
    start.wait()
    try:
        world.deliver(task_id)
    finally:
        connection.close()


WAYS = {
    "in order": in_order,
    "doubled and shuffled, once": doubled_and_shuffled(1),
    "doubled and shuffled, again": doubled_and_shuffled(2),
    "doubled and shuffled, and again": doubled_and_shuffled(3),
    "to two workers at once": to_two_workers_at_once,
    "all lost": lost,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_story_ends_the_same_however_its_messages_travel(world: World, way: str):
    cases = {story.name: _begin(world, story) for story in STORIES}
    answers = {story.name: list(story.answers) for story in STORIES}

    for _ in range(60):
        WAYS[way](world)
        for name, case in cases.items():
            question = case.question()
            if question is not None and is_quiet(case.task):
                case.decide(question, is_yes=answers[name].pop(0))
            pass_time(case.task_id)
        if all(case.task.status in ENDED for case in cases.values()):
            break

    assert {name: _came_of(case) for name, case in cases.items()} == {
        story.name: (story.outcome, story.steps, story.effects) for story in STORIES
    }
    for story in STORIES:
        told = re.sub(r"\b7\d{4}\b", "ORDER", cases[story.name].reply)
        assert re.fullmatch(story.reply, told, re.DOTALL), told
    for case in cases.values():
        assert oracle.wrong(gather(case.customer, world.shop, world.postbox)) == []
    (mail,) = world.postbox.taken
    assert mail.rcpt_tos == [cases["the end of a talk"].customer.email]


def _begin(world: World, story: Story) -> Case:
    case = world.case(story.kind, price=story.price)
    case.text = story.text.replace("ORDER", case.order_id)
    case.ask()
    return case


def _came_of(case: Case) -> tuple[str, list[str], list[Any]]:
    effects = case.world.shop.effects(order_id=case.order_id)
    return (
        case.task.outcome,
        line(case.task),
        [(effect["kind"], effect["amount"]) for effect in effects],
    )
