"""The whole product: an outcome that was lost is known as soon as the shop tells of it."""

import time

from tests.live import Product


def test_a_lost_outcome_is_told_by_the_shop_while_nobody_can_look_it_up(product: Product):
    scope = {"customer": "bob", "path": "/refunds"}
    product.shop.fault("error_after", scope=scope, times=1)
    product.shop.fault("error_before", scope={"customer": "bob", "path": "/effects"})
    try:
        task = product.ask("bob", "Please refund order 1046")
        task = product.waiting("bob", task["id"])
        product.decide("bob", task, "yes")
        began = time.monotonic()

        task = product.ended("bob", task["id"])
    finally:
        product.shop.clear_faults()

    assert (task["status"], task["outcome"]) == ("succeeded", "done"), task
    assert time.monotonic() - began < 20
    (effect,) = product.shop.effects(order_id="1046")
    assert effect["idempotency_key"].startswith(f"task-{task['id']}-")
    (event,) = product.shop.events("1046")
    assert (event["type"], event["answer"]) == ("refund.succeeded", 200)
