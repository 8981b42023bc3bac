"""What the web process refuses before the application sees it, over real connections."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from script.lib.bootstrap import ROOT

SECONDS = 2
TARGET = "/v1/tasks?limit=1"
HEAD = f"POST {TARGET} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
BODY = b'{"message": "Hi"}'


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A web process with a short patience. No request here gets as far as the database."""
    listener = socket.create_server(("127.0.0.1", 0))
    log = tmp_path_factory.mktemp("web") / "log"
    with listener, log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "config.web", "--fd", str(listener.fileno())],
            cwd=ROOT,
            env=os.environ | {"COUNTERSIGN_REQUEST_SECONDS": str(SECONDS)},
            pass_fds=[listener.fileno()],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            number = listener.getsockname()[1]
            # The listener is open before the process is up: the first answer may take a while.
            assert httpx.get(f"http://127.0.0.1:{number}/healthz/live", timeout=60).is_success, (
                log.read_text()
            )
            yield number
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


@pytest.fixture
def wire(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        yield connection


def answer(wire: socket.socket) -> tuple[int, dict[str, str], Any]:
    """Status, headers and document of what comes until the server ends the connection."""
    raw = b""
    while chunk := wire.recv(65536):
        raw += chunk
    head, _, body = raw.decode().partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert int(headers["Content-Length"]) == len(body)
    return int(first.split(" ")[1]), headers, json.loads(body)


def drip(wire: socket.socket, data: bytes) -> float:
    """Send a byte every tenth of a second until the server answers; seconds until it did."""
    began = time.monotonic()
    for number in range(len(data)):
        wire.sendall(data[number : number + 1])
        if select.select([wire], [], [], 0.1)[0]:
            return time.monotonic() - began
    raise AssertionError("it would wait for ever")


@pytest.mark.parametrize(
    ("at_once", "dripping"),
    [
        (f"{HEAD}Content-Length: 1000\r\n\r\n", b"x" * 500),
        (f"{HEAD}Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 100),
        ("", f"{HEAD}X-Long: {'x' * 500}".encode()),
    ],
    ids=["body", "chunks", "head"],
)
def test_a_request_that_comes_byte_by_byte_is_answered_with_408(
    wire: socket.socket, at_once: str, dripping: bytes
):
    wire.sendall(at_once.encode())

    waited = drip(wire, dripping)

    status, headers, document = answer(wire)
    assert status == 408
    assert headers["Content-Type"] == "application/problem+json"
    assert headers["Connection"] == "close"
    assert document["type"].endswith("/docs/problems/#request-too-slow")
    assert document["request_id"] == headers["X-Request-ID"]
    assert waited >= SECONDS - 0.5


def test_slow_requests_do_not_hold_up_the_others(port: int):
    """Answered while fifty others wait, of whom none has been told anything yet.

    On a machine that stands still for their two seconds this shows nothing; so it may try again.
    """
    for _ in range(5):
        with ExitStack() as stack:
            slow = [
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
                for _ in range(50)
            ]
            for wire in slow:
                wire.sendall(f"{HEAD}Content-Length: 1000\r\n\r\nx".encode())
            quick = httpx.get(f"http://127.0.0.1:{port}/healthz/live", timeout=20)
            told = select.select(slow, [], [], 0)[0]

            assert quick.json() == {"status": "ok"}
            assert {answer(wire)[0] for wire in slow} == {408}
        if not told:
            return
    raise AssertionError("nobody is served until the slow ones are done")


def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(wire: socket.socket):
    wire.sendall(f"{HEAD}Expect: 100-continue\r\nContent-Length: 65537\r\n\r\n".encode())

    status, headers, document = answer(wire)

    assert status == 413
    assert document["type"].endswith("/docs/problems/#body-too-large")
    assert document["instance"] == "/v1/tasks"
    assert headers["Cache-Control"] == "no-store"


def test_a_body_without_an_end_is_cut_at_64_kilobytes(wire: socket.socket):
    wire.sendall(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
    chunk = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
    sent = 0
    while not select.select([wire], [], [], 0.01)[0]:
        wire.sendall(chunk)
        sent += 0x1000
        assert sent < 4_000_000

    assert answer(wire)[0] == 413


def test_whatever_follows_a_refusal_is_not_heard(wire: socket.socket):
    """Not even a whole request: the rest of a body could be one."""
    hidden = "GET /healthz/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    wire.sendall(f"{HEAD}Content-Length: 70000\r\n\r\n{hidden}".encode())
    wire.sendall(hidden.encode())

    status, _, document = answer(wire)

    assert (status, document["status"]) == (413, 413)


def test_requests_of_one_connection_each_have_their_own_time(port: int):
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
        first = client.post("/v1/tasks", content=BODY)
        time.sleep(SECONDS + 0.5)
        second = client.post("/v1/tasks", content=BODY)

    assert (first.status_code, second.status_code) == (401, 401)


def test_a_pipelined_request_is_answered_in_its_turn(wire: socket.socket):
    get = "GET /healthz/live HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    wire.sendall(f"{get}\r\n{get}Connection: close\r\n\r\n".encode())

    raw = b""
    while chunk := wire.recv(65536):
        raw += chunk

    assert len(re.findall(rb"HTTP/1\.1 200 OK", raw)) == 2


@pytest.mark.parametrize("path", ["/healthz/live", "/console/login/"])
def test_a_body_of_the_largest_size_gets_through(port: int, path: str):
    answered = httpx.post(f"http://127.0.0.1:{port}{path}", content=b"x" * 65536, timeout=20)

    assert answered.status_code in {403, 405}
