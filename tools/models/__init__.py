"""Operations and their evidence, verdicts, switches, the ways to shops, and policy documents."""

from tools.models.adapters import Adapter, AdapterState
from tools.models.documents import PolicyDocument, PolicyPassage
from tools.models.evidence import Attempt, AttemptOutcome, Observation, ShopEvent
from tools.models.history import History, LookFirst
from tools.models.operations import (
    ALREADY_DONE,
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
from tools.models.settlements import (
    Inquiry,
    InquiryKind,
    Reversal,
    Settlement,
    SettlementStatus,
    Transit,
)

__all__ = [
    "ALREADY_DONE",
    "AUTHORISED",
    "FINAL",
    "MAX_AMOUNT",
    "OPEN",
    "SENT",
    "UNSENT",
    "Adapter",
    "AdapterState",
    "Attempt",
    "AttemptOutcome",
    "Finding",
    "Gate",
    "History",
    "Inquiry",
    "InquiryKind",
    "Kind",
    "LookFirst",
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
    "Transit",
    "Verdict",
]
