"""What a call of a tool came to, in one code: for those who count and for those who look for errors."""

from agents.outcomes import OperationStands, ShopAway, StepOutcome, ToolExamined
from tools import gateway
from tools.models import State

# States of a change in which something went wrong at the shop, or may have.
_WRONG = frozenset({State.FAILED, State.UNKNOWN, State.NEEDS_PERSON})


def outcome_of(outcome: StepOutcome) -> str:
    """answered, refused, proposed, hand_off, shop_away, or the state of the change."""
    match outcome:
        case ToolExamined(gateway.Answered()):
            return "answered"
        case ToolExamined(gateway.Refused()):
            return "refused"
        case ToolExamined(gateway.Proposal()):
            return "proposed"
        case ToolExamined():
            return "hand_off"
        case OperationStands(operation):
            return str(operation.state)
        case ShopAway():
            return "shop_away"
        case _:
            return "given_up"


def error_of(outcome: StepOutcome) -> str:
    """The code of what went wrong; "" when nothing did."""
    match outcome:
        case ToolExamined(gateway.Refused(error=error)):
            return error
        case OperationStands(operation) if operation.state in _WRONG:
            return str(operation.state)
        case ShopAway(kind):
            return kind
        case _:
            return ""
