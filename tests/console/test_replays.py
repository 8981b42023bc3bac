"""A kept replay on the task's page: what became of it beside what another model would have made of it."""

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone

from accounts.models import ErasureCause
from agents import replay
from agents.casework import KeptReplay
from agents.models import Task
from agents.services import erasure, replays
from audit.models import Event
from tests.agents.conftest import desk, model_process
from tests.agents.desk import Desk
from tests.agents.test_replay import MODEL, run, says, scripted
from tests.console.desk import make_person, text_of

__all__ = ["desk", "model_process"]

NO = "I am <b>afraid</b> not.\u202e"


@pytest.fixture
def mug(desk: Desk) -> Task:
    return desk.done("My mug from order 1042 arrived broken, please refund it")


@pytest.fixture
def reader(shop, sign_in):
    return sign_in(make_person(None, "root", role="admin"))


def replay_command(task: Task, *options: str) -> None:
    with pytest.raises(SystemExit):
        call_command("replay", str(task.pk), "--model", MODEL, *options)


def page_of(client, task: Task) -> str:
    return text_of(client.get(reverse("console:task", args=[task.pk])))


def test_a_kept_replay_stands_beside_what_became_of_the_task(mug, reader, monkeypatch):
    monkeypatch.setattr(replay, "ask_model", scripted(says(NO)))

    replay_command(mug, "--keep")

    page = page_of(reader, mug)
    section = page[page.index('id="replays"') :]
    assert f"{MODEL}, prompt v1" in section
    assert ">different</span>" in section
    assert "&quot;order_id&quot;: &quot;1042&quot;" in section
    assert '<th scope="row">Changes<span class="hidden">, different</span></th>' in section
    assert '<td class="words">none</td>' in section
    assert "I am &lt;b&gt;afraid&lt;/b&gt; not.[U+202E]" in section
    assert "What differs in the prompt" not in section  # it is the same version
    (event,) = Event.objects.filter(action="task.replayed")
    assert (event.task_id, event.data) == (
        mug.pk,
        {"model": MODEL, "prompt": "v1", "same": False},
    )


def test_a_replay_that_came_to_the_same_says_so(mug, reader):
    call_command("replay", str(mug.pk), "--keep")

    page = page_of(reader, mug)
    section = page[page.index('id="replays"') :]
    assert ">the same</span>" in section
    assert "differs" not in section


def test_nothing_is_kept_unless_it_is_asked_for(mug, reader, monkeypatch):
    monkeypatch.setattr(replay, "ask_model", scripted(says(NO)))

    replay_command(mug)

    assert not KeptReplay.objects.exists()
    assert 'id="replays"' not in page_of(reader, mug)


def test_where_the_log_had_no_answer_is_shown(mug, reader):
    verdict = run(mug, says("", ("find_orders", {"order_id": "9999"})))
    replays.keep(verdict, prompt_version="v1", model=MODEL, now=timezone.now())

    page = page_of(reader, mug)

    assert (
        "where the log has no answer: find_orders {&quot;order_id&quot;: &quot;9999&quot;}" in page
    )


def test_another_prompt_version_leads_to_what_differs_in_it(mug, reader, monkeypatch):
    verdict = run(mug, says(NO))
    replays.keep(verdict, prompt_version="v2", model=MODEL, now=timezone.now())
    monkeypatch.setattr("agents.prompts.released", lambda _: ["v1", "v2"])

    page = page_of(reader, mug)

    assert "/console/prompts/?prompt=support&amp;a=v1&amp;b=v2#diff" in page


def test_the_newest_five_are_shown(mug, reader):
    verdict = run(mug, says(NO))
    for n in range(6):
        replays.keep(verdict, prompt_version="v1", model=f"candidate-{n}", now=timezone.now())

    page = page_of(reader, mug)

    assert "candidate-5" in page
    assert "candidate-0" not in page


def test_it_goes_with_the_customers_words_and_does_not_come_back(mug, monkeypatch):
    verdict = run(mug, says(NO))
    replays.keep(verdict, prompt_version="v1", model=MODEL, now=timezone.now())

    erasure.erase_customer(
        customer_id=mug.customer_id, cause=ErasureCause.ASKED, by="staff:ann", now=timezone.now()
    )

    assert not KeptReplay.objects.exists()
    with pytest.raises(replay.NotReplayableError):
        replays.keep(verdict, prompt_version="v1", model=MODEL, now=timezone.now())
    monkeypatch.setattr(replay, "compare", lambda *_, **__: verdict)
    with pytest.raises(CommandError, match="have been erased"):
        call_command("replay", str(mug.pk), "--keep")
    assert not KeptReplay.objects.exists()
    assert Event.objects.filter(action="task.replayed").count() == 1
