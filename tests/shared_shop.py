"""A pretend shop that starts over for each test without starting a process each time.

Starting one costs a second; putting its file back to what it was costs a few milliseconds.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from orders_stub.database import FILE_NAME
from tests.stubs import RunningShop, run_shop

PRISTINE = "pristine.sqlite3"


class SharedShop:
    """Keeps one process for as long as what happened to it can be undone.

    A request that a fault holds back may still take effect in the next test, so a shop that had
    such a fault is not used again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = 0
        self._process = ExitStack()
        self._shop: RunningShop | None = None

    @contextmanager
    def lend(self) -> Iterator[RunningShop]:
        """A shop as it is right after its start, with the demo's customers and orders."""
        shop = self._shop or self._start()
        self._shop = None
        yield shop
        if not shop.may_hold and shop.process.poll() is None:
            shop.clear_faults()
            restore(shop.data)
            self._shop = shop
        else:
            self._process.close()

    def close(self) -> None:
        """Stop the process."""
        self._process.close()

    def _start(self) -> RunningShop:
        self._process.close()
        self._started += 1
        shop = self._process.enter_context(run_shop(self._folder / f"shop-{self._started}"))
        with _opened(shop.data / FILE_NAME) as live:
            live.execute("VACUUM INTO ?", (str(shop.data / PRISTINE),))
        return shop


def restore(data: Path) -> None:
    """Make every row of a running shop what it was at the start, in one transaction."""
    with _opened(data / FILE_NAME) as live:
        live.execute("PRAGMA foreign_keys = OFF")
        live.execute("ATTACH ? AS pristine", (str(data / PRISTINE),))
        names = [
            name for (name,) in live.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        live.execute("BEGIN IMMEDIATE")
        for name in names:  # of our own schema
            live.execute(f"DELETE FROM main.{name}")  # noqa: S608
            live.execute(f"INSERT INTO main.{name} SELECT * FROM pristine.{name}")  # noqa: S608
        live.execute("COMMIT")


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None, timeout=10)
    try:
        yield connection
    finally:
        connection.close()
