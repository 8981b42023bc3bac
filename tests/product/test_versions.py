"""A deploy in mid-run: real workers of two versions, and a worker that is told to stop."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from celery import Celery

from script.lib import processes
from script.lib.bootstrap import ROOT
from tests.live import Product

# Each message goes to either worker; one that could not use it leaves the task to a later sweep.
PATIENCE = 240.0  # seconds
pytestmark = pytest.mark.timeout(3 * PATIENCE)


@contextmanager
def older_worker(product: Product, without: str) -> Iterator[Celery]:
    """A second worker on the product's queue that lacks one ability; gives an application to ask it."""
    words = [sys.executable, "-m", "tests.product.older_worker", without]
    process = subprocess.Popen(words, cwd=ROOT, env=product.environment())
    app = Celery(broker=product.environment()["REDIS_URL"])
    try:
        _until(lambda: len(app.control.inspect(timeout=1).ping() or {}) == 2, "two workers")
        yield app
    finally:
        process.terminate()
        assert process.wait(30) == 0
        app.close()


def _until(holds: Any, what: str, seconds: float = 40) -> None:
    ends_at = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends_at, what
        time.sleep(0.05)


def row(product: Product, task_id: int) -> dict[str, Any]:
    """A task's row as it stands, and whether its time has come."""
    url = product.environment()["DATABASE_URL"]
    query = "SELECT *, wake_at <= clock_timestamp() AS is_due FROM agents_task WHERE id = %s"
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        found = connection.execute(query, [task_id]).fetchone()
    assert found is not None
    return found


def is_asking(task: dict[str, Any]) -> bool:
    return task["action"] is not None


def effects(product: Product, order_id: str) -> list[str]:
    return [effect["kind"] for effect in product.shop.effects(order_id=order_id)]


def test_workers_of_two_versions_share_a_queue_and_finish_every_task(product: Product):
    orders = ["1055", "1060"]
    with older_worker(product, "tool:cancel_order") as older:
        tasks = [product.ask("bob", f"Please cancel order {order}")["id"] for order in orders]
        # What only a newer version sends: a job without a name here, and words that nobody knows.
        older.send_task("agents.newer", kwargs={"task_ids": tasks})
        older.send_task("agents.advance", kwargs={"task_ids": tasks, "since": "a newer word"})
        asked = [product.until("bob", task_id, is_asking, PATIENCE) for task_id in tasks]
        for task in asked:
            product.decide("bob", task, "yes")
        ended = [product.ended("bob", task["id"], PATIENCE) for task in asked]

    assert [(task["status"], task["outcome"]) for task in ended] == [("succeeded", "done")] * 2
    for order, task in zip(orders, ended, strict=True):
        assert effects(product, order) == ["cancel"]
        assert {step["attempts"] for step in task["steps"] if step["kind"] == "model"} == {1}


def test_a_worker_that_is_told_to_stop_ends_its_step_and_lets_go_of_the_task(product: Product):
    product.model.fault("latency", times=1, ms=1200)
    task = product.ask("bob", "Please refund order 1027")
    product.until("bob", task["id"], lambda seen: seen["steps"][0]["status"] == "started")
    assert row(product, task["id"])["lease_until"] is not None
    pid = product.record.children["worker"]
    known = processes.identity(pid)
    assert known is not None

    os.kill(pid, signal.SIGTERM)
    _until(lambda: not processes.is_same(pid, known), "the worker ends")

    # Nobody waits for the lease: it is free as soon as the worker has gone.
    left = row(product, task["id"])
    assert (left["status"], left["lease_until"], left["is_due"]) == ("running", None, True)
    assert left["steps_planned"] >= 2
    task = product.waiting("bob", task["id"])
    assert [step["attempts"] for step in task["steps"]] == [1, 1, 1, 1]
    product.decide("bob", task, "no")
    assert product.ended("bob", task["id"])["outcome"] == "refused"
    assert effects(product, "1027") == []
