"""Evidence as a run without a fault would leave it: one refund, approved, sent and told."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import rfc8785

from script.lib.prove.evidence import (
    Approval,
    Attempt,
    Call,
    Effect,
    Evidence,
    Operation,
    Said,
    Shown,
    Task,
    Write,
)

T0 = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
KEY = "task-1-step-4"
REFUND: dict[str, Any] = {
    "amount": 4000,
    "currency": "USD",
    "lines": [{"line_id": "1042-1", "quantity": 1}],
    "reason": "damaged",
}
DONE = "I have refunded $40.00 for order 1042 (reference re_1a)."


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def sealed(kind: str = "refund", request: dict[str, Any] | None = None) -> bytes:
    content: dict[str, Any] = {"kind": kind, "order": "1042", "customer": "ada"}
    return rfc8785.dumps(content | {"request": request or REFUND})


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def operation(**changes: Any) -> Operation:
    """A refund of $40.00 that its customer approved at second 10 and that was sent at 11."""
    seal = changes.pop("seal", sealed())
    approval = Approval(
        role="customer",
        status="approved",
        digest=digest(seal),
        decided_by="customer:ada",
        decided_at=at(10),
    )
    attempt = Attempt(
        n=1,
        epoch=5,
        outcome="succeeded",
        detail="confirmed",
        request_digest=digest(rfc8785.dumps(REFUND)),
    )
    whole = Operation(
        id=1,
        key=KEY,
        task_id=1,
        ticket_id=1,
        customer="ada",
        kind="refund",
        order_id="1042",
        state="succeeded",
        reference="re_1a",
        amount=4000,
        seal=seal,
        digest=digest(seal),
        approvals=(approval,),
        attempts=(attempt,),
    )
    return replace(whole, **changes)


def effect(**changes: Any) -> Effect:
    whole = Effect(
        id="re_1a",
        kind="refund",
        customer="ada",
        order_id="1042",
        at=at(11.5),
        key=KEY,
        amount=4000,
        currency="USD",
        detail={"lines": REFUND["lines"], "reason": "damaged"},
    )
    return replace(whole, **changes)


def evidence(**changes: Any) -> Evidence:
    """What such a run leaves, with some of it replaced."""
    whole: dict[str, Any] = {
        "effects": [effect()],
        "calls": [
            Call(at=at(11), method="POST", path="/api/orders/1042/refunds", key=KEY, status=201)
        ],
        "operations": [operation()],
        "tasks": [Task(id=1, ticket_id=1, status="succeeded", outcome="done")],
        "said": [Said(task_id=1, ticket_id=1, text=DONE, at=at(13))],
        "shown": [
            Shown(at=at(11.2), key=KEY, state="sending"),
            Shown(at=at(12), key=KEY, state="succeeded", reference="re_1a"),
        ],
        "writes": [
            Write(task_id=1, epoch=5, action="refund.sending", at=at(11)),
            Write(task_id=1, epoch=5, action="refund.succeeded", at=at(12)),
            Write(task_id=1, epoch=6, action="step.finished", at=at(13)),
        ],
        "captured": {"1042": 8000},
        "quantities": {"1042-1": 2},
        "accepted": {1},
        "chain": "The chain holds.",
    }
    return Evidence(**whole | changes)
