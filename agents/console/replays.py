"""A kept replay as people read it: what became of the task beside what would have."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from agents import prompts
from agents.casework import KeptReplay

UNKNOWN = "not told"
ENDS = {
    "replied": "with a reply",
    "handed_off": "handed over to staff",
    "left_record": "where the log has no answer",
}


@dataclass(frozen=True)
class Row:
    """One thing of both runs. Words and numbers are never twice the same; where it `counts` they are."""

    name: str
    then: str
    now: str
    counts: bool = False

    @property
    def differs(self) -> bool:
        return self.counts and self.then != self.now


@dataclass(frozen=True)
class Sight:
    """A replay with its rows; `prompt_url` leads to what differs in the prompt, if its version does."""

    replay: KeptReplay
    rows: Sequence[Row]
    prompt_url: str


def see(replay: KeptReplay) -> Sight:
    then, now = replay.then, replay.now
    rows = [
        Row("Ended", _end(then), _end(now), counts=True),
        Row("Changes", _changes(then), _changes(now), counts=True),
        Row("Steps", str(then["steps"]), str(now["steps"])),
        Row("Tokens", _number(then["tokens"]), _number(now["tokens"])),
        Row("Reply", then["reply"], now["reply"]),
    ]
    return Sight(replay=replay, rows=rows, prompt_url=_prompt_url(replay))


def _end(outcome: dict[str, Any]) -> str:
    ended = ENDS.get(outcome["end"], outcome["end"])
    left_at = outcome["left_at"]
    return f"{ended}: {_call(left_at)}" if left_at else ended


def _changes(outcome: dict[str, Any]) -> str:
    return "\n".join(map(_call, outcome["changes"])) or "none"


def _call(call: Sequence[str]) -> str:
    return " ".join(call)


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def _prompt_url(replay: KeptReplay) -> str:
    versions = (replay.task.prompt_version, replay.prompt_version)
    if versions[0] == versions[1] or not set(versions) <= set(prompts.released("support")):
        return ""
    query = urlencode({"prompt": "support", "a": versions[0], "b": versions[1]})
    return f"{reverse('console:prompts')}?{query}#diff"
