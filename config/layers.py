"""The channel layer: how doorbells travel between processes."""

import asyncio
from typing import Any
from weakref import WeakKeyDictionary

from channels_redis.core import RedisChannelLayer
from typing_extensions import override

NUDGE_SECONDS = 0.05
# Redis connections that one event loop uses at a time. The client's pool refuses beyond its hundred,
# and then a crowd of chats that come back at once would fail, and try again, instead of waiting.
AT_ONCE = 20


class DoorbellLayer(RedisChannelLayer):  # type: ignore[misc]
    """Channels' own layer, with a wait that neither fails when nothing comes nor outlives its end.

    The Redis client gives up on any answer after five seconds. A wait of five seconds for a message
    that does not come would end as often in that error as in the empty answer it is to have.
    """

    brpop_timeout = 3  # seconds

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            WeakKeyDictionary()
        )

    @override
    async def group_add(self, group: str, channel: str) -> None:
        async with self._turn():
            await super().group_add(group, channel)

    @override
    async def group_discard(self, group: str, channel: str) -> None:
        async with self._turn():
            await super().group_discard(group, channel)

    @override
    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        async with self._turn():
            await super().group_send(group, message)

    @override
    async def receive(self, channel: str) -> dict[str, Any]:
        """Wait for a message; cancelling it really ends it.

        The client's `asyncio.wait_for` may lose a cancellation (Python before 3.12), and the wait
        would go on with nobody left to end it.
        """
        waiting = asyncio.ensure_future(super().receive(channel))
        try:
            message: dict[str, Any] = await asyncio.shield(waiting)
        except asyncio.CancelledError:
            while not waiting.done():
                waiting.cancel()
                await asyncio.wait([waiting], timeout=NUDGE_SECONDS)
            raise
        return message

    def _turn(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        return self._turns.setdefault(loop, asyncio.Semaphore(AT_ONCE))
