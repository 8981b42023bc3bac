"""The socket over a real connection: what the server in front of the application refuses itself."""

import base64
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from tests.live import Product

TEXT = 0x1


@contextmanager
def _upgraded(product: Product, origin: str = "") -> Iterator[tuple[socket.socket, str]]:
    """A connection after its handshake, and what the server answered to that."""
    address = urlsplit(product.url)
    request = [
        "GET /ws/chat/ HTTP/1.1",
        f"Host: {address.netloc}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Protocol: chat.v1",
        "Sec-WebSocket-Extensions: permessage-deflate",
        f"Origin: {origin or product.url}",
    ]
    with socket.create_connection((address.hostname, address.port), timeout=10) as wire:
        wire.sendall("\r\n".join([*request, "", ""]).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += wire.recv(1024)
        yield wire, answer.decode()


def _frame(opcode: int, payload: bytes) -> bytes:
    """One masked frame of a client."""
    mask = os.urandom(4)
    length = len(payload)
    head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, length)
    if length < 126:
        head = struct.pack("!BB", 0x80 | opcode, 0x80 | length)
    masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
    return head + mask + masked


def _is_cut(wire: socket.socket) -> bool:
    """Whether the server ends the connection without a word."""
    try:
        return wire.recv(1) == b""
    except ConnectionResetError:
        return True


def test_the_handshake_names_the_protocol_and_compresses_nothing(product: Product):
    with _upgraded(product) as (_, answer):
        assert answer.startswith("HTTP/1.1 101 ")
        assert "Sec-WebSocket-Protocol: chat.v1" in answer
        assert "permessage-deflate" not in answer


def test_another_page_gets_403(product: Product):
    with _upgraded(product, origin="http://evil.example") as (_, answer):
        assert answer.startswith("HTTP/1.1 403 ")


@pytest.mark.parametrize("payload", [b'{"type": "\xff\xfe"}', b" " * 1_100_000])
def test_what_is_no_text_or_far_too_long_cuts_the_connection(product: Product, payload: bytes):
    with _upgraded(product) as (wire, _):
        wire.sendall(_frame(TEXT, payload))

        assert _is_cut(wire)
    with _upgraded(product) as (_, answer):
        assert answer.startswith("HTTP/1.1 101 ")
