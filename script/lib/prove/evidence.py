"""What is known after a run: our rows, the shop's ledger, and what was told meanwhile.

Plain values only, so that every judgement can be tested on made-up evidence. Amounts are minor
units; times are aware.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

# States of an operation in which nothing may ever have happened at the shop under its key.
NEVER_SENT = frozenset({"failed", "rejected", "expired", "superseded", "cancelled"})
UNDECIDED = frozenset({"awaiting_approval", "approved", "sending", "unknown"})
ENDED = frozenset({"succeeded", "failed", "cancelled", "handed_off"})


@dataclass(frozen=True, kw_only=True)
class Effect:
    """One line of the shop's ledger: it happened. Without a key it was done by hand."""

    id: str
    kind: str
    customer: str
    order_id: str
    at: datetime
    key: str | None
    amount: int | None = None
    currency: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Call:
    """A write as it reached the shop."""

    at: datetime
    method: str
    path: str
    key: str | None
    status: int | None = None


@dataclass(frozen=True, kw_only=True)
class Approval:
    """One role's answer. `decided_at` is None while there is none."""

    role: str
    status: str
    digest: str
    decided_by: str = ""
    decided_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One try at sending, under the epoch of the claim that made it."""

    n: int
    epoch: int
    outcome: str
    detail: str
    request_digest: str


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One sealed change with everything that is on record about it."""

    id: int
    key: str
    task_id: int
    ticket_id: int
    customer: str
    kind: str
    order_id: str
    state: str
    seal: bytes
    digest: str
    reason: str = ""
    reference: str = ""
    amount: int | None = None
    required_roles: tuple[str, ...] = ("customer",)
    approvals: tuple[Approval, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    # Look-ups by key that the shop answered with "not found".
    misses: int = 0

    @property
    def was_sent(self) -> bool:
        return any(attempt.outcome != "not_sent" for attempt in self.attempts)


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task as it stood at the end. `is_whole`: its steps are numbered 1..n and all finished."""

    id: int
    ticket_id: int
    status: str
    outcome: str = ""
    reason: str = ""
    is_whole: bool = True


@dataclass(frozen=True, kw_only=True)
class Said:
    """Something that the agent wrote to a customer."""

    task_id: int | None
    ticket_id: int
    text: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Shown:
    """An operation as the API showed it to its customer at some moment."""

    at: datetime
    key: str
    state: str
    reference: str = ""


@dataclass(frozen=True, kw_only=True)
class Write:
    """An audited change by a worker, with the epoch of the claim it held; in commit order."""

    task_id: int
    epoch: int
    action: str
    at: datetime


@dataclass(kw_only=True)
class Evidence:
    """All of it. `captured` is what each order had cost; `accepted` the tasks that we were promised."""

    effects: list[Effect] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    captured: dict[str, int] = field(default_factory=dict)
    quantities: dict[str, int] = field(default_factory=dict)
    accepted: set[int] = field(default_factory=set)
    staff_limit: int = 10_000
    # Above this two different members of staff; None: nowhere.
    second_limit: int | None = None
    # Of members of staff as approvals name them: their addresses, and when a right to approve ended.
    addresses: Mapping[str, str] = field(default_factory=dict)
    rights_ended: Mapping[str, datetime] = field(default_factory=dict)
    # For so long a worker may act on what it saw when it claimed its task.
    lease: timedelta = timedelta(seconds=60)
    chain: str = ""
    chain_holds: bool = True

    def of_agent(self) -> list[Effect]:
        """Effects that came with a key, and so from the product."""
        return [effect for effect in self.effects if effect.key is not None]

    def by_key(self) -> dict[str, Operation]:
        return {operation.key: operation for operation in self.operations}

    def effects_of(self, operation: Operation) -> list[Effect]:
        return [effect for effect in self.effects if effect.key == operation.key]
