"""What a run of one step can come to, between the outside call and the record of it."""

from dataclasses import dataclass

from agents.llm import ModelReply
from tools import gateway
from tools.models import Operation


@dataclass(frozen=True)
class ModelAnswered:
    reply: ModelReply


@dataclass(frozen=True)
class ModelFailed:
    """No usable answer. `is_final`: trying again cannot help (the endpoint refuses us)."""

    kind: str
    retry_after: float | None = None
    is_final: bool = False
    may_be_charged: bool = False


@dataclass(frozen=True)
class ToolExamined:
    """A call that went through the gates that need no lock."""

    examined: gateway.Refused | gateway.Answered | gateway.Proposal | gateway.HandOffAsked


@dataclass(frozen=True)
class OperationStands:
    """An operation after a send or a look-up, wherever it stands now."""

    operation: Operation


@dataclass(frozen=True)
class ShopAway:
    """The shop could not be asked; nothing was changed there.

    `retry_after` is in seconds, where it is known when to ask again. `is_known`: nobody was asked,
    since it is known already that the shop does not answer.
    """

    kind: str
    retry_after: float | None = None
    is_known: bool = False


@dataclass(frozen=True)
class GiveUp:
    """The step cannot be run any more: its task is handed to a person for this reason."""

    reason: str


StepOutcome = ModelAnswered | ModelFailed | ToolExamined | OperationStands | ShopAway | GiveUp
