"""What a shop tells us by itself: kept as evidence, and never more than that.

An event becomes an observation of the operation that it is about, an audit event and a hint to
look; reconciliation reads it. An event about nothing of ours is noted and left alone. However often
and in whatever order events come, each is taken once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from django.db import IntegrityError, transaction
from pydantic import Field, ValidationError

from accounts.models import Shop
from audit import services as audit
from tools import inquiries, operations, reversals, transits
from tools.clients.shapes import Currency, Id, Money, OrderId, Shape, ShortText, Word
from tools.clock import database_now
from tools.erasing import is_erased
from tools.models import OPEN, Kind, Observation, Operation, ShopEvent, State
from tools.proof import WEBHOOK, Effect
from tools.signals import evidence_came

REFUND_TOLD = ("refund.succeeded", "refund.failed", "refund.reversed")
ORDER_CHANGED = "order.changed"
KINDS = (*REFUND_TOLD, ORDER_CHANGED)

Key = Annotated[str, Field(min_length=1, max_length=200)]


class BadEventError(Exception):
    """A kind of event that we know, in a shape that it cannot have. Nothing was written."""


class RefundTold(Shape):
    """A refund as the shop tells of it. Without a key it was not asked for by us."""

    id: Id
    order_id: OrderId
    amount: Money
    currency: Currency
    idempotency_key: Key | None = None
    reason: ShortText = ""


class ChangeTold(Shape):
    id: Id
    kind: Word
    idempotency_key: Key | None = None


class OrderTold(Shape):
    """An order that has changed, and (if it was one of those) the change that we asked for."""

    id: OrderId
    version: Annotated[int, Field(strict=True, ge=0, le=2**53)]
    change: ChangeTold | None = None


@dataclass(frozen=True)
class Told:
    """An event as far as we make use of it."""

    event_id: str
    kind: str
    order_id: str
    key: str = ""
    effect: Effect | None = None
    version: int | None = None
    reason: str = ""

    def as_body(self) -> dict[str, Any]:
        """What is kept as an observation."""
        body: dict[str, Any] = {"event": self.event_id, "type": self.kind}
        if self.effect is not None:
            body["effect"] = self.effect.as_body()
        if self.version is not None:
            body["order_version"] = self.version
        if self.reason:
            body["reason"] = self.reason
        return body


@dataclass(frozen=True)
class Taken:
    """What became of an event. Without an operation it was about nothing of ours."""

    is_new: bool
    operation: Operation | None = None


def read(event_id: str, document: dict[str, Any]) -> Told | None:
    """The event of a signed document; None for a kind that means nothing to us.

    Raises BadEventError for a kind that we know in a shape that it cannot have.
    """
    kind, data = document.get("type"), document.get("data")
    if kind not in KINDS:
        return None
    try:
        if kind == ORDER_CHANGED:
            return _order(event_id, OrderTold.model_validate(data))
        return _refund(event_id, str(kind), RefundTold.model_validate(data))
    except ValidationError as exc:
        where = ", ".join(".".join(map(str, fault["loc"])) or "data" for fault in exc.errors()[:5])
        raise BadEventError(where) from exc


def _refund(event_id: str, kind: str, told: RefundTold) -> Told:
    effect = Effect(
        reference=told.id,
        kind=Kind.REFUND,
        order_id=told.order_id,
        amount=told.amount,
        currency=told.currency,
        status=kind.removeprefix("refund."),
    )
    key = told.idempotency_key or ""
    return Told(event_id, kind, told.order_id, key, effect, reason=told.reason)


def _order(event_id: str, told: OrderTold) -> Told:
    change = told.change
    if change is None or change.idempotency_key is None:
        # By other hands: the order has moved on, and that says nothing of what we have sent.
        return Told(event_id, ORDER_CHANGED, told.id, version=told.version)
    effect = Effect(reference=change.id, kind=change.kind, order_id=told.id)
    key = change.idempotency_key
    return Told(event_id, ORDER_CHANGED, told.id, key, effect, version=told.version)


def take(*, shop: Shop, told: Told) -> Taken:
    """Keep an event, once. It changes no operation's state; whoever waits for one is woken.

    When it came goes by the database's clock, as when things are sent does.
    """

    def keep() -> Taken:
        known = _find(shop, told)
        operation = operations.lock(known) if known is not None else None
        now = database_now()
        _mark_taken(shop, told.event_id, told.kind, operation, now)
        if operation is None:
            _note(shop, told.event_id, told.kind, "webhook.unmatched", now, order_id=told.order_id)
        else:
            _observe(shop, operation, told, now)
        return Taken(is_new=True, operation=operation)

    return _once(shop, told.event_id, keep)


def ignore(*, shop: Shop, event_id: str, kind: str) -> Taken:
    """Note, once, an event of a kind that means nothing to us."""

    def keep() -> Taken:
        now = database_now()
        _mark_taken(shop, event_id, kind, None, now)
        _note(shop, event_id, kind, "webhook.ignored", now)
        return Taken(is_new=True)

    return _once(shop, event_id, keep)


def _once(shop: Shop, event_id: str, keep: Callable[[], Taken]) -> Taken:
    """Do it unless it was done; of two deliveries at once the second finds the first one's row."""
    known = ShopEvent.objects.filter(shop=shop, event_id=event_id)
    if known.exists():
        return Taken(is_new=False)
    try:
        with transaction.atomic():
            return keep()
    except IntegrityError:
        if known.exists():
            return Taken(is_new=False)
        raise


def _mark_taken(
    shop: Shop, event_id: str, kind: str, operation: Operation | None, now: datetime
) -> None:
    """Its operation, if it has one, is locked: a foreign key alone would lock it too weakly first."""
    ShopEvent.objects.create(
        shop=shop, event_id=event_id, kind=kind, operation=operation, received_at=now
    )


def _find(shop: Shop, told: Told) -> int | None:
    """The operation that the event is about: by our key, by the shop's own id, or by the order."""
    ours = Operation.objects.filter(shop=shop).values_list("pk", flat=True)
    if told.key:
        return ours.filter(idempotency_key=told.key).first()
    if told.kind in REFUND_TOLD and told.effect is not None:
        return ours.filter(kind=Kind.REFUND, reference=told.effect.reference).first()
    return ours.filter(order_id=told.order_id, state__in=OPEN).first()


def _observe(shop: Shop, operation: Operation, told: Told, now: datetime) -> None:
    body = told.as_body()
    if is_erased(operation):
        body.pop("reason", None)  # a text of the shop's, where no words are kept any more
    Observation.objects.create(operation=operation, source=WEBHOOK, body=body, at=now)
    operations.record(
        operation,
        "observed",
        actor=f"shop:{shop.slug}",
        at=now,
        data={"source": WEBHOOK, "event": told.event_id, "type": told.kind},
    )
    if operation.state == State.SUCCEEDED:
        reversals.open_if_told(operation, now=now)
        transits.end_if_told(operation, now=now)
    if told.effect is not None:
        inquiries.weigh(operation, told.effect, WEBHOOK, now=now)
    transaction.on_commit(
        partial(
            evidence_came.send,
            sender=Observation,
            operation_id=operation.pk,
            task_id=operation.task_id,
        )
    )


def _note(
    shop: Shop, event_id: str, kind: str, action: str, now: datetime, *, order_id: str = ""
) -> None:
    audit.record(
        actor=f"shop:{shop.slug}",
        action=action,
        subject=f"webhook:{event_id}",
        at=now,
        shop_id=shop.pk,
        order_id=order_id,
        data={"type": kind},
    )
