"""The whole product: an outcome that was lost is known as soon as the shop tells of it."""

import time

from tests.live import Product


def test_a_lost_outcome_is_told_by_the_shop_while_nobody_can_look_it_up(product: Product):
    scope = {"customer": "cleo", "path": "/refunds"}
    product.shop.fault("error_after", scope=scope, times=1)
    product.shop.fault("error_before", scope={"customer": "cleo", "path": "/effects"})
    try:
        task = product.ask("cleo", "Please refund order 1040")
        task = product.waiting("cleo", task["id"])
        product.decide("cleo", task, "yes")
        began = time.monotonic()

        task = product.ended("cleo", task["id"])
    finally:
        product.shop.clear_faults()

    assert (task["status"], task["outcome"]) == ("succeeded", "done"), task
    assert time.monotonic() - began < 20
    (effect,) = product.shop.effects(order_id="1040")
    assert effect["idempotency_key"].startswith(f"task-{task['id']}-")
    (event,) = product.shop.events("1040")
    assert (event["type"], event["answer"]) == ("refund.succeeded", 200)
