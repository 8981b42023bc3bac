"""The web process: Daphne, with an end to how long a request may take to arrive and how large it is.

Daphne hands a request to the application once all of it is there, so nothing further in can put an
end to one that comes a byte at a time, or to a body without a length that never stops.

    python -m config.web -b 0.0.0.0 -p 8000
"""

import http.client
import logging
import os
import sys
import uuid
from io import BytesIO
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

# The application comes first: it sets Django up, and Daphne's reactor with it.
from config.asgi import application  # noqa: F401, I001

import daphne.server
from daphne.cli import CommandLineInterface
from daphne.http_protocol import HTTPFactory, WebRequest
from django.conf import settings
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel
from typing_extensions import override

from agents.api import problems
from agents.api.bodies import MAX_BODY
from agents.api.problems import ProblemError, ProblemType
from agents.chat.frames import MAX_FRAME

# For how long a refused client may go on sending, so that it can read why: closing at once would
# reset the connection, and with it the answer under way.
LINGER_SECONDS = 2.0

logger = logging.getLogger(__name__)


class BoundedRequest(WebRequest):
    """A request whose body is kept in memory, up to the largest that is accepted anywhere."""

    @override
    def gotLength(self, length: int | None) -> None:
        self.content = BytesIO()

    @override
    def handleContentChunk(self, data: bytes) -> None:
        if self.content.tell() + len(data) > MAX_BODY:
            self.channel.refuse(problems.TOO_LARGE)
        else:
            super().handleContentChunk(data)


class BoundedChannel(HTTPChannel):
    """A connection. From the first byte of a request, all of it has REQUEST_SECONDS to arrive."""

    callLater: Any  # noqa: N815 - its name in Twisted
    transport: Any
    _deadline: Any = None
    _lingering: Any = None
    _is_refused = False

    @override
    def dataReceived(self, data: bytes) -> None:
        if self._is_refused:
            return
        if self._deadline is None and not self._handlingRequest:
            self._deadline = self.callLater(
                settings.REQUEST_SECONDS, self.refuse, problems.TOO_SLOW
            )
        super().dataReceived(data)

    @override
    def lineReceived(self, line: bytes) -> None:
        if not self._is_refused:
            super().lineReceived(line)

    @override
    def rawDataReceived(self, data: bytes) -> None:
        if not self._is_refused:
            super().rawDataReceived(data)

    @override
    def allHeadersReceived(self) -> None:
        if self.length is not None and self.length > MAX_BODY:
            self.refuse(problems.TOO_LARGE)
        else:
            super().allHeadersReceived()

    @override
    def allContentReceived(self) -> None:
        self._stop("_deadline")
        if not self._is_refused:
            super().allContentReceived()

    @override
    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._stop("_deadline")
        self._stop("_lingering")
        super().connectionLost(reason)

    def refuse(self, kind: ProblemType) -> None:
        """Answer now, whatever else of the request may come, and end the connection soon."""
        if self._is_refused:
            return
        self._is_refused = True
        self._stop("_deadline")
        self.setTimeout(None)
        self.transport.write(_answer(kind, getattr(self, "_path", b"")))
        self.transport.loseWriteConnection()
        self._lingering = self.callLater(LINGER_SECONDS, self.transport.abortConnection)

    def _stop(self, name: str) -> None:
        call = getattr(self, name)
        if call is not None and call.active():
            call.cancel()
        setattr(self, name, None)


def _answer(kind: ProblemType, target: bytes) -> bytes:
    """The bytes of a problem document, as the application would have answered."""
    path = target.partition(b"?")[0].decode("latin-1")
    name = uuid.uuid4().hex
    headers, body = problems.written(ProblemError(kind), path, name)
    logger.info("request %s to %.80r: %s", name, path, kind.code)
    head = [f"HTTP/1.1 {kind.status} {http.client.responses.get(kind.status, '')}"]
    head += [f"{field}: {value}" for field, value in {**headers, "Connection": "close"}.items()]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


class BoundedFactory(HTTPFactory):
    """Makes bounded channels with bounded requests. They speak HTTP/1.1 and no other."""

    protocol = BoundedChannel

    @override
    def buildProtocol(self, addr: Any) -> Any:
        channel = super().buildProtocol(addr)
        channel.requestFactory = BoundedRequest
        return channel


class Web(CommandLineInterface):
    """Daphne's command line, all options included."""

    def __init__(self) -> None:
        super().__init__()
        self.parser.set_defaults(
            websocket_max_message_size=MAX_FRAME, websocket_max_frame_size=MAX_FRAME
        )


def main(arguments: list[str]) -> None:
    # Its server names the factory in its own module and offers no other way in.
    daphne.server.HTTPFactory = BoundedFactory
    Web().run(["config.asgi:application", *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
