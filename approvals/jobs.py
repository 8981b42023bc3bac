"""Celery functions of the approvals: one service call each. May run twice, late, or beside itself."""

from typing import Any

from celery import shared_task
from django.utils import timezone

from approvals import dispatch, reminding


@shared_task(name=dispatch.REMIND, ignore_result=True)
def remind(**_: Any) -> None:
    reminding.remind_due(now=timezone.now())
