"""What staff are shown of a question: everything from the sealed bytes, by code."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts.models import User
from approvals import selectors
from approvals.models import Approval, ApprovalStatus
from tools.explain import why_staff
from tools.models import Operation
from tools.seal import BrokenSealError, Card, describe, open_seal

PRESSING = timedelta(hours=1)
BROKEN_TITLE = "The sealed bytes do not match their digest"


@dataclass(frozen=True)
class Sight:
    """A question as a person sees it. Without a `card` the seal is broken and nothing can be decided."""

    approval: Approval
    operation: Operation
    why: str
    card: Card | None = None
    content: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return self.card.title if self.card else BROKEN_TITLE

    @property
    def is_open(self) -> bool:
        return bool(self.approval.status == ApprovalStatus.OPEN)

    @property
    def may_change(self) -> bool:
        """Is there still something to wait for?"""
        return self.is_open or not self.operation.is_final

    @property
    def is_pressing(self) -> bool:
        """Is less than an hour left to answer?"""
        return self.is_open and self.approval.expires_at - timezone.now() < PRESSING

    @property
    def needs_password(self) -> bool:
        """Money asks for the approver's password again."""
        return self.operation.amount is not None

    @property
    def is_about_an_order(self) -> bool:
        """Are there facts that the shop can be asked for?"""
        return bool(self.content.get("order"))

    @property
    def destination(self) -> str:
        """Where money goes; "" when none moves."""
        return str(self.content.get("shown", {}).get("destination", ""))

    @property
    def state(self) -> str:
        """What must be equal for the page to still tell the truth."""
        return f"{self.approval.status}-{self.operation.state}"


def list_queue(user: User, *, limit: int) -> tuple[list[Sight], int]:
    """What this person's shop asks of staff, oldest deadline first, and how many there are in all."""
    waiting = selectors.list_open_for_staff(shop_id=user.shop_id)
    return see_all(list(waiting[:limit])), waiting.count()


def see(approval: Approval) -> Sight:
    return see_all([approval])[0]


def see_all(approvals: Sequence[Approval]) -> list[Sight]:
    """Sights of these questions, whose operations and customers are at hand."""
    why = why_staff([approval.operation for approval in approvals])
    return [_sight(approval, why.get(approval.operation_id, "")) for approval in approvals]


def _sight(approval: Approval, why: str) -> Sight:
    operation = approval.operation
    try:
        content = open_seal(operation.seal, operation.digest)
    except BrokenSealError:
        return Sight(approval, operation, why)
    return Sight(approval, operation, why, describe(content), content)
