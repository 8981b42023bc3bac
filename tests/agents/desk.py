"""A desk for tests: customers ask, people decide, and tasks advance in this process.

The shop and the model are the real stand-ins over HTTP; only the queue is left out, so that a test
decides itself when a worker comes by.
"""

import uuid
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from accounts.identity import Identity, verify_identity
from accounts.models import Customer, User
from accounts.services import ensure_delegation
from agents import events, services, store
from agents.models import READY, Step, Task
from approvals import services as approvals
from approvals.models import Approval
from tests.deliveries import deliveries
from tests.model_server import ModelServer
from tests.stubs import RunningShop
from tools.models import Operation

MAX_LOOKS = 60


@dataclass
class Desk:
    shop: RunningShop
    model: ModelServer

    def sign_in(self, customer: str) -> Identity:
        token = self.shop.sign(customer)
        identity = verify_identity(token)
        ensure_delegation(customer_id=identity.customer_id, token=token, now=timezone.now())
        return identity

    def submit(self, text: str, *, customer: str = "ada", **options: Any) -> services.Submitted:
        identity = self.sign_in(customer)
        options.setdefault("client_message_id", str(uuid.uuid4()))
        return services.submit(
            customer_id=identity.customer_id, text=text, now=timezone.now(), **options
        )

    def ask(self, text: str, *, customer: str = "ada", **options: Any) -> Task:
        """A message in a new conversation, and the task it opened."""
        options.setdefault("opens_new_ticket", True)
        task = self.submit(text, customer=customer, **options).task
        assert task is not None
        return task

    def advance(self, task: Task) -> Task:
        """One worker comes by once."""
        services.advance(task_ids=[task.pk])
        return Task.objects.get(pk=task.pk)

    def work(self, task: Task) -> Task:
        """Workers come by until the task waits or has ended."""
        for _ in range(MAX_LOOKS):
            epoch = task.epoch
            if deliveries.are_doubled:
                self._deliver_late_ones()
            task = self.advance(task)
            if not task.is_live or task.epoch == epoch:
                return task
        raise AssertionError(f"{task} never settles: {task.status}")

    def _deliver_late_ones(self) -> None:
        """Messages that were delivered before, of tasks that have ended or wait for somebody."""
        waiting = deliveries.sent(
            list(Task.objects.exclude(status__in=READY).values_list("pk", flat=True))
        )
        while waiting:
            services.advance(task_ids=[deliveries.take(waiting)])

    def wake(self, task: Task) -> Task:
        """Let the time pass that a waiting task still has, then work."""
        Task.objects.filter(pk=task.pk).update(wake_at=timezone.now())
        return self.work(task)

    def question(self, task: Task) -> Approval:
        """The approval that is open now."""
        return Approval.objects.get(operation__task_id=task.pk, status="open")

    def decide(self, task: Task, *, is_yes: bool, by: str = "", reason: str = "") -> Task:
        """Whoever is asked decides; `by` names the member of staff (default staff)."""
        approval = self.question(task)
        if approval.role == "customer":
            customer = Customer.objects.get(pk=task.customer_id)
            decider = approvals.by_customer(customer_id=customer.pk, actor=customer.actor)
        else:
            decider = approvals.by_staff(User.objects.get(username=by or "staff"))
        approvals.decide(
            approval_id=approval.pk,
            decider=decider,
            is_yes=is_yes,
            digest=approval.digest,
            reason=reason,
        )
        return Task.objects.get(pk=task.pk)

    def say_yes(self, task: Task) -> Task:
        return self.work(self.decide(task, is_yes=True))

    def say_no(self, task: Task, reason: str = "") -> Task:
        return self.work(self.decide(task, is_yes=False, reason=reason))

    def done(self, text: str, *, customer: str = "ada") -> Task:
        """Ask, and say yes to everything that is asked."""
        task = self.work(self.ask(text, customer=customer))
        while task.status == "waiting_approval":
            task = self.say_yes(task)
        return task


def reply(task: Task) -> str:
    return events.reply_of(task)


def steps(task: Task) -> list[Step]:
    return list(task.steps.order_by("n"))


def line(task: Task) -> list[str]:
    """The step log in short: `tool:outcome` or `model`."""
    return [
        f"{step.tool}:{events.step_outcome(step)}" if step.tool else step.kind
        for step in steps(task)
    ]


def operation(task: Task) -> Operation:
    return Operation.objects.get(task_id=task.pk)


def claim(task: Task) -> store.Claim:
    (held,) = store.claim([task.pk])
    return held
