"""Celery functions: parse, one service call. A job may run twice, late, or beside itself."""

from typing import Any

from celery import shared_task
from django.utils import timezone

from accounts import notices


@shared_task(name="accounts.notices", ignore_result=True)
def send_notices(**_: Any) -> None:
    """Beat's turn: a job for each endpoint, so that a slow one holds up no other."""
    for endpoint_id in notices.list_due(now=timezone.now()):
        deliver_notices.apply_async(kwargs={"endpoint_id": endpoint_id}, retry=False)


@shared_task(name="accounts.deliver", ignore_result=True)
def deliver_notices(*, endpoint_id: int, **_: Any) -> None:
    notices.deliver(endpoint_id=endpoint_id)
