"""The shop's mail server: takes e-mails over SMTP and keeps them, for customers and tests to read.

It runs on the event loop of the web server, so the database's one-thread rule holds. Faults are the
same rules as elsewhere: an e-mail is a call with the method SMTP and the path /smtp.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session

from orders_stub import times
from orders_stub.database import Database
from orders_stub.faults import DEFAULT_HOLD_MS, Plan, Target
from orders_stub.shop import Shop

MOST_BYTES = 256 * 1024
REFUSED = "550 5.1.1 No such mailbox here"
TROUBLE = "451 4.3.0 Try again later"


class Postman:
    """What the SMTP server calls: aiosmtpd gives these methods their names."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    async def handle_DATA(  # noqa: N802
        self, _server: SMTP, _session: Session, envelope: Envelope
    ) -> str:
        plan = self._shop.faults.strike(
            Target("SMTP", "/smtp", None, None, is_write=True, is_lookup=False)
        )
        await asyncio.sleep(plan.value("latency", "ms", 0) / 1000)
        if plan.has("error_before"):
            return REFUSED if plan.value("error_before", "status", 500) < 500 else TROUBLE
        await _hold(plan, "timeout_before")
        keep(self._shop.db, envelope)
        await _hold(plan, "timeout_after")
        return TROUBLE if plan.has("error_after") else "250 2.0.0 Kept"


async def _hold(plan: Plan, fault: str) -> None:
    if plan.has(fault):
        await asyncio.sleep(plan.value(fault, "ms", DEFAULT_HOLD_MS) / 1000)


def keep(db: Database, envelope: Envelope) -> None:
    """Store an e-mail once for each of its recipients."""
    content = envelope.content
    message = message_from_bytes(
        content if isinstance(content, bytes) else str(content).encode(),
        EmailMessage,
        policy=policy.default,
    )
    body = message.get_body(("plain",))
    for recipient in envelope.rcpt_tos:
        db.run(
            "INSERT INTO mails (at, sender, recipient, subject, message_id, text)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            times.to_text(times.now()),
            envelope.mail_from or "",
            recipient,
            str(message.get("Subject", "")),
            str(message.get("Message-ID", "")),
            body.get_content().replace("\r\n", "\n") if body is not None else "",
        )


def list_mails(db: Database, recipient: str | None = None) -> list[dict[str, Any]]:
    """E-mails that were taken, oldest first; one mailbox's when a recipient is given."""
    rows = db.rows(
        "SELECT * FROM mails WHERE recipient = coalesce(?, recipient) ORDER BY n", recipient
    )
    return [{name: row[name] for name in row.keys() if name != "n"} for row in rows]  # noqa: SIM118


@asynccontextmanager
async def open_mailroom(shop: Shop, listener: socket.socket) -> AsyncIterator[None]:
    """Take mail on a listening socket for as long as the context is open."""
    postman = Postman(shop)

    def connection() -> SMTP:
        return SMTP(postman, data_size_limit=MOST_BYTES, hostname="juniper-and-clay.example")

    server = await asyncio.get_running_loop().create_server(connection, sock=listener)
    try:
        yield
    finally:
        server.close()
