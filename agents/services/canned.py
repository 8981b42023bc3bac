"""Ready-made answers: written by an admin, filled in for one ticket, sent by a person."""

import re

from django.db import transaction
from django.db.utils import IntegrityError

from accounts.models import User
from agents.casework import CannedReply
from agents.models import Ticket
from audit import services as audit
from tools.clock import database_now

# A name in braces; what else stands in braces is text.
_PLACEHOLDER = re.compile(r"\{([a-z_]{1,20})\}")
PLACEHOLDERS = {
    "customer": "the customer’s first name",  # noqa: RUF001
    "staff": "your name",
    "shop": "the shop’s name",  # noqa: RUF001
    "ticket": "the number of this ticket",
}


class UnknownPlaceholderError(Exception):
    """The text asks for something that nothing fills in. `name` is what."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class NameTakenError(Exception):
    """The shop has an answer of that name."""


@transaction.atomic
def save(
    *, shop_id: int, by: User, name: str, text: str, reply_id: int | None = None
) -> CannedReply:
    """Write a new answer, or another text and name for one of this shop.

    Raises UnknownPlaceholderError, NameTakenError or CannedReply.DoesNotExist; nothing is written
    then.
    """
    for wanted in _PLACEHOLDER.findall(text):
        if wanted not in PLACEHOLDERS:
            raise UnknownPlaceholderError(wanted)
    reply = CannedReply(shop_id=shop_id)
    if reply_id is not None:
        reply = CannedReply.objects.select_for_update().get(pk=reply_id, shop_id=shop_id)
    reply.name, reply.text = name, text
    try:
        with transaction.atomic():
            reply.save()
    except IntegrityError as exc:
        raise NameTakenError(name) from exc
    _record(reply, "saved", by)
    return reply


@transaction.atomic
def remove(*, shop_id: int, by: User, reply_id: int) -> None:
    """Take an answer of this shop away; what was sent with it stays. Raises CannedReply.DoesNotExist."""
    reply = CannedReply.objects.select_for_update().get(pk=reply_id, shop_id=shop_id)
    _record(reply, "removed", by)
    reply.delete()


def fill(text: str, *, ticket: Ticket, user: User) -> str:
    """The text for this ticket. What is not known stays as it is, and cannot be sent like that.

    A value is put in as it stands: braces in somebody's name are no placeholder.
    """
    values = {
        "customer": ticket.customer.first_name,
        "staff": user.get_full_name() or user.get_username(),
        "shop": ticket.shop.name,
        "ticket": f"#{ticket.pk}",
    }
    return _PLACEHOLDER.sub(lambda found: values.get(found[1]) or found[0], text)


def unfilled_in(text: str) -> list[str]:
    """The placeholders that still stand in a text."""
    return [name for name in _PLACEHOLDER.findall(text) if name in PLACEHOLDERS]


def _record(reply: CannedReply, what: str, by: User) -> None:
    audit.record(
        actor=by.actor,
        action=f"canned_reply.{what}",
        subject=f"canned_reply:{reply.pk}",
        at=database_now(),
        shop_id=reply.shop_id,
        data={"name": reply.name},
    )
