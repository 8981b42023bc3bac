"""PostgreSQL and Redis of our own: private, and with their data as they were left."""

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from script.lib import postgres, prepared, processes, redis_server
from script.lib.bootstrap import SetupError
from script.lib.output import Output
from script.lib.postgres import Cluster
from script.lib.supervisor import Program, Supervisor


@pytest.fixture
def folder():
    """A folder that other users may pass through, which pytest's own is not."""
    folder = Path(tempfile.mkdtemp(prefix="countersign-test-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@asynccontextmanager
async def running(program: Program, folder: Path) -> AsyncIterator[Supervisor]:
    output = Output(logs=folder / "logs", names=[program.name], quiet=True)
    supervisor = Supervisor(output=output)
    await supervisor.start(program)
    try:
        yield supervisor
    finally:
        await supervisor.stop()
        output.close()


def prepare(folder: Path) -> Cluster:
    return postgres.prepare(folder, durable=False)


async def query(cluster: Cluster, words: str) -> object:
    await postgres.wait_until_ready(cluster, seconds=20)
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        found = connection.execute(words)
        return found.fetchone() if found.description else None


@pytest.mark.asyncio
async def test_rows_outlive_a_stop_and_a_process_id_that_has_a_new_owner(folder):
    half = folder / "postgres.new"
    half.mkdir()
    (half / "PG_VERSION").write_text(
        postgres.MAJOR
    )  # as a first start that was cut short leaves it
    cluster = prepare(folder)
    async with running(cluster.program(os.environ), folder):
        await query(cluster, "CREATE TABLE kept AS SELECT 42 AS answer")
    (cluster.data / "postmaster.pid").write_text(f"{os.getpid()}\n{cluster.data}\n")

    again = prepare(folder)
    async with running(again.program(os.environ), folder):
        answer = await query(again, "SELECT answer FROM kept")

    assert answer == (42,)
    postgres.remove(again)
    assert not again.data.exists()


@pytest.mark.asyncio
async def test_a_database_server_that_lost_its_supervisor_is_ended_before_the_next_start(folder):
    cluster = prepare(folder)
    async with running(cluster.program(os.environ), folder) as supervisor:
        await query(cluster, "SELECT 1")
        pid = supervisor.pids()["postgres"]
        before = processes.identity(pid)
        await asyncio.to_thread(prepare, folder)
        assert not processes.is_same(pid, before)
    postgres.remove(cluster)


@pytest.mark.asyncio
async def test_nothing_listens_on_a_network_port_and_others_cannot_reach_the_socket(folder):
    cluster = prepare(folder)
    async with running(cluster.program(os.environ), folder):
        listens = await query(cluster, "SELECT current_setting('listen_addresses')")
        mode = cluster.sockets.stat().st_mode & 0o777

    assert listens == ("",)
    assert mode == 0o700
    postgres.remove(cluster)


@pytest.mark.asyncio
async def test_a_database_is_prepared_only_for_the_code_that_prepared_it(folder):
    cluster = prepare(folder)
    async with running(cluster.program(os.environ), folder):
        await postgres.wait_until_ready(cluster, seconds=20)
        fresh = prepared.is_prepared(cluster, "this code")
        prepared.remember(cluster, "this code")
        same = prepared.is_prepared(cluster, "this code")
        changed = prepared.is_prepared(cluster, "changed code")

    assert (fresh, same, changed) == (False, True, False)
    postgres.remove(cluster)


def test_any_change_to_code_libraries_or_addresses_makes_the_mark_void(folder):
    (folder / "requirements.txt").write_text("one==1")
    module = folder / "agents" / "migrations" / "0001_initial.py"
    module.parent.mkdir(parents=True)
    module.write_text("first")

    def mark(address: str = "http://127.0.0.1:8000") -> str:
        return prepared.fingerprint(address, root=folder)

    before = mark()
    cache = folder / "agents" / "__pycache__" / "models.pyc"
    cache.parent.mkdir()
    cache.write_text("compiled")
    assert mark() == before
    seen = {before, mark("http://127.0.0.1:8100")}
    for change in (
        lambda: module.write_text("other"),
        lambda: module.rename(module.with_name("0002_next.py")),
        lambda: (folder / "requirements.txt").write_text("one==2"),
        lambda: (folder / "agents" / "added.py").write_text(""),
    ):
        change()
        seen.add(mark())

    assert len(seen) == 6


def test_a_path_too_long_for_a_socket_gets_a_short_private_folder(folder):
    data = folder / ("long" * 25) / "postgres"
    account = postgres._system_user() if os.geteuid() == 0 else None

    sockets = postgres._socket_folder(data, account)

    assert len(os.fsencode(sockets / postgres.SOCKET)) <= postgres.LONGEST_SOCKET
    assert sockets.stat().st_mode & 0o777 == 0o700
    assert postgres._socket_folder(data, account) == sockets
    sockets.chmod(0o777)
    with pytest.raises(SetupError, match="not private"):
        postgres._socket_folder(data, account)
    shutil.rmtree(sockets)


def test_data_of_another_version_are_refused_and_left_alone(folder):
    data = folder / "postgres"
    data.mkdir(mode=0o700)
    (data / "PG_VERSION").write_text("9\n")

    with pytest.raises(SetupError, match="written by PostgreSQL 9 and this is"):
        prepare(folder)

    assert [path.name for path in data.iterdir()] == ["PG_VERSION"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user for PostgreSQL")
@pytest.mark.asyncio
async def test_data_in_a_private_folder_of_root_go_where_their_user_can_reach_them(folder):
    folder.chmod(0o700)
    private = folder / "checkout"
    private.mkdir()

    cluster = prepare(private)
    async with running(cluster.program(os.environ), private):
        answer = await query(cluster, "SELECT 1")

    assert answer == (1,)
    assert cluster.data.is_relative_to(postgres.HOME_OF_ROOT)
    assert (cluster.data.parent / "owner").read_text() == f"{private}\n"
    assert prepare(private) == cluster
    assert folder.stat().st_mode & 0o777 == 0o700
    postgres.remove_elsewhere(private)
    assert not cluster.data.parent.exists()


@pytest.mark.asyncio
async def test_redis_wants_its_password_and_evicts_nothing(folder):
    store, once = redis_server.prepare(folder), Retry(NoBackoff(), 0)
    async with running(store.program(os.environ), folder):
        await redis_server.wait_until_ready(store, seconds=20)
        with redis.Redis.from_url(store.url()) as client:
            policy = client.config_get("maxmemory-policy")
        with (
            redis.Redis(host="127.0.0.1", port=store.port, retry=once) as stranger,
            pytest.raises(redis.AuthenticationError),
        ):
            stranger.ping()

    assert policy == {"maxmemory-policy": "noeviction"}
    assert (store.folder / "redis.conf").stat().st_mode & 0o777 == 0o600


def test_redis_keeps_its_port_and_password_and_moves_when_the_port_is_taken(folder):
    first = redis_server.prepare(folder)
    assert redis_server.prepare(folder) == first

    with socket.create_server(("127.0.0.1", first.port)):
        moved = redis_server.prepare(folder)

    assert moved.port != first.port
    assert moved.password == first.password
    assert redis_server.prepare(folder) == moved
