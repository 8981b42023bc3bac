"""Celery functions: parse, one service call. A job may run twice, late, or beside itself."""

from typing import Any
from uuid import UUID

from celery import shared_task
from django.utils import timezone

from audit import dispatch, export_work, exports


@shared_task(name=dispatch.EXPORT, acks_late=True, ignore_result=True)
def export(*, export_id: str, **_: Any) -> None:
    export_work.run(UUID(export_id))


@shared_task(name=dispatch.SWEEP, ignore_result=True)
def sweep(**_: Any) -> None:
    exports.sweep(now=timezone.now())
