"""One customer's socket: a handshake, a first frame that says who it is, then frames both ways.

Three things run side by side: a reader that takes frames in and closes on what is not allowed, a
worker that answers them one after the other, and a watch that looks for news when the doorbell
rings or after a few seconds. All that a customer sees comes from the rows, in short reads between
which no database connection is held.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from channels.db import database_sync_to_async
from django.conf import settings
from django.utils import timezone

from accounts.identity import IdentityError
from agents.chat import answers, frames, picture
from agents.chat.allowance import Place, Rate
from agents.chat.answers import RefusedError, Session
from agents.consumers.doorbell import Doorbell
from tools.outages import AWAY

PROTOCOL = "chat.v1"
HELLO_SECONDS = 10.0
LOOK_SECONDS = 3.0
RENEW_SECONDS = 60.0
FRAMES_PER_SECOND = 20
WAITING_FRAMES = 20
# What one client may be told, in bytes: whoever does not read it leaves it in our memory.
BYTES_AT_ONCE = 4 * 1024 * 1024
BYTES_PER_SECOND = 64 * 1024

# Why a socket is closed.
BINARY, TOO_LARGE, TOO_FAST, OUR_FAULT = 1003, 1009, 1008, 1011
BAD_HELLO, UNAUTHENTICATED, OTHER_CUSTOMER = 4400, 4401, 4403
TOO_SLOW, TOO_MANY_SOCKETS = 4408, 4429

# Threads for short work on the database, and for requests that may wait for the shop.
_SHORT = ThreadPoolExecutor(max_workers=8, thread_name_prefix="chat-short")
_LONG = ThreadPoolExecutor(max_workers=16, thread_name_prefix="chat-long")

P = ParamSpec("P")
R = TypeVar("R")
Event = dict[str, Any]

logger = logging.getLogger(__name__)


class HangUp(Exception):  # noqa: N818 - a way to end, not a fault
    """Ends the socket. Without a code the client is gone already."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


async def chat(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[Event]],
    send: Callable[[Event], Awaitable[None]],
) -> None:
    """The ASGI application of `/ws/chat/`."""
    await receive()  # websocket.connect
    offered = scope.get("subprotocols") or []
    if not _is_from_our_page(scope) or (offered and PROTOCOL not in offered):
        await send({"type": "websocket.close"})  # before it is accepted: HTTP 403
        return
    await send({"type": "websocket.accept", "subprotocol": PROTOCOL if offered else None})
    code = await ChatSocket(receive, send).serve()
    if code is not None:
        await send({"type": "websocket.close", "code": code})


async def nobody(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[Event]],
    send: Callable[[Event], Awaitable[None]],
) -> None:
    """The ASGI application of every other address: refuses the handshake."""
    await receive()
    await send({"type": "websocket.close"})


def _is_from_our_page(scope: dict[str, Any]) -> bool:
    """Only our own page may connect, and a browser always tells which page it is."""
    told = [value for name, value in scope["headers"] if name.lower() == b"origin"]
    address = urlsplit(settings.PUBLIC_URL)
    return told == [f"{address.scheme}://{address.netloc}".encode()]


class ChatSocket:
    """An accepted socket, from the first frame to the last."""

    def __init__(
        self, receive: Callable[[], Awaitable[Event]], send: Callable[[Event], Awaitable[None]]
    ) -> None:
        self._receive = receive
        self._send = send
        self._inbox: asyncio.Queue[str] = asyncio.Queue(WAITING_FRAMES)
        self._rate = Rate(per_second=FRAMES_PER_SECOND, burst=FRAMES_PER_SECOND)
        self._volume = Rate(per_second=BYTES_PER_SECOND, burst=BYTES_AT_ONCE)
        self._news = asyncio.Event()
        # Held while the session is read or changed, so that nothing is told twice.
        self._turn = asyncio.Lock()
        self._expired_at: float | None = None

    async def serve(self) -> int | None:
        """Serve to the end; returns the code to close with, None when the client is gone."""
        code: int | None = OUR_FAULT
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._read())
                group.create_task(self._talk())
        except* HangUp as ended:
            code = _code_of(ended)
        except* Exception:
            logger.exception("a chat socket failed")
        return code

    async def _read(self) -> None:
        while True:
            event = await self._receive()
            if event["type"] == "websocket.disconnect":
                raise HangUp(None)
            text = event.get("text")
            if text is None:
                raise HangUp(BINARY)
            if len(text) > frames.MAX_FRAME or len(text.encode()) > frames.MAX_FRAME:
                raise HangUp(TOO_LARGE)
            if not self._rate.take() or self._inbox.full():
                raise HangUp(TOO_FAST)
            self._inbox.put_nowait(text)

    async def _talk(self) -> None:
        session, told = await self._welcome()
        place = Place(session.customer_id)
        if not await _short(place.take):
            raise HangUp(TOO_MANY_SOCKETS)
        bell = Doorbell(session.customer_id, self._news.set)
        try:
            await bell.follow(session.following.ticket_id)
            await self._tell(told)
            async with bell.listening(), asyncio.TaskGroup() as group:
                group.create_task(self._watch(session, place, bell))
                group.create_task(self._answer_all(session, bell, group))
        finally:
            await _short(place.leave)

    async def _welcome(self) -> tuple[Session, list[Event]]:
        """Take the first frame. It alone proves who this is: no cookie does, no address does."""
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                hello = frames.parse(await self._inbox.get())
        except TimeoutError as exc:
            raise HangUp(UNAUTHENTICATED) from exc
        except frames.FrameError as exc:
            await self._tell([_bad_frame(exc)])
            raise HangUp(BAD_HELLO) from exc
        if not isinstance(hello, frames.Hello):
            raise HangUp(UNAUTHENTICATED)
        try:
            return await _short(
                answers.enter,
                hello.token,
                key=hello.key,
                ticket=hello.ticket,
                after=hello.after,
                locale=hello.locale,
            )
        except IdentityError as exc:
            raise HangUp(UNAUTHENTICATED) from exc

    async def _watch(self, session: Session, place: Place, bell: Doorbell) -> None:
        """Look when the doorbell rings, and every few seconds whether it does or not."""
        while True:
            await self._pause(session)
            self._news.clear()
            try:
                async with self._turn:
                    draft, bell.draft = bell.draft, None
                    await self._tell(await _short(_look, session, place))
                    if draft is not None and draft["ticket"] == session.following.ticket_id:
                        await self._tell([_delta(draft)])
            except IdentityError as exc:
                await self._end_or_wait(session, exc)
            except AWAY as exc:
                logger.warning("a chat could not look for news: %s", type(exc).__name__)
                await asyncio.sleep(1)

    async def _pause(self, session: Session) -> None:
        """Until there may be news, or the token runs out."""
        left = (session.identity.expires_at - timezone.now()).total_seconds()
        seconds = min(LOOK_SECONDS, left) if left > 0 else LOOK_SECONDS / 3
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return

    async def _end_or_wait(self, session: Session, exc: IdentityError) -> None:
        """An expired token may be renewed for a while; any other reason ends the socket at once."""
        if exc.code != "expired":
            raise HangUp(UNAUTHENTICATED) from exc
        late = datetime.now(UTC) - session.identity.expires_at
        if late >= timedelta(seconds=RENEW_SECONDS):
            raise HangUp(UNAUTHENTICATED) from exc
        expired_at = session.identity.expires_at.timestamp()
        if self._expired_at != expired_at:
            self._expired_at = expired_at
            await self._tell([{"type": "auth_expired", "renew_within": int(RENEW_SECONDS)}])

    async def _answer_all(self, session: Session, bell: Doorbell, group: asyncio.TaskGroup) -> None:
        looking: asyncio.Task[None] | None = None
        while True:
            text = await self._inbox.get()
            try:
                frame = frames.parse(text)
            except frames.FrameError as exc:
                await self._tell([_bad_frame(exc)])
                continue
            if isinstance(frame, frames.Ping):
                await self._tell([{"type": "pong"}])
            elif isinstance(frame, frames.Token):
                await self._renew(session, frame.token)
            elif isinstance(frame, frames.Orders):
                # Nothing waits for the shop's list; whoever asks meanwhile gets the one under way.
                if looking is None or looking.done():
                    looking = group.create_task(self._answer(session, frame))
            elif isinstance(frame, frames.Hello):
                again = RefusedError("bad-frame", "You have said hello already.")
                await self._tell([answers.error("hello", "", again)])
            else:
                await self._answer(session, frame)
                await bell.follow(session.following.ticket_id)

    async def _answer(self, session: Session, request: frames.Request) -> None:
        try:
            told = await _long(answers.prepare, session, request, timezone.now())
            await self._tell(told)
            if told:
                return
            async with self._turn:
                await self._tell(await _short(answers.answer, session, request, timezone.now()))
        except IdentityError as exc:
            refused = RefusedError("unauthenticated", "Please sign in again.")
            await self._tell([answers.error(request.type, frames.ref_of(request), refused)])
            await self._end_or_wait(session, exc)
        except HangUp:
            raise
        except Exception:
            # Whatever it was, the rest of the conversation goes on.
            logger.exception("a chat could not answer %s", request.type)
            refused = RefusedError("unavailable", "That did not work just now. Please try again.")
            await self._tell([answers.error(request.type, frames.ref_of(request), refused)])

    async def _renew(self, session: Session, token: str) -> None:
        try:
            async with self._turn:
                await _short(answers.renew, session, token)
        except IdentityError as exc:
            if exc.code == "other_customer":
                raise HangUp(OTHER_CUSTOMER) from exc
            refused = RefusedError("unauthenticated", "That token is not valid.")
            await self._tell([answers.error("token", "", refused)])
        else:
            ends = picture.expiry(session.identity)
            await self._tell([{"type": "done", "for": "token", "ref": "", **ends}])
            self._news.set()

    async def _tell(self, told: Iterable[Event]) -> None:
        for frame in told:
            text = json.dumps(frame)
            if not self._volume.take(len(text)):
                raise HangUp(TOO_SLOW)
            await self._send({"type": "websocket.send", "text": text})


def _look(session: Session, place: Place) -> list[Event]:
    place.keep()
    return answers.news(session)


async def _short(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    return await _in_thread(_SHORT, partial(work, *args, **kwargs))


async def _long(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    return await _in_thread(_LONG, partial(work, *args, **kwargs))


async def _in_thread(executor: ThreadPoolExecutor, work: Callable[[], R]) -> R:
    """Run work on the database; its connection is given back at the end.

    A thread cannot be called off: whoever is cancelled meanwhile ends only after it, so that nothing
    of a socket goes on behind its end.
    """
    run = database_sync_to_async(work, thread_sensitive=False, executor=executor)
    running = asyncio.ensure_future(run())
    try:
        result: R = await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if not running.cancelled() and running.exception():
            logger.info("the last work of a chat failed: %s", type(running.exception()).__name__)
        raise
    return result


def _delta(draft: Event) -> Event:
    """A reply that is being written, as far as it is checked."""
    return {"type": "delta", **{name: draft[name] for name in ("task", "step", "text")}}


def _bad_frame(exc: frames.FrameError) -> Event:
    return answers.error(exc.asked, exc.ref, RefusedError("bad-frame", str(exc)))


def _code_of(ended: BaseExceptionGroup[HangUp]) -> int | None:
    """The code of the first reason to end; nobody is left to be told when the client went."""
    first: BaseException = ended
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first.code if isinstance(first, HangUp) else OUR_FAULT
