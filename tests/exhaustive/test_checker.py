"""The checker itself, on models small enough to see through."""

from tests.exhaustive.checker import Model, Step, explore, settling


def counter(limit: int) -> Model[int]:
    """Counts up by one or by two, and wraps at the limit."""

    def steps(at: int) -> list[Step[int]]:
        return [Step("a", f"+{n}", (at + n) % limit) for n in (1, 2)]

    return Model(0, steps, lambda at: at)


def test_every_state_is_visited_once():
    found = explore(counter(10), {})

    assert found.states == frozenset(range(10))
    assert (found.steps, found.violation) == (20, None)


def test_the_counterexample_is_a_shortest_one():
    found = explore(counter(10), {"below five": lambda _, after: after < 5})

    assert found.violation is not None
    assert found.violation.invariant == "below five"
    assert [step.after for step in found.violation.trace][-1] == 5
    assert len(found.violation.trace) == 3


def test_an_invariant_sees_both_ends_of_a_step():
    found = explore(counter(4), {"grows": lambda before, after: after > before})

    assert found.violation is not None
    assert [step.after for step in found.violation.trace] in ([2, 0], [1, 2, 0], [1, 3, 0])


def test_a_counterexample_names_actors_as_they_were_where_states_count_as_one():
    """Two swap places in the canonical form; the trace still tells who did what."""

    def steps(at: tuple[int, int]) -> list[Step[tuple[int, int]]]:
        left, right = at
        return [Step("left", "moves", (left + 1, right)), Step("right", "moves", (left, right + 1))]

    def in_order(at: tuple[int, int]) -> tuple[int, int]:
        return min(at), max(at)

    found = explore(
        Model((0, 0), steps, in_order), {"below three": lambda _, after: max(after) < 3}
    )

    assert found.violation is not None
    actors = [step.actor for step in found.violation.trace]
    assert actors in (["left"] * 3, ["right"] * 3)


def test_the_longest_way_to_rest_is_measured():
    ways = {0: [(1, 1), (2, 5)], 1: [(2, 1)], 2: []}

    settled = settling(ways, ways.__getitem__, lambda at: at == 2)

    assert (settled.longest, settled.never) == (5, None)


def test_going_round_for_ever_is_found():
    ways = {0: [(1, 1)], 1: [(2, 1), (3, 1)], 2: [(1, 1)], 3: []}

    assert settling(ways, ways.__getitem__, lambda at: at == 3).never in {1, 2}


def test_a_dead_end_is_found():
    ways = {0: [(1, 1)], 1: []}

    assert settling(ways, ways.__getitem__, lambda at: at == 9).never == 1
