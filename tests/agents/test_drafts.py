"""A reply while it is written: whole sentences, none that is not true, and nothing rests on it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import claims, events
from agents.models import Task
from audit.models import Event
from tests.agents.desk import Desk, reply

TRUE = (
    "I looked at order 1042.",
    "It was delivered on Friday!",
    "Is there anything else?",
    "Refunds take five days.",
)
FALSE = ("I have refunded $40.00 to your card.", "Your order is cancelled.")


@pytest.fixture
def drafts(monkeypatch) -> list[str]:
    told: list[str] = []

    def tell(_task: Task, _step_n: int, text: str) -> bool:
        told.append(text)
        return True

    monkeypatch.setattr(events, "tell_draft", tell)
    return told


def says(desk: Desk, settings: Any, text: str) -> Task:
    """A task whose model says this and no more."""
    settings.MODEL = desk.model.script("drafts", [{"content": text}])
    return desk.work(desk.ask("Please tell me about my order, all of it"))


def test_a_reply_is_told_sentence_by_sentence_and_then_said(desk: Desk, settings, drafts):
    text = " ".join(TRUE)

    task = says(desk, settings, text)

    assert drafts == [" ".join(TRUE[:count]) for count in range(1, len(TRUE))]
    assert reply(task) == text


@pytest.mark.parametrize("at", [0, 1, 3])
@pytest.mark.parametrize("false", FALSE)
def test_what_is_not_true_is_never_shown_nor_what_follows_it(
    desk: Desk, settings, drafts, at: int, false: str
):
    task = says(desk, settings, " ".join([*TRUE[:at], false, *TRUE[at:], "Bye."]))

    assert all(claims.unproven(text, succeeded=frozenset()) == frozenset() for text in drafts)
    assert drafts == [" ".join(TRUE[:count]) for count in range(1, at + 1)]
    assert reply(task) == "Nothing has been changed so far."
    assert Event.objects.filter(task_id=task.pk, action="reply.replaced").count() == 1


def test_with_nobody_to_tell_the_reply_comes_all_the_same(desk: Desk, settings, monkeypatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(events, "async_to_sync", lambda _send: refuse)

    task = says(desk, settings, " ".join(TRUE))

    assert reply(task) == " ".join(TRUE)


SENTENCES = st.lists(
    st.sampled_from([*TRUE, *FALSE, "Nothing was changed.", "It is done."]), max_size=6
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(sentences=SENTENCES, refunded=st.booleans())
def test_no_later_sentence_makes_an_earlier_one_untrue(sentences: list[str], refunded: bool):
    """So whatever a true reply was drafted as was true already."""
    succeeded = frozenset({"refund"}) if refunded else frozenset[str]()
    whole = " ".join(sentences)
    for count in range(len(sentences)):
        part = " ".join(sentences[:count])
        assert claims.unproven(part, succeeded=succeeded) <= claims.unproven(
            whole, succeeded=succeeded
        )
        assert claims.denied(
            part, open_or_unknown=frozenset(), succeeded=succeeded
        ) <= claims.denied(whole, open_or_unknown=frozenset(), succeeded=succeeded)
