"""What a task holds while it waits for people: rows, and nothing else."""

import threading

import pytest
from django.db import connection

from tests.crash.waiting import agree, assert_true, effects, go_on, waiting
from tests.crash.world import KINDS, World

pytestmark = pytest.mark.django_db(transaction=True)

# Locks on our own tables, advisory ones, and transactions of any session that are still open.
HELD = """
    SELECT l.locktype, c.relname FROM pg_locks l
    LEFT JOIN pg_class c ON c.oid = l.relation
    WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (l.locktype = 'advisory' OR c.relnamespace = 'public'::regnamespace)
    UNION ALL
    SELECT 'transaction', a.state FROM pg_stat_activity a
    WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.xact_start IS NOT NULL
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_that_waits_holds_no_worker_connection_lock_or_lease(world: World, kind: str):
    threads = set(threading.enumerate())

    case = waiting(world, kind)

    assert case.task.status == "waiting_approval"
    assert (case.task.lease_until, case.task.wake_at) == (None, None)
    assert world.queue.messages == []
    assert set(threading.enumerate()) <= threads
    with connection.cursor() as cursor:
        cursor.execute(HELD)
        assert cursor.fetchall() == []

    agree(case)
    go_on(case)
    assert len(effects(case)) == (0 if kind == "close_ticket" else 1)
    assert_true(case)
