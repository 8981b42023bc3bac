"""The database that a backup goes to: what is in it, and how another one takes its place."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from script.lib.bootstrap import SetupError

LONGEST_NAME = 63  # bytes; PostgreSQL cuts what is longer
# Somewhere to stand while databases are renamed.
ELSEWHERE = ("postgres", "template1")
NEEDED = (
    "Give it a role that owns database and tables and has CREATEDB: what is restored is its own"
)


@dataclass(frozen=True)
class Database:
    """The database as it was found."""

    name: str
    is_ours: bool  # to rename
    is_empty: bool
    others: int  # connections of others
    who: str  # their programs and addresses, as far as we may know


def look_at(connection: psycopg.Connection[Any]) -> Database:
    """What is in the database of this connection, and who else is."""
    found = connection.execute(
        "SELECT datname, pg_has_role(datdba, 'USAGE'), NOT EXISTS (SELECT FROM pg_class c"
        "   JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'S')"
        "   AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema')"
        " FROM pg_database WHERE datname = current_database()"
    ).fetchone()
    if found is None:
        raise SetupError("the database does not say what is in it")
    others = connection.execute(
        "SELECT coalesce(nullif(application_name, ''), 'a program') || coalesce(' at ' || client_addr, '')"
        " FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND coalesce(backend_type, 'client backend') = 'client backend' ORDER BY 1"
    ).fetchall()
    who = ", ".join(dict.fromkeys(name for (name,) in others))
    name, is_ours, is_empty = found
    return Database(name, is_ours, is_empty, len(others), who)


def roles(connection: psycopg.Connection[Any]) -> set[str]:
    return {name for (name,) in connection.execute("SELECT rolname FROM pg_roles")}


def create_beside(url: str, old: Database) -> str:
    """A new, empty database on the same server; its name. Raises SetupError when we may not."""
    name = _named(old.name, f"_restoring_{secrets.token_hex(3)}")
    if not old.is_ours:
        raise SetupError(f"DATABASE_URL's role does not own the database {old.name}. {NEEDED}")
    with _elsewhere(url) as connection:
        try:
            words = sql.SQL("CREATE DATABASE {} TEMPLATE template0")
            connection.execute(words.format(sql.Identifier(name)))
        except psycopg.errors.InsufficientPrivilege as exc:
            raise SetupError(f"DATABASE_URL's role may not create databases. {NEEDED}") from exc
    return name


def put_in_place(url: str, old: Database, fresh: str) -> str | None:
    """Give the fresh database the name of the old one. The old one's new name, or None if it was empty.

    PostgreSQL renames no database that somebody is connected to: then nothing is changed and
    SetupError is raised.
    """
    kept = _named(old.name, f"_before_{datetime.now(UTC):%Y%m%d%H%M%S}")
    with _elsewhere(url) as connection:
        try:
            _rename(connection, old.name, kept)
        except psycopg.errors.ObjectInUse as exc:
            raise SetupError(f"somebody has connected to {old.name} meanwhile") from exc
        try:
            _rename(connection, fresh, old.name)
        except psycopg.Error:
            _rename(connection, kept, old.name)
            raise
        if not old.is_empty:
            return kept
        with suppress(psycopg.Error):  # an empty one in the way of nobody
            connection.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(kept)))
            return None
        return kept


def drop(url: str, name: str) -> None:
    """Remove a database that was not put in place."""
    with _elsewhere(url) as connection:
        words = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        connection.execute(words.format(sql.Identifier(name)))


@contextmanager
def _elsewhere(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to the same server that stands in none of the databases in question."""
    fault: psycopg.Error | None = None
    for name in ELSEWHERE:
        try:
            connection = psycopg.connect(make_conninfo(url, dbname=name), autocommit=True)
        except psycopg.OperationalError as exc:
            fault = exc
        else:
            with connection:
                yield connection
            return
    raise SetupError(f"no database to stand in meanwhile: {fault}")


def _rename(connection: psycopg.Connection[Any], old: str, new: str) -> None:
    words = sql.SQL("ALTER DATABASE {} RENAME TO {}")
    connection.execute(words.format(sql.Identifier(old), sql.Identifier(new)))


def _named(name: str, ending: str) -> str:
    return name.encode()[: LONGEST_NAME - len(ending)].decode(errors="ignore") + ending
