"""Finding things for a principal. What is not theirs is not there: the same query, the same 404."""

from django.utils import timezone

from accounts import looks
from agents.api import problems
from agents.api.authentication import Principal, StaffPrincipal
from agents.api.problems import ProblemError
from agents.console.cases import case
from agents.models import Task, Ticket


def get_task(principal: Principal, task_id: int, *, is_read: bool = True) -> Task:
    """The task; that staff read it is on the trail. Raises ProblemError."""
    task = principal.tasks().filter(pk=task_id).first()
    if task is None:
        raise ProblemError(problems.NOT_FOUND)
    _look_into(principal, task.ticket, is_read=is_read)
    return task


def get_ticket(principal: Principal, ticket_id: int) -> Ticket:
    ticket = principal.tickets().filter(pk=ticket_id).first()
    if ticket is None:
        raise ProblemError(problems.NOT_FOUND)
    _look_into(principal, ticket, is_read=True)
    return ticket


def _look_into(principal: Principal, ticket: Ticket, *, is_read: bool) -> None:
    """Staff who read over the API leave the same trace as in the console, and say why there."""
    if not isinstance(principal, StaffPrincipal):
        return
    found, now = case(principal.user, ticket), timezone.now()
    if not looks.may_open(principal.user, found, now=now):
        raise ProblemError(problems.REASON_NEEDED)
    if is_read:
        looks.note_look(principal.user, found, where="api", is_poll=False, now=now)
