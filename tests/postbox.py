"""A real SMTP server for tests: takes mail, or answers as it is told to."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP


class Postbox:
    """What was taken, and how it answers. `hold` is in seconds, after the text was taken."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.reset()

    def reset(self) -> None:
        """Be a healthy server that has taken nothing yet."""
        self.taken: list[Any] = []
        self.refuse_recipient = ""
        self.refuse_text = ""
        self.hold = 0.0

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, _server: SMTP, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        if self.refuse_recipient:
            return self.refuse_recipient
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: SMTP, _session: Any, envelope: Any) -> str:  # noqa: N802
        if self.refuse_text:
            return self.refuse_text
        self.taken.append(envelope)
        await asyncio.sleep(self.hold)
        return "250 taken"


@contextmanager
def run_postbox() -> Iterator[Postbox]:
    """Take mail on a free port until the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    box = Postbox(f"smtp://127.0.0.1:{port}")
    controller = Controller(box, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield box
    finally:
        controller.stop()
