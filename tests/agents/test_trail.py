"""What the audit trail says an event is about."""

from audit.models import Event
from tests.agents.desk import Desk

COLUMNS = ("shop_id", "task_id", "ticket_id", "customer")


def test_every_event_of_a_tasks_life_names_it_by_the_same_columns(desk: Desk):
    task = desk.done("Please refund order 1042, the mug is broken")

    events = Event.objects.filter(action__regex=r"^(task|step|refund|approval)\.")

    assert {"task.queued", "step.finished", "refund.succeeded", "task.succeeded"} <= set(
        events.values_list("action", flat=True)
    )
    assert set(events.values_list(*COLUMNS)) == {(task.shop_id, task.pk, task.ticket_id, "ada")}
