"""The product's Celery worker, unchanged but for two places where it can be made to stand still.

A frozen process is no fault that a signal from outside can put at an exact place, so the worker
stops itself there: by SIGSTOP, all threads of it, until somebody sends SIGCONT.
"""

import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import django
from celery.__main__ import main as celery

BEFORE_WIRE, AFTER_REPLY = "before_wire", "after_reply"
FOLDER = "PROVE_REHEARSAL"


def stand_still(folder: Path, point: str, order_id: str) -> None:
    """Stop here if a file asks for it; of several workers one does. Its name then tells our id."""
    wanted = folder / f"{point}.{order_id}"
    with suppress(FileNotFoundError):
        wanted.rename(f"{wanted}.{os.getpid()}")
        # To this very thread: sent to the process, it could come to another one first, and this one
        # would run on for as long as that takes.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def tell(folder: Path, order_id: str, outcome: str) -> None:
    """Write down what came of a send by a worker that stood still before it."""
    mark = folder / f"{BEFORE_WIRE}.{order_id}.{os.getpid()}"
    if mark.exists():
        mark.write_text(outcome)


def rehearse(folder: Path) -> None:
    """Put the two places around the product's way over the wire: its deadline check included."""
    from tools import sending  # noqa: PLC0415 - only once Django is set up

    over_the_wire = sending._over_the_wire

    def with_stops(operation: Any, carrier: Any, lease: Any) -> Any:
        stand_still(folder, BEFORE_WIRE, operation.order_id)
        outcome = over_the_wire(operation, carrier, lease)
        tell(folder, operation.order_id, outcome.detail)
        stand_still(folder, AFTER_REPLY, operation.order_id)
        return outcome

    sending._over_the_wire = with_stops


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    rehearse(Path(os.environ[FOLDER]))
    sys.exit(celery())
