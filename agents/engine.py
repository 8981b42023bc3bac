"""What to do next: a pure function of the step log.

Given the same log, the next move is always the same. Nothing here reads a clock, a row or a
socket; the store turns rows into a `Log` and moves into rows.
"""

import json
from collections.abc import Sequence
from typing import Any

from agents import forms, workflows
from agents.moves import CallModel, CallTool, HandOff, Log, LoggedStep, Move, Reply

# The same call with the same outcome: told once after the second, handed off at the third.
REPEATS = 3
MAX_EMPTY_REPLIES = 2
REFUSING_ERRORS = frozenset(
    {
        "order_state",
        "already_refunded",
        "outside_window",
        "over_captured",
        "currency_mismatch",
        "bad_line",
        "bad_address",
        "bad_arguments",
        "another_change_in_progress",
        "already_rejected",
        "not_authorised",
        "not_found",
        "tool_off",
    }
)


def next_move(log: Log) -> Move:
    """The move that follows a log whose last step, if any, is finished."""
    if log.workflow and not _has_left_workflow(log):
        return workflows.next_move(log)
    if not log.steps:
        return _within_cap(log, CallModel())
    last = log.steps[-1]
    if last.tool == "hand_off" and "error" not in (last.result or {}):
        return HandOff("asked_for_a_person", (last.result or {}).get("reason", ""))
    pending = _pending_calls(log.steps)
    if pending:
        return _call_tool(log, pending[0])
    if last.kind == "model":
        return _after_model(log, last)
    return _within_cap(log, CallModel())


def outcome_of(steps: Sequence[LoggedStep]) -> str:
    """What a task that ends with a reply came to: done, refused or answered.

    Done: a change succeeded. Refused: a change was asked for and none succeeded.
    """
    changes = [step.result or {} for step in steps if step.has_effect]
    if any(change.get("state") == "succeeded" for change in changes):
        return "done"
    if any("state" in change or change.get("error") in REFUSING_ERRORS for change in changes):
        return "refused"
    return "answered"


def has_repeated(steps: Sequence[LoggedStep]) -> bool:
    """Has some call been made twice or more with the same arguments and the same result?"""
    return any(count >= REPEATS - 1 for count in _repeats(steps).values())


def _has_left_workflow(log: Log) -> bool:
    """Once the customer has said more than the workflow answers, the loop goes on from its log."""
    if log.workflow == forms.WORKFLOW:
        return forms.is_left(log)
    asked = [step for step in log.steps if step.kind == "model"]
    is_phrased = bool(asked) and log.steps[-1] is asked[0]
    return bool(asked) and (not is_phrased or log.has_unheard_message)


def _after_model(log: Log, last: LoggedStep) -> Move:
    result = last.result or {}
    if log.has_unheard_message:
        return _within_cap(log, CallModel())
    text = str(result.get("text", "")).strip()
    if text and not result.get("is_truncated"):
        return Reply(text)
    empty = 0
    for step in reversed(log.steps):
        if step.kind != "model" or (step.result or {}).get("tool_calls"):
            break
        empty += 1
    if empty > MAX_EMPTY_REPLIES:
        return HandOff("model_gave_no_answer")
    return _within_cap(log, CallModel())


def _call_tool(log: Log, call: dict[str, Any]) -> Move:
    key = _call_key(call["name"], call["arguments"])
    seen = [count for (name, _), count in _repeats(log.steps).items() if name == key]
    if seen and max(seen) >= REPEATS - 1:
        return HandOff("same_call_repeated")
    return _within_cap(log, CallTool(call["name"], call["arguments"], call["id"]))


def _pending_calls(steps: Sequence[LoggedStep]) -> list[dict[str, Any]]:
    """The calls of the latest model step that no later step has run, in the model's order."""
    for index in range(len(steps) - 1, -1, -1):
        if steps[index].kind == "model":
            calls = (steps[index].result or {}).get("tool_calls", [])
            return list(calls[len(steps) - 1 - index :])
    return []


def _repeats(steps: Sequence[LoggedStep]) -> dict[tuple[str, str], int]:
    """How often each call with its result stands in the log since the facts last moved.

    A change that was superseded is looked at and proposed anew: that is no loop, and people
    are asked each time.
    """
    counts: dict[tuple[str, str], int] = {}
    for step in steps:
        if step.has_effect and (step.result or {}).get("state") == "superseded":
            counts.clear()
        elif step.kind == "tool":
            key = (
                _call_key(step.tool, step.arguments),
                json.dumps(step.result, sort_keys=True),
            )
            counts[key] = counts.get(key, 0) + 1
    return counts


def _call_key(name: str, arguments: str) -> str:
    """A call's identity, whatever the order of its keys or its blanks."""
    try:
        canonical = json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        canonical = arguments
    return f"{name}({canonical})"


def _within_cap(log: Log, move: CallModel | CallTool) -> Move:
    """The last step that the cap allows is kept for the hand-off."""
    return move if len(log.steps) + 1 < log.max_steps else HandOff("step_limit")
