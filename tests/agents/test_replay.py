"""A saved task tried with another model or prompt: compared, and without any way to act."""

import json
from collections.abc import Callable
from io import StringIO

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.utils import timezone

from agents import prompts, replay
from agents.models import Task
from agents.prompting import Request
from agents.replies import ModelReply, ToolCall, Usage
from tests.agents.desk import Desk
from tools import gateway

MODEL = "candidate"


def says(text: str = "", *calls: tuple[str, dict[str, object]]) -> ModelReply:
    return ModelReply(
        text=text,
        tool_calls=tuple(
            ToolCall(id="x", name=name, arguments=json.dumps(arguments))
            for name, arguments in calls
        ),
        finish_reason="tool_calls" if calls else "stop",
        usage=Usage(prompt=10, cached=0, completion=5),
        model=MODEL,
        response_id="r",
    )


def scripted(*replies: ModelReply) -> Callable[[Request, str], ModelReply]:
    """A model that answers so in turn, and its last answer for ever."""
    left = list(replies)
    return lambda request, model: left.pop(0) if len(left) > 1 else left[0]


def run(task: Task, *replies: ModelReply) -> replay.Verdict:
    recording = replay.load(task.pk)
    tried = replay.Replay(
        recording,
        replay.RecordedTools(recording.steps),
        prompt_version="v1",
        model=MODEL,
        ask=scripted(*replies),
    )
    return replay.Verdict(task.pk, replay.recorded(recording), tried.run())


def everything() -> dict[str, list[dict[str, object]]]:
    """Every row of every table of ours."""
    ours = {"agents", "approvals", "tools", "accounts", "audit"}
    return {
        model._meta.label: list(model._default_manager.order_by("pk").values())
        for model in apps.get_models()
        if model._meta.app_label in ours
    }


@pytest.fixture
def mug(desk: Desk) -> Task:
    """A refund that was asked for, agreed to and made."""
    return desk.done("My mug from order 1042 arrived broken, please refund it")


def test_the_same_model_and_prompt_come_to_the_same(desk: Desk, mug: Task):
    before, ledger = everything(), desk.shop.ledger()

    verdict = replay.compare(mug.pk, prompt_version=mug.prompt_version, model=mug.model)

    assert verdict.is_same, verdict
    assert [call.tool for call in verdict.now.changes] == ["refund_order"]
    assert verdict.now.steps == verdict.then.steps
    assert verdict.now.tokens
    assert everything() == before
    assert desk.shop.ledger() == ledger, "the shop was asked nothing"


def test_arguments_in_another_order_are_the_same_call(mug: Task):
    (call,) = replay.recorded(replay.load(mug.pk)).changes
    turned = dict(reversed(json.loads(call.arguments).items()))

    verdict = run(mug, says("", (call.tool, turned)), says("It is refunded."))

    assert verdict.is_same
    assert verdict.now.reply == "It is refunded."


@pytest.mark.parametrize(
    ("call", "is_change"),
    [
        (("refund_order", {"order_id": "1043", "reason": "damaged"}), True),
        (("cancel_order", {"order_id": "1042", "reason": "other"}), True),
        (("refund_order", {"order_id": "1042", "amount": "4000.00", "reason": "other"}), True),
        (("find_orders", {"order_id": "1046"}), False),
        (("no_such_tool", {}), False),
    ],
    ids=["another order", "another change", "another sum", "a look elsewhere", "an unknown tool"],
)
def test_a_call_that_the_log_cannot_answer_ends_it_and_reaches_nobody(
    desk: Desk, mug: Task, call, is_change
):
    before, ledger = everything(), desk.shop.ledger()

    verdict = run(mug, says("", call))

    assert not verdict.is_same
    assert verdict.now.end == "left_record"
    assert verdict.now.left_at == replay.Call.of(call[0], json.dumps(call[1]))
    assert (verdict.now.left_at in verdict.now.changes) is is_change
    assert everything() == before
    assert desk.shop.ledger() == ledger


def test_a_model_that_no_longer_refunds_differs(mug: Task):
    verdict = run(mug, says("No."))

    assert not verdict.is_same
    assert (verdict.now.changes, verdict.now.end) == ((), "replied")


def test_a_model_that_repeats_itself_is_stopped_as_it_would_be(mug: Task):
    recording = replay.load(mug.pk)
    look = next(step for step in recording.steps if step.tool == "find_orders")

    verdict = run(mug, says("", (look.tool, json.loads(look.arguments))))

    assert verdict.now.end == "handed_off"
    assert verdict.now.steps < mug.max_steps


def test_an_unknown_charge_is_unknown(mug: Task):
    reply = says("No.")
    verdict = run(mug, ModelReply(**(vars(reply) | {"usage": None})))

    assert (verdict.now.tokens, verdict.now.cost) == (None, None)


class _Dressed(replay.RecordedTools):
    """What looks like recorded tools, and could do anything."""


@pytest.mark.parametrize("tools", [gateway, _Dressed(()), None, object()])
def test_it_is_not_begun_with_tools_that_could_act(mug: Task, tools):
    with pytest.raises(replay.LiveAdapterError):
        replay.Replay(replay.load(mug.pk), tools, prompt_version="v1", model=MODEL)


def test_a_task_under_way_is_not_replayed(desk: Desk):
    task = desk.work(desk.ask("Please refund order 1042"))

    with pytest.raises(replay.NotReplayableError, match="under way"):
        replay.load(task.pk)


def test_a_prompt_that_was_never_released_is_refused(mug: Task):
    with pytest.raises(prompts.PromptError):
        replay.compare(mug.pk, prompt_version="v999", model=MODEL)


def test_a_workflow_is_replayed_too(desk: Desk):
    task = desk.done("Where is my order 1045?")

    assert replay.compare(task.pk, prompt_version="v1", model=task.model).is_same


def test_the_command_says_what_differs_and_fails(desk: Desk, mug: Task, monkeypatch):
    out = StringIO()
    call_command("replay", str(mug.pk), stdout=out)
    assert "1 of 1 the same" in out.getvalue()

    monkeypatch.setattr(replay, "ask_model", scripted(says("No.")))
    out = StringIO()
    with pytest.raises(SystemExit) as failed:
        call_command("replay", str(mug.pk), "--json", stdout=out)
    assert failed.value.code == 1
    said = json.loads(out.getvalue())
    assert (said["task"], said["same"], said["now"]["changes"]) == (mug.pk, False, [])
    with pytest.raises(CommandError):
        call_command("replay", "999999")


def test_what_a_customer_was_shown_then_is_shown_now(desk: Desk, mug: Task):
    shown = []

    def look(request: Request, model: str) -> ModelReply:
        shown.append(request.messages)
        return says("No.")

    recording = replay.load(mug.pk)
    tools = replay.RecordedTools(recording.steps)
    replay.Replay(recording, tools, prompt_version="v1", model=MODEL, ask=look).run()

    (messages,) = shown
    assert messages[-1] == {
        "role": "user",
        "content": "My mug from order 1042 arrived broken, please refund it",
    }
    assert mug.created_at <= timezone.now()
    assert mug.created_at.date().isoformat()[:4] in messages[1]["content"]
