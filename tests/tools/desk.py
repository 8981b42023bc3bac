"""Short words for what the tests of sending and reconciling do again and again."""

import json
import time
from typing import Any

from django.db import transaction
from django.utils import timezone

from approvals.services import is_still_granted
from tests.factories import make_approved_operation, make_caller
from tests.shop_floor import Buyer
from tools import gateway, reconcile, registry, sending
from tools.access import ask
from tools.clients.shapes import Order
from tools.execution import StillGranted
from tools.models import Operation, Verdict

EVERYTHING = frozenset(registry.TOOLS)
Decided = gateway.Refused | gateway.Answered | gateway.Accepted | gateway.HandOffAsked


def call(
    buyer: Buyer,
    tool: str,
    arguments: dict[str, Any] | str,
    *,
    caller: gateway.Caller | None = None,
    offered: frozenset[str] = EVERYTHING,
) -> Decided:
    """One call of a model through the gates, with its verdicts kept as a task's step keeps them."""
    caller = caller or make_caller(buyer.row)
    now = timezone.now()
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    found = gateway.examine(gateway.Call(tool, text), caller, offered=offered, now=now)
    with transaction.atomic():
        decided = (
            gateway.propose(found, caller, now=now)
            if isinstance(found, gateway.Proposal)
            else found
        )
        gateway.keep_verdicts(
            decided.verdicts,
            caller,
            tool=tool,
            policy_version=caller.shop.policy_version,
            now=now,
        )
    return decided


def assert_refused(
    buyer: Buyer, decided: Decided, code: str, *, gate: str, rule: str
) -> gateway.Refused:
    """The call was refused by this rule, the verdict is stored, and nothing else happened."""
    assert isinstance(decided, gateway.Refused), decided
    assert decided.error == code
    assert set(decided.result) == {"error", "message"}
    verdict = Verdict.objects.filter(customer=buyer.row).order_by("id").last()
    assert verdict is not None
    assert (verdict.gate, verdict.rule, verdict.finding) == (gate, rule, "deny")
    assert verdict.inputs["code"] == code
    assert not Operation.objects.filter(customer=buyer.row).exists()
    assert shop_writes(buyer) == []
    return decided


def shop_writes(buyer: Buyer) -> list[dict[str, Any]]:
    """Every call for this customer that could have changed an order."""
    mine = [seen for seen in buyer.shop.calls() if seen["customer"] == buyer.row.external_id]
    return [seen for seen in mine if seen["method"] != "GET" and seen["path"].startswith("/api")]


def lease(epoch: int = 1, seconds: float = 60.0) -> sending.Lease:
    return sending.Lease(epoch=epoch, ends_at=time.monotonic() + seconds)


def look(buyer: Buyer, order_id: str) -> Order:
    """The order as the shop shows it to this customer now."""
    return ask(buyer.row, lambda client: client.get_order(order_id))


def approved(
    buyer: Buyer, order_id: str, tool: str = "refund_order", **arguments: Any
) -> Operation:
    """A change of a real order with every yes that it needs."""
    return make_approved_operation(buyer.row, look(buyer, order_id), tool, **arguments)


def send(
    operation: Operation, *, epoch: int = 1, still_granted: StillGranted = is_still_granted
) -> Operation:
    return sending.send(operation_id=operation.pk, lease=lease(epoch), still_granted=still_granted)


def find_out(operation: Operation, *, epoch: int = 2) -> Operation:
    return reconcile.reconcile(
        operation_id=operation.pk, lease=lease(epoch), still_granted=is_still_granted
    )


def writes(buyer: Buyer, operation: Operation) -> list[dict[str, Any]]:
    """Every call that could have changed the order, under this operation's key."""
    calls = buyer.shop.calls(idempotency_key=operation.idempotency_key)
    return [call for call in calls if call["method"] != "GET"]


def trail(operation: Operation) -> list[tuple[int, str, str]]:
    """The attempts: number, outcome and what it was."""
    return list(operation.attempts.order_by("n").values_list("n", "outcome", "detail"))
