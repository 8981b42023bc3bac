"""Connections that a fault can cut: a client then sees what a dead server looks like."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

_OPEN: dict[tuple[str, int], asyncio.Transport] = {}


class CuttableProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, with every open connection known by its peer's address."""

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.client is not None:
            _OPEN[self.client] = transport

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self.client is not None:
            _OPEN.pop(self.client, None)
        super().connection_lost(exc)


def cut(scope: MutableMapping[str, Any]) -> None:
    """Close the connection of a request after what was written so far, and send nothing more."""
    client = scope.get("client")
    transport = _OPEN.get(tuple(client)) if client else None
    if transport is not None:
        transport.close()
