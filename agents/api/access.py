"""Finding things for a principal. What is not theirs is not there: the same query, the same 404."""

from agents.api import problems
from agents.api.authentication import Principal
from agents.api.problems import ProblemError
from agents.models import Task, Ticket


def get_task(principal: Principal, task_id: int) -> Task:
    task = principal.tasks().filter(pk=task_id).first()
    if task is None:
        raise ProblemError(problems.NOT_FOUND)
    return task


def get_ticket(principal: Principal, ticket_id: int) -> Ticket:
    ticket = principal.tickets().filter(pk=ticket_id).first()
    if ticket is None:
        raise ProblemError(problems.NOT_FOUND)
    return ticket
