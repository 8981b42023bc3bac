"""Two versions of the code side by side: each finishes the other's tasks, or leaves them as they are."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from agents import abilities, dispatch, prompts, services, store
from agents.models import Step, Task
from audit.models import Event
from config.celery import app
from tests.agents.desk import Desk, line, steps


class Versions:
    """Lets this process be a worker of an older version, or of this one again."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self._ours = abilities.ours()

    def be_older(self, *, without: str) -> None:
        assert without in self._ours
        older = [word for word in self._ours if word != without]
        self._patch.setattr(abilities, "ours", lambda: older)

    def be_this(self) -> None:
        self._patch.setattr(abilities, "ours", lambda: self._ours)


@pytest.fixture
def versions(monkeypatch) -> Versions:
    return Versions(monkeypatch)


def rows(task: Task) -> tuple[object, ...]:
    """All that a worker could have changed of a task."""
    return (
        Task.objects.filter(pk=task.pk).values().get(),
        list(Step.objects.filter(task=task).order_by("n").values()),
        Event.objects.filter(task_id=task.pk).count(),
    )


@pytest.mark.parametrize(
    ("text", "unknown", "done"),
    [
        ("Please refund order 1042", "kind:model", []),
        ("Please refund order 1042", "kind:tool", ["model"]),
        ("Please refund order 1042", "tool:refund_order", ["model", "find_orders:ok", "model"]),
        ("Please refund order 1042", "prompt:v1", []),
        ("Where is my order 1045?", "workflow:order_status", []),
        ("Where is my order 1045?", "tool:track_parcel", ["find_orders:ok"]),
    ],
)  # fmt: skip
def test_an_older_worker_leaves_a_step_that_it_does_not_know_as_it_is(
    desk: Desk, versions, text, unknown, done
):
    task = desk.ask(text)
    versions.be_older(without=unknown)
    task = desk.work(task)
    assert [*line(task)[: len(done)], len(steps(task))] == [*done, len(done) + 1]
    before, asked, called = rows(task), len(desk.model.calls()), len(desk.shop.calls())

    for _ in range(5):
        services.advance(task_ids=[task.pk])
    services.sweep()

    assert rows(task) == before
    assert (len(desk.model.calls()), len(desk.shop.calls())) == (asked, called)
    assert task.pk not in store.find_ready()
    planned = steps(task)[-1]
    assert (planned.status, planned.attempts, planned.lost) == ("planned", 0, 0)

    versions.be_this()
    assert task.pk in store.find_ready()
    task = desk.work(task)
    assert (task.status, task.outcome) in {("waiting_approval", ""), ("succeeded", "answered")}
    assert {step.attempts for step in steps(task)} == {1}


def test_workers_of_two_versions_finish_one_task_between_them(desk: Desk, versions):
    task = desk.ask("Please refund order 1042")

    for turn in range(20):
        if turn % 2:
            versions.be_this()
        else:
            versions.be_older(without="tool:refund_order")
        task = desk.advance(task)
        if task.status == "waiting_approval":
            versions.be_older(without="tool:close_ticket")
            task = desk.say_yes(task)

    assert (task.status, task.outcome) == ("succeeded", "done")
    assert [effect["amount"] for effect in desk.shop.effects(order_id="1042")] == [4000]
    assert {(step.attempts, step.lost) for step in steps(task)} <= {(1, 0), (2, 0)}


def test_a_tool_that_the_model_made_up_is_refused_by_whatever_version(desk: Desk, versions):
    desk.model.script("invented", [{"tool_calls": [{"name": "grant_wish", "arguments": "{}"}]}])
    task = desk.ask("Please refund order 1042")
    Task.objects.filter(pk=task.pk).update(model="script:invented")
    task = desk.advance(task)
    versions.be_older(without="tool:close_ticket")

    task = desk.advance(task)

    made_up = steps(task)[1]
    assert (made_up.tool, made_up.needs) == ("grant_wish", "kind:tool")
    assert (made_up.status, made_up.verdict.split()[0]) == ("finished", "deny:")
    assert desk.shop.effects() == []


def test_steps_planned_before_versions_were_noted_are_anybodys(desk: Desk, versions):
    task = desk.ask("Please refund order 1042")
    Step.objects.filter(task=task).update(needs="")
    versions.be_older(without="tool:refund_order")

    assert line(desk.advance(task))[0] == "model"


# --- Prompts --------------------------------------------------------------------------------------


@pytest.fixture
def release(tmp_path, monkeypatch):
    """Releases a second version of the prompts, as a new version of the code would bring it."""
    folder = tmp_path / "prompts"
    shutil.copytree(prompts.FOLDER, folder)
    monkeypatch.setattr(prompts, "FOLDER", folder)

    def forget() -> None:
        for cached in (prompts.load, prompts._manifest, abilities._known):
            cached.cache_clear()

    def bring(version: str, addition: str) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        for name in ("support", "phrase"):
            data = (folder / name / "v1.md").read_bytes() + addition.encode()
            (folder / name / f"{version}.md").write_bytes(data)
            manifest["released"][name][version] = hashlib.sha256(data).hexdigest()
            manifest["current"][name] = version
        (folder / "manifest.json").write_text(json.dumps(manifest))
        forget()

    yield bring
    monkeypatch.undo()
    forget()


def system_prompts(desk: Desk) -> list[str]:
    return [call["body"]["messages"][0]["content"] for call in desk.model.calls(bodies=True)]


def test_a_task_begun_under_one_prompt_is_finished_under_it_by_the_next_version(
    desk: Desk, release
):
    task = desk.advance(desk.ask("Please refund order 1042"))
    first = prompts.load("support", "v1")

    release("v2", "\nBe brief.\n")
    task = desk.say_yes(desk.work(task))
    later = desk.work(desk.ask("Please refund order 1043"))

    assert (task.status, task.outcome, task.prompt_version) == ("succeeded", "done", "v1")
    assert {step.prompt_version for step in steps(task) if step.kind == "model"} == {"v1"}
    assert later.prompt_version == "v2"
    said = system_prompts(desk)
    new = said.index(first + "\nBe brief.\n")
    assert set(said[:new]) == {first}
    assert first not in said[new:]


def test_a_task_begun_under_a_newer_prompt_is_left_to_the_newer_version(
    desk: Desk, release, versions
):
    release("v2", "\nBe brief.\n")
    newer = Versions(pytest.MonkeyPatch())
    task = desk.ask("Please refund order 1042")
    assert task.prompt_version == "v2"
    newer.be_older(without="prompt:v2")
    before = rows(task)

    services.advance(task_ids=[task.pk])

    assert rows(task) == before
    assert desk.model.calls() == []
    newer.be_this()
    assert desk.work(task).status == "waiting_approval"
    newer._patch.undo()


# --- Messages -------------------------------------------------------------------------------------


def test_every_job_tolerates_what_a_newer_version_adds_to_its_message(desk: Desk):
    task = desk.ask("Please refund order 1042")

    app.tasks[dispatch.ADVANCE](task_ids=[task.pk], trace="a newer word", batch={"n": 1})
    for name in (dispatch.SWEEP, dispatch.EXPIRE, dispatch.TELL_SHOPS):
        app.tasks[name](trace="a newer word")

    assert line(task)[0] == "model"
    ours = {name for name in app.tasks if not name.startswith("celery.")}
    assert {dispatch.ADVANCE, dispatch.SWEEP, dispatch.EXPIRE, dispatch.TELL_SHOPS} <= ours
    for name in ours:
        assert app.tasks[name].run.__code__.co_flags & 0x08, f"{name} takes no spare keywords"


def test_no_released_prompt_is_ever_left_out():
    """A task may wait for weeks, so what began under a version needs its file for good."""
    manifest = json.loads((Path(prompts.FOLDER) / "manifest.json").read_text())

    for name, files in manifest["released"].items():
        assert manifest["current"][name] in files
        for version in files:
            assert prompts.load(name, version)
