from agents.chat import allowance


def test_a_bucket_gives_what_has_run_in():
    now = [0.0]
    rate = allowance.Rate(per_second=2, burst=3, clock=lambda: now[0])

    at_once = [rate.take() for _ in range(4)]
    now[0] = 1.0
    later = [rate.take() for _ in range(3)]

    assert at_once == [True, True, True, False]
    assert later == [True, True, False]
