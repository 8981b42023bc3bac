"""Gathers the evidence: the product's rows read-only, the shop's ledger over its control door."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

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
from script.lib.prove.instance import LEASE_SECONDS, Instance

_OPERATIONS = """
    SELECT o.id, o.idempotency_key, o.task_id, o.ticket_id, c.external_id, o.kind, o.order_id,
        o.state, o.seal, o.digest, o.reason, o.reference, o.amount, o.required_roles,
        (SELECT count(*) FROM tools_observation b WHERE b.operation_id = o.id
         AND b.source = 'look_up' AND b.body ->> 'found' = 'false')
    FROM tools_operation o JOIN accounts_customer c ON c.id = o.customer_id ORDER BY o.id
"""
_APPROVALS = """
    SELECT operation_id, role, status, digest, decided_by, decided_at
    FROM approvals_approval ORDER BY id
"""
_ATTEMPTS = """
    SELECT operation_id, n, epoch, outcome, detail, request_digest
    FROM tools_attempt ORDER BY operation_id, n
"""
_TASKS = """
    SELECT t.id, t.ticket_id, t.status, t.outcome, t.reason,
        (SELECT count(*) = max(s.n) AND bool_and(s.status = 'finished')
         FROM agents_step s WHERE s.task_id = t.id)
    FROM agents_task t ORDER BY t.id
"""
_SAID = "SELECT task_id, ticket_id, text, at FROM agents_message WHERE author = 'agent' ORDER BY id"
_LIMITS = "SELECT staff_limit, second_limit FROM accounts_shop"
_ADDRESSES = "SELECT role || ':' || username, email FROM accounts_user"
_WRITES = """
    SELECT task_id, (data ->> 'epoch')::bigint, action, at FROM audit_event
    WHERE task_id IS NOT NULL AND data ? 'epoch' ORDER BY id
"""


def rows(instance: Instance) -> Evidence:
    """What the product itself has on record."""
    approvals = _by_operation(instance.read(_APPROVALS), _approval)
    attempts = _by_operation(instance.read(_ATTEMPTS), _attempt)
    staff_limit, second_limit = instance.read(_LIMITS)[0]
    return Evidence(
        operations=[
            Operation(
                id=row[0],
                key=row[1],
                task_id=row[2],
                ticket_id=row[3],
                customer=row[4],
                kind=row[5],
                order_id=row[6],
                state=row[7],
                seal=bytes(row[8]),
                digest=row[9],
                reason=row[10],
                reference=row[11],
                amount=row[12],
                required_roles=tuple(row[13]),
                misses=row[14],
                approvals=tuple(approvals[row[0]]),
                attempts=tuple(attempts[row[0]]),
            )
            for row in instance.read(_OPERATIONS)
        ],
        tasks=[
            Task(
                id=row[0],
                ticket_id=row[1],
                status=row[2],
                outcome=row[3],
                reason=row[4],
                is_whole=bool(row[5]),
            )
            for row in instance.read(_TASKS)
        ],
        said=[
            Said(task_id=row[0], ticket_id=row[1], text=row[2], at=row[3])
            for row in instance.read(_SAID)
        ],
        writes=[
            Write(task_id=row[0], epoch=row[1], action=row[2], at=row[3])
            for row in instance.read(_WRITES)
        ],
        staff_limit=staff_limit,
        second_limit=second_limit,
        addresses=dict(instance.read(_ADDRESSES)),
        rights_ended={f"staff:{name}": at for name, at in instance.team.ended.items()},
        lease=timedelta(seconds=LEASE_SECONDS),
    )


async def from_shop(instance: Instance, evidence: Evidence) -> None:
    """What truly happened, and every write that reached the shop."""
    ledger = await instance.shop.ledger()
    evidence.effects = [_effect(found) for found in ledger["effects"]]
    evidence.calls = [
        Call(
            at=_time(found["at"]),
            method=found["method"],
            path=found["path"],
            key=found["idempotency_key"],
            status=found["status"],
        )
        for found in ledger["calls"]
        if found["method"] in {"POST", "PUT"} and found["path"].startswith("/api/orders/")
    ]


def from_catalogue(evidence: Evidence, orders: Iterable[dict[str, Any]]) -> None:
    """What was bought, line by line, and paid."""
    for order in orders:
        evidence.captured[order["id"]] = 0
        for number, line in enumerate(order["lines"], start=1):
            quantity = line.get("quantity", 1)
            evidence.captured[order["id"]] += quantity * line["unit_price"]
            evidence.quantities[f"{order['id']}-{number}"] = quantity


def from_people(evidence: Evidence, accepted: set[int], shown: list[Shown]) -> None:
    """What the doors promised and showed."""
    evidence.accepted = accepted
    evidence.shown = shown


def _effect(found: dict[str, Any]) -> Effect:
    return Effect(
        id=found["id"],
        kind=found["kind"],
        customer=found["customer"],
        order_id=found["order_id"],
        at=_time(found["at"]),
        key=found["idempotency_key"],
        amount=found["amount"],
        currency=found["currency"],
        detail=found["detail"],
    )


def _approval(row: tuple[Any, ...]) -> Approval:
    return Approval(role=row[0], status=row[1], digest=row[2], decided_by=row[3], decided_at=row[4])


def _attempt(row: tuple[Any, ...]) -> Attempt:
    return Attempt(n=row[0], epoch=row[1], outcome=row[2], detail=row[3], request_digest=row[4])


def _by_operation(found: Iterable[tuple[Any, ...]], make: Any) -> dict[int, list[Any]]:
    grouped: dict[int, list[Any]] = defaultdict(list)
    for operation_id, *rest in found:
        grouped[operation_id].append(make(tuple(rest)))
    return grouped


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
