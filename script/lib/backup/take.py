"""`script/backup`: the database as of one moment, in one file."""

import argparse
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from script.lib import environment
from script.lib.backup import archive, place, programs
from script.lib.backup.place import Place
from script.lib.bootstrap import ROOT, SetupError, say


def main(arguments: Sequence[str]) -> int:
    """0 when a whole backup lies there, and its path was printed; 1 when none was made."""
    options = _options(arguments)
    try:
        into = options.to or environment.data_folder(environment.of_person()) / "backups"
        path = place.with_database(lambda there: take(there, into, options.programs))
    except (SetupError, psycopg.Error, OSError) as exc:
        print(f"script/backup: {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(path)
    say("It is of no use without the keys: keep them too, and apart from it.")
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="script/backup",
        description="Write the product's database, as of one moment, to one file. Works beside the "
        "running server and without it, on DATABASE_URL or on the database of our own.",
        epilog="The file holds people's words and the shops' encrypted secrets. It holds no key.",
    )
    parser.add_argument("--to", type=Path, metavar="DIR", help="where to (default: .data/backups)")
    parser.add_argument(
        "--programs", type=Path, metavar="DIR", help="the folder of PostgreSQL's pg_dump"
    )
    return parser.parse_args(arguments)


def take(there: Place, into: Path, folder: Path | None = None) -> Path:
    """Write a backup into this folder, made if need be. Raises SetupError when it cannot be had."""
    with _one_moment(there.url) as (connection, snapshot, moment):
        pg_dump = programs.find("pg_dump", server_major(connection), folder)
        facts = _facts(connection, there, moment)
        into.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = into / f"countersign-{moment:%Y-%m-%dT%H%M%S}Z.backup.zip"
        if path.exists():
            raise SetupError(f"{path} is there already")
        say(f"Dumping the database as of {facts['taken_at']}")
        with archive.writing(path) as draft:
            _dump(draft, pg_dump, there.url, snapshot)
            manifest = draft.finish(facts, place.signer(there.env).sign)
    rows, size = sum(manifest.rows.values()), manifest.dump_bytes / 1e6
    say(f"{rows:,} rows of {len(manifest.rows)} tables in {size:,.1f} MB")
    return path


def server_major(connection: psycopg.Connection[Any]) -> int:
    return connection.info.server_version // 10000


@contextmanager
def _one_moment(url: str) -> Iterator[tuple[psycopg.Connection[Any], str, datetime]]:
    """A connection that sees one moment, the name by which `pg_dump` sees it too, and when it was.

    The time is that of the beginning: nothing that was committed before it is missing.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        connection.execute("SET timezone = 'UTC'")
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        moment, snapshot = one(connection, "SELECT now(), pg_export_snapshot()")
        yield connection, snapshot, moment.astimezone(UTC)


def _dump(draft: archive.Draft, program: Path, url: str, snapshot: str) -> None:
    options = ("--format=custom", f"--snapshot={snapshot}", "--no-owner", "--no-sync")
    words, env = programs.command(program, url, options)
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        assert process.stdout is not None  # noqa: S101 - asked for above
        try:
            draft.write_dump(process.stdout)
        except BaseException:
            process.kill()
            raise
        if process.wait() != 0:
            errors.seek(0)
            raise SetupError(f"pg_dump failed: {errors.read().strip()}")


def _facts(connection: psycopg.Connection[Any], there: Place, moment: datetime) -> dict[str, Any]:
    """Everything that the manifest says, but for the dump itself."""
    if "django_migrations" not in tables(connection):
        raise SetupError("the database is empty: there is nothing to keep yet")
    seals = connection.execute("SELECT DISTINCT key_id FROM audit_seal ORDER BY 1").fetchall()
    (last_event,) = one(connection, "SELECT coalesce(max(id), 0) FROM audit_event")
    return {
        "taken_at": moment.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "version": tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"],
        "postgres": server_major(connection),
        "migrations": migrations(connection),
        "head": head(connection),
        "last_event": last_event,
        "rows": rows(connection),
        "roles": _roles(connection),
        "keys": {
            "encryption": place.encryption_ids(there.env),
            "seal": [key_id for (key_id,) in seals],
        },
        "signed_by": next(iter(place.seal_keys(there.env))),
    }


def tables(connection: psycopg.Connection[Any]) -> list[str]:
    """The names of all tables of the product's schema."""
    found = connection.execute(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p')"
        " AND relnamespace = current_schema()::regnamespace ORDER BY 1"
    )
    return [name for (name,) in found]


def rows(connection: psycopg.Connection[Any]) -> dict[str, int]:
    """How many rows each table has."""
    count = sql.SQL("SELECT count(*) FROM {}")
    return {
        name: one(connection, count.format(sql.Identifier(name)))[0] for name in tables(connection)
    }


def head(connection: psycopg.Connection[Any]) -> archive.Head | None:
    """The newest seal."""
    found = connection.execute("SELECT id, digest FROM audit_seal ORDER BY id DESC LIMIT 1")
    newest = found.fetchone()
    return archive.Head(seal=newest[0], digest=newest[1].hex()) if newest else None


def migrations(connection: psycopg.Connection[Any]) -> list[str]:
    found = connection.execute("SELECT app || '.' || name FROM django_migrations ORDER BY id")
    return [name for (name,) in found]


def _roles(connection: psycopg.Connection[Any]) -> list[str]:
    """Whoever was given rights on a table, its owner apart: they have to be there for a restore."""
    found = connection.execute(
        "SELECT DISTINCT r.rolname FROM pg_class c, aclexplode(c.relacl) a"
        " JOIN pg_roles r ON r.oid = a.grantee"
        " WHERE c.relnamespace = current_schema()::regnamespace AND a.grantee <> c.relowner"
        " ORDER BY 1"
    )
    return [name for (name,) in found]


def one(connection: psycopg.Connection[Any], query: Any) -> tuple[Any, ...]:
    """The one row that this question has."""
    found = connection.execute(query).fetchone()
    if found is None:
        raise SetupError("the database gave no answer")
    return tuple(found)
