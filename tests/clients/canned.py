"""A real server on loopback that answers each connection with the bytes it was given."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

HANG_UP = b""


@dataclass
class CannedServer:
    """`heard` holds the bytes of every request, in order of arrival."""

    url: str
    heard: list[bytes] = field(default_factory=list)


def answer(body: object, status: int = 200, **headers: str) -> bytes:
    """The bytes of an HTTP answer; `body` is JSON unless it is bytes already."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"HTTP/1.1 {status} Canned", f"Content-Length: {len(data)}", "Connection: close"]
    head += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + data


@contextmanager
def canned_server(*answers: bytes) -> Iterator[CannedServer]:
    """Gives the answers in order, one a connection; the last one again and again.

    HANG_UP closes the connection after the request was read, without a byte of answer.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    server = CannedServer(f"http://127.0.0.1:{listener.getsockname()[1]}")
    thread = threading.Thread(target=_serve, args=(listener, server, answers))
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(timeout=5)


def _serve(listener: socket.socket, server: CannedServer, answers: tuple[bytes, ...]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            server.heard.append(_request(connection))
            connection.sendall(answers[min(len(server.heard), len(answers)) - 1])


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65_536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    while len(body) < length:
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body
