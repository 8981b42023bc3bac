"""How long a run of `script/prove` waits for the end: as long as something still moves."""

from script.lib.prove.cli import QUIET_SECONDS, STILL_SECONDS, Patience


def test_a_slow_end_is_waited_for_as_long_as_something_moves():
    patience = Patience(began=0.0)

    waited = [patience.is_over(("ended", n), n * (STILL_SECONDS - 1.0)) for n in range(1, 6)]

    assert waited == [False] * 5


def test_what_stands_still_is_not_waited_for():
    patience = Patience(began=0.0)
    assert not patience.is_over("the same", 1.0)

    assert not patience.is_over("the same", STILL_SECONDS)
    assert patience.is_over("the same", STILL_SECONDS + 1.5)


def test_what_goes_in_circles_ends_as_well():
    patience = Patience(began=0.0)
    moments = range(10, QUIET_SECONDS + 20, 10)

    over = [patience.is_over(moment % 20, float(moment)) for moment in moments]

    assert not any(over[:-1])
    assert over[-1]
