"""Named places in the code where a test lets something go wrong.

Each point lies between two things that are stored or sent. `reach` does nothing outside tests: no
setting and no environment variable can give it something to do, only a handler that a test sets.
"""

from collections.abc import Callable
from enum import Enum


class Point(Enum):
    """Where work can end between two commits. The value: what has happened / what has not."""

    C01 = "a request was parsed and its task's row written / they are committed"
    C02 = "task and step are committed / the message that wakes a worker is sent"
    C03 = "the message is sent / the client has its answer"
    C04 = "a worker has the message / it has claimed the task"
    C05 = "lease and attempt are written / the model budget is reserved"
    C06 = "reservation and started step are committed / the model is called"
    C07 = "the model has replied / its reply is saved"
    C08 = "the model's reply is committed / its tool call is parsed"
    C09 = "proposal and verdicts are written / the question is, and the task waits"
    C10 = "the question or its answer is committed / followers are told"
    C11 = "what moves an operation on is committed / its task is woken"
    C12 = "the task is claimed for a send / the order is read and everything decided again"
    C13 = "everything was decided again / `sending` is written and committed"
    C14 = "`sending` is committed / the first byte leaves"
    C15 = "the bytes are with the other side / its answer is judged"
    C16 = "the answer is judged / the outcome is committed"
    C17 = "outcome and its event are committed / the step's result is"
    C18 = "a step's result is committed / anything follows from it"
    C19 = "what is new is committed / followers have heard of it, and the message is done with"
    C20 = "any COMMIT was sent / its acknowledgement has come"


# A test's handler. C20 is every commit, so it has no place here: tests meet it at the connection.
handler: Callable[[Point], None] | None = None


def reach(point: Point) -> None:
    """Pass a point: nothing happens, unless a test has set a handler, which may raise."""
    if handler is not None:
        handler(point)
