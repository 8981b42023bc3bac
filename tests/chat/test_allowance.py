from agents.chat import allowance


def test_a_bucket_gives_what_has_run_in():
    now = [0.0]
    rate = allowance.Rate(per_second=2, burst=3, clock=lambda: now[0])

    at_once = [rate.take() for _ in range(4)]
    now[0] = 1.0
    later = [rate.take() for _ in range(3)]

    assert at_once == [True, True, True, False]
    assert later == [True, True, False]


def test_a_bucket_gives_all_of_an_amount_or_nothing_of_it():
    rate = allowance.Rate(per_second=1, burst=10, clock=lambda: 0.0)

    assert [rate.take(6), rate.take(6), rate.take(4)] == [True, False, True]
