"""/v1/runs: the tasks under their other common name, with its words."""

from typing import Any

from agents.api import representations as show
from agents.api import shapes, spec, stream
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


@spec.list_and_submit(spec.RUN)
class RunListView(_Run, TaskListView):
    """The customer's runs, and the way to start one."""

    shape = shapes.RunIn
    message_field = "goal"


@spec.look(spec.RUN)
class RunView(_Run, TaskView):
    """One run."""


@spec.follow(spec.RUN)
class RunEventsView(_Run, TaskEventsView):
    """What happens to a run, as it happens."""


@spec.say(spec.RUN)
class RunMessagesView(_Run, TaskMessagesView):
    """Saying something more in the conversation of a run."""


@spec.cancel(spec.RUN)
class RunCancelView(_Run, TaskCancelView):
    """Stopping a run."""


@spec.decide(spec.RUN)
class RunDecisionView(TaskDecisionView):
    """Approving or rejecting the sealed action of a step."""

    shape = shapes.RunDecisionIn
