"""What customers, staff and workers do with tickets and tasks."""

from agents.services.speaking import (
    AgentSpeaksError,
    ColleagueSpeaksError,
    give_back,
    reply_as_staff,
    take_over,
)
from agents.services.tasks import advance, cancel, go_on, sweep
from agents.services.tickets import (
    MAX_MESSAGE,
    MessageReusedError,
    Submitted,
    TicketClosedError,
    TicketNotFoundError,
    TooManyOpenTasksError,
    TooManyRequestsError,
    ask_for_person,
    submit,
)

__all__ = [
    "MAX_MESSAGE",
    "AgentSpeaksError",
    "ColleagueSpeaksError",
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
