"""Money of a refund that the shop has taken and calls pending: on its way until the shop tells more."""

from datetime import datetime, timedelta

from tools import inquiries, operations
from tools.models import Operation, Transit
from tools.proof import effects_told, is_paid_out

# How long the shop is given to tell by itself before it is asked.
FIRST_LOOK = timedelta(minutes=1)


def begin(operation: Operation, *, now: datetime) -> None:
    """Note that the money of this refund, which has just succeeded, is on its way.

    In the transaction that says so. Nothing is noted where the shop has told already that it was
    paid out: events may overtake an answer.
    """
    if not _is_told(operation):
        Transit.objects.create(operation=operation, began_at=now, next_look_at=now + FIRST_LOOK)


def end_if_told(operation: Operation, *, now: datetime) -> None:
    """Note, once, that the shop has told of its being paid out.

    In the transaction that has the operation's row locked. Money that came back is for `reversals`.
    """
    if _is_told(operation):
        end(operation, actor=f"shop:{operation.shop.slug}", now=now)


def end(operation: Operation, *, actor: str, now: datetime) -> None:
    """Note, once, that it was paid out; `actor` is who says so. With the operation's row locked."""
    transit = Transit.objects.filter(operation=operation, arrived_at=None).first()
    if transit is None:
        return
    transit.arrived_at = now
    transit.save(update_fields=["arrived_at"])
    operations.record(operation, "arrived", actor=actor, at=now)
    inquiries.end(operation, by=actor, now=now)


def _is_told(operation: Operation) -> bool:
    return any(is_paid_out(operation, effect) for effect in effects_told(operation))
