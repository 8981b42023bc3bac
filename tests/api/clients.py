"""Whoever knocks at the API: customers with their shop's tokens, staff with a console session."""

import itertools
import json
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import models
from django.test import Client
from django.utils import timezone

from accounts.keys import encrypt
from accounts.models import Customer, Delegation, User
from agents.models import (
    IdempotencyRecord,
    Message,
    Step,
    StepKind,
    StepStatus,
    Task,
    TaskStatus,
    Ticket,
)
from approvals.models import Approval
from audit.models import Event
from tests.accounts.factories import Signer
from tests.factories import make_caller, make_line, make_operation, make_order
from tools.models import Operation

ROWS: tuple[type[models.Model], ...] = (
    Ticket,
    Message,
    Task,
    Step,
    Operation,
    Approval,
    Event,
    Delegation,
    IdempotencyRecord,
)
_numbers = itertools.count(1)


def everything() -> dict[str, list[dict[str, Any]]]:
    """All that a request could have changed."""
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in ROWS}


def delegate(customer: Customer) -> None:
    """Leave to act for the customer that was given earlier: the shop need not be asked."""
    Delegation.objects.create(
        customer=customer,
        refresh_token_encrypted=encrypt("refresh"),
        access_token_encrypted=encrypt("access"),
        access_expires_at=timezone.now() + timedelta(hours=1),
    )


@dataclass
class Api:
    """A client of the API. Every request is a first one unless it is given a key."""

    headers: dict[str, str] = field(default_factory=dict)
    client: Client = field(default_factory=lambda: Client(raise_request_exception=False))
    who: Customer | User | None = None

    @classmethod
    def customer(cls, customer: Customer, signer: Signer) -> "Api":
        token = signer.sign(sub=customer.external_id, name=customer.name, email=None, locale="en")
        return cls(headers={"Authorization": f"Bearer {token}"}, who=customer)

    @classmethod
    def staff(cls, user: User) -> "Api":
        """Signed in to the console, with the CSRF token that its pages carry."""
        client = Client(raise_request_exception=False, enforce_csrf_checks=True)
        client.force_login(user, backend="accounts.backends.ConsoleBackend")
        csrf = uuid.uuid4().hex
        client.cookies["countersign_csrf"] = csrf
        return cls(headers={"X-CSRFToken": csrf}, client=client, who=user)

    @property
    def row(self) -> Customer:
        assert isinstance(self.who, Customer)
        return self.who

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(path, headers=self.headers | headers)

    def post(self, path: str, body: Any = None, *, key: str | None = None, **headers: str) -> Any:
        """POST a body as JSON; text or bytes go as they are. `key`: "" sends no Idempotency-Key."""
        data = body if isinstance(body, str | bytes) else json.dumps({} if body is None else body)
        sent = self.headers | headers
        if key != "":
            sent["Idempotency-Key"] = f'"{uuid.uuid4()}"' if key is None else key
        return self.client.post(path, data=data, content_type="application/json", headers=sent)

    def ask(self, message: str = "Where is my parcel?", **fields: Any) -> Task:
        """A new task in a conversation of its own."""
        answer = self.post("/v1/tasks", {"message": message, "ticket": "new"} | fields)
        assert answer.status_code == 201, answer.content
        return Task.objects.get(pk=answer.json()["id"])


def problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    """The problem document of an answer, checked to be this problem and well formed."""
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["type"] == f"http://127.0.0.1:8000/docs/problems/#{code}"
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    assert document["request_id"] == answer["X-Request-ID"]
    assert isinstance(document["errors"], list)
    return document


def wait_for_yes(task: Task, price: int = 4000, tool: str = "refund_order") -> Approval:
    """The task proposes a change in its next step, and its customer is asked."""
    n = task.steps.count() + 1
    task.steps.filter(status=StepStatus.PLANNED).update(
        status=StepStatus.FINISHED,
        result={"text": "", "tool_calls": []},
        started_at=timezone.now(),
        finished_at=timezone.now(),
    )
    caller = make_caller(task.customer, task_id=task.pk, ticket_id=task.ticket_id, step_n=n)
    order = make_order(make_line(price))
    operation = make_operation(task.customer, order, tool, caller=caller)
    Step.objects.create(
        task=task,
        n=n,
        kind=StepKind.TOOL,
        tool=tool,
        status=StepStatus.WAITING,
        operation=operation,
        attempts=1,
        planned_at=timezone.now(),
        started_at=timezone.now(),
    )
    task.status = TaskStatus.WAITING_APPROVAL
    task.operation = operation
    task.steps_planned = n
    task.save(update_fields=["status", "operation", "steps_planned"])
    return Approval.objects.get(operation=operation, role="customer")


def end(task: Task) -> Task:
    """The task has been answered."""
    task.steps.exclude(status=StepStatus.FINISHED).update(
        status=StepStatus.FINISHED, result={"text": "Done."}, finished_at=timezone.now()
    )
    task.status = TaskStatus.SUCCEEDED
    task.outcome = "answered"
    task.finished_at = timezone.now()
    task.save(update_fields=["status", "outcome", "finished_at"])
    return task
