"""The whole product: an outcome that was lost is known as soon as the shop tells of it."""

import time

from tests.live import Product


def test_a_lost_outcome_is_told_by_the_shop_while_nobody_can_look_it_up(product: Product):
    customer, order = product.newcomer()
    scope = {"customer": customer, "path": "/refunds"}
    product.shop.fault("error_after", scope=scope, times=1)
    product.shop.fault("error_before", scope={"customer": customer, "path": "/effects"})
    try:
        task = product.ask(customer, f"Please refund order {order}")
        task = product.waiting(customer, task["id"])
        product.decide(customer, task, "yes")
        began = time.monotonic()

        task = product.ended(customer, task["id"])
    finally:
        product.shop.clear_faults()

    assert (task["status"], task["outcome"]) == ("succeeded", "done"), task
    assert time.monotonic() - began < 20
    (effect,) = product.shop.effects(order_id=order)
    assert effect["idempotency_key"].startswith(f"task-{task['id']}-")
    (event,) = product.shop.events(order)
    assert (event["type"], event["answer"]) == ("refund.succeeded", 200)
