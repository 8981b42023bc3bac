"""A task's step log as people read it: each step with its verdicts, approvals, sends and times."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from agents import events
from agents.console.timeline import Bar, Timeline
from agents.models import Step, StepKind, Task
from approvals.models import Approval
from audit.canonical import rfc3339
from tools.explain import list_verdicts
from tools.models import Operation, Verdict
from tools.reasons import Reason, reasons_of

PAGE = 100
# A longer result is cut on the task's page; the step's own page has all of it.
CUT = 4_000


@dataclass(frozen=True)
class Text:
    """A JSON value or a text in full, and what of it a crowded page shows."""

    full: str
    limit: int

    @property
    def shown(self) -> str:
        return self.full[: self.limit]

    @property
    def is_cut(self) -> bool:
        return len(self.full) > self.limit


@dataclass(frozen=True)
class StepSight:
    """One step with everything that belongs to it."""

    step: Step
    label: str
    outcome: str
    took: timedelta | None
    bar: Bar | None
    arguments: Text
    said: str
    result: Text
    verdicts: Sequence[Verdict]
    reasons: Sequence[Reason]
    operation: Operation | None
    approvals: Sequence[Approval]


def see_page(task: Task, number: int, *, limit: int = CUT) -> list[StepSight]:
    """The steps of one page of a task, counted from one."""
    first = (number - 1) * PAGE + 1
    return _see(task, task.steps.filter(n__gte=first, n__lt=first + PAGE), limit=limit)


def see_step(task: Task, n: int) -> StepSight | None:
    """One step in full."""
    found = _see(task, task.steps.filter(n=n), limit=10**9)
    return found[0] if found else None


def line_of(task: Task) -> Timeline:
    """The stretch of time on which the bars of all its steps lie."""
    return Timeline.of(task)


def page_count(task: Task) -> int:
    return max(1, -(-task.steps_planned // PAGE))


def page_of(n: int) -> int:
    """The page that a step is on."""
    return max(1, -(-n // PAGE))


def _see(task: Task, steps: Any, *, limit: int) -> list[StepSight]:
    rows = list(
        steps.select_related("operation")
        .prefetch_related("operation__attempts", "operation__observations", "operation__approvals")
        .order_by("n")
    )
    if not rows:
        return []
    verdicts = _verdicts_by_step(task, rows)
    line = Timeline.of(task)
    return [_sight(row, line, verdicts[row.n], limit) for row in rows]


def _sight(step: Step, line: Timeline, verdicts: Sequence[Verdict], limit: int) -> StepSight:
    operation = step.operation
    approvals = sorted(operation.approvals.all(), key=lambda asked: asked.pk) if operation else []
    result, said = _result_of(step)
    return StepSight(
        step=step,
        label=_label(step),
        outcome=events.step_outcome(step) or step.status,
        took=_took(step),
        bar=line.bar(step, approvals),
        arguments=Text(_readable(step.arguments), limit),
        said=said,
        result=Text(result, limit),
        verdicts=verdicts,
        reasons=reasons_of(verdicts),
        operation=operation,
        approvals=approvals,
    )


def _label(step: Step) -> str:
    if step.kind == StepKind.TOOL:
        return step.tool
    return "hand-off" if step.kind == StepKind.HAND_OFF else "model call"


def _took(step: Step) -> timedelta | None:
    if step.started_at is None or step.finished_at is None:
        return None
    return step.finished_at - step.started_at


def _result_of(step: Step) -> tuple[str, str]:
    """The result as JSON; the words of a model step stand apart from it, as its words."""
    if step.result is None:
        return "", ""
    result = dict(step.result)
    said = str(result.pop("text", "")) if step.kind == StepKind.MODEL else ""
    return _pretty(result), said


def _readable(arguments: str) -> str:
    """Arguments as proposed: indented when they are JSON, as they came when not."""
    try:
        return _pretty(json.loads(arguments))
    except (ValueError, RecursionError):
        return arguments


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _verdicts_by_step(task: Task, rows: Sequence[Step]) -> dict[int, list[Verdict]]:
    found: dict[int, list[Verdict]] = defaultdict(list)
    only = rows[0].n if len(rows) == 1 else None
    for verdict in list_verdicts(task_id=task.pk, step_n=only):
        found[verdict.step_n].append(verdict)
    return found


def as_json(task: Task) -> dict[str, Any]:
    """The whole log, lossless, for a file: what the page shows and nothing from outside it."""
    steps = list(
        task.steps.select_related("operation")
        .prefetch_related("operation__attempts", "operation__observations", "operation__approvals")
        .order_by("n")
    )
    verdicts = defaultdict(list)
    for verdict in list_verdicts(task_id=task.pk):
        verdicts[verdict.step_n].append(_fields(verdict, skip=("id", "task_id", "step_n")))
    return {
        "format": 1,
        "task": _fields(task),
        "steps": [
            {
                **_fields(step, skip=("id", "task_id")),
                "verdicts": verdicts[step.n],
                "operation": _operation_json(step.operation) if step.operation else None,
            }
            for step in steps
        ],
    }


def _operation_json(operation: Operation) -> dict[str, Any]:
    return {
        **_fields(operation, skip=("seal",)),
        "sealed": bytes(operation.seal).decode(),
        "pending": operation.is_on_its_way,
        "approvals": [_fields(row, skip=("id",)) for row in operation.approvals.all()],
        "attempts": [_fields(row, skip=("id",)) for row in operation.attempts.all()],
        "observations": [_fields(row, skip=("id",)) for row in operation.observations.all()],
    }


def _fields(row: Any, *, skip: Sequence[str] = ()) -> dict[str, Any]:
    """A row's columns as JSON values."""
    values = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    return {name: _plain(value) for name, value in values.items() if name not in skip}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return rfc3339(value)
    return value if isinstance(value, dict | list | int | bool | None | str) else str(value)
