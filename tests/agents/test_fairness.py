"""The queue is worked through step by step, so nobody waits for more than one step of each of the others."""

from agents import dispatch, services
from tests.agents.desk import Desk, steps


def test_each_task_goes_to_the_end_of_the_queue_after_every_step(
    desk: Desk, monkeypatch, django_capture_on_commit_callbacks
):
    queue: list[int] = []
    monkeypatch.setattr(dispatch, "_send", lambda task_id, countdown: queue.append(task_id))
    with django_capture_on_commit_callbacks(execute=True):
        flood = [desk.ask(f"Please refund order {order}") for order in ("1042", "1047", "1049")]
        other = desk.ask("Please refund order 1046", customer="bob")
    waited, since = [], 0

    while queue and other.is_live:
        task_id = queue.pop(0)
        since += 1
        if task_id == other.pk:
            waited.append(since)
            since = 0
        with django_capture_on_commit_callbacks(execute=True):
            services.advance(task_ids=[task_id])

    assert len(steps(other)) == len(waited) == 4
    assert max(waited) == len(flood) + 1
