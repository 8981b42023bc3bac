"""`script/test`: every check and test, against a PostgreSQL and a Redis of their own."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from script.lib import environment, postgres, processes, record, redis_server
from script.lib.bootstrap import ROOT, SetupError
from script.lib.output import BOLD, RED, Output
from script.lib.ports import Ports
from script.lib.supervisor import Supervisor, identities

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CLOSING = re.compile(r"=*\s*(?:no tests ran|[\d,]+ \w+(?:, [\d,]+ \w+)*) in [\d.]+s.*")
COLOUR = re.compile(r"\033\[[0-9;]*m")
# Tests wait for what they have started a quarter of their time: one process more than there are
# cores. Not more than four, as each starts a whole product and a browser, which take a gigabyte.
MOST_AT_ONCE = 4
UNSET_IN_TESTS = (
    *("OPENAI_API_KEY", "OPENAI_BASE_URL", "DATABASE_URL", "REDIS_URL"),
    "PYTHONDONTWRITEBYTECODE",  # tests start many programs, and each would compile ours anew
)


HELP = """usage: script/test [PATH or option of pytest]...

Run every check and test, or with PATHs (from the checkout's root) and options such as -k or -x
only those tests. PostgreSQL and Redis are started for the run and deleted after it."""


def main(arguments: list[str]) -> int:
    """0 when everything passed."""
    if {"-h", "--help"} & set(arguments):
        print(HELP)
        return 0
    try:
        sweep(ROOT / ".data")
        ensure_chromium(needed=not arguments)
        folder = Path(tempfile.mkdtemp(prefix="test-", dir=_parent()))
        try:
            return asyncio.run(Run(folder=folder, arguments=arguments).all())
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except (SetupError, OSError) as exc:
        print(f"script/test: {exc}", file=sys.stderr)
        return 1


@dataclass(kw_only=True)
class Run:
    """One run: stores up, checks in order, stores down."""

    folder: Path
    arguments: list[str]
    failed: list[str] = field(default_factory=list)
    interrupted: bool = False
    _current: subprocess.Popen[bytes] | None = None

    async def all(self) -> int:
        self.output = Output(logs=self.folder / "logs", names=["postgres", "redis"], quiet=True)
        self.record = record.fresh(ports={}, urls={})
        self.supervisor = Supervisor(output=self.output, on_change=self._save)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self._interrupt)
        cluster = postgres.prepare(self.folder, durable=False)
        try:
            env = await self._start_stores(cluster)
            closing = await asyncio.to_thread(self.checks, env)
        finally:
            await self.supervisor.stop()
            self.output.close()
            postgres.remove(cluster)
        self.conclude(closing)
        return 1 if self.failed or self.interrupted else 0

    async def _start_stores(self, cluster: postgres.Cluster) -> dict[str, str]:
        given = {k: v for k, v in os.environ.items() if k not in UNSET_IN_TESTS}
        store = redis_server.prepare(self.folder)
        await self.supervisor.start(cluster.program(given))
        await self.supervisor.start(store.program(given))
        await postgres.wait_until_ready(cluster)
        await redis_server.wait_until_ready(store)
        return environment.complete(
            given,
            folder=self.folder,
            ports=Ports(8000),
            database_url=cluster.url(),
            redis_url=store.url(),
        )

    def checks(self, env: dict[str, str]) -> str:
        """Run all of them, whatever fails on the way; pytest's closing line."""
        python = sys.executable
        if not self.arguments:
            bin_ = Path(python).parent
            for name, words in {
                "ruff format": [str(bin_ / "ruff"), "format", "--check", "."],
                "ruff check": [str(bin_ / "ruff"), "check", "."],
                "mypy": [python, "-m", "mypy", "."],
                "lint-imports": [str(bin_ / "lint-imports")],
                "migrations": [python, "manage.py", "makemigrations", "--check", "--dry-run"],
            }.items():
                self.check(name, words, env)
            if self.failed:
                self._heading(f"failed so far: {', '.join(self.failed)}", style=RED)
        return self.check("pytest", [python, "-m", "pytest", *self._pytest_options()], env)

    def _pytest_options(self) -> list[str]:
        colour = ["--color=yes"] if sys.stdout.isatty() else []
        at_once = min((os.cpu_count() or 1) + 1, MOST_AT_ONCE)
        return [*colour, *(self.arguments or ["-n", str(at_once)])]

    def check(self, name: str, words: list[str], env: dict[str, str]) -> str:
        """Run one check, its lines passing through; the last line that closes a pytest run."""
        if self.interrupted:
            return ""
        self._heading(name)
        began, closing = time.monotonic(), ""
        with subprocess.Popen(
            words,
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as self._current:
            for raw in self._current.stdout or ():
                line = raw.decode(errors="replace").rstrip("\n")
                print(line, flush=True)
                if CLOSING.fullmatch(COLOUR.sub("", line)):
                    closing = line
        if self._current.returncode != 0:
            self.failed.append(name)
        if name != "pytest":
            print(f"({time.monotonic() - began:.1f} s)", flush=True)
        return closing

    def _heading(self, text: str, *, style: int = BOLD) -> None:
        print(self.output.paint(f"\n── {text} " + "─" * max(0, 70 - len(text)), style), flush=True)

    def conclude(self, closing: str) -> None:
        """Name what failed, and end on pytest's own closing line: programs read it."""
        if self.failed and self.failed != ["pytest"]:
            self._heading(f"failed: {', '.join(self.failed)}", style=RED)
            if closing:
                print(closing, flush=True)

    def _interrupt(self) -> None:
        self.interrupted = True
        self.supervisor.force()
        if self._current and self._current.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._current.pid, signal.SIGTERM)

    def _save(self) -> None:
        self.record.children = self.supervisor.pids()
        self.record.identities = identities(self.record.children)
        record.save(self.folder, self.record)


def ensure_chromium(*, needed: bool) -> None:
    """Chromium for the tests that use a browser: installed under root on Debian, else asked for.

    Raises SetupError when it is needed and cannot be had; otherwise a note must do.
    """
    if any(map(shutil.which, CHROMIUM)):
        return
    apt = shutil.which("apt-get")
    if os.geteuid() != 0 or apt is None:
        advice = (
            "the browser tests need Chromium: apt-get install chromium (or your system's package)."
        )
        if needed:
            raise SetupError(f"{advice} Then run script/test again.")
        print(f"· Note: {advice}", flush=True)
        return
    print("· Installing Chromium for the browser tests", flush=True)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update", "-q"], ["install", "-y", "-q", "--no-install-recommends", "chromium"]):
        done = subprocess.run(
            [apt, *words],
            env=env,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise SetupError(
                f"apt-get {words[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )


def _parent() -> Path:
    folder = ROOT / ".data"
    folder.mkdir(exist_ok=True, mode=0o700)
    if os.geteuid() == 0:
        folder.chmod(folder.stat().st_mode | 0o001)  # for the user that runs PostgreSQL
    return folder


def sweep(folder: Path) -> None:
    """Clear away what runs that were killed have left: their servers and their data."""
    for old in folder.glob("test-*"):
        known = record.load(old)
        if known and not processes.is_same(known.pid, known.identity):
            record.end_leftovers(known)
            postgres.remove_elsewhere(old)
            shutil.rmtree(old, ignore_errors=True)
