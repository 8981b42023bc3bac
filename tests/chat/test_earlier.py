"""A conversation longer than a snapshot shows is there to its beginning."""

import pytest
from django.utils import timezone

from agents import store
from agents.chat import picture
from agents.models import Author, Task
from tests.agents.desk import Desk
from tests.chat.client import Chat, in_thread

pytestmark = pytest.mark.asyncio


async def test_earlier_messages_come_when_asked_for(desk: Desk, ada: str, monkeypatch):
    monkeypatch.setattr(picture, "MAX_MESSAGES", 3)
    task = await in_thread(desk.ask)("Where is my order 1045?")
    await in_thread(_say)(task, count=7)
    chat = Chat()

    shown = await chat.hello(ada, ticket=task.ticket_id)
    answers = []
    for before in (6, 3, 1):
        await chat.send(type="earlier", before=before)
        answers.append(await chat.until(lambda frame: frame["type"] == "earlier"))
    await chat.leave()

    assert ([item["seq"] for item in shown["messages"]], shown["has_earlier"]) == ([6, 7, 8], True)
    assert [([item["seq"] for item in one["messages"]], one["has_earlier"]) for one in answers] == [
        ([3, 4, 5], True),
        ([1, 2], False),
        ([], False),
    ]


async def test_nobody_pages_through_another_conversation(desk: Desk, ada: str, bob: str):
    await in_thread(desk.ask)("Where is my order 1045?")
    stranger = Chat()
    await stranger.hello(bob)

    await stranger.send(type="earlier", before=100)
    told = await stranger.until(lambda frame: frame["type"] == "earlier")
    await stranger.leave()

    assert told == {"type": "earlier", "messages": [], "has_earlier": False}


def _say(task: Task, *, count: int) -> None:
    for n in range(count):
        store.add_message(
            task.ticket, author=Author.AGENT, text=f"{n}", now=timezone.now(), is_template=True
        )
