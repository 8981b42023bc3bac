from tools.clients.capabilities import for_provider

DAY = 24 * 3600


def test_an_unknown_provider_promises_nothing_and_is_never_sent_to_twice():
    unknown = for_provider("some-shop-we-never-met")

    assert not unknown.can_resend(age_seconds=0)
    assert not unknown.lookup_by_key
    assert not unknown.totals_capped
    assert not unknown.throttles_before_execution
    assert unknown.errors_cached


def test_a_resend_is_allowed_well_inside_the_key_window_only():
    shop = for_provider("orders_stub")

    assert shop.can_resend(age_seconds=0)
    assert shop.can_resend(age_seconds=0.89 * DAY)
    assert not shop.can_resend(age_seconds=0.91 * DAY)
    assert not shop.can_resend(age_seconds=DAY + 1)


def test_a_clock_that_ran_backwards_allows_no_resend():
    assert not for_provider("orders_stub").can_resend(age_seconds=-1)
