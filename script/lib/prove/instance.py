"""A private Countersign: stores, data and ports of its own, and two workers instead of one."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psycopg
import redis
from celery import Celery

from script.lib import environment, postgres, processes, record
from script.lib.bootstrap import ROOT, SetupError
from script.lib.prove import team as teams
from script.lib.prove.doors import Customers, Door, Model, Shop, Staff
from script.lib.prove.server import WORKERS
from script.lib.prove.worker import FOLDER as REHEARSAL

READY_SECONDS = 120
STOP_SECONDS = 60
LEASE_SECONDS = 7
ADVANCE = "agents.advance"
# Short times, so that a lost worker's task is taken over within a run's patience; and room for a
# crowd of requests that all come from one machine.
QUICK = {
    "COUNTERSIGN_MODEL_TIMEOUT": "2",
    "COUNTERSIGN_SHOP_TIMEOUT": "2",
    "COUNTERSIGN_LEASE_SECONDS": str(LEASE_SECONDS),
    "COUNTERSIGN_SWEEP_SECONDS": "1",
    "COUNTERSIGN_DB_IDLE_SECONDS": "3",
    "COUNTERSIGN_API_READS_PER_MINUTE": "6000",
    "COUNTERSIGN_API_WRITES_PER_MINUTE": "6000",
    "COUNTERSIGN_APPROVALS_IN_A_ROW": "6000",
    "COUNTERSIGN_LOG_LEVEL": "WARNING",
}
NOT_OURS = ("DATABASE_URL", "REDIS_URL", "PORT", "OPENAI_API_KEY", "OPENAI_BASE_URL")
# The provider's record for a shop that forgets its keys after a minute (tools/clients).
PROVIDER = "orders_stub_brief"
OWNER = "owner"
Answer = TypeVar("Answer")


@dataclass
class Instance:
    """A running product that belongs to nobody else: whatever is killed here is ours."""

    folder: Path
    env: Mapping[str, str]
    customers: Customers
    shop: Shop
    model: Model
    team: teams.Team
    # Workers that a scenario needs as they are; the chaos keeps its hands off them.
    held: set[int] = field(default_factory=set)
    _sessions: list["psycopg.Connection[Any]"] = field(default_factory=list)

    @property
    def rehearsal(self) -> Path:
        return self.folder / "rehearsal"

    @property
    def redis_url(self) -> str:
        return self.env["REDIS_URL"]

    def pid(self, name: str) -> int | None:
        """The process of one of its programs, while there is one."""
        found = record.running(self.folder)
        return found.children.get(name) if found else None

    def signal(self, name: str, number: signal.Signals) -> int | None:
        """Send a signal to one program; its process id, or None when it was not there or is held."""
        pid = self.pid(name)
        if pid is None or pid in self.held:
            return None
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            return pid
        return None

    def broker(self) -> Celery:
        """What speaks to the product's queue."""
        return Celery("prove", broker=self.redis_url, set_as_current=False)

    def redis(self) -> "redis.Redis":
        return redis.Redis.from_url(self.redis_url, socket_timeout=3, socket_connect_timeout=3)

    def read(self, query: str, *values: Any, seconds: float = 30) -> list[tuple[Any, ...]]:
        """Rows of the product's database, in a session that could not change one.

        PostgreSQL may be away: it is asked again for so long. Raises psycopg.OperationalError.
        """

        def rows() -> list[tuple[Any, ...]]:
            with self._session() as session:
                return session.execute(query.encode(), values).fetchall()

        return _patiently(rows, seconds)

    @contextmanager
    def _session(self) -> Iterator["psycopg.Connection[Any]"]:
        """One that is open already, or a new one; one that broke is not used again."""
        try:
            session = self._sessions.pop()
        except IndexError:
            session = psycopg.connect(
                self.env["DATABASE_URL"],
                autocommit=True,
                options="-c default_transaction_read_only=on",
                connect_timeout=3,
            )
        try:
            yield session
        except BaseException:
            session.close()
            raise
        self._sessions.append(session)

    def close(self) -> None:
        """Leave the database."""
        while self._sessions:
            self._sessions.pop().close()

    def end_right(self, person: Staff) -> None:
        """Take the right to approve from one of staff. Raises psycopg.OperationalError as `read`."""

        def end() -> datetime:
            with psycopg.connect(self.env["DATABASE_URL"], connect_timeout=3) as connection:
                ((at,),) = connection.execute(teams.END_RIGHT, [person.name]).fetchall()
            ended: datetime = at
            return ended

        self.team.ended[person.name] = _patiently(end, 30)

    def manage(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *words],
            env=self.env,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def load(self, catalogue: Path) -> None:
        """Put customers and orders into the running shop. Raises SetupError."""
        data = str(self.folder / "orders_stub")
        words = [sys.executable, "-m", "orders_stub", "load_shop", str(catalogue), "--data", data]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SetupError(f"the catalogue was refused: {done.stderr}")

    def wake_all(self) -> None:
        """Let every process that was made to stand still go on."""
        for name in (*WORKERS, "redis"):
            pid = self.pid(name)
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)


@asynccontextmanager
async def running_instance(*, keep: bool, extra: Mapping[str, str]) -> AsyncIterator[Instance]:
    """Start everything and wait until it is ready; at the end stop all of it, data included.

    With `keep` the folder stays. Raises SetupError when it does not come up.
    """
    sweep(ROOT / ".data")
    parent = ROOT / ".data"
    parent.mkdir(exist_ok=True, mode=0o700)
    folder = Path(tempfile.mkdtemp(prefix="prove-", dir=parent))
    if os.geteuid() == 0:
        parent.chmod(parent.stat().st_mode | 0o001)  # for the user that runs PostgreSQL
    (folder / "rehearsal").mkdir()
    _remember(folder / OWNER, os.getpid())
    process = _start_server(folder, extra)
    try:
        found = await _ready(folder, process)
        async with _opened(folder, found) as instance:
            try:
                yield instance
            finally:
                instance.wake_all()
                instance.close()
    finally:
        await asyncio.to_thread(_stop, process)
        if keep:
            (folder / OWNER).unlink()  # so that the next run does not clear it away
            print(f"kept: {folder}")
        else:
            _remove(folder)


@asynccontextmanager
async def _opened(folder: Path, found: record.Record) -> AsyncIterator[Instance]:
    """The doors of a server that is ready, its shop with a provider of short memory and its staff."""
    env = _without(os.environ) | environment.read(folder / "env")
    with psycopg.connect(env["DATABASE_URL"]) as connection:
        connection.execute("UPDATE accounts_shop SET provider = %s", [PROVIDER])
        teams.hire(connection)
    limits = httpx.Limits(max_connections=60)
    options: dict[str, Any] = {"timeout": 10, "trust_env": False, "limits": limits}
    web, shop, model = (found.urls[name] for name in ("web", "shop", "model"))
    async with (
        httpx.AsyncClient(base_url=web, **options) as api,
        httpx.AsyncClient(base_url=shop, **options) as shop_http,
        httpx.AsyncClient(base_url=model, **options) as model_http,
        teams.signed_in(web, options) as team,
    ):
        shop_door = Shop(Door(shop_http))
        yield Instance(
            folder=folder,
            env=env,
            customers=Customers(Door(api), shop_door),
            shop=shop_door,
            model=Model(Door(model_http)),
            team=team,
        )


def _patiently(work: Callable[[], Answer], seconds: float) -> Answer:
    """What it gives, asked again for so long while PostgreSQL is away."""
    ends_at = time.monotonic() + seconds
    while True:
        try:
            return work()
        except psycopg.OperationalError:
            if time.monotonic() > ends_at:
                raise
            time.sleep(0.2)


def _start_server(folder: Path, extra: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    env = _without(os.environ) | QUICK | dict(extra)
    env |= {
        "COUNTERSIGN_DATA": str(folder),
        "COUNTERSIGN_DEMO": "true",
        REHEARSAL: str(folder / "rehearsal"),
    }
    with (folder / "server.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "script.lib.prove.server"],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


async def _ready(folder: Path, process: "subprocess.Popen[bytes]") -> record.Record:
    ends_at = time.monotonic() + READY_SECONDS
    while time.monotonic() < ends_at and process.poll() is None:
        found = record.running(folder)
        if found and found.ready_at:
            return found
        await asyncio.sleep(0.1)
    log = (folder / "server.log").read_text()
    raise SetupError(f"the private instance did not become ready:\n{log}")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _without(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in NOT_OURS}


def _remove(folder: Path) -> None:
    """Delete the data of an instance that has ended."""
    with suppress(SetupError):
        postgres.remove(postgres.prepare(folder))
    shutil.rmtree(folder, ignore_errors=True)


def sweep(parent: Path) -> None:
    """Clear away what runs that were killed have left: their servers and their data."""
    for folder in parent.glob("prove-*"):
        owner = _recall(folder / OWNER)
        if owner is None or processes.is_same(*owner):
            continue
        found = record.load(folder)
        if found and found.is_alive:
            processes.end(found.pid, found.identity, how=signal.SIGTERM, grace=STOP_SECONDS)
        if found:
            record.end_leftovers(found)
        _remove(folder)


def _remember(path: Path, pid: int) -> None:
    """Note a process in a way that tells it from a later one with the same id."""
    path.write_text(f"{pid} {processes.identity(pid)}")


def _recall(path: Path) -> tuple[int, str] | None:
    if not path.exists():
        return None
    pid, _, known = path.read_text().partition(" ")
    return (int(pid), known) if pid.isdigit() else None
