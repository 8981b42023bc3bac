"""Flags for review: a member of staff wants a task looked at again, and somebody says what came of it."""

from datetime import datetime

from django.db import transaction

from accounts.models import User
from agents.casework import ReviewFlag
from agents.models import Task
from agents.services.speaking import clean_lines
from agents.services.tasks import record_task


class FlaggedAlreadyError(Exception):
    """The task has an open flag; nothing was written. `flag` is that one."""

    def __init__(self, flag: ReviewFlag) -> None:
        super().__init__(str(flag))
        self.flag = flag


class ClosedAlreadyError(Exception):
    """Somebody closed the flag before; nothing was written. `flag` tells who."""

    def __init__(self, flag: ReviewFlag) -> None:
        super().__init__(str(flag))
        self.flag = flag


@transaction.atomic
def raise_flag(*, task_id: int, user: User, reason: str, now: datetime) -> ReviewFlag:
    """Flag a task, under way or ended; its work goes on as it would. Raises FlaggedAlreadyError.

    The words are in the flag alone: the trail says that there is one, and whose.
    """
    # Not locked: a worker that records a step of it has nothing to wait for here.
    task = Task.objects.select_related("customer").get(pk=task_id)
    flag, is_new = ReviewFlag.objects.select_related("raised_by").get_or_create(
        task=task,
        closed_at=None,
        defaults={"raised_by": user, "reason": clean_lines(reason), "raised_at": now},
    )
    if not is_new:
        raise FlaggedAlreadyError(flag)
    record_task(task, "flagged", actor=user.actor, now=now)
    return flag


@transaction.atomic
def close_flag(*, flag_id: int, task_id: int, user: User, word: str, now: datetime) -> ReviewFlag:
    """Close a flag of this task with a word. Raises ReviewFlag.DoesNotExist, ClosedAlreadyError."""
    flags = ReviewFlag.objects.select_for_update(of=("self",))
    flag = flags.select_related("task__customer", "closed_by").get(pk=flag_id, task_id=task_id)
    if flag.closed_at is not None:
        raise ClosedAlreadyError(flag)
    flag.closed_by = user
    flag.word = clean_lines(word)
    flag.closed_at = now
    flag.save(update_fields=["closed_by", "word", "closed_at"])
    record_task(flag.task, "flag_closed", actor=user.actor, now=now)
    return flag
