"""A small world for tests of crashes: a shop, a model and a mail server that are real, workers in
this process, and a queue that a test holds in its hand.

Every row is really committed, so the world is made once for a module and each case is a customer
of their own with an order of their own. `Case.live` is the whole life of one request, together with
what people and the sweep do after a fault.
"""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from django.db import OperationalError, connection, connections
from django.test import override_settings
from django.utils import timezone

from accounts.keys import encrypt
from accounts.models import Customer, Shop, User
from agents import dispatch, events, services
from agents.models import ENDED, Step, Task, TaskStatus
from approvals import services as approvals
from approvals.models import Approval
from tests.deliveries import deliveries
from tests.factories import ADDRESS, make_approver, make_customer, make_shop
from tests.model_server import ModelServer
from tests.postbox import Postbox
from tests.shop_floor import delegate, load
from tests.stubs import CLIENT, RunningShop
from tools.clients import capabilities
from tools.models import Operation

T = TypeVar("T")

KINDS = ("refund", "cancel", "change_address", "close_ticket")
NEW_ADDRESS = ADDRESS | {"name": "Ada Lovelace", "line1": "12 High Street", "city": "Springfield"}
TEXTS = {
    "refund": "Please refund order {order}",
    "cancel": "Please cancel order {order}",
    "change_address": (
        "Please send order {order} to Ada Lovelace, 12 High Street, Springfield, IL 62704, US"
    ),
    "close_ticket": "That's all, please close this",
}
STATUS = {"refund": "delivered", "cancel": "pending", "change_address": "processed"}
MAX_LOOKS = 40

_numbers = itertools.count(70_001)
logger = logging.getLogger(__name__)


class Killed(BaseException):
    """A process ends here: nothing of ours may catch this."""


class InjectedError(Exception):
    """An ordinary exception that no code of ours expects."""


class Clock:
    """`time` for workers: each thread may have slept, all at once, without having waited."""

    def __init__(self) -> None:
        self._slept: dict[int, float] = {}

    def sleep(self, seconds: float) -> None:
        me = threading.get_ident()
        self._slept[me] = self._slept.get(me, 0.0) + seconds

    def monotonic(self) -> float:
        return time.monotonic() + self._slept.get(threading.get_ident(), 0.0)


class Queue:
    """The broker: messages that were sent and not delivered yet."""

    def __init__(self) -> None:
        self.messages: list[int] = []

    def signature(self, name: str, kwargs: dict[str, Any]) -> "Queue._Message":
        assert name == dispatch.ADVANCE
        return Queue._Message(self, kwargs["task_ids"])

    @dataclass
    class _Message:
        queue: "Queue"
        task_ids: list[int]

        def apply_async(self, **_: Any) -> None:
            self.queue.messages += self.task_ids


@dataclass
class World:
    shop: RunningShop
    model: ModelServer
    postbox: Postbox
    row: Shop
    staff: User
    queue: Queue = field(default_factory=Queue)
    clock: Clock = field(default_factory=Clock)

    def answering(self, role: str) -> User:
        """Who of staff answers in this role."""
        if role == "staff":
            return self.staff
        colleague = User.objects.filter(shop=self.row, username="a-colleague").first()
        return colleague or User.objects.create_user("a-colleague", shop=self.row, is_approver=True)

    def case(self, kind: str, *, price: int = 4000, **fields: Any) -> "Case":
        """A new customer who wants one thing done."""
        number = next(_numbers)
        name = f"buyer{number}"
        customer = {"id": name, "name": f"Buyer {name}", "email": f"{name}@example.com"}
        order = {
            "id": str(number),
            "customer": name,
            "status": STATUS.get(kind, "delivered"),
            "placed": "-9d",
            "lines": [{"title": "Stoneware mug", "unit_price": price}],
            "shipping_address": ADDRESS,
        } | fields
        if order["status"] in {"shipped", "delivered"}:
            order["shipped"] = "-7d"
        if order["status"] == "delivered":
            order["delivered"] = "-4d"
        self.load({"customers": [customer], "orders": [order]})
        row = make_customer(
            self.row, external_id=name, name=customer["name"], email=customer["email"]
        )
        delegate(row, self.shop)
        return Case(self, kind, row, order["id"])

    def load(self, data: dict[str, Any]) -> None:
        """Put customers and orders into the running shop."""
        load(self.shop, data, self.shop.data)

    # --- Workers --------------------------------------------------------------------------------

    def deliver(self, task_id: int) -> None:
        """One worker gets one message. It may die of it, or fail; the message is gone either way."""
        process(lambda: services.advance(task_ids=[task_id]))

    def drain(self) -> None:
        """Deliver all messages, and those that come of them."""
        waiting: list[int] = []
        for _ in range(400):
            waiting += deliveries.sent(self.queue.messages)
            self.queue.messages.clear()
            if not waiting:
                return
            self.deliver(deliveries.take(waiting))
        raise AssertionError("messages without end")

    def work(self, task_id: int) -> Task:
        """Workers and the sweep until the task has ended, or waits for somebody's yes."""
        for _ in range(MAX_LOOKS):
            self.drain()
            task = Task.objects.select_related("operation").get(pk=task_id)
            if is_quiet(task):
                return task
            pass_time(task_id)
            process(services.sweep)
            process(approvals.expire_due)
        raise AssertionError(f"task {task_id} never gets quiet: {task.status}")


@dataclass
class Case:
    """One customer, one request, and what became of it."""

    world: World
    kind: str
    customer: Customer
    order_id: str
    task_id: int = 0
    text: str = ""

    def ask(self) -> Task:
        """The customer writes, and writes the same again when no answer comes."""
        text = self.text or TEXTS[self.kind].format(order=self.order_id)
        submitted = insist(
            lambda: services.submit(
                customer_id=self.customer.pk,
                text=text,
                client_message_id=f"message-{self.order_id}",
                now=timezone.now(),
                opens_new_ticket=True,
            )
        )
        assert submitted.task is not None
        self.task_id = submitted.task.pk
        return submitted.task

    def question(self) -> Approval | None:
        """What somebody is asked now."""
        return Approval.objects.filter(operation__task_id=self.task_id, status="open").first()

    def decide(self, approval: Approval, *, is_yes: bool = True, reason: str = "No.") -> None:
        """Whoever is asked answers, and again when no answer comes back."""
        decider = (
            approvals.by_customer(customer_id=self.customer.pk, actor=self.customer.actor)
            if approval.role == "customer"
            else approvals.by_staff(self.world.answering(approval.role))
        )
        insist(
            lambda: approvals.decide(
                approval_id=approval.pk,
                decider=decider,
                is_yes=is_yes,
                digest=approval.digest,
                decision_id=f"decision-{approval.pk}",
                reason="" if is_yes else reason,
            )
        )

    def live(self) -> Task:
        """From the first message to the end; everybody says yes."""
        self.ask()
        for _ in range(8):
            task = self.world.work(self.task_id)
            question = self.question()
            if task.status in ENDED or question is None:
                return task
            self.decide(question)
        raise AssertionError("asked again and again")

    @property
    def task(self) -> Task:
        return Task.objects.get(pk=self.task_id)

    @property
    def operations(self) -> list[Operation]:
        return list(Operation.objects.filter(task_id=self.task_id).order_by("id"))

    @property
    def steps(self) -> list[Step]:
        return list(Step.objects.filter(task_id=self.task_id).order_by("n"))

    @property
    def reply(self) -> str:
        return events.reply_of(self.task)


def is_quiet(task: Task) -> bool:
    """Nothing is to be done for it but by a person."""
    if task.status == TaskStatus.WAITING_APPROVAL:
        assert task.operation is not None
        return bool(task.operation.state == "awaiting_approval")
    return task.status in ENDED


def pass_time(task_id: int) -> None:
    """All the time passes that a lease lasts and that a waiting task waits."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE agents_task SET lease_until = clock_timestamp() - interval '1 hour'"
            " WHERE id = %s AND lease_until IS NOT NULL",
            [task_id],
        )
        cursor.execute(
            "UPDATE agents_task SET wake_at = clock_timestamp() - interval '1 hour'"
            " WHERE id = %s AND wake_at IS NOT NULL",
            [task_id],
        )


def process(work: Callable[[], T]) -> T | None:
    """Run something as a process of its own would: its death and its faults end with it."""
    try:
        return work()
    except Killed:
        logger.info("a process was killed")
    except Exception as exc:  # noqa: BLE001 - a worker's main loop goes on after any fault
        logger.info("a process failed: %s", exc)
    finally:
        connection.close()  # after each message and each request; what is dead holds nothing
    return None


def insist(request: Callable[[], T]) -> T:
    """A client whose request was not answered makes it again."""
    for _ in range(3):
        try:
            return request()
        except (Killed, InjectedError, OperationalError) as exc:
            logger.info("a request was not answered: %r", exc)
        finally:
            connection.close()
    raise AssertionError("no answer three times")


@contextmanager
def make_world(
    shop: RunningShop, model: ModelServer, postbox: Postbox, patch: pytest.MonkeyPatch
) -> Iterator[World]:
    """Our rows for these stand-ins, with the queue and the workers' clocks in the test's hand."""
    client_id, secret = CLIENT
    row = make_shop(
        name="Harbour & Pine",
        base_url=shop.url,
        oauth_client_id=client_id,
        oauth_client_secret_encrypted=encrypt(secret),
        mail_from="care@harbour-and-pine.example",
        provider="orders_stub",
    )
    world = World(shop, model, postbox, row, make_approver(row))
    patch.setattr("agents.dispatch.signature", world.queue.signature)
    for module in ("agents.store", "agents.record", "tools.sending"):
        patch.setattr(f"{module}.time", world.clock)
    # The pretend shop's look-ups lag only when a test makes them: a miss counts at once.
    known = capabilities.for_provider("orders_stub")
    patch.setitem(
        capabilities._PROVIDERS,
        "orders_stub",
        capabilities.Capabilities(**(vars(known) | {"lookup_lag_seconds": 0})),
    )
    with override_settings(
        OPENAI_BASE_URL=model.url,
        SMTP_URL=postbox.url,
        SHOP_TIMEOUT=1,
        CHANNEL_LAYERS={"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}},
    ):
        yield world
    connections.close_all()
