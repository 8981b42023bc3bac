"""A reply on its way to the widget: seen by whoever follows its conversation, and by nobody else."""

import pytest

from agents import events
from agents.models import Task
from tests.agents.desk import Desk
from tests.chat.client import Chat, in_thread

pytestmark = pytest.mark.asyncio


async def test_a_reply_is_seen_being_written_in_its_own_conversation_alone(
    desk: Desk, ada: str, bob: str
):
    task = await in_thread(desk.ask)("Where is my order 1045?")
    other = await in_thread(desk.ask)("Where is my order 1042?")
    own, elsewhere, stranger = Chat(), Chat(), Chat()
    await own.hello(ada, ticket=task.ticket_id)
    await elsewhere.hello(ada, ticket=other.ticket_id)
    await stranger.hello(bob)

    delta = None
    while delta is None:  # until the doorbell listens
        await in_thread(events.tell_draft)(task, 2, "It is on its way.")
        if not await own.is_quiet(0.3):
            delta = await own.until(lambda frame: frame["type"] == "delta")
    quiet = [await chat.is_quiet(0.6) for chat in (elsewhere, stranger)]
    for chat in (own, elsewhere, stranger):
        await chat.leave()

    assert delta == {"type": "delta", "task": task.pk, "step": 2, "text": "It is on its way."}
    assert quiet == [True, True]


async def test_the_reply_itself_comes_from_the_rows(desk: Desk, ada: str):
    task: Task = await in_thread(desk.ask)("What is your return policy?")
    chat = Chat()
    await chat.hello(ada, ticket=task.ticket_id)

    await in_thread(desk.work)(task)
    told = await chat.until(
        lambda frame: frame["type"] == "message" and frame["message"]["author"] == "agent"
    )
    await chat.leave()

    deltas = [frame["text"] for frame in chat.frames if frame["type"] == "delta"]
    assert all(told["message"]["text"].startswith(text) for text in deltas)
