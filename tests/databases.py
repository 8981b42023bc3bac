"""Databases beside the test's own, on the same server, for tests of backing up and restoring.

A test module takes the fixture by importing it: `from tests.databases import other`.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection
from psycopg import sql
from psycopg.conninfo import make_conninfo

from script.lib.backup import archive, restore
from script.lib.backup import place as places
from script.lib.backup.place import Place
from script.lib.backup.restore import Wishes

ME = Wishes(by="dana")


def place(name: str = "") -> Place:
    """A database of the test's server (the test's own unless named), with these settings."""
    to = connection.settings_dict
    parts = {"user": to["USER"], "password": to["PASSWORD"], "host": to["HOST"], "port": to["PORT"]}
    given = {key: value for key, value in parts.items() if value}
    url = make_conninfo("", dbname=name or to["NAME"], **given)
    return Place(url, {**os.environ, "DATABASE_URL": url})


def ask(name: str, query: "sql.Composed | str") -> list[tuple[Any, ...]]:
    """Run this in the database of that name; the rows that it gives."""
    with psycopg.connect(place(name).url, autocommit=True) as there:
        found = there.execute(query)
        return found.fetchall() if found.description else []


def made_beside(name: str) -> list[str]:
    """The names of this database and of all that were made beside it."""
    found = ask("postgres", "SELECT datname FROM pg_database ORDER BY 1")
    return [one for (one,) in found if one == name or one.startswith(f"{name}_")]


@pytest.fixture
def other() -> Iterator[str]:
    """The name of an empty database; it goes with all that was made beside it."""
    name = f"{connection.settings_dict['NAME']}_other"
    ask("postgres", sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield name
    for made in made_beside(name):
        ask("postgres", sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(made)))


@contextmanager
def working_on(name: str) -> Iterator[None]:
    """The product in this process works with that database meanwhile."""
    usual = connection.settings_dict["NAME"]
    _switch(name)
    try:
        yield
    finally:
        _switch(usual)


def _switch(name: str) -> None:
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined] # PostgreSQL's
    connection.settings_dict["NAME"] = name


def put_back(path: Path, there: Place, wishes: Wishes = ME) -> None:
    with archive.reading(path) as backup:
        restore.restore(backup, there, wishes)


FACTS: dict[str, Any] = {
    "taken_at": "2026-01-31T14:05:00.000000Z",
    "version": "0.1.0",
    "postgres": 15,
    "migrations": ["accounts.0001_initial"],
    "head": None,
    "last_event": 0,
    "rows": {},
    "roles": [],
    "keys": {"encryption": [], "seal": []},
}


def made(folder: Path, dump: bytes = b"no dump at all" * 1000, **facts: Any) -> Path:
    """A whole file with this in it."""
    path = folder / "made.backup.zip"
    with archive.writing(path) as draft:
        draft.write_dump(io.BytesIO(dump))
        env = os.environ
        mine = {"signed_by": next(iter(places.seal_keys(env)))}
        draft.finish(FACTS | mine | facts, places.signer(env).sign)
    return path


def applied() -> list[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations")
        return list(cursor.fetchall())
