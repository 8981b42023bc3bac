"""/v1/runs: the tasks under their other common name, with its words."""

from typing import Any

from agents.api import representations as show
from agents.api import shapes, stream
from agents.api.decisions import TaskDecisionView
from agents.api.tasks import (
    TaskCancelView,
    TaskEventsView,
    TaskListView,
    TaskMessagesView,
    TaskView,
)
from agents.models import Task


class _Run:
    """What a run says that a task does not."""

    noun = "runs"
    naming = staticmethod(stream.run_naming)

    def shown(self, task: Task) -> dict[str, Any]:
        return show.run_full(task)


class RunListView(_Run, TaskListView):
    """The customer's runs, and the way to start one."""

    shape = shapes.RunIn
    message_field = "goal"


class RunView(_Run, TaskView):
    """One run."""


class RunEventsView(_Run, TaskEventsView):
    """What happens to a run, as it happens."""


class RunMessagesView(_Run, TaskMessagesView):
    """Saying something more in the conversation of a run."""


class RunCancelView(_Run, TaskCancelView):
    """Stopping a run."""


class RunDecisionView(TaskDecisionView):
    """Approving or rejecting the sealed action of a step."""

    shape = shapes.RunDecisionIn
