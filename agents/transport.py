"""HTTP whose answers have a last moment and a largest size, whatever the server does."""

import time
from collections.abc import Iterator
from typing import cast

import httpx2
from typing_extensions import override

MAX_WIRE_BYTES = 16 * 1024 * 1024  # a few hundred for each character of the longest replies


class OutOfTimeError(httpx2.ReadTimeout):
    """The whole answer took too long, though its pieces kept coming."""


class OutOfRoomError(httpx2.ReadError):
    """The answer has more bytes than any honest one."""


class BoundedStream(httpx2.SyncByteStream):
    """A response body with a last moment and a largest size, error bodies included."""

    def __init__(self, stream: httpx2.SyncByteStream, *, deadline: float, cap: int) -> None:
        self._stream = stream
        self._deadline = deadline
        self._left = cap

    @override
    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self._left -= len(piece)
            if self._left < 0:
                raise OutOfRoomError("the answer is too large")
            yield piece
            if time.monotonic() > self._deadline:
                raise OutOfTimeError("the answer takes too long")

    @override
    def close(self) -> None:
        self._stream.close()


class BoundedTransport(httpx2.HTTPTransport):
    """Gives every request its read timeout in all, where HTTP clients bound each read only."""

    @override
    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        seconds = request.extensions["timeout"]["read"]
        deadline = time.monotonic() + seconds
        response = super().handle_request(request)
        # Taken up when the body begins: a silence in it lasts no longer than what is left now.
        request.extensions["timeout"]["read"] = max(deadline - time.monotonic(), 0.05)
        response.stream = BoundedStream(
            cast(httpx2.SyncByteStream, response.stream),
            deadline=deadline,
            cap=MAX_WIRE_BYTES,
        )
        return response
