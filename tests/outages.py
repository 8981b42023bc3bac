"""Real faults of PostgreSQL: read-only, full, out of connections, and other transactions in the way."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper

REFUSE = """
CREATE OR REPLACE FUNCTION refuse_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'as the test wants it' USING ERRCODE = TG_ARGV[0];
END $$
"""


@contextmanager
def database_set(name: str, value: str) -> Iterator[None]:
    """A setting of the database, for every connection that is opened in the block."""
    database = connection.ops.quote_name(connection.settings_dict["NAME"])
    _execute(f"ALTER DATABASE {database} SET {name} = '{value}'")
    _new_connections()
    try:
        yield
    finally:
        with _own() as other:
            other.execute("SET default_transaction_read_only = off")
            other.execute(f"ALTER DATABASE {database} RESET {name}".encode())
        _new_connections()


@contextmanager
def commits_fail(table: str, when: str = "INSERT", code: str = "disk_full") -> Iterator[None]:
    """Every commit of a transaction that wrote to a table fails as on a full disk (or otherwise)."""
    _execute(REFUSE)
    _execute(
        f"CREATE CONSTRAINT TRIGGER refuse_commit AFTER {when} ON {table} DEFERRABLE INITIALLY "
        f"DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_commit('{code}')"
    )
    try:
        yield
    finally:
        _execute(f"DROP TRIGGER refuse_commit ON {table}")


@contextmanager
def no_connection_left(patience: float = 0.2) -> Iterator[None]:
    """Every connection of this process's pool is in use, as by other requests."""
    connection.close()
    pool = _wrapper().pool
    usual, pool.timeout = pool.timeout, patience
    held = [pool.getconn() for _ in range(pool.max_size)]
    try:
        yield
    finally:
        for each in held:
            pool.putconn(each)
        pool.timeout = usual


class Opponent:
    """Another transaction, in a thread of its own, that locks rows step by step.

    Where PostgreSQL has to end one of two that wait for each other, it is never this one.
    """

    def __init__(self, *locks: str) -> None:
        self._locks = locks
        self._holds = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.error: BaseException | None = None

    def __enter__(self) -> "Opponent":
        self._thread.start()
        assert self._holds.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive()
        assert self.error is None, self.error

    def _run(self) -> None:
        try:
            with _own() as mine:
                mine.execute("SET deadlock_timeout = '60s'")
                with mine.transaction():
                    first, *others = self._locks
                    mine.execute(first.encode())
                    self._holds.set()
                    _until_somebody_waits()
                    for lock in others:
                        mine.execute(lock.encode())
        except BaseException as exc:  # noqa: BLE001 - told by the main thread
            self.error = exc
            self._holds.set()


def _until_somebody_waits() -> None:
    """Until a transaction waits for a lock of ours."""
    with _own() as looking:
        for _ in range(2000):
            found = looking.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND wait_event_type = 'Lock'"
            ).fetchone()
            if found and found[0]:
                return
            time.sleep(0.01)
    raise AssertionError("nobody came this way")


def _own() -> "psycopg.Connection[tuple[object, ...]]":
    """A connection that is none of the pool's."""
    parameters = connection.get_connection_params()
    wanted = ("dbname", "user", "password", "host", "port")
    found = {name: parameters[name] for name in wanted if parameters.get(name)}
    return psycopg.connect(autocommit=True, **found)


def _wrapper() -> DatabaseWrapper:
    found = connections["default"]
    assert isinstance(found, DatabaseWrapper)
    return found


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _new_connections() -> None:
    connections.close_all()
    _wrapper().close_pool()
