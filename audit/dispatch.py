"""The jobs' names, and the one way to enqueue each. A message is a hint; the sweep finds what it lost."""

import logging
from functools import partial
from uuid import UUID

from celery import signature
from django.db import transaction
from kombu.exceptions import OperationalError

EXPORT = "audit.export"
SWEEP = "audit.exports"

logger = logging.getLogger(__name__)


def export(export_id: UUID) -> None:
    """Let a worker make the bundle once the current transaction is committed."""
    transaction.on_commit(partial(_send, str(export_id)))


def _send(export_id: str) -> None:
    try:
        signature(EXPORT, kwargs={"export_id": export_id}).apply_async(retry=False)
    except OperationalError:
        logger.warning("The broker is away; the sweep will start export %s", export_id)
