"""Real workers on real Redis and PostgreSQL, killed and starved: one refund, later at worst."""

import time

import pytest

from tests.live import Product

pytestmark = pytest.mark.timeout(180)


def effects(product: Product, order_id: str) -> list[int]:
    return [effect["amount"] for effect in product.shop.effects(order_id=order_id)]


def test_a_worker_killed_in_mid_send_is_followed_by_another_with_one_refund(product: Product):
    customer, order = product.newcomer(4_000)
    task = product.waiting(customer, product.ask(customer, f"Please refund order {order}")["id"])
    product.shop.fault("latency", scope={"path": "/refunds"}, times=1, ms=1500)
    product.decide(customer, task, "yes")
    product.until(
        customer, task["id"], lambda seen: seen["operations"][0]["state"] == "sending", seconds=10
    )

    killed = product.kill("worker")
    task = product.ended(customer, task["id"])

    assert (task["status"], task["outcome"]) == ("succeeded", "done")
    assert effects(product, order) == [4000]
    assert product.record.children["worker"] != killed


def test_a_worker_killed_in_a_model_call_loses_no_step(product: Product):
    product.model.fault("latency", times=1, ms=1500)
    task = product.ask("bob", "Please refund order 1035")
    product.until("bob", task["id"], lambda seen: seen["steps"][0]["status"] == "started")

    product.kill("worker")
    task = product.waiting("bob", task["id"])

    assert [step["attempts"] for step in task["steps"]] == [2, 1, 1, 1]
    product.decide("bob", task, "no")
    assert product.ended("bob", task["id"])["outcome"] == "refused"
    assert effects(product, "1035") == []


def test_flushing_redis_in_mid_task_only_delays_it(product: Product):
    customer, order = product.newcomer(6_000)
    task = product.waiting(customer, product.ask(customer, f"Please refund order {order}")["id"])
    with product.redis() as connection:
        product.decide(customer, task, "yes")
        for _ in range(10):
            connection.flushall()
            time.sleep(0.05)

    task = product.ended(customer, task["id"])

    assert (task["status"], task["outcome"]) == ("succeeded", "done")
    assert effects(product, order) == [6000]


def test_the_trail_of_all_this_holds(product: Product):
    product.manage("audit_sealer", "--once")

    verified = product.manage("audit_verify")

    assert verified.returncode == 0, verified.stdout + verified.stderr
