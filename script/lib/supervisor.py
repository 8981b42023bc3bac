"""Runs programs side by side, starts the fallen again, and stops all it started and nothing else.

Each program leads a process group (and a session) of its own, so that Ctrl-C reaches the supervisor
alone, and a signal to a program reaches whatever it has started too.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from script.lib import processes
from script.lib.output import RED, Output

CHUNK = 65536
BY_HAND = {-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT}


@dataclass(frozen=True, kw_only=True)
class Program:
    """One program to run. Programs of a lower `tier` start before and stop after the higher ones."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    tier: int = 1
    account: processes.Account | None = None  # run as this user instead of our own
    stop_signal: signal.Signals = signal.SIGTERM
    kill_signal: signal.Signals = signal.SIGKILL
    grace: float = 10.0  # seconds between the two


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How often a program may fall. Times in seconds."""

    quick: float = 10.0  # a life shorter than this is a fall at once
    falls: int = 5  # so many falls at once in a row bring everything down
    first_wait: float = 0.5
    longest_wait: float = 15.0

    def wait(self, falls: int) -> float:
        """The pause before the next start, doubling with each fall at once."""
        return min(self.longest_wait, self.first_wait * 2.0 ** max(falls - 1, 0))


class StoppedError(Exception):
    """A program ended although it was needed; the text says which and how."""


@dataclass
class _Run:
    program: Program
    process: asyncio.subprocess.Process
    since: float
    reader: asyncio.Task[None]
    falls: int = 0
    keeper: asyncio.Task[None] | None = None


@dataclass
class Supervisor:
    """Keeps programs running until `stop`.

    `broken` is set, with `reason` saying why, when a program keeps ending at once.
    `on_change` is called whenever a process id has changed.
    """

    output: Output
    patience: Patience = field(default_factory=Patience)
    on_change: Callable[[], None] = lambda: None
    broken: asyncio.Event = field(default_factory=asyncio.Event)
    reason: str = ""
    _runs: dict[str, _Run] = field(default_factory=dict)
    _stopping: bool = False
    _force: asyncio.Event = field(default_factory=asyncio.Event)

    def pids(self) -> dict[str, int]:
        return {name: run.process.pid for name, run in self._runs.items() if _alive(run)}

    async def start(self, program: Program) -> None:
        """Start a program and keep it running from now on."""
        run = await self._spawn(program)
        self._runs[program.name] = run
        run.keeper = asyncio.create_task(self._keep(run))
        self.on_change()

    async def run(self, program: Program) -> None:
        """Run a program to its end. Raises StoppedError when it fails. Cancelling ends it."""
        run = await self._spawn(program)
        self._runs[program.name] = run
        self.on_change()
        try:
            code = await run.process.wait()
            await _drained(run)
        finally:
            await self._end(run)
            del self._runs[program.name]
            self.on_change()
        if code != 0:
            raise StoppedError(f"{program.name} {how_it_ended(code)}")

    def force(self) -> None:
        """Make a `stop` that is under way wait no longer."""
        self._force.set()

    async def stop(self) -> None:
        """End every program, the highest tier first, each with its whole group."""
        self._stopping = True
        for run in self._runs.values():
            if run.keeper:
                run.keeper.cancel()
        for tier in sorted({run.program.tier for run in self._runs.values()}, reverse=True):
            await asyncio.gather(
                *(self._end(run) for run in self._runs.values() if run.program.tier == tier)
            )
        self._runs.clear()
        self.on_change()

    async def _spawn(self, program: Program) -> _Run:
        # A pipe of our own: on one that asyncio makes, its `wait` would wait for every heir of it.
        ours, theirs = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *program.argv,
                cwd=program.cwd,
                env=dict(program.env),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
                user=program.account.uid if program.account else None,
                group=program.account.gid if program.account else None,
                extra_groups=[] if program.account else None,
            )
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        reader = asyncio.create_task(self._read(program.name, ours))
        return _Run(program=program, process=process, since=time.monotonic(), reader=reader)

    async def _keep(self, run: _Run) -> None:
        """Start this program again each time it falls, until it falls too often."""
        name = run.program.name
        while True:
            code = await run.process.wait()
            _signal(run, signal.SIGKILL)  # what it had started would be in its successor's way
            await _drained(run)
            at_once = time.monotonic() - run.since < self.patience.quick
            # Whoever kills a program by hand wants to see it come back, as often as it takes.
            run.falls = run.falls + 1 if at_once and code not in BY_HAND else 0
            if run.falls >= self.patience.falls:
                self._give_up(f"{name} {how_it_ended(code)} at once, {run.falls} times in a row")
                return
            wait = self.patience.wait(run.falls)
            self.output.say(
                f"{name} {how_it_ended(code)}; starting it again in {wait:g} s", style=RED
            )
            await asyncio.sleep(wait)
            try:
                fresh = await self._spawn(run.program)
            except OSError as exc:
                self._give_up(f"{name} cannot be started again: {exc}")
                return
            run.process, run.reader, run.since = fresh.process, fresh.reader, fresh.since
            self.on_change()

    def _give_up(self, reason: str) -> None:
        self.reason = reason
        self.broken.set()

    async def _end(self, run: _Run) -> None:
        """End one program and what it has started. One that fell before is left alone: its id may
        be a stranger's by now."""
        if not _alive(run):
            return
        _signal(run, run.program.kill_signal if self._force.is_set() else run.program.stop_signal)
        if not await self._ended_within(run, run.program.grace):
            self.output.say(f"{run.program.name} does not end; ending it by force")
            _signal(run, run.program.kill_signal)
            if not await self._ended_within(run, 5):
                _signal(run, signal.SIGKILL)
                await run.process.wait()
        _signal(run, signal.SIGKILL)
        await _drained(run)

    async def _ended_within(self, run: _Run, seconds: float) -> bool:
        """Wait for the process, but no longer than that, and no longer once forced."""
        ended = asyncio.create_task(run.process.wait())
        forced = asyncio.create_task(self._force.wait())
        patience = min(seconds, 2) if self._force.is_set() else seconds
        waited_for = {ended} if self._force.is_set() else {ended, forced}
        await asyncio.wait(waited_for, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        forced.cancel()
        if ended.done():
            return True
        ended.cancel()
        return False

    async def _read(self, name: str, pipe: int) -> None:
        """Hand the program's output on line by line, however long a line is."""
        stream = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(pipe, "rb")
        )
        rest = b""
        try:
            while chunk := await stream.read(CHUNK):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self.output.line(name, line.decode(errors="replace").rstrip("\r"))
                if len(rest) > CHUNK:
                    self.output.line(name, rest.decode(errors="replace"))
                    rest = b""
        finally:
            transport.close()
            if rest:
                self.output.line(name, rest.decode(errors="replace"))


def _alive(run: _Run) -> bool:
    return run.process.returncode is None


def _signal(run: _Run, number: signal.Signals) -> None:
    """Signal the program's group. The group outlives its leader for as long as it has members."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(run.process.pid, number)


async def _drained(run: _Run) -> None:
    """Let the last lines arrive; somebody who inherited the pipe does not hold us up."""
    done, _ = await asyncio.wait({run.reader}, timeout=1)
    if not done:
        run.reader.cancel()


def how_it_ended(code: int) -> str:
    if code >= 0:
        return f"ended with status {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def identities(pids: Mapping[str, int]) -> dict[str, str]:
    """What tells each of these processes from a later one with the same id."""
    known = {name: processes.identity(pid) for name, pid in pids.items()}
    return {name: value for name, value in known.items() if value is not None}
