"""The jobs' names, and the one way to enqueue each.

A message is a hint: it carries ids and nothing else. When the broker is away the row still says
what is to be done, and the sweep finds it.
"""

import logging
from functools import partial

from celery import signature
from django.db import transaction
from kombu.exceptions import OperationalError

from agents.models import Task, TaskStatus
from tools.clock import ClockTimestamp
from tools.trigger import Point, reach

ADVANCE = "agents.advance"
GO_ON = "agents.go_on"
SWEEP = "agents.sweep"
EXPIRE = "approvals.expire"
TELL_SHOPS = "accounts.revocations"
ERASE = "agents.erasures"
LET_GO = "agents.retention"
LOOK_AFTER = "agents.arrivals"

logger = logging.getLogger(__name__)


def advance(task_id: int, *, countdown: float = 0) -> None:
    """Wake a task once the current transaction is committed; `countdown` is in seconds."""
    transaction.on_commit(partial(_send, task_id, countdown))


def wake(task_id: int) -> None:
    """Let a task look again now that waits for an outcome; without this it looks a little later."""
    Task.objects.filter(
        pk=task_id, status=TaskStatus.WAITING_OUTCOME, wake_at__gt=ClockTimestamp()
    ).update(wake_at=ClockTimestamp())
    advance(task_id)


def go_on(shop_id: int) -> None:
    """Wake what waited for this shop; without this it looks a little later."""
    transaction.on_commit(partial(_send_go_on, shop_id))


def _send(task_id: int, countdown: float) -> None:
    reach(Point.C02)
    try:
        signature(ADVANCE, kwargs={"task_ids": [task_id]}).apply_async(
            countdown=countdown or None, retry=False
        )
    except OperationalError:
        logger.warning("The broker is away; the sweep will wake task %s", task_id)
    reach(Point.C03)


def _send_go_on(shop_id: int) -> None:
    try:
        signature(GO_ON, kwargs={"shop_id": shop_id}).apply_async(retry=False)
    except OperationalError:
        logger.warning("The broker is away; the tasks of shop %s wait a little longer", shop_id)
