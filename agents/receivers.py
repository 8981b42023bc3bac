"""News from the layers below. A receiver does nothing but enqueue or ring: the row is the truth."""

from typing import Any

from django.dispatch import receiver

from agents import dispatch, events
from agents.models import Task
from approvals.signals import approval_changed
from tools.signals import evidence_came, operation_moved, shop_answers
from tools.trigger import Point, reach


@receiver(operation_moved)
def wake_task(*, task_id: int, **_: Any) -> None:
    reach(Point.C11)
    dispatch.advance(task_id)


@receiver(evidence_came)
def look_again(*, task_id: int, **_: Any) -> None:
    dispatch.wake(task_id)


@receiver(shop_answers)
def go_on_with_shop(*, shop_id: int, **_: Any) -> None:
    dispatch.go_on(shop_id)


@receiver(approval_changed)
def tell_followers(*, task_id: int, **_: Any) -> None:
    reach(Point.C10)
    ticket_id = Task.objects.filter(pk=task_id).values_list("ticket_id", flat=True).first()
    if ticket_id is not None:
        events.ring(task_id, ticket_id)
