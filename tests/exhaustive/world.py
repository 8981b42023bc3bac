"""What the model of one approved operation consists of: the rows, two workers, the provider.

Time is counted in ticks of one lease and only as ages ("so long ago"), which stop counting where
nothing compares them any more. So time has no end here, and still there are finitely many states.
"""

from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import NamedTuple

# States of the operation. `ENDED` stands for expired, superseded and cancelled: over, never sent.
APPROVED, SENDING, UNKNOWN = "approved", "sending", "unknown"
NEEDS_PERSON, SUCCEEDED, FAILED, ENDED = "needs_person", "succeeded", "failed", "ended"
FINAL = frozenset({SUCCEEDED, FAILED, ENDED})
CLOSED = FINAL | {NEEDS_PERSON}
UNDECIDED = frozenset({SENDING, UNKNOWN})

# Outcomes of an attempt beside UNKNOWN and SUCCEEDED. A try that certainly sent nothing (NOT_SENT)
# leaves the list again: it counts neither as a send nor as one that may have had an effect.
OPEN, REFUSED, TURNED_AWAY, NOT_SENT = "open", "refused", "turned_away", "not_sent"

NEVER = -1


class Repeat(Enum):
    """What a provider does with a repeat whose key it has forgotten."""

    PAYS_AGAIN = "pays again"
    SAYS_DONE = "says that it is done"
    REFUSES = "refuses"


@dataclass(frozen=True)
class Provider:
    """How a provider behaves, in ticks; and, where it differs, what we have on record about it.

    * `memory`: how long a key is remembered; None = it has no keys at all.
    * `known_window`: what our record says of that.
    * `look_up`: effects can be found by key, after `lag`; `known_lag` is our record of it.
    * `order_shows_it`: reading the order shows the effect at once.
    * `keeps_refusals`: a refusal is remembered under its key, too, and answered again.
    * `key_first`: a remembered key is answered from memory before the order's state is looked at.
    """

    memory: int | None = 3
    known_window: int | None = 3
    look_up: bool = True
    lag: int = 0
    known_lag: int = 0
    repeat: Repeat = Repeat.PAYS_AGAIN
    order_shows_it: bool = False
    keeps_refusals: bool = False
    key_first: bool = True
    # Mail: never sent a second time, whatever else is known.
    is_mail: bool = False


@dataclass(frozen=True)
class Guards:
    """The rules that keep an operation safe; each can be taken away alone."""

    epoch: bool = True
    state_condition: bool = True
    intent_first: bool = True
    stable_key: bool = True
    look_up_first: bool = True
    wait_for_lag: bool = True
    window: bool = True
    kept_refusals: bool = True
    send_cap: bool = True
    deadline: bool = True
    unknown_on_timeout: bool = True
    hand_over: bool = True

    def without(self, *names: str) -> "Guards":
        return replace(self, **dict.fromkeys(names, False))


GUARDS = tuple(guard.name for guard in fields(Guards))


@dataclass(frozen=True)
class Setting:
    """One variant of the model: whom we deal with, what protects us, and how much goes wrong."""

    provider: Provider = field(default_factory=Provider)
    guards: Guards = field(default_factory=Guards)
    max_sends: int = 3
    lease: int = 1
    give_up_after: int = 3
    # For how many ticks a process may stand still between its deadline check and the socket write.
    freeze: int = 0

    @property
    def oldest_first_send(self) -> int:
        return max(self.give_up_after, self.provider.known_window or 0)

    @property
    def oldest_effect(self) -> int:
        return max(self.provider.memory or 0, self.provider.lag)


class Operation(NamedTuple):
    """The row with its attempts. `since_news`: age of what last happened to an attempt."""

    state: str = APPROVED
    epoch: int = 0
    first_sent: int = NEVER
    attempts: tuple[str, ...] = ()
    since_news: int = 0
    # A stale worker's receipt lies among the observations.
    evidence: bool = False


class Task(NamedTuple):
    """The row that workers claim. `told`: what its customer was told when it ended."""

    epoch: int = 0
    is_held: bool = False
    lease: int = 0
    told: str = ""


class Worker(NamedTuple):
    """A worker's process: the next thing it does, its claim, and what it carries in memory.

    `lease`: the ticks that its lease still runs; at the socket, those that it may yet stand still.
    """

    at: str = "idle"
    epoch: int = 0
    lease: int = 0
    attempt: int = NEVER
    carries: str = ""


IDLE = Worker()


class Ledger(NamedTuple):
    """The provider's own books: effects (two are as bad as more), age of the first, calls.

    `refused`: the age of a refusal that is kept.
    """

    effects: int = 0
    age: int = 0
    sends: int = 0
    refused: int = NEVER


class World(NamedTuple):
    operation: Operation = Operation()
    task: Task = Task()
    ledger: Ledger = Ledger()
    workers: tuple[Worker, ...] = (IDLE, IDLE)


def canonical(world: World, guards: Guards) -> World:
    """Worlds are equal when they differ in nothing that can ever matter again.

    Names of workers do not matter; claims are compared with each other alone, so their ranks say it
    all; and what no rule reads any more is left out.
    """
    row, task, ledger, workers = world
    if guards.epoch and guards.state_condition and guards.intent_first:
        workers = tuple(
            IDLE if _is_void(worker, row, task, guards) else _without_past(worker, row)
            for worker in workers
        )
        if row.state in CLOSED:
            row = Operation(row.state)
            if not any(worker.at in {"send", "write"} for worker in workers):
                ledger = Ledger(ledger.effects)
        if task.told:
            task = Task(told=task.told)
    return ranked(World(row, task, ledger, workers))


def ranked(world: World) -> World:
    """Number the claims that are still remembered 0, 1, 2 ... and put the workers in order."""
    row, task, ledger, workers = world
    epochs = {0, row.epoch, task.epoch, *(worker.epoch for worker in workers)}
    if max(epochs) >= len(epochs):
        ranks = {epoch: n for n, epoch in enumerate(sorted(epochs))}
        row = row._replace(epoch=ranks[row.epoch])
        task = task._replace(epoch=ranks[task.epoch])
        workers = tuple(worker._replace(epoch=ranks[worker.epoch]) for worker in workers)
    if workers[0] > workers[1]:
        workers = workers[::-1]
    return World(row, task, ledger, workers)


def _without_past(worker: Worker, row: Operation) -> Worker:
    """The lease is looked at before the wire, the attempt before the operation is closed."""
    if worker.lease and worker.at in {"settle", "record"}:
        worker = worker._replace(lease=0)
    if worker.attempt != NEVER and row.state in CLOSED:
        worker = worker._replace(attempt=NEVER)
    return worker


def _is_void(worker: Worker, row: Operation, task: Task, guards: Guards) -> bool:
    """An old claim with nothing left to do but to find that out, a step or two from here."""
    if worker.epoch == task.epoch and not task.told:
        return False
    match worker.at:
        case "write":
            return False
        case "send" if worker.lease > 0 or not guards.deadline:
            return False
        case "record":
            return True
        case "drive" | "begin" | "look_up":
            return row.state in CLOSED
        case "settle" if worker.carries == SUCCEEDED and not row.evidence:
            return row.state in CLOSED
    return row.state in CLOSED or worker.epoch < row.epoch
