"""The ticket as a tool sees it: facts to seal, what a closure does to it, and telling its customer.

Tickets live in a layer above. It plugs its own desk in here at the start (`plug_in`), so that the
closure of a ticket is proposed, approved and sent like every other change, and so that what becomes
known of a change after its task has ended is told in the transaction that makes it known.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Protocol

from tools.models import Operation


@dataclass(frozen=True)
class TicketFacts:
    """What a closure rests on: a change in any of these voids what was approved.

    `last_heard` is the number of the last message that was not the agent's own: whoever writes
    meanwhile has more to say. `done` lists the ticket's changes that truly happened, in words, and
    `locale` is the one in which code speaks there.
    """

    ticket: int
    is_open: bool
    speaker: str
    last_heard: int
    recipient: str
    done: tuple[str, ...]
    locale: str

    def as_facts(self) -> dict[str, Any]:
        """What is sealed. Not the locale: the words that it leads to are sealed themselves."""
        facts = asdict(self)
        del facts["locale"]
        facts["done"] = list(self.done)
        return facts


class TicketDesk(Protocol):
    """What the layer of tickets offers to tools."""

    def look(self, *, ticket_id: int, closure: str) -> TicketFacts:
        """The facts now. A ticket that this closure (its idempotency key) closed counts as open."""
        ...

    def close(self, *, ticket_id: int, closure: str, now: datetime) -> None:
        """Close the ticket in the caller's transaction; closing it again changes nothing."""
        ...

    def reopen(self, *, ticket_id: int, closure: str, now: datetime) -> None:
        """Open the ticket that this closure closed, in the caller's transaction; or change nothing."""
        ...

    def hold(self, *, task_id: int) -> None:
        """Lock the task in the caller's transaction, before its operation: it cannot end meanwhile."""
        ...

    def tell_outcome(self, operation: Operation, *, now: datetime) -> None:
        """Tell the customer how a change ended, in the caller's transaction.

        A task that still is under way tells it itself; hold it first.
        """
        ...

    def open_case(self, operation: Operation, *, now: datetime) -> None:
        """Hand the ticket to staff and tell the customer that their money came back to the shop.

        In the caller's transaction.
        """
        ...

    def take_back(self, operation: Operation, *, now: datetime) -> None:
        """Hand the ticket to staff and tell the customer that this was made, other than they were told.

        In the caller's transaction.
        """
        ...


_plugged: list[TicketDesk] = []


def plug_in(desk: TicketDesk) -> None:
    """Name the desk that holds the tickets; called once, at the start."""
    _plugged[:] = [desk]


def desk() -> TicketDesk:
    """The desk that was plugged in."""
    return _plugged[0]
