"""What customers, staff and workers do with tickets and tasks."""

from agents.services.tasks import advance, cancel, go_on, sweep
from agents.services.tickets import (
    MAX_MESSAGE,
    AgentSpeaksError,
    MessageReusedError,
    Submitted,
    TicketClosedError,
    TicketNotFoundError,
    TooManyOpenTasksError,
    TooManyRequestsError,
    ask_for_person,
    give_back,
    reply_as_staff,
    submit,
    take_over,
)

__all__ = [
    "MAX_MESSAGE",
    "AgentSpeaksError",
    "MessageReusedError",
    "Submitted",
    "TicketClosedError",
    "TicketNotFoundError",
    "TooManyOpenTasksError",
    "TooManyRequestsError",
    "advance",
    "ask_for_person",
    "cancel",
    "give_back",
    "go_on",
    "reply_as_staff",
    "submit",
    "sweep",
    "take_over",
]
