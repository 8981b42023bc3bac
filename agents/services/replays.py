"""Keeping what a replay came to, for the task's page."""

from datetime import datetime

from django.db import transaction

from accounts import keeping
from agents.casework import KeptReplay
from agents.models import Task
from agents.replay import NotReplayableError, Verdict
from agents.trail import about
from audit import services as audit


@transaction.atomic
def keep(verdict: Verdict, *, prompt_version: str, model: str, now: datetime) -> KeptReplay:
    """Keep a comparison beside its task. Raises NotReplayableError when its words were erased since."""
    # Whoever erases them holds the same lock.
    tasks = Task.objects.select_for_update(of=("self",)).select_related("customer")
    task = tasks.get(pk=verdict.task_id)
    if not keeping.not_erased([task.ticket_id]):
        raise NotReplayableError(f"the words of task {task.pk} have been erased")
    kept = KeptReplay.objects.create(
        task=task,
        prompt_version=prompt_version,
        model=model[:80],
        is_same=verdict.is_same,
        then=verdict.then.as_json(),
        now=verdict.now.as_json(),
        at=now,
    )
    audit.record(
        actor="system",
        action="task.replayed",
        subject=f"task:{task.pk}",
        at=now,
        data={"prompt": prompt_version, "model": model[:80], "same": verdict.is_same},
        **about(task),
    )
    return kept
