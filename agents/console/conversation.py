"""A ticket's conversation as staff read it: every text with who it came from."""

from dataclasses import dataclass
from datetime import datetime

from agents.models import Author, Message


@dataclass(frozen=True)
class Line:
    """One message. `origin` says whose words they are; they are data, whatever they claim."""

    seq: int
    author: str
    origin: str
    text: str
    at: datetime
    task_id: int | None


def conversation_of(ticket_id: int) -> list[Line]:
    """All that was said in a ticket, oldest first."""
    messages = Message.objects.filter(ticket_id=ticket_id).order_by("seq")
    return [
        Line(
            seq=message.seq,
            author=message.author,
            origin=_origin(message),
            text=message.text,
            at=message.at,
            task_id=message.task_id,
        )
        for message in messages
    ]


def _origin(message: Message) -> str:
    match message.author:
        case Author.CUSTOMER:
            return "Customer"
        case Author.STAFF:
            return f"Staff, {message.author_name}" if message.author_name else "Staff"
        case _ if message.is_template:
            return "Agent, fixed text"
        case _:
            return "Agent, words of the model"
