"""A chat client for tests: speaks to the socket's application, and sees what a widget would see."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings

from config.asgi import application

SECONDS = 20.0
KEYS = {
    "message": lambda item: item["seq"],
    "task": lambda item: item["id"],
    "step": lambda item: (item["task"], item["n"]),
    "action": lambda item: (item["task"], item["step"]),
    "receipt": lambda item: (item["task"], item["step"]),
}

Frame = dict[str, Any]
in_thread = database_sync_to_async


class Wire(WebsocketCommunicator):  # type: ignore[misc]
    """Channels' communicator, but connections to the database are given back as they are in life.

    Channels keeps them open for the sake of tests that run in a transaction. Ours do not.
    """

    send_input = ApplicationCommunicator.send_input
    receive_output = ApplicationCommunicator.receive_output


class ClosedError(Exception):
    """The server closed the socket."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class View:
    """What a client knows: every frame is laid over what it knew before."""

    def __init__(self) -> None:
        self.ticket: Frame | None = None
        self.items: dict[str, dict[Any, Frame]] = {kind: {} for kind in KEYS}
        self.events: list[str] = []
        self.seqs: list[int] = []

    def apply(self, frame: Frame) -> None:
        kind = frame["type"]
        if kind == "snapshot":
            self.ticket = frame["ticket"]
            for item_kind in KEYS:
                for item in frame[f"{item_kind}s"]:
                    self._lay(item_kind, item)
        elif kind == "ticket":
            self.ticket = frame["ticket"]
        elif kind in KEYS:
            self._lay(kind, frame[kind])

    def _lay(self, kind: str, item: Frame) -> None:
        self.items[kind][KEYS[kind](item)] = item
        if kind == "message":
            self.seqs.append(item["seq"])
        if kind == "step" and item["status"] == "finished":
            self.events.append(item["event"])

    def after(self) -> Frame:
        """Where this client would resume."""
        return {
            "message": max(self.items["message"], default=0),
            "event": self.events[-1] if self.events else "",
        }

    def texts(self) -> list[str]:
        return [item["text"] for _, item in sorted(self.items["message"].items())]

    def only(self, kind: str) -> Frame:
        (item,) = self.items[kind].values()
        return item


class Chat:
    """One socket."""

    def __init__(self, view: View | None = None, **headers: str) -> None:
        self.view = view or View()
        self.frames: list[Frame] = []
        self.headers = {"origin": settings.PUBLIC_URL} | headers
        self._wire: Wire | None = None

    async def connect(
        self, path: str = "/ws/chat/", protocols: tuple[str, ...] = ("chat.v1",)
    ) -> tuple[bool, Any]:
        headers = [(name.encode(), value.encode()) for name, value in self.headers.items()]
        self._wire = Wire(application, path, headers, list(protocols))
        answer: tuple[bool, Any] = await self._wire.connect(timeout=SECONDS)
        return answer

    async def hello(self, token: str, **fields: Any) -> Frame:
        """Connect, introduce oneself, and take the snapshot."""
        assert (await self.connect())[0]
        await self.send(type="hello", token=token, **fields)
        return await self.until(lambda frame: frame["type"] == "snapshot")

    @property
    def wire(self) -> Wire:
        assert self._wire is not None
        return self._wire

    async def send(self, **frame: Any) -> None:
        await self.send_text(json.dumps(frame))

    async def send_text(self, text: str) -> None:
        await self.wire.send_input({"type": "websocket.receive", "text": text})

    async def take(self, seconds: float = SECONDS) -> Frame:
        """The next frame. Raises ClosedError when there is none any more."""
        event = await self.wire.receive_output(seconds)
        if event["type"] == "websocket.close":
            raise ClosedError(event.get("code", 1000))
        frame: Frame = json.loads(event["text"])
        self.frames.append(frame)
        self.view.apply(frame)
        return frame

    async def until(self, is_it: Callable[[Frame], bool], seconds: float = SECONDS) -> Frame:
        async with asyncio.timeout(seconds):
            while True:
                frame = await self.take(seconds)
                if is_it(frame):
                    return frame

    async def ask(self, **frame: Any) -> Frame:
        """Send a request and take frames until its answer."""
        await self.send(**frame)
        return await self.until(
            lambda answer: (
                answer["type"] in {"done", "error", "pong", "tickets"}
                or (answer["type"] == "snapshot" and frame["type"] == "open")
            ),
        )

    async def closed(self, seconds: float = SECONDS) -> int:
        """The code that the server closes with."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    await self.take(seconds)
        except ClosedError as exc:
            await self.wire.wait(SECONDS)
            return exc.code

    async def is_quiet(self, seconds: float = 0.3) -> bool:
        """Does nothing more come for a while?"""
        quiet: bool = await self.wire.receive_nothing(seconds)
        return quiet

    async def leave(self) -> None:
        await self.wire.send_input({"type": "websocket.disconnect", "code": 1001})
        await self.wire.wait(SECONDS)
