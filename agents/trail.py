"""How the audit trail names a task."""

from typing import TypedDict

from agents.models import Task


class About(TypedDict):
    """The columns of an audit event that say which task it is about."""

    shop_id: int
    task_id: int
    ticket_id: int
    customer: str


def about(task: Task) -> About:
    """For whoever records an event about a task."""
    return About(
        shop_id=task.shop_id,
        task_id=task.pk,
        ticket_id=task.ticket_id,
        customer=task.customer.external_id,
    )
