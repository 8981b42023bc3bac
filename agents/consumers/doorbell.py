"""The doorbell: it says that there is something to look at, and not what.

Whoever does not hear it looks anyway every few seconds, so that Redis being away, or losing a
ring, only delays.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction
from django.dispatch import receiver

from accounts.signals import access_revoked
from agents.events import DRAFT, ticket_group

FIRST_PAUSE = 0.5  # seconds before trying Redis again; doubles with each failure
LONGEST_PAUSE = 15.0
FORGET_SECONDS = 2.0
NUDGE_SECONDS = 0.05
JOIN_AGAIN_SECONDS = 3600  # a group forgets its members after a day

logger = logging.getLogger(__name__)


def customer_group(customer_id: int) -> str:
    return f"customer-{customer_id}"


class Doorbell:
    """Calls `on_ring` whenever something may have happened to one customer or their ticket.

    `draft` is the last that was heard of a reply being written, in whichever ticket.
    """

    def __init__(self, customer_id: int, on_ring: Callable[[], None]) -> None:
        self.draft: dict[str, Any] | None = None
        self._groups = {customer_group(customer_id)}
        self._own = customer_group(customer_id)
        self._on_ring = on_ring
        self._channel: str | None = None

    async def follow(self, ticket_id: int | None) -> None:
        """Hear of this ticket from now on, and of no other."""
        wanted = {self._own} | ({ticket_group(ticket_id)} if ticket_id is not None else set())
        left, entered = self._groups - wanted, wanted - self._groups
        self._groups = wanted
        if self._channel is None or not (left or entered):
            return
        # Shielded, because the Redis client may lose a cancellation that is meant for the caller.
        await asyncio.shield(asyncio.ensure_future(self._move(self._channel, left, entered)))

    async def _move(self, channel: str, left: set[str], entered: set[str]) -> None:
        layer: Any = get_channel_layer()
        try:
            for group in left:
                await layer.group_discard(group, channel)
            for group in entered:
                await layer.group_add(group, channel)
        except Exception as exc:  # noqa: BLE001 - the telling path fails open
            logger.info("The doorbell is out of order: %s", type(exc).__name__)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Listen for as long as the block lasts, whatever becomes of Redis meanwhile."""
        listener = asyncio.create_task(self._listen())
        try:
            yield
        finally:
            # The Redis client may lose a cancellation (`asyncio.wait_for` before Python 3.12).
            while not listener.done():
                listener.cancel()
                await asyncio.wait([listener], timeout=NUDGE_SECONDS)
            await self._forget()

    async def _listen(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                await self._join()
                pause = FIRST_PAUSE
                await self._hear()
            except Exception as exc:  # noqa: BLE001 - the telling path fails open
                logger.info("The doorbell is out of order: %s", type(exc).__name__)
                self._channel = None
                await asyncio.sleep(pause)
                pause = min(LONGEST_PAUSE, 2 * pause)

    async def _join(self) -> None:
        layer: Any = get_channel_layer()
        channel = self._channel or await layer.new_channel()
        joined: set[str] = set()
        # Somebody may turn to another ticket while we wait for Redis.
        while missing := self._groups - joined:
            for group in missing:
                await layer.group_add(group, channel)
            joined |= missing
        self._channel = channel
        # Whatever rang before we were there is found by looking once.
        self._on_ring()

    async def _hear(self) -> None:
        """Raises what Redis raises; returns when it is time to join again."""
        layer: Any = get_channel_layer()
        with suppress(TimeoutError):
            async with asyncio.timeout(JOIN_AGAIN_SECONDS):
                while True:
                    heard = await layer.receive(self._channel)
                    if heard.get("type") == DRAFT:
                        self.draft = heard
                    self._on_ring()

    async def _forget(self) -> None:
        """Leave the groups; what cannot be left runs out by itself."""
        layer: Any = get_channel_layer()
        channel, self._channel = self._channel, None
        if channel is None:
            return
        try:
            async with asyncio.timeout(FORGET_SECONDS):
                for group in self._groups:
                    await layer.group_discard(group, channel)
        except Exception as exc:  # noqa: BLE001 - the telling path fails open
            logger.info("The doorbell is out of order: %s", type(exc).__name__)


@receiver(access_revoked)
def ring_out(*, customer_id: int, **_: Any) -> None:
    """Open chats look at once whether their customer may still be there."""
    transaction.on_commit(partial(_ring, customer_group(customer_id)))


def _ring(group: str) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        async_to_sync(layer.group_send)(group, {"type": "doorbell"})
    except Exception as exc:  # noqa: BLE001 - the telling path fails open: rows are the truth
        logger.warning("Nobody could be told in %s: %s", group, type(exc).__name__)
