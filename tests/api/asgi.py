"""The web process's application, spoken to as its server would: frames as they come, and hang-ups."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.db import connection

from config.asgi import application

T = TypeVar("T")
SECONDS = 10


async def in_database(work: Callable[..., T], *arguments: Any) -> T:
    """Run work with the ORM in a thread of its own, and give its connection back."""

    def run() -> T:
        try:
            return work(*arguments)
        finally:
            connection.close()

    return await sync_to_async(run, thread_sensitive=False)()


@dataclass
class Answer:
    """An answer under way."""

    communicator: ApplicationCommunicator
    status: int
    headers: dict[str, str]
    is_over: bool = False
    _text: str = ""
    comments: list[str] = field(default_factory=list)
    retry: str = ""

    async def chunk(self) -> str:
        output = await self.communicator.receive_output(SECONDS)
        self.is_over = not output.get("more_body", False)
        return str(output.get("body", b"").decode())

    async def whole(self) -> Any:
        """All of a document."""
        text = ""
        while not self.is_over:
            text += await self.chunk()
        return json.loads(text) if text else None

    async def event(self) -> dict[str, Any] | None:
        """The next event; None at the end of the stream."""
        while True:
            while "\n\n" not in self._text:
                if self.is_over:
                    return None
                self._text += await self.chunk()
            frame, _, self._text = self._text.partition("\n\n")
            if frame.startswith(":"):
                self.comments.append(frame)
            elif frame.startswith("retry:"):
                self.retry = frame
            else:
                return _event(frame)

    async def events(self) -> list[dict[str, Any]]:
        """All events until the end."""
        found = []
        while (event := await self.event()) is not None:
            found.append(event)
        return found

    async def nothing(self) -> bool:
        """Is there nothing more for now?"""
        return bool(await self.communicator.receive_nothing(0.2))


@asynccontextmanager
async def ask(
    path: str,
    headers: dict[str, str],
    *,
    method: str = "GET",
    body: bytes = b"",
    query: str = "",
    is_chunked: bool = False,
) -> AsyncIterator[Answer]:
    """Send a request and hang up at the end of the block, whether or not the answer is complete."""
    sent = {"host": "127.0.0.1", "content-type": "application/json"} | headers
    if not is_chunked:
        sent["content-length"] = str(len(body))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in sent.items()],
        "client": ("127.0.0.1", 40000),
        "server": ("127.0.0.1", 8000),
        "scheme": "http",
    }
    communicator = ApplicationCommunicator(application, scope)
    await communicator.send_input({"type": "http.request", "body": body})
    start = await communicator.receive_output(SECONDS)
    try:
        yield Answer(
            communicator,
            status=start["status"],
            headers={name.decode().lower(): value.decode() for name, value in start["headers"]},
        )
    finally:
        await communicator.send_input({"type": "http.disconnect"})
        await communicator.wait(SECONDS)


def _event(frame: str) -> dict[str, Any]:
    lines = dict(line.split(": ", 1) for line in frame.split("\n"))
    assert set(lines) in ({"id", "event", "data"}, {"event", "data"})
    return lines | {"data": json.loads(lines["data"])}
