"""The vocabulary of the engine: what a log is, and the moves that can follow it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LoggedStep:
    """A finished step as the engine sees it. `heard_seq`: last message a model call was shown."""

    n: int
    kind: str
    tool: str
    call_id: str
    arguments: str
    result: dict[str, Any] | None
    has_effect: bool = False
    heard_seq: int | None = None


@dataclass(frozen=True)
class CallTool:
    name: str
    arguments: str
    call_id: str


@dataclass(frozen=True)
class Log:
    """All that decides the next move. Code speaks in `locale`."""

    workflow: str
    request: str
    max_steps: int
    steps: tuple[LoggedStep, ...]
    has_unheard_message: bool = False
    locale: str = "en"


@dataclass(frozen=True)
class CallModel:
    """Ask the model. `phrase_only`: it may only put results into words, not call tools."""

    phrase_only: bool = False


@dataclass(frozen=True)
class Reply:
    """End the task with this text. A template is code's own wording, not the model's."""

    text: str
    is_template: bool = False


@dataclass(frozen=True)
class HandOff:
    """A person takes over; `reason` is a code, `detail` what the model said, if it asked."""

    reason: str
    detail: str = ""


Move = CallModel | CallTool | Reply | HandOff
