"""What the shop tells its agent by itself: signed events (Standard Webhooks), sent until they are taken.

Sending is tried again, ever more seldom, until it is answered with 2xx.
Faults are the same rules as elsewhere: an event is a call with the method WEBHOOK and the path
/webhooks/<type>.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta

import httpx

from orders_stub import times
from orders_stub.faults import Plan, Target
from orders_stub.shop import Shop

PAUSE = 0.1  # seconds between two looks
TIMEOUT = 5.0
MOST_TRIES = 10
MOST_WAIT = 60.0
METHOD = "WEBHOOK"


def sign(secret: str, event_id: str, at: datetime, body: bytes) -> str:
    """The signature of Standard Webhooks, version 1."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{event_id}.{int(at.timestamp())}.".encode() + body
    return f"v1,{base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()}"


@asynccontextmanager
async def open_messenger(shop: Shop) -> AsyncIterator[None]:
    """Send what is written down for as long as the context is open, if somebody is to be told."""
    if not shop.config.webhook_url:
        yield
        return
    async with httpx.AsyncClient(timeout=TIMEOUT, trust_env=False) as client:
        sending = asyncio.create_task(_Messenger(shop, client).run())
        try:
            yield
        finally:
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending


class _Messenger:
    def __init__(self, shop: Shop, client: httpx.AsyncClient) -> None:
        self._shop = shop
        self._client = client

    async def run(self) -> None:
        while True:
            due = self._shop.db.rows(
                "SELECT * FROM webhooks WHERE delivered_at IS NULL AND due_at <= ?"
                " AND attempts < ? ORDER BY n LIMIT 20",
                times.to_text(times.now()),
                MOST_TRIES,
            )
            await asyncio.gather(*(self._handle(row) for row in due))
            await asyncio.sleep(PAUSE)

    async def _handle(self, event: sqlite3.Row) -> None:
        plan = Plan()
        if event["fault"] is None:
            plan = self._strike(event)
            if plan.has("webhook_late"):
                self._put_off(event, plan.value("webhook_late", "seconds", 0))
                return
        faults = set((event["fault"] or plan.names() or "").split(", "))
        if "webhook_forged" in faults:
            await self._forge(event)
        answer = await self._post(event["id"], event["body"].encode())
        if "webhook_twice" in faults:
            answer = await self._post(event["id"], event["body"].encode())
        self._keep(event, answer)

    def _strike(self, event: sqlite3.Row) -> Plan:
        """Decide once what befalls an event."""
        plan = self._shop.faults.strike(
            Target(
                METHOD,
                f"/webhooks/{event['type']}",
                event["customer_id"],
                event["order_id"],
                is_write=False,
                is_lookup=False,
            )
        )
        self._shop.db.run(
            "UPDATE webhooks SET fault = ? WHERE n = ?", plan.names() or "", event["n"]
        )
        return plan

    def _put_off(self, event: sqlite3.Row, seconds: float) -> None:
        due = times.now() + timedelta(seconds=seconds)
        self._shop.db.run(
            "UPDATE webhooks SET due_at = ? WHERE n = ?", times.to_text(due), event["n"]
        )

    async def _forge(self, event: sqlite3.Row) -> None:
        """Somebody without the secret says that the money came back."""
        body = json.loads(event["body"]) | {"type": "refund.reversed"}
        stranger = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
        await self._post(
            f"evt_{secrets.token_hex(8)}", json.dumps(body).encode(), secrets_=(stranger,)
        )

    async def _post(
        self, event_id: str, body: bytes, *, secrets_: tuple[str, ...] | None = None
    ) -> int | None:
        """Send it once; the answer's status, or None when there was no answer."""
        now = times.now()
        signers = secrets_ or self._shop.config.webhook_secrets
        headers = {
            "content-type": "application/json",
            "webhook-id": event_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(sign(one, event_id, now, body) for one in signers),
        }
        try:
            response = await self._client.post(
                self._shop.config.webhook_url, content=body, headers=headers
            )
        except httpx.HTTPError:
            return None
        return response.status_code

    def _keep(self, event: sqlite3.Row, answer: int | None) -> None:
        now = times.now()
        is_taken = answer is not None and 200 <= answer < 300
        wait = min(2.0 ** event["attempts"], MOST_WAIT)
        self._shop.db.run(
            "UPDATE webhooks SET attempts = attempts + 1, answer = ?, delivered_at = ?, due_at = ?"
            " WHERE n = ?",
            answer,
            times.to_text(now) if is_taken else None,
            times.to_text(now + timedelta(seconds=wait)),
            event["n"],
        )
