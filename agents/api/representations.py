"""Tasks, tickets and messages as the API shows them."""

from typing import Any

from agents import events
from agents.models import Message, Task, Ticket
from tools import operations


def task_full(task: Task) -> dict[str, Any]:
    """A task with its steps, its changes, and what waits for somebody's yes."""
    steps = task.steps.select_related("operation__transit", "operation__reversal").order_by("n")
    return {
        **events.task_data(task),
        "steps": [events.step_data(step) for step in steps],
        "action": events.pending_action(task),
        "operations": [
            events.operation_data(operation)
            for operation in operations.list_of_task(task_id=task.pk)
        ],
    }


def run_full(task: Task) -> dict[str, Any]:
    """The same under its other name: with the goal that opened it."""
    return {**task_full(task), "goal": goal_of(task)}


def task_brief(task: Task) -> dict[str, Any]:
    """A task in a list."""
    return {
        "id": task.pk,
        "ticket": task.ticket_id,
        "agent": task.agent,
        "status": task.status,
        "outcome": task.outcome,
        "reason": task.reason,
        "created_at": task.created_at.isoformat(),
        "finished_at": task.finished_at.isoformat() if task.finished_at else None,
    }


def goal_of(task: Task) -> str:
    """What the customer asked that opened the task."""
    opening = Message.objects.filter(ticket_id=task.ticket_id, seq=task.opening_seq).first()
    return opening.text if opening else ""


def ticket_brief(ticket: Ticket) -> dict[str, Any]:
    return {
        "id": ticket.pk,
        "subject": ticket.subject,
        "status": ticket.status,
        "speaker": ticket.speaker,
        "version": ticket.version,
        "last_seq": ticket.last_seq,
        "opened_at": ticket.opened_at.isoformat(),
        "updated_at": ticket.updated_at.isoformat(),
        "closed_at": ticket.closed_at.isoformat() if ticket.closed_at else None,
    }


def message_data(message: Message) -> dict[str, Any]:
    return {
        "seq": message.seq,
        "author": message.author,
        "author_name": message.author_name,
        "text": message.text,
        "task": message.task_id,
        "at": message.at.isoformat(),
    }
