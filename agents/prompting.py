"""From a claimed model step to the request that is sent: messages, tools, and their worst case."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from zoneinfo import ZoneInfo

from django.conf import settings

from agents import llm, prompts, transcript
from agents.budgets import Amount
from agents.models import Step, Task
from agents.moves import LoggedStep
from agents.transcript import Said, Setting
from tools.registry import SCHEMAS
from tools.text import clean

# How a planned model step says that it may only phrase results (kept in its arguments).
PHRASE_ONLY = "phrase_only"
MAX_FIRST_NAME = 40


@dataclass(frozen=True)
class Request:
    """What a model call sends, and its worst case for the budgets."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    tool_choice: Literal["auto", "none"]
    worst: Amount


def request_for(
    task: Task,
    step: Step,
    *,
    steps: Sequence[LoggedStep],
    messages: Sequence[Said],
    now: datetime,
    prompt_version: str = "",
) -> Request:
    """The request of a model step, from the log alone; with the task's own prompt unless told otherwise.

    Raises prompts.PromptError.
    """
    is_phrasing = step.arguments == PHRASE_ONLY
    name = "phrase" if is_phrasing else "support"
    built = transcript.build(
        prompt=prompts.load(name, prompt_version or task.prompt_version),
        setting=_setting(task, now),
        messages=messages,
        steps=steps,
        opening_seq=task.opening_seq,
        heard_seq=step.heard_seq or task.opening_seq,
    )
    prompt_tokens = llm.estimate_tokens(built, SCHEMAS)
    return Request(
        messages=built,
        tools=SCHEMAS,
        tool_choice="none" if is_phrasing else "auto",
        worst=Amount(
            tokens=prompt_tokens + settings.MODEL_MAX_OUTPUT,
            cost=llm.cost(
                llm.Usage(prompt=prompt_tokens, cached=0, completion=settings.MODEL_MAX_OUTPUT)
            ),
        ),
    )


def _setting(task: Task, now: datetime) -> Setting:
    return Setting(
        shop=task.shop.name,
        today=now.astimezone(ZoneInfo(task.shop.time_zone)).date().isoformat(),
        currency=task.shop.currency,
        # It stands in a system message: a short word, with nothing in it that cannot be seen.
        customer=clean(task.customer.first_name, MAX_FIRST_NAME)[:MAX_FIRST_NAME],
        locale=task.customer.locale,
    )
