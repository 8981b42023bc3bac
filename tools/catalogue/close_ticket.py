"""close_ticket: end the conversation, and tell its customer so in one e-mail."""

from datetime import datetime

from django.conf import settings
from pydantic import Field

from accounts.models import Shop
from tools.catalogue.base import Arguments, TicketTool
from tools.language import Text, pick
from tools.models import Kind
from tools.policy import Ruling
from tools.seal import Intent
from tools.text import clean
from tools.tickets import TicketFacts

# The e-mail, in the language of the conversation: no word of it is the model's.
_MAIL_SUBJECT: Text = (
    "Your request to {shop} is closed (no. {ticket})",
    "Ihre Anfrage an {shop} ist beendet (Nr. {ticket})",
)
_MAIL_TEXT: Text = (
    (
        "Hello,\n\nyour request no. {ticket} is closed. This is what was done:\n{done}\n\n"
        "If anything is missing, just write to us in the chat again.\n\n{shop}\n"
    ),
    (
        "Guten Tag,\n\nIhre Anfrage Nr. {ticket} ist beendet. Das wurde getan:\n{done}\n\n"
        "Wenn etwas fehlt, schreiben Sie uns einfach wieder im Chat.\n\n{shop}\n"
    ),
)
_MAIL_NOTHING_MADE: Text = (
    "Your questions were answered.",
    "Ihre Fragen wurden beantwortet.",
)


class CloseTicket(Arguments):
    resolution: str = Field(
        min_length=1, max_length=500, description="How it ended, in a sentence, for staff."
    )


def decide(
    arguments: CloseTicket, facts: TicketFacts, shop: Shop, _now: datetime, ruling: Ruling
) -> Intent:
    """The closure that the rules allow for these facts. Raises DeniedError."""
    ruling.require(
        "shop_sends_mail",
        holds=bool(settings.SMTP_URL and shop.mail_from),
        code="tool_off",
        message="This shop sends no e-mail, so the conversation just stays open.",
    )
    ruling.require(
        "ticket_is_open",
        holds=facts.is_open,
        code="order_state",
        message="This conversation is closed already.",
    )
    ruling.require(
        "recipient_is_known",
        holds=bool(facts.recipient) and not any(char in facts.recipient for char in "\r\n\0,;<> "),
        code="bad_address",
        message="There is no e-mail address on file to tell the customer at.",
    )
    mail = {
        "sender": shop.mail_from,
        "recipient": facts.recipient,
        "subject": pick(_MAIL_SUBJECT, facts.locale).format(shop=shop.name, ticket=facts.ticket),
        "text": _text(shop.name, facts),
    }
    return Intent(
        kind=Kind.CLOSE_TICKET,
        order_id="",
        request=mail,
        shown={"resolution": clean(arguments.resolution, 500)},
    )


def _text(shop: str, facts: TicketFacts) -> str:
    """The e-mail, from what truly happened."""
    done = facts.done or (pick(_MAIL_NOTHING_MADE, facts.locale),)
    listed = "\n".join(f"- {line}" for line in done)
    return pick(_MAIL_TEXT, facts.locale).format(ticket=facts.ticket, done=listed, shop=shop)


CLOSE_TICKET = TicketTool(
    name="close_ticket",
    description=(
        "Propose to close this conversation once the customer needs nothing more. The customer is "
        "shown the e-mail that will be sent and asked. The result tells what happened."
    ),
    arguments=CloseTicket,
    permission="tickets:close",
    calls_per_minute=5,
    kind=Kind.CLOSE_TICKET,
    decide=decide,
)
