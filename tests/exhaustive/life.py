"""Everything that can happen to one approved operation: workers, crashes, oversleeping, replies."""

from collections.abc import Callable, Iterator
from functools import partial

from tests.exhaustive import rows
from tests.exhaustive.checker import Model, Step, Violation
from tests.exhaustive.world import (
    APPROVED,
    ENDED,
    FAILED,
    FINAL,
    IDLE,
    NEEDS_PERSON,
    NEVER,
    NOT_SENT,
    REFUSED,
    SUCCEEDED,
    TURNED_AWAY,
    UNDECIDED,
    UNKNOWN,
    Ledger,
    Operation,
    Repeat,
    Setting,
    Task,
    Worker,
    World,
    canonical,
)

TOLD = {
    SUCCEEDED: "done",
    FAILED: "refused by the shop",
    ENDED: "not sent",
    NEEDS_PERSON: "a colleague is checking",
}
CHANGED, UNCHANGED = "changed", "unchanged"
NAMES = ("worker A", "worker B")
TIME = "time"


def model(setting: Setting) -> Model[World]:
    """The whole behaviour under a setting."""
    return Model(
        World(), partial(steps, setting=setting), partial(canonical, guards=setting.guards)
    )


def steps(world: World, setting: Setting) -> Iterator[Step[World]]:
    """All that can happen next."""
    if not any(worker.at == "write" and worker.lease == 0 for worker in world.workers):
        yield Step(TIME, "one tick passes", tick(world, setting))
    if world.operation.state == APPROVED:
        withdrawn = world.operation._replace(state=ENDED)
        yield Step("customer", "withdraws the yes", world._replace(operation=withdrawn), False)
    can_claim = _can_be_claimed(world)
    seen: list[Worker] = []
    for slot, worker in enumerate(world.workers):
        if worker in seen:
            continue  # The other worker is in the very same place.
        seen.append(worker)
        if worker.at == "idle":
            if can_claim:
                yield from _claim(world, slot, setting)
            continue
        yield from _DOES[worker.at](world, slot, setting)
        yield Step(NAMES[slot], "crashes", _put(world, slot, IDLE), False)


def calm(world: World, setting: Setting) -> Iterator[tuple[World, int]]:
    """What can happen when nothing goes wrong any more: workers finish what they hold, and with
    every tick one comes by. Each with the ticks it takes."""
    busy = [slot for slot, worker in enumerate(world.workers) if worker.at != "idle"]
    for slot in busy:
        for step in _DOES[world.workers[slot].at](world, slot, setting):
            if step.is_calm:
                yield canonical(step.after, setting.guards), 0
    if not busy:
        later = tick(world, setting)
        claims = _claim(later, 0, setting) if _can_be_claimed(later) else ()
        for after in [step.after for step in claims] or [later]:
            yield canonical(after, setting.guards), 1


def story(violation: Violation[World] | None) -> str:
    """A counterexample, line by line: the tick, who, and what."""
    if violation is None:
        return "breaks nothing"
    now = 0
    lines = [f"breaks {violation.invariant}:"]
    for step in violation.trace:
        now += step.actor == TIME
        lines.append(f"  tick {now}  {step.actor:9}  {step.action}")
    return "\n".join(lines)


def is_settled(world: World) -> bool:
    """Decided, or with a person; and the customer knows."""
    return world.operation.state in FINAL | {NEEDS_PERSON} and world.task.told != ""


def tick(world: World, setting: Setting) -> World:
    """Every age grows until nothing compares it any more; every lease shrinks."""
    row, ledger, task = world.operation, world.ledger, world.task
    return World(
        row._replace(
            first_sent=_later(row.first_sent, setting.oldest_first_send),
            since_news=min(row.since_news + 1, setting.provider.known_lag),
        ),
        task._replace(lease=max(task.lease - 1, 0)),
        ledger._replace(
            age=min(ledger.age + 1, setting.oldest_effect) if ledger.effects else 0,
            refused=_later(ledger.refused, setting.provider.memory or 0),
        ),
        tuple(
            worker._replace(lease=worker.lease - 1) if worker.lease else worker
            for worker in world.workers
        ),
    )


def _later(age: int, oldest: int) -> int:
    return age if age == NEVER else min(age + 1, oldest)


# --- Claim and record ---------------------------------------------------------------------------


def _can_be_claimed(world: World) -> bool:
    """`store._READY`: nobody holds it, or its lease ran out."""
    return not world.task.told and (not world.task.is_held or world.task.lease == 0)


def _claim(world: World, slot: int, setting: Setting) -> Iterator[Step[World]]:
    """`store.claim`. A claim that was never recorded counts as lost (`store._start`), and a step
    with too many of those is given up (`runner.run`): after how many is left open here."""
    name, task = NAMES[slot], world.task
    epoch = task.epoch + 1
    taken = world._replace(task=Task(epoch, is_held=True, lease=setting.lease))
    yield Step(name, "claims the task", _put(taken, slot, Worker("drive", epoch, setting.lease)))
    if task.is_held:
        giving_up = _put(taken, slot, Worker("give_up", epoch, setting.lease))
        yield Step(name, "claims the task, lost too often by now", giving_up)


def _record(world: World, slot: int, setting: Setting) -> Iterator[Step[World]]:
    """`record.record`: what the operation came to, under the claim's epoch (`store.locked`)."""
    worker, task = world.workers[slot], world.task
    free = _put(world, slot, IDLE)
    is_stale = setting.guards.epoch and worker.epoch != task.epoch
    if is_stale or (setting.guards.state_condition and task.told):
        yield Step(NAMES[slot], "finds its claim void and changes nothing", free)
        return
    told = TOLD.get(worker.carries, "")
    released = task._replace(is_held=False, lease=0, told=told)
    action = f"tells the customer: {told}" if told else "lets the task wait"
    yield Step(NAMES[slot], action, free._replace(task=released))


def _give_up(world: World, slot: int, setting: Setting) -> Iterator[Step[World]]:
    """`runner.run` at a step that keeps failing."""
    row = rows.hand_over(world.operation, world.workers[slot].epoch, setting.guards)
    after = _put(world, slot, _onward(world, slot, "record", NEEDS_PERSON))
    yield Step(NAMES[slot], "gives up the step", after._replace(operation=row))


# --- The first send -----------------------------------------------------------------------------


def _drive(world: World, slot: int, setting: Setting) -> Iterator[Step[World]]:
    """`runner._drive`, with the order's facts (`sending.look_at_subject`) or the take-over."""
    name, row, worker = NAMES[slot], world.operation, world.workers[slot]
    if row.state == APPROVED:
        facts = _facts(world, setting)
        after = _put(world, slot, _onward(world, slot, "begin", facts))
        yield Step(name, f"reads the order: {facts}", after)
    elif row.state in UNDECIDED:
        yield _take_over(world, slot, setting)
    else:
        after = _put(world, slot, worker._replace(at="record", carries=row.state))
        yield Step(name, f"finds the operation {row.state}", after)


def _begin(world: World, slot: int, setting: Setting) -> Iterator[Step[World]]:
    worker = world.workers[slot]
    begin = partial(rows.begin, world.operation, worker.epoch, setting.guards)
    yield from _begins(world, slot, begin)


def _begins(
    world: World, slot: int, begin: Callable[..., tuple[Operation, bool]]
) -> Iterator[Step[World]]:
    """Commit the intent to send; or what has changed since the yes forbids it."""
    name, worker = NAMES[slot], world.workers[slot]
    for forbidden in (False, True):
        if worker.carries == CHANGED and not forbidden:
            continue
        row, goes_on = begin(forbidden=forbidden)
        if goes_on:
            onward = worker._replace(at="send", attempt=len(row.attempts) - 1, carries="")
            action = "commits that it will send" if row != world.operation else "goes on to send"
        else:
            onward = worker._replace(at="record", carries=row.state)
            action = f"does not send: {'forbidden now, ' if forbidden else ''}{row.state}"
        # With the facts changed that is what calmly happens.
        is_calm = forbidden == (worker.carries == CHANGED)
        yield Step(name, action, _put(world, slot, onward)._replace(operation=row), is_calm)


def _send(world: World, slot: int, setting: Setting) -> Iterator[Step[World]]:
    """`sending._over_the_wire`: the deadline is checked in the same breath as the socket write."""
    worker = world.workers[slot]
    if setting.guards.deadline and worker.lease == 0:
        after = _put(world, slot, worker._replace(at="settle", carries=NOT_SENT))
        yield Step(NAMES[slot], "finds its lease over and sends nothing", after)
    elif setting.freeze:
        after = _put(world, slot, worker._replace(at="write", lease=setting.freeze))
        yield Step(NAMES[slot], "finds its lease long enough", after)
    else:
        yield from _write(world, slot, setting)


def _write(world: World, slot: int, setting: Setting) -> Iterator[Step[World]]:
    """The socket write and the reply, judged as in `sending._outcome_of_call`."""
    ledger, provider = world.ledger, setting.provider
    sent = ledger._replace(sends=min(ledger.sends + 1, setting.max_sends + 1))
    yield _replied(world, slot, ledger, "cannot connect", NOT_SENT)
    yield _replied(world, slot, sent, "sends, turned away at the gate", TURNED_AWAY)
    lost = UNKNOWN if setting.guards.unknown_on_timeout else REFUSED
    for reply in ("reply lost", "500"):
        yield _replied(world, slot, sent, f"sends, {reply}, no effect", lost)
    happened, answer = _answer(sent, setting)
    if answer == REFUSED:
        yield _replied(world, slot, sent, "sends, refused as it must be", REFUSED, True)
        return
    what = "sends, recognised"
    if happened != sent:
        what = "sends, paid"
        refused = sent._replace(refused=0) if provider.keeps_refusals else sent
        yield _replied(world, slot, refused, "sends, refused", REFUSED)
    for reply in ("reply lost", "500"):
        yield _replied(world, slot, happened, f"{what}, {reply}", lost)
    yield _replied(world, slot, happened, f"{what}, ok", SUCCEEDED, True)


def _replied(
    world: World, slot: int, ledger: Ledger, action: str, outcome: str, is_calm: bool = False
) -> Step[World]:
    worker = world.workers[slot]._replace(at="settle", carries=outcome)
    return Step(NAMES[slot], action, _put(world, slot, worker)._replace(ledger=ledger), is_calm)


def _answer(ledger: Ledger, setting: Setting) -> tuple[Ledger, str]:
    """What the provider does with a send that it does not lose."""
    provider = setting.provider
    memory = (provider.memory or 0) if setting.guards.stable_key else 0
    paid = ledger._replace(effects=min(ledger.effects + 1, 2))
    if NEVER < ledger.refused < memory:
        return ledger, REFUSED
    if ledger.effects == 0:
        return paid, SUCCEEDED
    if ledger.age < memory and (provider.key_first or provider.repeat != Repeat.REFUSES):
        return ledger, SUCCEEDED
    match provider.repeat:
        case Repeat.PAYS_AGAIN:
            return paid, SUCCEEDED
        case Repeat.SAYS_DONE:
            return ledger, SUCCEEDED
        case Repeat.REFUSES:
            return ledger, REFUSED


def _settle(world: World, slot: int, setting: Setting) -> Iterator[Step[World]]:
    worker = world.workers[slot]
    row = rows.settle(world.operation, worker.carries, worker.epoch, worker.attempt, setting.guards)
    onward = Worker("record", worker.epoch, worker.lease, carries=row.state)
    moved = row.state if row.state != world.operation.state else "evidence only"
    after = _put(world, slot, onward)._replace(operation=row)
    yield Step(NAMES[slot], f"writes down what came of it: {moved}", after)


# --- An unknown outcome -------------------------------------------------------------------------


def _take_over(world: World, slot: int, setting: Setting) -> Step[World]:
    """`reconcile.reconcile` up to the look-up."""
    worker = world.workers[slot]
    row, is_ours = rows.take_over(world.operation, worker.epoch, setting.guards)
    if not is_ours:
        onward = worker._replace(at="record", carries=row.state)
        action = "finds the operation held by a later claim"
    elif row.evidence:
        onward = worker._replace(at="settle", carries=SUCCEEDED)
        action = "takes over, and reads a stale worker's receipt"
    else:
        asks = setting.provider.look_up and setting.guards.look_up_first
        onward = worker._replace(at="look_up" if asks else "decide", carries="")
        action = "takes over"
    return Step(NAMES[slot], action, _put(world, slot, onward)._replace(operation=row))


def _look_up(world: World, slot: int, setting: Setting) -> Iterator[Step[World]]:
    """`find_effect` by key."""
    name, worker, ledger = NAMES[slot], world.workers[slot], world.ledger
    if ledger.effects and ledger.age >= setting.provider.lag:
        found = worker._replace(at="settle", carries=SUCCEEDED)
        yield Step(name, "looks up: found", _put(world, slot, found))
    else:
        missed = worker._replace(at="decide")
        yield Step(name, "looks up: not found", _put(world, slot, missed))
    row = rows.wait_or_give_up(world.operation, worker.epoch, setting)
    onward = worker._replace(at="record", carries=row.state)
    after = _put(world, slot, onward)._replace(operation=row)
    yield Step(name, f"cannot look up: {row.state}", after, False)


def _decide(world: World, slot: int, setting: Setting) -> Iterator[Step[World]]:
    worker = world.workers[slot]
    if setting.provider.is_mail:
        left = rows.leave_to_person(world.operation, worker.epoch, setting.guards)
        row, goes_on = left, False
    else:
        row, goes_on = rows.should_send_again(world.operation, worker.epoch, setting)
    if goes_on:
        facts = _facts(world, setting)
        onward = worker._replace(at="begin_again", carries=facts)
        action = f"may send again, and reads the order: {facts}"
    else:
        onward = worker._replace(at="record", carries=row.state)
        action = f"does not send again: {row.state}"
    after = _put(world, slot, onward)._replace(operation=row)
    yield Step(NAMES[slot], action, after)


def _begin_again(world: World, slot: int, setting: Setting) -> Iterator[Step[World]]:
    worker = world.workers[slot]
    begin = partial(rows.begin_again, world.operation, worker.epoch, setting.guards)
    yield from _begins(world, slot, begin)


# --- Words --------------------------------------------------------------------------------------

_DOES: dict[str, Callable[[World, int, Setting], Iterator[Step[World]]]] = {
    "drive": _drive,
    "begin": _begin,
    "send": _send,
    "write": _write,
    "settle": _settle,
    "look_up": _look_up,
    "decide": _decide,
    "begin_again": _begin_again,
    "give_up": _give_up,
    "record": _record,
}


def _put(world: World, slot: int, worker: Worker) -> World:
    workers = list(world.workers)
    workers[slot] = worker
    return world._replace(workers=tuple(workers))


def _onward(world: World, slot: int, at: str, carries: str) -> Worker:
    return world.workers[slot]._replace(at=at, carries=carries)


def _facts(world: World, setting: Setting) -> str:
    shows = setting.provider.order_shows_it and world.ledger.effects > 0
    return CHANGED if shows else UNCHANGED
