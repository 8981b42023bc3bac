"""The plan: the same seed asks the same, and every request can be traced by its order."""

from collections import Counter

from script.lib.prove.plan import CUSTOMERS_SHARE, KINDS, Planner
from script.lib.prove.team import SECOND_LIMIT


def test_the_same_seed_makes_the_same_plan_and_another_one_another():
    def plan(seed):
        batch = Planner(seed).make(60)
        return batch.requests, batch.catalogue()

    assert plan(3) == plan(3)
    assert plan(3) != plan(4)


def test_it_makes_as_many_requests_as_asked_for_and_of_every_kind():
    requests = Planner(1).make(300).requests

    assert len(requests) == 300
    assert {request.kind for request in requests} == {kind for kind, _ in KINDS}
    assert {request.customer_says for request in requests} == {
        *("yes", "late", "no", "taken_back", "cancelled")
    }


def test_each_request_has_an_order_of_its_own_and_one_kind_asks_twice():
    requests = Planner(2).make(200).requests
    asked = Counter((request.order_id, request.kind) for request in requests)

    assert {count for (_, kind), count in asked.items() if kind != "twice"} == {1}
    assert {count for (_, kind), count in asked.items() if kind == "twice"} == {2}


def test_no_customer_asks_more_at_once_than_the_shop_allows():
    planner = Planner(5)
    first, second = planner.make(100), planner.make(100)
    asked = Counter(request.customer for request in first.requests + second.requests)

    assert max(asked.values()) <= CUSTOMERS_SHARE
    assert not {one["id"] for one in first.orders} & {one["id"] for one in second.orders}
    known = {one["id"] for one in second.customers}
    assert {one["customer"] for one in second.orders} <= known


def test_large_refunds_are_over_the_limit_and_small_ones_far_below():
    batch = Planner(6).make(300)
    prices = {one["id"]: sum(line["unit_price"] for line in one["lines"]) for one in batch.orders}

    for request in batch.requests:
        if request.kind == "large refund":
            assert 10_000 < prices[request.order_id] <= SECOND_LIMIT
        if request.kind == "very large refund":
            assert prices[request.order_id] > SECOND_LIMIT
        if request.kind == "small refund":
            assert prices[request.order_id] < 10_000


def test_two_of_staff_answer_in_every_way():
    asked = [one for one in Planner(1).make(300).requests if one.kind == "very large refund"]

    assert {one.second_says for one in asked} == {"yes", "no"}
    assert {one.first_again for one in asked} == {"", "self", "double"}
    assert {one.first_leaves for one in asked} == {True, False}
    assert all(one.staff_says == "yes" for one in asked if one.first_leaves)
