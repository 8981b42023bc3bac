"""A saved task once more, with another prompt or model, and with nothing that could act.

The engine decides from a log alone, so a task can be run again from its own: the model is asked anew,
and every tool call is answered by what the log holds for that very call. Nothing is looked up, sent
or written. A call that the log cannot answer ends the replay, since nobody knows what would have
come of it; what was about to be done is compared with what was done.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.db import transaction

from agents import engine, forms, llm, prompting, store
from agents.models import ENDED, Step, StepKind, StepStatus, Task, TaskStatus
from agents.moves import CallModel, CallTool, HandOff, Log, LoggedStep, Reply
from agents.prompting import PHRASE_ONLY
from agents.replies import ModelReply, Usage
from agents.transcript import Said
from tools.outside import leave_database

Ask = Callable[[prompting.Request, str], ModelReply]


class LiveAdapterError(TypeError):
    """A replay was given tools that could act; it was not begun."""


class NotReplayableError(ValueError):
    """The task is under way, was decided by no model, or its words have been erased."""


@dataclass(frozen=True)
class Call:
    """A tool call as it is compared: the order of its arguments' keys does not matter."""

    tool: str
    arguments: str

    @classmethod
    def of(cls, tool: str, arguments: str) -> "Call":
        try:
            return cls(tool, json.dumps(json.loads(arguments), sort_keys=True))
        except (ValueError, RecursionError):
            return cls(tool, arguments)


class RecordedTools:
    """Answers a call with what the log holds for it: the first time the first answer, and so on."""

    def __init__(self, steps: Sequence[LoggedStep]) -> None:
        self._answers: dict[Call, list[dict[str, Any]]] = {}
        for step in steps:
            if step.kind == StepKind.TOOL and step.result is not None:
                self._answers.setdefault(Call.of(step.tool, step.arguments), []).append(step.result)

    def answer(self, call: Call) -> dict[str, Any] | None:
        """The recorded result, or None. The last one answers every further time."""
        answers = self._answers.get(call)
        if not answers:
            return None
        return answers.pop(0) if len(answers) > 1 else answers[0]


@dataclass(frozen=True)
class Recording:
    """A task that has ended, read whole; nothing of it is written back."""

    task: Task
    request: str
    steps: tuple[LoggedStep, ...]
    messages: tuple[Said, ...]


@dataclass(frozen=True)
class Outcome:
    """How a run came out. `changes`: the calls of effect tools in their order.

    `end` is replied, handed_off or left_record; `left_at` the call that the log could not answer.
    Costs are millionths of a US dollar; None when the provider did not say.
    """

    end: str
    changes: tuple[Call, ...]
    steps: int
    reply: str = ""
    left_at: Call | None = None
    tokens: int | None = 0
    cost: int | None = 0

    def as_json(self) -> dict[str, Any]:
        """The same for JSON: calls are pairs of a tool and the text of its arguments."""
        left_at = self.left_at
        return {
            "end": self.end,
            "changes": [[call.tool, call.arguments] for call in self.changes],
            "left_at": [left_at.tool, left_at.arguments] if left_at else None,
            "steps": self.steps,
            "tokens": self.tokens,
            "cost": self.cost,
            "reply": self.reply,
        }


@dataclass(frozen=True)
class Verdict:
    """The saved run beside the new one."""

    task_id: int
    then: Outcome
    now: Outcome

    @property
    def is_same(self) -> bool:
        """Would the same be asked of people and the shop, and the task end the same way?"""
        return (self.then.changes, self.then.end) == (self.now.changes, self.now.end)


def load(task_id: int) -> Recording:
    """Read a task that has ended. Raises NotReplayableError, or Task.DoesNotExist."""
    with transaction.atomic(durable=True):
        rows = Task.objects.select_related("shop", "customer__shop", "ticket")
        task = rows.get(pk=task_id)
        if task.status not in ENDED:
            raise NotReplayableError(f"task {task_id} is still under way")
        if task.workflow == forms.WORKFLOW:
            raise NotReplayableError(f"task {task_id} was a form: no model decided in it")
        steps = task.steps.filter(status=StepStatus.FINISHED).order_by("n")
        logged = tuple(store.logged(step) for step in steps)
        messages = tuple(store.said_in(task.ticket_id))
    request = next((said.text for said in messages if said.seq == task.opening_seq), "")
    if not request:
        raise NotReplayableError(f"what task {task_id} was asked is not there any more")
    return Recording(task=task, request=request, steps=logged, messages=messages)


def recorded(recording: Recording) -> Outcome:
    """How the saved run came out."""
    task, steps = recording.task, recording.steps
    said = [text for text in (_text(step) for step in steps) if text]
    return Outcome(
        end="handed_off" if task.status == TaskStatus.HANDED_OFF else "replied",
        changes=_changes(steps),
        steps=len(steps),
        reply=said[-1] if said else "",
        tokens=task.tokens_spent,
        cost=task.cost_spent,
    )


def _text(step: LoggedStep) -> str:
    return str((step.result or {}).get("text", "")) if step.kind == StepKind.MODEL else ""


class Replay:
    """One run of a recording with a prompt version and a model."""

    def __init__(
        self,
        recording: Recording,
        tools: RecordedTools,
        *,
        prompt_version: str,
        model: str,
        ask: Ask | None = None,
    ) -> None:
        """Raises LiveAdapterError. `ask` takes a request and a model; without it the model is asked."""
        # By its very type: what merely looks like recorded tools could still act.
        if type(tools) is not RecordedTools:
            raise LiveAdapterError("A replay takes recorded tools and nothing else")
        self._task = recording.task
        self._recording = recording
        self._tools = tools
        self._prompt_version = prompt_version
        self._model = model
        self._ask = ask or ask_model
        self._steps: list[LoggedStep] = []
        self._usages: list[Usage | None] = []
        # What the customer had said by each model call then is what it is shown now.
        self._heard = [step.heard_seq for step in recording.steps if step.heard_seq is not None]

    def run(self) -> Outcome:
        """Run to its end. Raises what asking the model raises."""
        while True:
            move = engine.next_move(self._log())
            match move:
                case CallModel():
                    self._call_model(move)
                case CallTool():
                    call = Call.of(move.name, move.arguments)
                    result = self._tools.answer(call)
                    if result is None:
                        return self._outcome("left_record", left_at=call)
                    self._add(
                        StepKind.TOOL,
                        result,
                        tool=move.name,
                        call_id=move.call_id,
                        arguments=move.arguments,
                    )
                case Reply():
                    return self._outcome("replied", reply=move.text)
                case HandOff():
                    return self._outcome("handed_off")

    def _log(self) -> Log:
        return Log(
            workflow=self._task.workflow,
            request=self._recording.request,
            max_steps=self._task.max_steps,
            steps=tuple(self._steps),
            locale=self._task.ticket.spoken,
        )

    def _call_model(self, move: CallModel) -> None:
        n = len(self._steps) + 1
        asked = sum(step.kind == StepKind.MODEL for step in self._steps)
        heard = self._heard[min(asked, len(self._heard) - 1)] if self._heard else None
        arguments = PHRASE_ONLY if move.phrase_only else ""
        request = prompting.request_for(
            self._task,
            Step(n=n, kind=StepKind.MODEL, arguments=arguments, heard_seq=heard),
            prompt_version=self._prompt_version,
            steps=self._steps,
            messages=self._recording.messages,
            now=self._task.created_at,
        )
        reply = self._ask(request, self._model)
        self._usages.append(reply.usage)
        self._add(StepKind.MODEL, reply.as_result(n), heard_seq=heard)

    def _add(self, kind: StepKind, result: dict[str, Any], **fields: Any) -> None:
        blank: dict[str, Any] = {"tool": "", "call_id": "", "arguments": ""}
        step = LoggedStep(n=len(self._steps) + 1, kind=kind, result=result, **(blank | fields))
        self._steps.append(replace(step, has_effect=step.tool in store.EFFECT_TOOLS))

    def _outcome(self, end: str, *, reply: str = "", left_at: Call | None = None) -> Outcome:
        changes = _changes(self._steps)
        if left_at is not None and left_at.tool in store.EFFECT_TOOLS:
            changes += (left_at,)
        known = [usage for usage in self._usages if usage is not None]
        is_known = len(known) == len(self._usages)
        return Outcome(
            end=end,
            changes=changes,
            steps=len(self._steps),
            reply=reply,
            left_at=left_at,
            tokens=sum(use.prompt + use.completion for use in known) if is_known else None,
            cost=sum(map(llm.cost, known)) if is_known else None,
        )


def ask_model(request: prompting.Request, model: str) -> ModelReply:
    """Ask the configured endpoint."""
    return llm.complete(
        model=model,
        messages=request.messages,
        tools=request.tools,
        tool_choice=request.tool_choice,
        max_output_tokens=settings.MODEL_MAX_OUTPUT,
    )


def compare(task_id: int, *, prompt_version: str, model: str) -> Verdict:
    """Replay a task and set it beside what it was.

    Never inside a transaction: it asks the model. Raises NotReplayableError, Task.DoesNotExist,
    prompts.PromptError and what asking the model raises.
    """
    recording = load(task_id)
    leave_database()
    replay = Replay(
        recording, RecordedTools(recording.steps), prompt_version=prompt_version, model=model
    )
    return Verdict(task_id=task_id, then=recorded(recording), now=replay.run())


def _changes(steps: Sequence[LoggedStep]) -> tuple[Call, ...]:
    return tuple(Call.of(step.tool, step.arguments) for step in steps if step.has_effect)
