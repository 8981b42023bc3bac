"""Whether a database of our own was migrated and seeded by exactly this code for exactly these ports.

Then a start skips both. The mark is a comment on the database itself, so it comes and goes with
the data; any change to the code, the libraries or the addresses makes it void.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg import sql

from script.lib.bootstrap import ROOT, RUNTIME
from script.lib.postgres import DATABASE, Cluster

APPS = ("config", "agents", "approvals", "tools", "accounts", "audit")


def fingerprint(*addresses: str, root: Path = ROOT) -> str:
    """One text for the code of all apps, the pinned libraries and these addresses."""
    total = hashlib.sha256("\n".join(addresses).encode())
    for path in _files(root):
        total.update(f"\0{path.relative_to(root)}\0".encode() + path.read_bytes())
    return total.hexdigest()


def _files(root: Path) -> Iterator[Path]:
    yield from (root / name for name in RUNTIME)
    for app in APPS:
        for path in sorted((root / app).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


def is_prepared(cluster: Cluster, mark: str) -> bool:
    """Whether `remember` was called with this mark last."""
    with psycopg.connect(cluster.url()) as connection:
        found = connection.execute(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database"
            " WHERE datname = current_database()"
        ).fetchone()
    return found is not None and found[0] == mark


def remember(cluster: Cluster, mark: str) -> None:
    """Note on the database that it is ready for this code."""
    with psycopg.connect(cluster.url()) as connection:
        connection.execute(
            sql.SQL("COMMENT ON DATABASE {} IS {}").format(
                sql.Identifier(DATABASE), sql.Literal(mark)
            )
        )
