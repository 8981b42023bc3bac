"""Changes that came to rest where only people can go on, with their tickets and tasks."""

import itertools
from typing import Any

from django.utils import timezone

from accounts.models import User
from agents.models import Message, Task
from tests.factories import (
    make_approved_operation,
    make_approver,
    make_caller,
    make_task,
    make_ticket,
)
from tests.shop_floor import Buyer
from tests.tools.desk import lease, look, send
from tools import reconcile
from tools.models import Operation, State

# Keys are made of them, and the shop outlives a test: they must not be those of another one's.
_task_ids = itertools.count(10**9)

PATHS = {"refund_order": "/refunds", "cancel_order": "/cancel", "change_address": "/address"}


def on_its_way(buyer: Buyer, *, price: int = 4000, tool: str = "refund_order") -> Operation:
    """An approved change of a real ticket and task, not sent yet."""
    status = "delivered" if tool == "refund_order" else "pending"
    ticket = make_ticket(buyer.row)
    task = make_task(ticket, pk=next(_task_ids), steps_planned=1)
    operation = make_approved_operation(
        buyer.row,
        look(buyer, buyer.order(price, status=status)),
        tool,
        caller=make_caller(buyer.row, ticket_id=ticket.pk, task_id=task.pk),
    )
    Task.objects.filter(pk=task.pk).update(operation=operation)
    return operation


def lost(
    buyer: Buyer,
    fault: str = "error_before",
    *,
    price: int = 4000,
    tool: str = "refund_order",
    **task: Any,
) -> Operation:
    """A change whose send met a fault: it is unknown, and its task waits for the outcome."""
    operation = on_its_way(buyer, price=price, tool=tool)
    buyer.shop.fault(fault, scope={"path": PATHS[tool]}, times=1)
    assert send(operation).state == State.UNKNOWN
    waits = {"status": "waiting_outcome", "wake_at": timezone.now()}
    Task.objects.filter(pk=operation.task_id).update(**waits | task)
    return of(operation)


def stuck(buyer: Buyer, fault: str = "error_before", **options: Any) -> Operation:
    """The same, given up: it needs a person, and its task was handed off."""
    operation = lost(
        buyer, fault, status="handed_off", finished_at=timezone.now(), wake_at=None, **options
    )
    reconcile.hand_over(operation_id=operation.pk, lease=lease(9), why="step_keeps_failing")
    operation = of(operation)
    assert operation.state == State.NEEDS_PERSON
    return operation


def of(operation: Operation) -> Operation:
    return Operation.objects.select_related("shop", "customer").get(pk=operation.pk)


def told(operation: Operation) -> list[str]:
    """What the customer was told in the operation's ticket."""
    messages = Message.objects.filter(ticket_id=operation.ticket_id, author="agent")
    assert all(messages.values_list("is_template", flat=True))
    return list(messages.order_by("seq").values_list("text", flat=True))


def approver(operation: Operation, **fields: Any) -> User:
    return make_approver(operation.shop, **fields)
