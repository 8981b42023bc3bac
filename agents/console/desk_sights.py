"""What staff see of an operation whose end nobody knows, and of money that came back."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from accounts.models import User
from audit.models import Event
from audit.selectors import EventFilter, filter_events
from tools import settlement, unresolved
from tools.erasing import content_of
from tools.models import Inquiry, InquiryKind, Operation, Reversal, Settlement, State
from tools.seal import BrokenSealError, Card, describe

# Codes of ours, by their beginning, in words; what follows the beginning is added as it is.
_WHY = {
    "look-up failed": "The shop could not be asked for a day",
    "not found and no safe way": "Not found at the shop, and too late to send it again safely",
    "not sent again: ": "Not sent again: ",
    "refused when sent again: ": "Refused when it was sent again: ",
    "mail has no key": "Nobody can tell whether the e-mail went out",
    "look_up_mismatch": "The shop shows something else under this key",
    "webhook_mismatch": "The shop has told of something else under this key",
    "look_up_taken_back": "The shop shows that the money came back to it",
    "webhook_taken_back": "The shop has told that the money came back to it",
    "step_keeps_failing": "The step failed too often",
    "key_reused": "The shop says that the key was used for another request",
    "mismatch": "The answer of the shop is not about what was sent",
    "already_done": "The shop says that nothing was left to do: somebody else came first",
    "broken_seal": "The stored bytes are not the sealed ones",
}
_ASKED = {
    InquiryKind.NO_END: "The shop still calls this refund pending, and is not asked any more",
    InquiryKind.CONTRADICTED: "The shop says something else than how this ended",
}
BROKEN_TITLE = "The sealed bytes do not match their digest"
EVENTS = 100


@dataclass(frozen=True)
class DeskSight:
    """One operation at the desk. Without a `card` its seal is broken."""

    operation: Operation
    card: Card | None = None
    content: dict[str, Any] = field(default_factory=dict)
    proposed: Settlement | None = None
    case: Reversal | None = None
    # What is asked about it, now that it has ended.
    asked: Sequence[Inquiry] = ()

    @property
    def title(self) -> str:
        return self.card.title if self.card else BROKEN_TITLE

    @property
    def destination(self) -> str:
        """Where money goes; "" when none moves."""
        return str(self.content.get("shown", {}).get("destination", ""))

    @property
    def why(self) -> str:
        """Why it lies here, in words."""
        if self.case is not None and self.is_open_case:
            return self.case.reason.replace("_", " ")
        if self.asked:
            return ". ".join(_ASKED[InquiryKind(one.kind)] for one in self.asked)
        reason = self.operation.reason
        for code, words in _WHY.items():
            if reason.startswith(code):
                return (
                    words + reason.removeprefix(code).replace("_", " ")
                    if words[-1] == " "
                    else words
                )
        return reason.replace("_", " ")

    @property
    def since(self) -> datetime | None:
        if self.case is not None:
            return self.case.opened_at
        return self.asked[0].opened_at if self.asked else self.operation.first_sent_at

    @property
    def needs_person(self) -> bool:
        return bool(self.operation.state == State.NEEDS_PERSON)

    @property
    def is_open_case(self) -> bool:
        return self.case is not None and self.case.closed_at is None

    @property
    def is_unresolved(self) -> bool:
        return self.operation.state in unresolved.UNRESOLVED

    @property
    def may_change(self) -> bool:
        """Is there still something to wait for?"""
        return not self.operation.is_final or self.is_open_case or bool(self.asked)

    @property
    def is_about_an_order(self) -> bool:
        return bool(self.content.get("order")) and "facts" in self.content  # gone after an erasure

    @property
    def is_waited_for(self) -> bool:
        """Has the shop more to tell of it: how it ended, or where its money is?"""
        return self.is_unresolved or self.operation.is_on_its_way

    @property
    def can_be_looked_up(self) -> bool:
        return settlement.can_be_looked_up(self.operation)

    @property
    def takes_two(self) -> bool:
        return settlement.needs_second_person(self.operation)

    @property
    def state(self) -> str:
        """What must be equal for the page's forms to still be the right ones."""
        proposed = self.proposed.pk if self.proposed else 0
        return f"{self.operation.state}-{proposed}-{int(self.is_open_case)}-{len(self.asked)}"


@dataclass(frozen=True)
class Desk:
    """All that lies at the desk: what waits for a person, and what is still being looked up."""

    waiting: list[DeskSight]
    looking: list[DeskSight]


def see_desk(user: User, *, limit: int) -> Desk:
    """What this person's shop has at the desk, each part oldest first."""
    operations = unresolved.list_unresolved(shop_id=user.shop_id).prefetch_related(
        "settlements", "inquiries"
    )
    cases = unresolved.list_open_cases(shop_id=user.shop_id)[:limit]
    sights = [see(operation) for operation in operations[:limit]]
    waiting = [sight for sight in sights if sight.needs_person]
    waiting += [see(case.operation, case=case) for case in cases]
    waiting += [see(one) for one in unresolved.list_asked_about(shop_id=user.shop_id)[:limit]]
    return Desk(
        waiting=sorted(waiting, key=lambda sight: (str(sight.since), sight.operation.pk)),
        looking=[sight for sight in sights if not sight.needs_person],
    )


def get_operation(user: User, operation_id: int) -> Operation | None:
    """An operation of this person's shop, whatever has become of it."""
    operations = Operation.objects.filter(pk=operation_id)
    if user.shop_id is not None:
        operations = operations.filter(shop_id=user.shop_id)
    return operations.select_related("customer__shop", "shop", "reversal__event", "transit").first()


def see(operation: Operation, *, case: Reversal | None = None) -> DeskSight:
    """One operation, with what is proposed for it and what came of it since."""
    proposed = next((row for row in operation.settlements.all() if row.status == "open"), None)
    case = case or (operation.reversal if operation.came_back else None)
    asked = sorted((one for one in operation.inquiries.all() if not one.closed_at), key=_by_time)
    try:
        content = content_of(operation)
    except BrokenSealError:
        return DeskSight(operation, proposed=proposed, case=case, asked=asked)
    return DeskSight(operation, describe(content), content, proposed, case, asked)


def _by_time(inquiry: Inquiry) -> datetime:
    return inquiry.opened_at


def list_timeline(operation: Operation) -> Sequence[Event]:
    """What the trail has about this very operation, oldest first."""
    events = filter_events(EventFilter(shop_id=operation.shop_id, task_id=operation.task_id))
    mine = events.filter(subject=f"operation:{operation.idempotency_key}")
    return list(mine.order_by("pk")[:EVENTS])


def list_settlements(operation: Operation) -> list[Settlement]:
    """What people have said of its end, oldest first."""
    return list(operation.settlements.order_by("pk"))
