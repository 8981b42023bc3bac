"""What staff are shown of a question: everything from the sealed bytes, by code."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from accounts.models import Role, User
from approvals import inbox, selectors
from approvals.attention import level_of
from approvals.entitlement import Bar, in_words
from approvals.models import STAFF_ROLES, Approval, ApprovalStatus, Handling
from tools.erasing import content_of, is_erased
from tools.explain import why_staff
from tools.facts import Fact, differences
from tools.models import Operation
from tools.seal import BrokenSealError, Card, describe

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
    flags: Sequence[str] = ()
    # Names of the colleagues who have its page open.
    watchers: Sequence[str] = ()
    # "warning" or "late" once it has waited for so long in working hours; "" before.
    level: str = ""
    # Where two of staff are asked: the question to the other one, once it was put.
    other: Approval | None = None
    # In a list: why whoever looks may not answer it; "" when they may.
    bar: str = ""

    @property
    def is_of_two(self) -> bool:
        """Are two different members of staff asked about it?"""
        return Role.SECOND_STAFF in self.operation.required_roles

    @property
    def is_second(self) -> bool:
        return bool(self.approval.role == Role.SECOND_STAFF)

    @property
    def handling(self) -> Handling | None:
        """Whose it is and until when it is put off; None while nobody has said."""
        return getattr(self.approval, "handling", None)

    @property
    def is_put_off(self) -> bool:
        until = self.handling.snoozed_until if self.handling else None
        return self.is_open and until is not None and until > timezone.now()

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
        return bool(self.content.get("order")) and "facts" in self.content  # gone after an erasure

    @property
    def destination(self) -> str:
        """Where money goes; "" when none moves."""
        return str(self.content.get("shown", {}).get("destination", ""))

    @property
    def state(self) -> str:
        """What must be equal for the page to still tell the truth."""
        return f"{self.approval.status}-{self.operation.state}"


def list_inbox(
    user: User, wanted: inbox.InboxFilter, *, limit: int, now: datetime
) -> tuple[list[Sight], int]:
    """The questions that match, as this person sees them, and how many there are in all."""
    found = inbox.list_inbox(user, wanted, now=now)
    return see_all(list(found[:limit]), viewer=user), found.count()


def see(approval: Approval, *, viewer: User) -> Sight:
    """One question as this person sees it now."""
    return see_fresh([approval], viewer=viewer)[0]


def see_fresh(approvals: Sequence[Approval], *, viewer: User) -> list[Sight]:
    """Questions as this person sees them now, in the order given."""
    return see_all(inbox.with_flags(approvals, now=timezone.now()), viewer=viewer)


def see_all(approvals: Sequence[Approval], *, viewer: User) -> list[Sight]:
    """Sights of questions that `inbox` gave, so that all that belongs to them is at hand."""
    why = why_staff([approval.operation for approval in approvals])
    return [_sight(approval, why.get(approval.operation_id, ""), viewer) for approval in approvals]


def _sight(approval: Approval, why: str, viewer: User) -> Sight:
    operation = approval.operation
    now = timezone.now()
    is_open = approval.status == ApprovalStatus.OPEN
    level = level_of(operation.shop, asked_at=approval.asked_at, now=now) if is_open else None
    told: dict[str, Any] = {
        "level": level.value if level else "",
        "other": _other(approval),
        "bar": _bar(approval, viewer) if is_open else "",
        "flags": inbox.flags_of(approval),
        "watchers": [
            watch.user.get_full_name() or watch.user.get_username()
            for watch in approval.watches.all()
            if watch.user_id != viewer.pk
        ],
    }
    try:
        content = content_of(operation)
    except BrokenSealError:
        return Sight(approval, operation, why, **told)
    return Sight(approval, operation, why, describe(content), content, **told)


def _bar(approval: Approval, viewer: User) -> str:
    bar = getattr(approval, "bar", "")
    return in_words(Bar(bar), approval.operation, user_id=viewer.pk) if bar else ""


def _other(approval: Approval) -> Approval | None:
    asked = approval.operation.approvals.all()
    others = [each for each in asked if each.role in STAFF_ROLES and each.pk != approval.pk]
    return others[0] if others else None


@dataclass(frozen=True)
class Successor:
    """What came instead of a superseded question, and what differs from it."""

    operation: Operation
    title: str
    differences: Sequence[Fact]


def successor_of(sight: Sight) -> Successor | None:
    """None while the agent has proposed nothing anew, or where a seal is broken or erased."""
    later = selectors.successor_of(sight.operation)
    if later is None or is_erased(later) or not sight.content.get("facts"):
        return None
    try:
        content = content_of(later)
    except BrokenSealError:
        return None
    return Successor(later, describe(content).title, differences(sight.content, content))
