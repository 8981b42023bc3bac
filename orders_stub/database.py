"""The shop's own database: one SQLite file in WAL mode.

The server runs every statement on its event loop's thread and never awaits inside a
transaction, so its own requests cannot interleave. `BEGIN IMMEDIATE` keeps that true against
another process (`load_shop`) too.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FILE_NAME = "shop.sqlite3"

SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS customers (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL,
    locale TEXT NOT NULL,
    blocked INTEGER NOT NULL DEFAULT 0 CHECK (blocked IN (0, 1))
);
CREATE TABLE IF NOT EXISTS orders (
    id TEXT PRIMARY KEY,
    customer_id TEXT NOT NULL REFERENCES customers (id),
    version INTEGER NOT NULL CHECK (version >= 1),
    status TEXT NOT NULL
        CHECK (status IN ('pending', 'processed', 'shipped', 'delivered', 'cancelled')),
    placed_at TEXT NOT NULL,
    captured INTEGER NOT NULL CHECK (captured >= 0),
    refunded INTEGER NOT NULL CHECK (refunded >= 0 AND refunded <= captured),
    document TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS orders_newest ON orders (customer_id, placed_at DESC, id DESC);
CREATE TABLE IF NOT EXISTS effects (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('refund', 'cancel', 'change_address')),
    order_id TEXT NOT NULL REFERENCES orders (id),
    customer_id TEXT NOT NULL REFERENCES customers (id),
    client_id TEXT,
    amount INTEGER CHECK (amount > 0),
    currency TEXT,
    idempotency_key TEXT,
    at TEXT NOT NULL,
    detail TEXT NOT NULL,
    answer TEXT NOT NULL,
    CHECK ((amount IS NULL) = (currency IS NULL))
);
CREATE INDEX IF NOT EXISTS effects_by_key ON effects (idempotency_key);
CREATE INDEX IF NOT EXISTS effects_by_order ON effects (order_id);
CREATE TABLE IF NOT EXISTS answers (
    client_id TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    status INTEGER NOT NULL,
    body TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (client_id, idempotency_key)
);
CREATE TABLE IF NOT EXISTS delegations (
    id INTEGER PRIMARY KEY,
    client_id TEXT NOT NULL,
    customer_id TEXT NOT NULL REFERENCES customers (id),
    refresh_digest TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    revoked_at TEXT
);
CREATE TABLE IF NOT EXISTS access_tokens (
    digest TEXT PRIMARY KEY,
    delegation_id INTEGER NOT NULL REFERENCES delegations (id),
    expires_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS access_tokens_by_expiry ON access_tokens (expires_at);
CREATE TABLE IF NOT EXISTS sessions (
    digest TEXT PRIMARY KEY,
    customer_id TEXT NOT NULL REFERENCES customers (id),
    expires_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS calls (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    customer_id TEXT,
    order_id TEXT,
    idempotency_key TEXT,
    status INTEGER,
    error TEXT,
    fault TEXT
);
CREATE TABLE IF NOT EXISTS mails (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    sender TEXT NOT NULL,
    recipient TEXT NOT NULL,
    subject TEXT NOT NULL,
    message_id TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS webhooks (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    order_id TEXT NOT NULL,
    body TEXT NOT NULL,
    at TEXT NOT NULL,
    due_at TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    answer INTEGER,
    delivered_at TEXT,
    fault TEXT
);
CREATE INDEX IF NOT EXISTS webhooks_due ON webhooks (due_at) WHERE delivered_at IS NULL;
CREATE TABLE IF NOT EXISTS reversals (
    effect_id TEXT PRIMARY KEY REFERENCES effects (id),
    reason TEXT NOT NULL,
    at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS arrivals (
    effect_id TEXT PRIMARY KEY REFERENCES effects (id),
    at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS mails_by_recipient ON mails (recipient);
CREATE INDEX IF NOT EXISTS calls_by_key ON calls (idempotency_key);
CREATE INDEX IF NOT EXISTS calls_by_order ON calls (order_id);
"""


class Database:
    """One connection to the shop's file, made with its schema when it is not there yet."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._connection = sqlite3.connect(
            directory / FILE_NAME, isolation_level=None, timeout=10, cached_statements=256
        )
        self._connection.row_factory = sqlite3.Row
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.executescript(SCHEMA)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything inside, or nothing when it raises. Never nested, never awaited in."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def run(self, sql: str, *values: Any) -> int:
        """Run one statement and say how many rows it changed."""
        return self._connection.execute(sql, values).rowcount

    def add(self, sql: str, *values: Any) -> int:
        """Run one INSERT and give the new row's number."""
        return self._connection.execute(sql, values).lastrowid or 0

    def rows(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """All rows of a query."""
        return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> sqlite3.Row | None:
        """The first row of a query, or None."""
        found: sqlite3.Row | None = self._connection.execute(sql, values).fetchone()
        return found

    def close(self) -> None:
        """Give the file back."""
        self._connection.close()
