"""A small explicit-state model checker: breadth first, so that every counterexample is a shortest one.

A model gives its first state, its steps, and a canonical form under which states that can only do
the same things are one. Nothing here knows what is modelled.
"""

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S")

MAX_SILENT = 6


class Step(NamedTuple, Generic[S]):
    """One thing that can happen next. `is_calm`: it also happens when nothing goes wrong any more."""

    actor: str
    action: str
    after: S
    is_calm: bool = True


@dataclass(frozen=True)
class Model(Generic[S]):
    """`steps` says all that can happen in a state; `canonical` names its class of equal states."""

    first: S
    steps: Callable[[S], Iterable[Step[S]]]
    canonical: Callable[[S], S]


# What must hold of every step: (before, after) -> does it?
Invariants = Mapping[str, Callable[[S, S], bool]]


@dataclass(frozen=True)
class Violation(Generic[S]):
    """The broken invariant, and the shortest way there."""

    invariant: str
    trace: tuple[Step[S], ...]


@dataclass(frozen=True)
class Found(Generic[S]):
    """All reachable states (canonical), how many steps lead between them, and what broke, if any."""

    states: frozenset[S]
    steps: int
    violation: Violation[S] | None


@dataclass(frozen=True)
class Settled(Generic[S]):
    """The longest time until all is settled; and a state from which it may never be, if any."""

    longest: int
    never: S | None = None


@contextmanager
def _without_collecting() -> Iterator[None]:
    """States are many and never cyclic: the collector would walk them over and over for nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_without_collecting()
def explore(model: Model[S], invariants: Invariants[S]) -> Found[S]:
    """Visit every reachable state once; stop at the first step that breaks an invariant."""
    first = model.canonical(model.first)
    came_from: dict[S, S | None] = {first: None}
    queue = deque([first])
    steps = 0
    while queue:
        before = queue.popleft()
        for step in model.steps(before):
            steps += 1
            after = model.canonical(step.after)
            is_new = after not in came_from
            if is_new:
                came_from[after] = before
                queue.append(after)
            for name, holds in invariants.items():
                if not holds(before, step.after):
                    way = [*_way_to(before, came_from), after]
                    violation = Violation(name, _replay(model, way))
                    return Found(frozenset(came_from), steps, violation)
    return Found(frozenset(came_from), steps, None)


@_without_collecting()
def settling(
    states: Iterable[S],
    onward: Callable[[S], Iterable[tuple[S, int]]],
    is_settled: Callable[[S], bool],
) -> Settled[S]:
    """From each of the states, follow all that can happen once nothing goes wrong any more.

    `onward` gives the next states, each with the time it takes.
    """
    times: dict[S, int] = {}
    entered: dict[S, list[tuple[S, int]]] = {}
    for start in states:
        stack = [start]
        while stack:
            state = stack[-1]
            if state in times or is_settled(state):
                times.setdefault(state, 0)
            elif state in entered:
                times[state] = max(spent + times[after] for after, spent in entered[state])
            else:
                entered[state] = list(onward(state))
                stack += [after for after, _ in entered[state] if after not in times]
                is_round = any(
                    after in entered and after not in times for after, _ in entered[state]
                )
                if is_round or not entered[state]:
                    return Settled(0, never=state)
                continue
            stack.pop()
    return Settled(max(times.values(), default=0))


def _way_to(state: S, came_from: Mapping[S, S | None]) -> list[S]:
    way: list[S] = []
    at: S | None = state
    while at is not None:
        way.append(at)
        at = came_from[at]
    return way[::-1]


def _replay(model: Model[S], way: list[S]) -> tuple[Step[S], ...]:
    """Walk the way again without canonical forms, so that each actor keeps its name."""
    at = model.first
    trace: list[Step[S]] = []
    for wanted in way[1:]:
        trace += _steps_to(model, at, wanted)
        at = trace[-1].after
    return tuple(trace)


def _steps_to(model: Model[S], start: S, wanted: S) -> list[Step[S]]:
    """The step to the wanted state, after steps that change nothing of what can matter."""
    here = model.canonical(start)
    queue: deque[tuple[S, list[Step[S]]]] = deque([(start, [])])
    while queue:
        at, trace = queue.popleft()
        for step in model.steps(at):
            then = model.canonical(step.after)
            if then == wanted:
                return [*trace, step]
            if then == here and len(trace) < MAX_SILENT:
                queue.append((step.after, [*trace, step]))
    raise AssertionError("a canonical state stands for one that cannot do the same")
