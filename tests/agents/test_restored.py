"""The whole task after a restore: what it did meanwhile is found at the shop and told once."""

from agents import services
from agents.models import Message, Step, Task
from tests.agents.desk import Desk, operation, reply
from tests.restoring import backup, change_timeline, forget, restore
from tools.models import LookFirst


def restored_to(task: Task, desk: Desk) -> Task:
    """Everything about the task as it is now, after it has gone on to its end and been restored."""
    steps, said = task.steps.count(), task.ticket.last_seq
    kept = backup(task, task.ticket, operation(task), *task.steps.all())
    assert desk.work(task).status == "succeeded"
    assert len(desk.shop.effects()) == 1
    restore(kept)
    forget(
        Step.objects.filter(task=task, n__gt=steps),
        Message.objects.filter(ticket=task.ticket, seq__gt=said),
    )
    change_timeline()
    return Task.objects.get(pk=task.pk)


def test_a_refund_that_was_paid_after_the_backup_is_told_and_not_paid_again(desk: Desk):
    task = desk.decide(desk.work(desk.ask("Please refund order 1042")), is_yes=True)
    task = restored_to(task, desk)
    assert operation(task).state == "approved"

    services.sweep()
    assert operation(task).state == "unknown"
    task = desk.work(task)

    assert (task.status, task.outcome) == ("succeeded", "done")
    assert operation(task).state == "succeeded"
    assert "refund" in reply(task).lower()
    assert len(desk.shop.effects()) == 1
    assert len([call for call in desk.shop.calls() if call["path"].endswith("/refunds")]) == 1


def test_a_yes_that_was_lost_is_asked_for_again_and_pays_nothing_more(desk: Desk):
    task = desk.work(desk.ask("Please refund order 1042"))
    kept = backup(desk.question(task), operation(task), task, task.ticket, *task.steps.all())
    steps, said = task.steps.count(), task.ticket.last_seq
    assert desk.say_yes(task).status == "succeeded"
    restore(kept)
    forget(
        Step.objects.filter(task=task, n__gt=steps),
        Message.objects.filter(ticket=task.ticket, seq__gt=said),
    )
    change_timeline(minutes_ago=10)
    services.sweep()
    LookFirst.objects.update(started_at=LookFirst.objects.get().since)  # its look-ups lag no more

    task = desk.say_yes(Task.objects.get(pk=task.pk))

    assert (task.status, task.outcome) == ("succeeded", "done")
    assert len(desk.shop.effects()) == 1
    assert len([call for call in desk.shop.calls() if call["path"].endswith("/refunds")]) == 1
