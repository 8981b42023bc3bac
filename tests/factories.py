"""Rows and facts for tests. Operations and approvals are made by the product's own services.

Nothing here speaks to a shop: `make_order` is what a shop's client would have read.
"""

import itertools
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.models import Customer, Role, Shop, User
from agents.models import Task, Ticket
from approvals import services as approvals
from approvals.models import STAFF_ROLES, Approval
from tests.accounts.factories import make_customer, make_shop, make_user
from tools import gateway, registry
from tools.catalogue.base import EffectTool
from tools.clients.shapes import Line, Order
from tools.models import Operation

__all__ = [
    "ADDRESS",
    "call_of",
    "make_approval",
    "make_approved_operation",
    "make_approver",
    "make_caller",
    "make_customer",
    "make_line",
    "make_operation",
    "make_order",
    "make_shop",
    "make_task",
    "make_ticket",
    "make_user",
    "propose",
    "say_no",
    "say_yes",
]

ADDRESS = {
    "name": "Ada Moreno",
    "line1": "12 Larkspur Lane",
    "line2": "",
    "city": "Portland",
    "region": "OR",
    "postal_code": "97205",
    "country": "US",
}

_numbers = itertools.count(1)


def make_approver(shop: Shop | None, **fields: Any) -> User:
    """A member of staff who may countersign for the shop; without a shop an admin of all."""
    role = Role.STAFF if shop else Role.ADMIN
    return make_user(shop, **{"role": role, "is_approver": True} | fields)


def make_ticket(customer: Customer, **fields: Any) -> Ticket:
    now = timezone.now()
    details = {"subject": "My order", "opened_at": now, "updated_at": now}
    return Ticket.objects.create(shop=customer.shop, customer=customer, **details | fields)


def make_task(ticket: Ticket, **fields: Any) -> Task:
    details = {
        "opening_seq": 1,
        "prompt_version": "1",
        "model": "countersign-rules",
        "max_steps": ticket.shop.max_steps,
        "max_tokens": ticket.shop.max_tokens,
        "max_cost": ticket.shop.max_cost,
        "max_active_ms": ticket.shop.max_active_seconds * 1000,
        "created_at": timezone.now(),
    }
    return Task.objects.create(
        shop=ticket.shop, customer=ticket.customer, ticket=ticket, **details | fields
    )


def make_line(price: int = 4000, quantity: int = 1, **fields: Any) -> Line:
    """A line of an order; `price` is of one piece, in minor units."""
    details = {"id": f"line-{next(_numbers)}", "title": "Stoneware mug", "variant": "blue"}
    return Line(unit_price=price, quantity=quantity, **details | fields)


def make_order(*lines: Line, **fields: Any) -> Order:
    """An order as read from the shop: delivered five days ago and paid in full, unless told else."""
    lines = lines or (make_line(),)
    total = sum(line.unit_price * line.quantity for line in lines)
    now = timezone.now()
    details: dict[str, Any] = {
        "id": str(90_000 + next(_numbers)),
        "version": 1,
        "status": "delivered",
        "placed_at": now - timedelta(days=9),
        "shipped_at": now - timedelta(days=7),
        "delivered_at": now - timedelta(days=5),
        "currency": "USD",
        "total": total,
        "captured": total,
        "refunded": 0,
        "lines": lines,
        "shipping_address": ADDRESS,
    }
    return Order.model_validate(details | fields)


def make_caller(customer: Customer, **fields: Any) -> gateway.Caller:
    """A caller with a task of its own, or the one given (`task_id`, `ticket_id`, `step_n`)."""
    n = next(_numbers)
    details = {"ticket_id": n, "task_id": n, "step_n": 1}
    return gateway.Caller(shop=customer.shop, customer=customer, **details | fields)


def propose(
    caller: gateway.Caller,
    order: Order,
    tool: str = "refund_order",
    *,
    now: datetime | None = None,
    **arguments: Any,
) -> gateway.Refused | gateway.Accepted:
    """Take a call that has its order's facts through gates 4 and 5."""
    proposal = call_of(tool, order, **arguments)
    with transaction.atomic():
        return gateway.propose(proposal, caller, now=now or timezone.now())


def call_of(tool: str, order: Order, **arguments: Any) -> gateway.Proposal:
    """A change of this order as it stands after gate 3."""
    effect = registry.TOOLS[tool]
    assert isinstance(effect, EffectTool)
    given = {"order_id": order.id} | _usual(tool) | arguments
    return gateway.Proposal(effect, effect.arguments.model_validate(given), order, [])


def _usual(tool: str) -> dict[str, Any]:
    if tool == "change_address":
        return {"address": ADDRESS | {"line1": "7 Quay Street", "line2": None}}
    return {"reason": "damaged" if tool == "refund_order" else "no_longer_needed"}


def make_operation(
    customer: Customer,
    order: Order | None = None,
    tool: str = "refund_order",
    *,
    caller: gateway.Caller | None = None,
    **arguments: Any,
) -> Operation:
    """A change that was accepted and waits for its customer's yes."""
    if order is None:
        order = make_order() if tool == "refund_order" else make_order(status="pending")
    caller = caller or make_caller(customer)
    accepted = propose(caller, order, tool, **arguments)
    assert isinstance(accepted, gateway.Accepted), accepted
    make_approval(accepted.operation)
    return accepted.operation


def make_approval(operation: Operation, role: Role = Role.CUSTOMER) -> Approval:
    """The question put to one role."""
    with transaction.atomic():
        return approvals.request(operation, role=role, now=timezone.now())


def say_yes(operation: Operation, by: User | None = None, **fields: Any) -> Approval:
    """The customer's yes, or that of a member of staff to what staff were asked last."""
    return _decide(operation, by, is_yes=True, **fields)


def say_no(operation: Operation, by: User | None = None, **fields: Any) -> Approval:
    """The customer's no, or that of a member of staff."""
    return _decide(operation, by, is_yes=False, **{"reason": "No."} | fields)


def _decide(operation: Operation, by: User | None, **fields: Any) -> Approval:
    customer = operation.customer
    decider = (
        approvals.by_customer(customer_id=customer.pk, actor=customer.actor)
        if by is None
        else approvals.by_staff(by)
    )
    asked = [Role.CUSTOMER] if by is None else STAFF_ROLES
    approval = Approval.objects.filter(operation=operation, role__in=asked).latest("id")
    details: dict[str, Any] = {
        "approval_id": approval.pk,
        "decider": decider,
        "digest": operation.digest,
    }
    return approvals.decide(**details | fields)


def make_approved_operation(
    customer: Customer, order: Order | None = None, tool: str = "refund_order", **arguments: Any
) -> Operation:
    """A change with every yes that it needs, not sent yet."""
    operation = make_operation(customer, order, tool, **arguments)
    say_yes(operation)
    for role in STAFF_ROLES:
        if role in operation.required_roles:
            say_yes(operation, make_approver(customer.shop))
    return Operation.objects.select_related("shop", "customer").get(pk=operation.pk)
