"""A shop that tells us things: signed here by hand, so that the product's own checks are checked."""

import base64
import hashlib
import hmac
import itertools
import json
import time
from dataclasses import dataclass, field
from typing import Any

from django.db import models
from django.test import Client
from django.utils import timezone

from accounts.models import Shop
from accounts.webhooks import add_webhook_secret, new_webhook_secret
from agents.models import Message, Task, Ticket
from audit.models import Event
from tools.models import Observation, Operation, ShopEvent

_numbers = itertools.count(1)

ROWS: tuple[type[models.Model], ...] = (
    Operation,
    Observation,
    ShopEvent,
    Event,
    Message,
    Task,
    Ticket,
)


def everything() -> dict[str, list[dict[str, Any]]]:
    """All that an event could have changed."""
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in ROWS}


def signature(secret: str, event_id: str, timestamp: str, body: bytes) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{event_id}.{timestamp}.".encode() + body
    return f"v1,{base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()}"


@dataclass
class Teller:
    """One shop's side of the door."""

    shop: Shop
    secret: str
    client: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    @classmethod
    def of(cls, shop: Shop) -> "Teller":
        secret = new_webhook_secret()
        add_webhook_secret(
            shop_id=shop.pk,
            name=f"key-{next(_numbers)}",
            secret=secret,
            actor="system",
            now=timezone.now(),
        )
        return cls(shop, secret)

    def headers(
        self, body: bytes, *, event_id: str = "", secrets: tuple[str, ...] = (), age: float = 0
    ) -> dict[str, str]:
        event_id = event_id or f"evt_{next(_numbers)}"
        timestamp = str(int(time.time() - age))
        signed = [signature(one, event_id, timestamp, body) for one in secrets or (self.secret,)]
        return {
            "webhook-id": event_id,
            "webhook-timestamp": timestamp,
            "webhook-signature": " ".join(signed),
        }

    def post(
        self, body: bytes, headers: dict[str, str], *, slug: str = "", content: str = ""
    ) -> Any:
        return self.client.post(
            f"/v1/webhooks/{slug or self.shop.slug}",
            data=body,
            content_type=content or "application/json",
            headers=headers,
        )

    def tell(self, document: Any, *, event_id: str = "") -> Any:
        """One event, signed as it should be; gives the answer."""
        body = json.dumps(document).encode()
        return self.post(body, self.headers(body, event_id=event_id))

    def told(self, document: Any, *, event_id: str = "") -> str:
        """The same; gives what was made of it."""
        answer = self.tell(document, event_id=event_id)
        assert answer.status_code == 200, answer.content
        return str(answer.json()["taken"])


def about_refund(operation: Operation, kind: str = "succeeded", **changes: Any) -> dict[str, Any]:
    """A refund event that fits this operation, but for the changes."""
    data = {
        "id": "re_told",
        "kind": "refund",
        "order_id": operation.order_id,
        "amount": operation.amount,
        "currency": operation.currency,
        "idempotency_key": operation.idempotency_key,
    }
    return {
        "type": f"refund.{kind}",
        "timestamp": timezone.now().isoformat(),
        "data": data | changes,
    }


def about_change(operation: Operation, **changes: Any) -> dict[str, Any]:
    """An order.changed event that tells of this cancellation or address change."""
    change = {
        "id": "ch_told",
        "kind": operation.kind,
        "idempotency_key": operation.idempotency_key,
    }
    data = {"id": operation.order_id, "version": 2, "change": change | changes}
    return {"type": "order.changed", "timestamp": timezone.now().isoformat(), "data": data}
