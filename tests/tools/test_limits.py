"""Who must countersign: the staff limit, alone and over a customer's last 24 hours."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.factories import (
    make_approved_operation,
    make_caller,
    make_customer,
    make_line,
    make_operation,
    make_order,
    make_shop,
    propose,
    say_no,
)
from tests.tools.desk import approved, send
from tools import gateway
from tools.models import Operation, State

pytestmark = pytest.mark.django_db

BOTH = ["customer", "staff"]
TWO_OF_STAFF = ["customer", "staff", "second_staff"]


@pytest.fixture
def customer():
    return make_customer()


def roles(customer, price, tool="refund_order", **arguments):
    """Who is asked about a change of a new order at this price; it then stays open."""
    order = make_order(
        make_line(price), status="delivered" if tool == "refund_order" else "pending"
    )
    return make_operation(customer, order, tool, **arguments).required_roles


def succeeded(operation, at):
    """As if it had been sent and had succeeded at this time."""
    Operation.objects.filter(pk=operation.pk).update(state="sending", first_sent_at=at)
    Operation.objects.filter(pk=operation.pk).update(
        state="succeeded", finished_at=at, reference="re_1"
    )


@pytest.mark.parametrize(
    ("price", "asked"),
    [(1, ["customer"]), (10_000, ["customer"]), (10_001, BOTH), (40_000, BOTH)],
)
def test_staff_are_asked_above_the_limit_and_not_at_it(customer, price, asked):
    assert roles(customer, price) == asked


def test_the_limit_is_the_shop_s_own():
    customer = make_customer(make_shop(staff_limit=500))

    assert roles(customer, 500) == ["customer"]
    assert roles(customer, 1) == BOTH


def test_forty_and_sixty_make_one_hundred_and_need_no_staff(customer):
    assert roles(customer, 4000) == ["customer"]
    assert roles(customer, 6000) == ["customer"]


def test_sixty_and_sixty_ask_staff_at_the_second_also_when_the_first_still_waits(customer):
    assert roles(customer, 6000) == ["customer"]
    assert roles(customer, 6000) == BOTH


def test_a_cent_over_the_sum_asks_staff(customer):
    assert roles(customer, 4000) == ["customer"]
    assert roles(customer, 6001) == BOTH


def test_parts_of_one_order_are_added_up_too(customer):
    order = make_order(make_line(20_000))
    first = make_approved_operation(customer, order, amount="60.00")
    succeeded(first, timezone.now())
    rest = order.model_copy(update={"refunded": 6000})

    assert make_operation(customer, rest, amount="60.00").required_roles == BOTH


@pytest.mark.parametrize("state", ["unknown", "needs_person"])
def test_money_that_may_have_gone_counts(customer, state):
    first = make_approved_operation(customer, make_order(make_line(6000)))
    long_ago = timezone.now() - timedelta(hours=30)
    Operation.objects.filter(pk=first.pk).update(state="sending", first_sent_at=long_ago)
    Operation.objects.filter(pk=first.pk).update(state=state)

    assert roles(customer, 6000) == BOTH


def test_what_was_turned_down_does_not_count(customer):
    say_no(make_operation(customer, make_order(make_line(6000))))

    assert roles(customer, 6000) == ["customer"]


@pytest.mark.parametrize(("hours", "asked"), [(23.9, BOTH), (24.1, ["customer"])])
def test_a_refund_counts_for_twenty_four_hours_from_when_it_was_paid(customer, hours, asked):
    first = make_approved_operation(customer, make_order(make_line(6000)))
    succeeded(first, timezone.now() - timedelta(hours=hours))

    assert roles(customer, 6000) == asked


def test_other_customers_refunds_do_not_count(customer):
    roles(make_customer(customer.shop), 6000)

    assert roles(customer, 6000) == ["customer"]


def test_a_cancellation_never_asks_staff_unless_the_shop_says_so():
    ordinary, strict = make_customer(), make_customer(make_shop(staff_also_for_cancel=True))

    assert roles(ordinary, 15_000, "cancel_order") == ["customer"]
    assert roles(strict, 15_000, "cancel_order") == BOTH


def test_cancellations_count_in_the_sum_only_where_the_shop_says_so():
    ordinary, strict = make_customer(), make_customer(make_shop(staff_also_for_cancel=True))
    for customer in (ordinary, strict):
        assert roles(customer, 6000, "cancel_order") == ["customer"]

    assert roles(ordinary, 6000) == ["customer"]
    assert roles(strict, 6000) == BOTH


def test_an_address_costs_nothing_and_asks_the_customer_alone(customer):
    roles(customer, 6000)

    assert roles(customer, 40_000, "change_address") == ["customer"]


def test_the_verdict_keeps_what_was_added_up(customer):
    roles(customer, 6000)
    caller = make_caller(customer)
    accepted = propose(caller, make_order(make_line(6000)))

    assert isinstance(accepted, gateway.Accepted)
    assert accepted.verdicts[-1].rule == "staff_over_limit"
    assert accepted.verdicts[-1].finding == "ask"
    assert accepted.verdicts[-1].inputs == {
        "amount": 6000,
        "other_refunds_24h": 6000,
        "limit": 10_000,
        "currency": "USD",
    }


@pytest.mark.parametrize(
    ("price", "asked"),
    [(10_000, ["customer"]), (10_001, BOTH), (50_000, BOTH), (50_001, TWO_OF_STAFF)],
)
def test_two_of_staff_are_asked_above_the_second_limit_and_not_at_it(price, asked):
    assert roles(make_customer(make_shop(second_limit=50_000)), price) == asked


def test_the_second_limit_holds_for_the_sum_of_a_day_too():
    customer = make_customer(make_shop(second_limit=50_000))

    assert roles(customer, 30_000) == BOTH
    assert roles(customer, 20_000) == BOTH
    assert roles(customer, 1) == TWO_OF_STAFF


def test_a_second_limit_below_the_first_asks_two_all_the_same():
    customer = make_customer(make_shop(second_limit=5_000))

    assert roles(customer, 5_000) == ["customer"]
    assert roles(customer, 1) == TWO_OF_STAFF


def test_the_second_limit_says_nothing_about_what_does_not_count():
    ordinary, strict = (
        make_customer(make_shop(second_limit=20_000, staff_also_for_cancel=counts))
        for counts in (False, True)
    )

    assert roles(ordinary, 30_000, "cancel_order") == ["customer"]
    assert roles(strict, 30_000, "cancel_order") == TWO_OF_STAFF


@pytest.mark.parametrize(("price", "finding"), [(50_000, "allow"), (50_001, "ask")])
def test_the_verdict_on_the_second_limit_keeps_what_was_added_up(price, finding):
    customer = make_customer(make_shop(second_limit=50_000))
    accepted = propose(make_caller(customer), make_order(make_line(price)))

    assert isinstance(accepted, gateway.Accepted)
    first, second = accepted.verdicts[-2:]
    assert (first.rule, first.finding, first.inputs["limit"]) == ("staff_over_limit", "ask", 10_000)
    assert (second.rule, second.finding) == ("second_staff_over_limit", finding)
    assert second.inputs == {
        "amount": price,
        "other_refunds_24h": 0,
        "limit": 50_000,
        "currency": "USD",
    }


def test_where_two_are_asked_there_is_time_for_both():
    shop = make_shop(
        second_limit=50_000, customer_approval_seconds=100, staff_approval_seconds=1000
    )
    lives = [
        make_operation(make_customer(shop), make_order(make_line(price)))
        for price in (10_000, 50_000, 50_001)
    ]

    seconds = [(each.expires_at - each.created_at).total_seconds() for each in lives]
    assert seconds == [100, 1100, 2100]


def test_forty_and_sixty_go_out_with_the_customer_s_yes_alone(buyer):
    for price in (4000, 6000):
        operation = approved(buyer, buyer.order(price))
        assert operation.required_roles == ["customer"]
        assert send(operation).state == State.SUCCEEDED


def test_of_two_sixties_only_the_second_waits_for_staff_and_the_first_goes_out(buyer):
    first = approved(buyer, buyer.order(6000))
    second = approved(buyer, buyer.order(6000))

    assert (first.required_roles, second.required_roles) == (["customer"], BOTH)
    assert send(first).state == State.SUCCEEDED
    assert send(second).state == State.SUCCEEDED


def test_one_customer_s_proposals_are_counted_one_at_a_time(customer):
    order = make_order(make_line(6000))
    with CaptureQueriesContext(connection) as captured:
        propose(make_caller(customer), order)

    statements = [query["sql"] for query in captured]
    lock = next(n for n, sql in enumerate(statements) if "FOR UPDATE" in sql)
    total = next(n for n, sql in enumerate(statements) if "SUM(" in sql)
    insert = next(n for n, sql in enumerate(statements) if sql.startswith("INSERT INTO"))
    assert '"accounts_customer"' in statements[lock]
    assert lock < total < insert


@pytest.mark.django_db(transaction=True)
def test_two_refunds_proposed_at_once_cannot_both_stay_under_the_limit():
    for _ in range(3):
        customer = make_customer()
        barrier = threading.Barrier(2)
        asked: list[list[str]] = []

        def work(customer=customer, barrier=barrier, asked=asked):
            try:
                barrier.wait()
                accepted = propose(make_caller(customer), make_order(make_line(6000)))
                assert isinstance(accepted, gateway.Accepted)
                asked.append(accepted.operation.required_roles)
            finally:
                connection.close()

        run_both(work)
        assert sorted(asked) == [["customer"], BOTH]


@pytest.mark.django_db(transaction=True)
def test_one_order_proposed_twice_at_once_is_one_operation():
    customer = make_customer()
    order = make_order(make_line(4000))
    barrier = threading.Barrier(2)
    is_new = []

    def work():
        try:
            barrier.wait()
            accepted = propose(make_caller(customer), order)
            assert isinstance(accepted, gateway.Accepted)
            is_new.append(accepted.is_new)
        finally:
            connection.close()

    run_both(work)
    assert sorted(is_new) == [False, True]
    assert Operation.objects.count() == 1


def run_both(work):
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
