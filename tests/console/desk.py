"""Short words for what the console's tests do again and again."""

import html
import re
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import looks
from accounts.models import Customer, Role, Shop, User
from agents.models import Step, Task
from approvals.models import Approval
from audit.models import Event
from tests.factories import (
    make_approval,
    make_caller,
    make_customer,
    make_line,
    make_order,
    make_task,
    make_ticket,
    propose,
    say_yes,
)
from tools import gateway
from tools.clients.shapes import Order
from tools.models import Operation

PASSWORD = "a long enough password"


def make_person(shop: Shop | None, username: str, **fields: Any) -> User:
    details = {"role": Role.STAFF, "shop": shop, "password": PASSWORD}
    return User.objects.create_user(username, **details | fields)


def make_question(
    shop: Shop, *, customer: Customer | None = None, order: Order | None = None, price: int = 40_000
) -> Approval:
    """A refund over the limit that its customer has said yes to: staff are asked now."""
    customer = customer or make_customer(shop)
    ticket = make_ticket(customer)
    task = make_task(ticket)
    caller = make_caller(customer, ticket_id=ticket.pk, task_id=task.pk)
    accepted = propose(caller, order or make_order(make_line(price)))
    assert isinstance(accepted, gateway.Accepted), accepted
    operation = accepted.operation
    gateway.keep_verdicts(
        accepted.verdicts, caller, tool="refund_order", policy_version=1, now=timezone.now()
    )
    _wait(task, operation)
    make_approval(operation)
    say_yes(operation)
    return Approval.objects.select_related("operation").get(operation=operation, role=Role.STAFF)


def _wait(task: Task, operation: Operation) -> None:
    """The task's first step proposed it, and waits."""
    now = timezone.now()
    Step.objects.create(
        task=task,
        n=operation.step_n,
        kind="tool",
        tool="refund_order",
        status="waiting",
        arguments="{}",
        operation=operation,
        planned_at=now,
        started_at=now,
    )
    Task.objects.filter(pk=task.pk).update(
        status="waiting_approval", operation=operation, steps_planned=operation.step_n
    )


def page_of(approval: Approval) -> str:
    return reverse("console:approval", args=[approval.public_id])


def decide(client: Client, approval: Approval, decision: str, **fields: Any) -> HttpResponse:
    """Answer as the page's form does, with a CSRF token from the page itself."""
    page = client.get(page_of(approval))
    form = {
        "csrfmiddlewaretoken": page.context["csrf_token"],
        "decision": decision,
        "digest": approval.digest,
        "decision_id": page.context["decision_id"],
        "password": PASSWORD if decision == "approve" else "",
        "reason": "The photos show normal wear." if decision == "reject" else "",
    }
    headers = fields.pop("headers", None)
    answer = client.post(
        reverse("console:decide", args=[approval.public_id]), form | fields, headers=headers
    )
    assert isinstance(answer, HttpResponse)
    return answer


def changes() -> QuerySet[Event]:
    """What is on the trail besides that somebody looked at a case."""
    return Event.objects.exclude(action=looks.OPENED)


def poll_of(page: str, element: str) -> str:
    """The address that a live part of a page asks again."""
    found = re.search(rf'id="{element}"[^>]* hx-get="([^"]+)"', page)
    assert found is not None
    return html.unescape(found[1])


def text_of(response: Any) -> str:
    return str(response.content.decode())


def operation_of(approval: Approval) -> Operation:
    return Operation.objects.get(pk=approval.operation_id)
