"""Claim and record: the two commits of every step.

`claim` takes tasks with one conditional UPDATE that raises their epoch and sets a lease by the
database's clock; only what is truly ready matches, whatever message woke us. `locked` is where a
record begins: it finds the row only under the epoch of the claim, so a stale worker changes nothing.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, QuerySet

from agents import abilities, budgets, forms, prompting
from agents.models import (
    Author,
    Message,
    Step,
    StepKind,
    StepStatus,
    Task,
    TaskStatus,
    Ticket,
)
from agents.moves import CallTool, Log, LoggedStep
from agents.transcript import Said
from tools import ablation
from tools.clock import ClockTimestamp, database_now
from tools.models import Operation
from tools.outages import again_on_collision
from tools.registry import EFFECTS
from tools.sending import Lease
from tools.trigger import Point, reach

# The error of a step that waits until its shop is called again.
SHOP_RESTS = "RestingError"
EFFECT_TOOLS = frozenset(tool.name for tool in EFFECTS.values())

# Ready: never claimed or its lease ran out; or what it waited for has come.
_READY = """
    (t.status IN ('queued', 'running')
       AND (t.lease_until IS NULL OR t.lease_until < clock_timestamp())
       AND (t.wake_at IS NULL OR t.wake_at <= clock_timestamp()))
    OR (t.status IN ('waiting_outcome', 'waiting_model') AND t.wake_at <= clock_timestamp())
    OR (t.status = 'waiting_approval'
       AND (t.wake_at IS NULL OR t.wake_at <= clock_timestamp())
       AND EXISTS (SELECT 1 FROM tools_operation o
                   WHERE o.id = t.operation_id AND o.state <> 'awaiting_approval'))
"""
# Its planned step takes no more than this code is able to do: else it is another version's.
_ABLE = """
    EXISTS (SELECT 1 FROM agents_step s WHERE s.task_id = t.id AND s.n = t.steps_planned
              AND string_to_array(s.needs, ' ') <@ %s)
"""
# Passes over rows that somebody holds instead of waiting for them: whoever stands still in a
# transaction would keep one more thread of every worker waiting at each sweep.
_CLAIM = f"""
    WITH free AS (
        SELECT t.id FROM agents_task t WHERE t.id = ANY(%s) AND ({_READY})
          AND {_ABLE}
        ORDER BY t.id FOR UPDATE SKIP LOCKED
    )
    UPDATE agents_task t
    SET epoch = t.epoch + 1, status = 'running', wake_at = NULL,
        lease_until = clock_timestamp() + make_interval(secs => %s),
        started_at = COALESCE(t.started_at, clock_timestamp())
    FROM free WHERE t.id = free.id
    RETURNING t.id
"""  # noqa: S608 - constants of this module
# Freshly ready tasks have a message on its way: only what waits longer was left behind.
_FIND_READY = f"""
    SELECT t.id FROM agents_task t WHERE ({_READY}) AND {_ABLE}
      AND (t.wake_at IS NULL OR t.wake_at <= clock_timestamp() - make_interval(secs => %s))
    ORDER BY t.id LIMIT %s
"""  # noqa: S608


@dataclass(frozen=True)
class Claim:
    """A task taken to run one step of it: all that the run needs, read in the claim's transaction."""

    task: Task
    step: Step
    steps: tuple[LoggedStep, ...]
    messages: tuple[Said, ...]
    lease: Lease
    claimed_at: float
    # It goes on after a wait for a person or an outcome.
    is_resumed: bool = False
    # For a model step: what to send, and the budget that does not allow it, if one does not.
    model_request: prompting.Request | None = None
    spent_budget: str = ""

    @property
    def request(self) -> str:
        """What the customer asked that opened the task."""
        opening = self.task.opening_seq
        return next((said.text for said in self.messages if said.seq == opening), "")


class StaleClaimError(Exception):
    """Another worker holds the task by now; this one's state writes are void."""


def find_ready(*, for_seconds: float = 0, limit: int = 500) -> list[int]:
    """Tasks that this code could claim now and have been ready for so long, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(_FIND_READY, [abilities.ours(), for_seconds, limit])
        return [task_id for (task_id,) in cursor.fetchall()]


def find_resting(*, shop_id: int, limit: int = 1000) -> list[int]:
    """Tasks that sleep with a change to send because their shop was known not to answer."""
    resting = Task.objects.filter(
        shop_id=shop_id,
        status=TaskStatus.WAITING_OUTCOME,
        steps__status=StepStatus.WAITING,
        steps__error=SHOP_RESTS,
    )
    return list(resting.order_by("pk").values_list("pk", flat=True)[:limit])


@again_on_collision
def claim(task_ids: Sequence[int]) -> list[Claim]:
    """Take those of the tasks that are ready; the rest are somebody else's or wait.

    One whose row somebody holds just now is left to the next message or to the sweep, and so is
    one whose step takes more than this version of the code is able to do.
    """
    claimed_at = time.monotonic()
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute(_CLAIM, [list(task_ids), abilities.ours(), settings.LEASE_SECONDS])
            taken = [task_id for (task_id,) in cursor.fetchall()]
        if not taken:
            return []
        tasks = sorted(_with_whose_it_is().filter(pk__in=taken), key=lambda task: task.pk)
        return [_start(_joined(task), claimed_at) for task in tasks]


def _with_whose_it_is() -> QuerySet[Task]:
    """Tasks with the rows that `_joined` joins: every row once, as each has dozens of columns."""
    return Task.objects.select_related("shop", "customer", "ticket")


def _joined(task: Task) -> Task:
    """The customer of a task is its ticket's too, and both are of its shop."""
    if task.customer.shop_id == task.shop_id:
        task.customer.shop = task.shop
    if task.ticket.customer_id == task.customer_id:
        task.ticket.customer = task.customer
    return task


def _start(task: Task, claimed_at: float) -> Claim:
    """Mark the planned step as started, and read the log it goes on from."""
    rows = sorted(task.steps.order_by(), key=lambda row: row.n)
    step = _with_its_operation(rows[-1])
    now = database_now()
    if step.status == StepStatus.STARTED:
        # Its worker never recorded it: whatever it spent is unknown and stays charged.
        step.lost += 1
        budgets.charge_unknown(task, step)
    if step.heard_seq is None and step.kind == StepKind.MODEL:
        step.heard_seq = task.ticket.last_seq
    is_resumed = step.status == StepStatus.WAITING
    if not is_resumed:  # going on after a wait is not another try
        step.attempts += 1
    step.status = StepStatus.STARTED
    step.started_at = step.started_at or now
    step.save(
        update_fields=[
            "status",
            "attempts",
            "lost",
            "heard_seq",
            "started_at",
            "cost",
            "tokens_reserved",
            "cost_reserved",
            "budget_day",
        ]
    )
    reach(Point.C05)
    steps = tuple(logged(row) for row in rows[:-1])
    messages = tuple(said_in(task.ticket_id))
    request = None
    spent_budget = ""
    if step.kind == StepKind.MODEL:
        request = prompting.request_for(task, step, steps=steps, messages=messages, now=now)
        try:
            budgets.reserve(task, step, request.worst, now=now)
        except budgets.ExhaustedError as exc:
            spent_budget = exc.budget
    return Claim(
        task=task,
        step=step,
        steps=steps,
        messages=messages,
        lease=Lease(epoch=task.epoch, ends_at=claimed_at + settings.LEASE_SECONDS),
        claimed_at=claimed_at,
        is_resumed=is_resumed,
        model_request=request,
        spent_budget=spent_budget,
    )


def _with_its_operation(step: Step) -> Step:
    """Read now, as nothing is read while the step runs. Few steps have one."""
    if step.operation_id is not None:
        step.operation = Operation.objects.get(pk=step.operation_id)
    return step


def release(held: Claim, *, seconds: float) -> None:
    """Let go of a task whose run failed in our own code; it is ready again after `seconds`.

    Its step stays started, so the next claim counts this try as lost.
    """
    Task.objects.filter(pk=held.task.pk, epoch=held.lease.epoch, status=TaskStatus.RUNNING).update(
        lease_until=None, wake_at=ClockTimestamp() + timedelta(seconds=seconds)
    )


def locked(held: Claim) -> Task:
    """The task's row, locked, if this claim still holds it. Raises StaleClaimError otherwise."""
    held_now = {"epoch": held.lease.epoch} if ablation.is_on("fence") else {}
    mine = _with_whose_it_is().select_for_update(of=("self",))
    try:
        return _joined(mine.get(pk=held.task.pk, status=TaskStatus.RUNNING, **held_now))
    except Task.DoesNotExist as exc:
        raise StaleClaimError(held.task.pk) from exc


def plan(
    task: Task,
    *,
    kind: StepKind,
    now: datetime,
    tool: str = "",
    arguments: str = "",
    call_id: str = "",
) -> Step:
    """Insert the next step of a task whose row is locked; the caller saves `steps_planned`."""
    task.steps_planned += 1
    prompt = task.prompt_version if kind == StepKind.MODEL else ""
    return Step.objects.create(
        task=task,
        n=task.steps_planned,
        kind=kind,
        needs=abilities.needed(kind=kind, tool=tool, workflow=task.workflow, prompt=prompt),
        tool=tool[:64],
        arguments=arguments,
        call_id=call_id,
        planned_at=now,
        prompt_version=prompt,
        model=task.model if kind == StepKind.MODEL else "",
    )


def log_of(task: Task, request: str) -> Log:
    """The finished steps of a task, for the engine."""
    steps = tuple(sorted(map(logged, task.steps.order_by()), key=lambda step: step.n))
    # A form hears nothing but itself: whatever was said meanwhile is for the agent afterwards.
    floor = task.opening_seq if steps and task.workflow == forms.WORKFLOW else 0
    heard = max([floor, *(step.heard_seq or 0 for step in steps)])
    has_unheard = (
        heard > 0
        and Message.objects.filter(
            ticket_id=task.ticket_id, seq__gt=heard, author=Author.CUSTOMER
        ).exists()
    )
    return Log(
        workflow=task.workflow,
        request=request,
        max_steps=task.max_steps,
        steps=steps,
        has_unheard_message=has_unheard,
        locale=task.ticket.spoken,
    )


def form_of(task: Task) -> CallTool | None:
    """The call of the form that opened the task, if one did."""
    if task.workflow != forms.WORKFLOW:
        return None
    first = task.steps.get(n=1)
    return CallTool(first.tool, first.arguments, first.call_id)


def logged(step: Step) -> LoggedStep:
    return LoggedStep(
        n=step.n,
        kind=step.kind,
        tool=step.tool,
        call_id=step.call_id,
        arguments=step.arguments,
        result=step.result,
        has_effect=step.tool in EFFECT_TOOLS,
        heard_seq=step.heard_seq,
    )


def said_in(ticket_id: int) -> list[Said]:
    """A ticket's messages in their order."""
    rows = Message.objects.filter(ticket_id=ticket_id).order_by("seq")
    return [
        Said(seq, author, text) for seq, author, text in rows.values_list("seq", "author", "text")
    ]


def add_message(
    ticket: Ticket,
    *,
    author: Author,
    text: str,
    now: datetime,
    task: Task | None = None,
    author_name: str = "",
    client_message_id: str = "",
    is_template: bool = False,
) -> Message:
    """Append to a ticket's conversation; numbers it by the ticket's own counter."""
    Ticket.objects.filter(pk=ticket.pk).update(
        last_seq=F("last_seq") + 1, version=F("version") + 1, updated_at=now
    )
    seq = Ticket.objects.values_list("last_seq", flat=True).get(pk=ticket.pk)
    return Message.objects.create(
        ticket=ticket,
        seq=seq,
        author=author,
        author_name=author_name,
        text=text,
        task=task,
        client_message_id=client_message_id,
        is_template=is_template,
        at=now,
    )
