"""Who takes an operation's sealed bytes out: the shop's API, or the mail server."""

from collections.abc import Callable
from typing import Any

from django.conf import settings

from tools import ablation
from tools.clients.mail import Mail, MailServer
from tools.clients.shop import ShopClient
from tools.models import Kind, Operation
from tools.seal import request_body

# Sends the sealed content once and gives the other side's reference; raises the errors of
# tools.clients.errors.
Carrier = Callable[[Operation, dict[str, Any]], str]


def shop(
    client: ShopClient, order_version: int, operation: Operation, content: dict[str, Any]
) -> str:
    """Ask the shop for the change, under the operation's key."""
    body = request_body(content)
    key = ablation.key_for(operation.idempotency_key)
    if operation.kind == Kind.REFUND:
        return client.refund(operation.order_id, body, key).id
    if operation.kind == Kind.CANCEL:
        return client.cancel(operation.order_id, order_version, body, key).id
    return client.change_address(operation.order_id, order_version, body, key).id


def mail(operation: Operation, content: dict[str, Any]) -> str:
    """Hand the closure's e-mail over. Its Message-ID is the operation's, first time and every time."""
    request = content["request"]
    domain = request["sender"].rpartition("@")[2]
    message_id = f"<{operation.idempotency_key}@{domain}>"
    server = MailServer(settings.SMTP_URL, timeout=settings.SHOP_TIMEOUT / 3)
    server.send(Mail(message_id=message_id, **request))
    return message_id
