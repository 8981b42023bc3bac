"""`server.json`: what runs here, for those who want to use it or to clean up after it."""

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from script.lib import keys, processes


@dataclass(kw_only=True)
class Record:
    """One server. `ready_at` is empty until it answers; times are RFC 3339 in UTC."""

    pid: int
    identity: str
    started_at: str
    ready_at: str = ""
    ports: dict[str, int] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)
    children: dict[str, int] = field(default_factory=dict)
    identities: dict[str, str] = field(default_factory=dict)

    @property
    def is_alive(self) -> bool:
        """Whether the process that wrote this still runs; its id alone may have a new owner."""
        return processes.is_same(self.pid, self.identity)


def fresh(*, ports: Mapping[str, int], urls: Mapping[str, str]) -> Record:
    """The record of this very process."""
    return Record(
        pid=os.getpid(),
        identity=processes.identity(os.getpid()) or "",
        started_at=now(),
        ports=dict(ports),
        urls=dict(urls),
    )


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def path_in(folder: Path) -> Path:
    return folder / "server.json"


def save(folder: Path, record: Record) -> None:
    keys.write_private(path_in(folder), json.dumps(asdict(record), indent=2) + "\n")


def load(folder: Path) -> Record | None:
    """What the file says, whether or not it is still true; None when there is none or it is unreadable."""
    try:
        return Record(**json.loads(path_in(folder).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def running(folder: Path) -> Record | None:
    """The server that runs on this data folder now, ready or not yet."""
    record = load(folder)
    return record if record and record.is_alive else None


def remove(folder: Path) -> None:
    path_in(folder).unlink(missing_ok=True)


def end_leftovers(record: Record) -> list[str]:
    """End what a server that was killed has left running; the names of what was found.

    Only processes that are still the recorded ones are touched. Stores go last.
    """
    stores = {"postgres", "redis"}
    ended = []
    for name in sorted(record.children, key=lambda name: name in stores):
        pid, known = record.children[name], record.identities.get(name)
        if known and processes.is_same(pid, known):
            how = signal.SIGINT if name == "postgres" else signal.SIGTERM
            processes.end(pid, known, how=how, grace=10)
            ended.append(name)
    return ended
