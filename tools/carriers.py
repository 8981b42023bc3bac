"""Who takes an operation's sealed bytes out: the shop's API, or the mail server."""

from collections.abc import Callable
from typing import Any, NamedTuple

from django.conf import settings

from tools import ablation
from tools.clients.mail import Mail, MailServer
from tools.clients.shop import ShopClient
from tools.models import Kind, Operation
from tools.seal import request_body


class Carried(NamedTuple):
    """The other side's reference, and whether it calls a refund pending."""

    reference: str
    is_pending: bool = False


# Sends the sealed content once; raises the errors of tools.clients.errors.
Carrier = Callable[[Operation, dict[str, Any]], Carried]


def shop(
    client: ShopClient, order_version: int, operation: Operation, content: dict[str, Any]
) -> Carried:
    """Ask the shop for the change, under the operation's key."""
    body = request_body(content)
    key = ablation.key_for(operation.idempotency_key)
    if operation.kind == Kind.REFUND:
        receipt = client.refund(operation.order_id, body, key)
        return Carried(receipt.id, receipt.is_pending)
    if operation.kind == Kind.CANCEL:
        return Carried(client.cancel(operation.order_id, order_version, body, key).id)
    return Carried(client.change_address(operation.order_id, order_version, body, key).id)


def mail(operation: Operation, content: dict[str, Any]) -> Carried:
    """Hand the closure's e-mail over. Its Message-ID is the operation's, first time and every time."""
    request = content["request"]
    domain = request["sender"].rpartition("@")[2]
    message_id = f"<{operation.idempotency_key}@{domain}>"
    server = MailServer(settings.SMTP_URL, timeout=settings.SHOP_TIMEOUT / 3)
    server.send(Mail(message_id=message_id, **request))
    return Carried(message_id)
