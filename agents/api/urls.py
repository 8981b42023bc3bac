"""The API's addresses, under /v1/."""

from django.urls import path, register_converter

from agents.api import decisions, docs, paging, runs, tasks, tickets, webhooks


class IdConverter:
    """A whole number from 1 that fits the database; anything else is no address of ours."""

    regex = paging.ID_PATTERN

    def to_python(self, value: str) -> int:
        return int(value)

    def to_url(self, value: int) -> str:
        return str(value)


class StepConverter(IdConverter):
    """The number of a step."""

    regex = "[1-9][0-9]{0,8}"


register_converter(IdConverter, "id")
register_converter(StepConverter, "step")

urlpatterns = [
    path("openapi.json", docs.openapi),
    path("tasks", tasks.TaskListView.as_view()),
    path("tasks/<id:task_id>", tasks.TaskView.as_view()),
    path("tasks/<id:task_id>/events", tasks.TaskEventsView.as_view()),
    path("tasks/<id:task_id>/messages", tasks.TaskMessagesView.as_view()),
    path("tasks/<id:task_id>/cancel", tasks.TaskCancelView.as_view()),
    path("tasks/<id:task_id>/approvals/<step:step>", decisions.TaskDecisionView.as_view()),
    path("forms", tasks.FormListView.as_view()),
    path("runs", runs.RunListView.as_view()),
    path("runs/<id:task_id>", runs.RunView.as_view()),
    path("runs/<id:task_id>/events", runs.RunEventsView.as_view()),
    path("runs/<id:task_id>/messages", runs.RunMessagesView.as_view()),
    path("runs/<id:task_id>/cancel", runs.RunCancelView.as_view()),
    path("runs/<id:task_id>/approvals/<step:step>", runs.RunDecisionView.as_view()),
    path("tickets", tickets.TicketListView.as_view()),
    path("tickets/<id:ticket_id>", tickets.TicketView.as_view()),
    path("webhooks/<slug:shop>", webhooks.WebhookView.as_view()),
]
