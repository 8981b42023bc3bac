"""The shop as a running whole: its settings, database, key, faults, and keys in use."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from orders_stub import catalogue, outbox, times
from orders_stub.config import Config
from orders_stub.database import Database
from orders_stub.errors import RefusalError
from orders_stub.faults import Faults
from orders_stub.identity import Sessions, Signer

DEMO_LOADED = "demo_loaded"


@dataclass
class InFlight:
    """Idempotency keys whose first call is not answered yet.

    They live in memory, because they must be forgotten when the process dies.
    """

    fingerprints: dict[tuple[str, str], str] = field(default_factory=dict)

    @contextmanager
    def hold(self, client_id: str, key: str, fingerprint: str) -> Iterator[None]:
        """Keep a key busy. Raises RefusalError when it is busy already."""
        first = self.fingerprints.get((client_id, key))
        if first is not None and first != fingerprint:
            raise key_reused()
        if first is not None:
            message = "The first call with this key is still being worked on."
            raise RefusalError(409, "idempotency_in_progress", message)
        self.fingerprints[(client_id, key)] = fingerprint
        try:
            yield
        finally:
            del self.fingerprints[(client_id, key)]


def key_reused() -> RefusalError:
    """The key belongs to another request already."""
    message = "This idempotency key was used for another request."
    return RefusalError(422, "idempotency_key_reused", message)


@dataclass
class Shop:
    """What every door of the shop works with."""

    config: Config
    db: Database
    signer: Signer
    sessions: Sessions
    faults: Faults
    in_flight: InFlight


def open_shop(config: Config) -> Shop:
    """Open the shop's data, made with key and demo catalogue at the very first start."""
    db = Database(config.data)
    if config.demo:
        load_demo(db)
    outbox.switch(db, on=bool(config.webhook_url))
    return Shop(
        config=config,
        db=db,
        signer=Signer(db, issuer=config.slug),
        sessions=Sessions(db),
        faults=Faults(),
        in_flight=InFlight(),
    )


def load_demo(db: Database) -> None:
    """Load the demo catalogue once in the life of a data folder; what is there already stays."""
    if db.row("SELECT value FROM settings WHERE name = ?", DEMO_LOADED) is not None:
        return
    moment = times.now()
    catalogue.load_file(db, catalogue.DEMO_FILE, at=moment, others_allowed=True)
    db.run(
        "INSERT OR IGNORE INTO settings (name, value) VALUES (?, ?)",
        DEMO_LOADED,
        times.to_text(moment),
    )
