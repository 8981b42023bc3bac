"""Operations and their evidence, verdicts, switches, and the shop's policy documents."""

from tools.models.adapters import Adapter, AdapterState
from tools.models.documents import PolicyDocument, PolicyPassage
from tools.models.evidence import Attempt, AttemptOutcome, Observation, ShopEvent
from tools.models.operations import (
    AUTHORISED,
    FINAL,
    MAX_AMOUNT,
    OPEN,
    SENT,
    UNSENT,
    Kind,
    Operation,
    State,
)
from tools.models.rules import Finding, Gate, Switch, Verdict
from tools.models.settlements import Reversal, Settlement, SettlementStatus

__all__ = [
    "AUTHORISED",
    "FINAL",
    "MAX_AMOUNT",
    "OPEN",
    "SENT",
    "UNSENT",
    "Attempt",
    "Adapter",
    "AdapterState",
    "AttemptOutcome",
    "Finding",
    "Gate",
    "Kind",
    "Observation",
    "Operation",
    "PolicyDocument",
    "PolicyPassage",
    "Reversal",
    "Settlement",
    "SettlementStatus",
    "ShopEvent",
    "State",
    "Switch",
    "Verdict",
]
