"""Whose case a page of the console shows, found from its address."""

from typing import Any

from django.db.models import Q

from accounts.looks import Case
from accounts.models import Customer, User
from agents.models import Task, Ticket
from approvals.models import STAFF_ROLES, Approval, ApprovalStatus
from tools.models import Operation, State


def case_of(user: User, given: dict[str, Any]) -> Case | None:
    """The case behind an address, if it is of this person's shop and there at all."""
    whose = {} if user.shop_id is None else {"shop_id": user.shop_id}
    if "customer_id" in given:
        customer = Customer.objects.filter(pk=given["customer_id"], **whose).first()
        return None if customer is None else Case(customer)
    ticket_id = _ticket_id(given)
    if ticket_id is None:
        return None
    tickets = Ticket.objects.filter(pk=ticket_id, **whose)
    found = tickets.select_related("customer").first()
    return None if found is None else case(user, found)


def case(user: User, ticket: Ticket) -> Case:
    """This ticket as this person's case. Theirs is what they hold, and what they are to decide in."""
    customer = ticket.customer
    is_theirs = customer.is_sensitive and (
        ticket.assigned_to_id == user.pk or (user.can_approve and _waits_for(user, ticket.pk))
    )
    return Case(customer, ticket.pk, is_theirs)


def _waits_for(user: User, ticket_id: int) -> bool:
    """Is an approver asked something in it now, or was it this one who answered?"""
    asked = Approval.objects.filter(
        Q(status=ApprovalStatus.OPEN) | Q(decided_by_user_id=user.pk),
        operation__ticket_id=ticket_id,
        role__in=STAFF_ROLES,
    )
    stuck = Operation.objects.filter(ticket_id=ticket_id, state=State.NEEDS_PERSON)
    return asked.exists() or stuck.exists()


def _ticket_id(given: dict[str, Any]) -> int | None:
    """From whichever part of the address leads to a ticket; None when none does."""
    if "ticket_id" in given:
        return int(given["ticket_id"])
    if "task_id" in given:
        tasks = Task.objects.filter(pk=given["task_id"])
        return tasks.values_list("ticket_id", flat=True).first()
    if "operation_id" in given:
        operations = Operation.objects.filter(pk=given["operation_id"])
        return operations.values_list("ticket_id", flat=True).first()
    if "public_id" in given:
        approvals = Approval.objects.filter(public_id=given["public_id"])
        return approvals.values_list("operation__ticket_id", flat=True).first()
    return None
