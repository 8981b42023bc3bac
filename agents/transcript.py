"""The prompt, built from the log alone, so that any task can be replayed.

The first message is the same bytes for every task and shop; what differs comes after it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents import engine
from agents.moves import LoggedStep

MAX_HISTORY = 30
# Ids of calls that no model made.
_NOT_BY_MODEL = ("workflow_", "form_")
REPEATED = (
    "Notice from the system: you have made the same call with the same arguments twice and got the "
    "same result. Do something else, ask the customer, or hand off. At the next repeat a person "
    "takes over."
)


@dataclass(frozen=True)
class Said:
    """A message of the ticket. `author` is customer, agent or staff."""

    seq: int
    author: str
    text: str


@dataclass(frozen=True)
class Setting:
    """What the model is told of where it is: the shop, the day, whom it talks to."""

    shop: str
    today: str
    currency: str
    customer: str
    locale: str


def build(
    *,
    prompt: str,
    setting: Setting,
    messages: Sequence[Said],
    steps: Sequence[LoggedStep],
    opening_seq: int,
    heard_seq: int,
) -> list[dict[str, Any]]:
    """The messages of the next model call.

    `messages` are the ticket's; those after `opening_seq` joined while the task was under way and
    stand before the first model step that heard them. Nothing after `heard_seq` is shown.
    """
    built: list[dict[str, Any]] = [
        {"role": "system", "content": prompt},
        {"role": "system", "content": _setting_text(setting)},
    ]
    history = [said for said in messages if said.seq <= opening_seq][-MAX_HISTORY:]
    built += [_spoken(said) for said in history]
    shown = opening_seq
    for step in steps:
        if step.kind == "model":
            built += _joined(messages, shown, step.heard_seq or shown)
            shown = max(shown, step.heard_seq or shown)
        built += _step_messages(step, steps)
    built += _joined(messages, shown, heard_seq)
    if engine.has_repeated(steps):
        built.append({"role": "system", "content": REPEATED})
    return built


def _setting_text(setting: Setting) -> str:
    return "\n".join(
        (
            f"Shop: {setting.shop}",
            f"Today: {setting.today}",
            f"Currency: {setting.currency}",
            f"Customer's first name: {setting.customer or 'not given'}",
            f"Customer's language: {setting.locale}",
        )
    )


def _spoken(said: Said) -> dict[str, Any]:
    if said.author == "customer":
        return {"role": "user", "content": said.text}
    return {"role": "assistant", "content": said.text}


def _joined(messages: Sequence[Said], after: int, through: int) -> list[dict[str, Any]]:
    return [
        _spoken(said)
        for said in messages
        if after < said.seq <= through and said.author == "customer"
    ]


def _step_messages(step: LoggedStep, steps: Sequence[LoggedStep]) -> list[dict[str, Any]]:
    result = step.result or {}
    if step.kind == "model":
        return _model_messages(result, step, steps)
    if step.kind != "tool":
        return []
    answer = {"role": "tool", "tool_call_id": step.call_id, "content": json.dumps(result)}
    if not step.call_id.startswith(_NOT_BY_MODEL):
        return [answer]
    # Made by code or by a form, so there is no model step that asked for it: the call is told with its answer.
    return [_called([(step.call_id, step.tool, step.arguments)], None), answer]


def _model_messages(
    result: dict[str, Any], step: LoggedStep, steps: Sequence[LoggedStep]
) -> list[dict[str, Any]]:
    """What the model said. Calls that were never run are left out: each call needs its answer."""
    run = {later.call_id for later in steps if later.kind == "tool" and later.n > step.n}
    calls = [
        (call["id"], call["name"], call["arguments"])
        for call in result.get("tool_calls", [])
        if call["id"] in run
    ]
    text = str(result.get("text", ""))
    if calls:
        return [_called(calls, text or None)]
    return [{"role": "assistant", "content": text}] if text else []


def _called(calls: list[tuple[str, str, str]], text: str | None) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in calls
        ],
    }
