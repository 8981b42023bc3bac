"""Traces and metrics for whoever runs this: off, and without cost, until OpenTelemetry's variables ask.

The step log is the record; what is told here may be lost. `agents.spans` does the telling. It alone
imports OpenTelemetry, and is made with the first step that a process runs: so a process that tells
nothing pays nothing, and the threads that send begin after any fork, in the process that works.

It is a worker's business alone, and above `tools`: every call of the model and of a tool goes out
from `agents.runner`, where nothing is locked.
"""

import importlib
import logging
import re
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, cast

from django.conf import settings

from agents.outcomes import StepOutcome
from agents.store import Claim

Run = Callable[[Claim], StepOutcome]

_NOTHING = "0"
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}", re.ASCII)

logger = logging.getLogger(__name__)


class Teller(Protocol):
    """Whoever tells of a worker's work. Nothing of it waits for the outside or raises for its sake."""

    def stretch(self, held: Claim) -> AbstractContextManager[None]: ...

    def call(self, held: Claim, run: Run) -> StepOutcome: ...

    def here(self) -> str: ...

    def stop(self) -> None: ...


def stretch(held: Claim) -> AbstractContextManager[None]:
    """One stretch of work on a task: a span from the claim's run to its record."""
    teller = _teller()
    return nullcontext() if teller is None else teller.stretch(held)


def call(held: Claim, run: Run) -> StepOutcome:
    """What the step's call of the model or of a tool comes to, with a span around it."""
    teller = _teller()
    return run(held) if teller is None else teller.call(held, run)


def here() -> str:
    """The traceparent of the stretch that this thread is in; "" outside one, and while nothing is told."""
    return _told.here() if _told is not None else ""


def read_traceparent(header: str) -> str:
    """A request's `traceparent`, or "" when it is not one of W3C Trace Context's version 00."""
    found = _TRACEPARENT.fullmatch(header)
    is_one = found is not None and all(part.strip(_NOTHING) for part in found.groups())
    return header if is_one else ""


def prepare() -> None:
    """Load what telling needs, if anything is to be told. No thread begins by it."""
    if settings.TELEMETRY:
        importlib.import_module("agents.spans")


def stop() -> None:
    """Send what is left, in a few seconds at most, and tell nothing more until the next step."""
    global _told, _is_made
    with _lock:
        told, _told, _is_made = _told, None, False
    if told is not None:
        told.stop()


_lock = threading.Lock()
_told: Teller | None = None
_is_made = False


def _teller() -> Teller | None:
    """The process's own, made at its first use; None when nothing is to be told."""
    global _told, _is_made
    if not settings.TELEMETRY:
        return None
    with _lock:
        if not _is_made:
            _is_made = True  # tried once: a wrong variable costs no more than its traces
            try:
                _told = cast(Teller, importlib.import_module("agents.spans").start())
            except Exception:
                logger.exception("telemetry could not be started; the work goes on without it")
        return _told
