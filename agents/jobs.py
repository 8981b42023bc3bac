"""Celery functions: parse, one service call. A job may run twice, late, or beside itself."""

from typing import Any

from celery import shared_task
from celery.signals import worker_init, worker_process_shutdown, worker_shutdown
from django.utils import timezone

from accounts import services as accounts
from agents import dispatch, services, telemetry
from agents.services import erasure, erasure_list, retention
from approvals import services as approvals
from tools import arrivals


@shared_task(name=dispatch.ADVANCE, acks_late=True, ignore_result=True)
def advance(*, task_ids: list[int], **_: Any) -> None:
    services.advance(task_ids=task_ids)


@shared_task(name=dispatch.GO_ON, ignore_result=True)
def go_on(*, shop_id: int, **_: Any) -> None:
    services.go_on(shop_id=shop_id)


@shared_task(name=dispatch.SWEEP, ignore_result=True)
def sweep(**_: Any) -> None:
    services.sweep()


@shared_task(name=dispatch.EXPIRE, ignore_result=True)
def expire(**_: Any) -> None:
    approvals.expire_due()


@shared_task(name=dispatch.ERASE, ignore_result=True)
def erase(**_: Any) -> None:
    erasure.finish_erasures(now=timezone.now())
    erasure_list.keep_list(now=timezone.now())


@shared_task(name=dispatch.LET_GO, ignore_result=True)
def let_go(**_: Any) -> None:
    retention.let_go(now=timezone.now())


@shared_task(name=dispatch.LOOK_AFTER, ignore_result=True)
def look_after(**_: Any) -> None:
    arrivals.look_after()


@shared_task(name=dispatch.TELL_SHOPS, ignore_result=True)
def tell_shops(**_: Any) -> None:
    accounts.tell_shops_of_revocations()


@worker_init.connect
def prepare_telemetry(**_: Any) -> None:
    telemetry.prepare()


@worker_shutdown.connect
@worker_process_shutdown.connect
def stop_telemetry(**_: Any) -> None:
    telemetry.stop()
