"""Somebody who takes a shop's webhooks: keeps them for a test to read, and answers as it is told."""

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from typing_extensions import override

WAIT = 10.0


@dataclass(frozen=True)
class Letter:
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Letterbox:
    """`answers` are given in turn, then 200 for ever."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    letters: "queue.Queue[Letter]" = field(default_factory=queue.Queue)

    def next(self, seconds: float = WAIT) -> Letter:
        return self.letters.get(timeout=seconds)


@contextmanager
def open_letterbox() -> Iterator[Letterbox]:
    box = Letterbox()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            kept = {name: headers[name] for name in headers if name.startswith("webhook-")}
            box.letters.put(Letter(kept, body))
            self.send_response(box.answers.pop(0) if box.answers else 200)
            self.send_header("content-length", "0")
            self.end_headers()

        @override
        def log_message(self, format: str, *args: Any) -> None:
            """Tests need no access log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    box.url = f"http://127.0.0.1:{server.server_port}/hooks"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield box
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
