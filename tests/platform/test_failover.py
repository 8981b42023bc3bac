"""A real failover: what the product reads to notice one tells at once, also to an ordinary role."""

import asyncio
import os
import subprocess
from dataclasses import replace

import psycopg
import pytest

from script.lib import postgres
from script.lib.postgres import Cluster
from tests.platform.test_stores import folder, prepare, query, running
from tools.history import IDENTITY

__all__ = ["folder"]


def identity(cluster: Cluster) -> tuple[str, int]:
    """As the product's own role is told, which has no special rights."""
    with psycopg.connect(cluster.url(), user="app") as connection:
        found = connection.execute(IDENTITY).fetchone()
    assert found is not None
    return found[0], found[1]


def copy(cluster: Cluster) -> Cluster:
    """A standby of a running server, not started yet."""
    data = cluster.data.with_name("standby")
    data.mkdir(mode=0o700)
    user = cluster.account
    if user is not None:
        os.chown(data, *user)
    subprocess.run(
        [
            str(cluster.binaries / "pg_basebackup"),
            *("-h", str(cluster.sockets), "-U", "postgres", "-D", str(data), "-R", "-c", "fast"),
        ],
        cwd="/",
        check=True,
        user=user.uid if user else None,
        group=user.gid if user else None,
        extra_groups=[] if user else None,
    )
    return replace(cluster, data=data, sockets=data)


@pytest.mark.asyncio
async def test_a_promoted_standby_is_another_timeline_and_a_restart_is_not(folder):
    first = prepare(folder)
    async with running(first.program(os.environ), folder):
        await query(first, "CREATE ROLE app LOGIN")
        before = identity(first)
        standby = await asyncio.to_thread(copy, first)
    async with running(standby.program(os.environ), folder):
        await query(standby, "SELECT pg_promote()")
        after = identity(standby)
    async with running(standby.program(os.environ), folder):
        await postgres.wait_until_ready(standby, seconds=20)
        restarted = identity(standby)

    assert (before[0], before[1] + 1) == after
    assert restarted == after
    postgres.remove(first)
    postgres.remove(standby)


@pytest.mark.asyncio
async def test_a_dump_in_another_cluster_is_another_system(folder):
    (folder / "other").mkdir(mode=0o711)
    found = []
    for place in (folder, folder / "other"):
        cluster = prepare(place)
        async with running(cluster.program(os.environ), place):
            await query(cluster, "CREATE ROLE app LOGIN")
            found.append(identity(cluster))
        postgres.remove(cluster)

    assert found[0][0] != found[1][0]
