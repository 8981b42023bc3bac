"""The order in which `--deliveries` brings messages."""

from tests.deliveries import Deliveries


def delivered(seed: int | None) -> list[int]:
    way = Deliveries()
    if seed is not None:
        way.shuffle(seed)
    waiting = way.sent([1, 2, 3, 4])
    return [way.take(waiting) for _ in range(len(waiting))]


def test_without_a_seed_each_message_comes_once_and_in_order():
    assert delivered(None) == [1, 2, 3, 4]


def test_with_a_seed_each_comes_twice_at_any_time_and_the_same_again():
    assert sorted(delivered(7)) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert delivered(7) != sorted(delivered(7))
    assert delivered(7) == delivered(7)
    assert delivered(7) != delivered(8)
