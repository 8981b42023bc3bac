"""Knowing processes for certain: a process id alone may have been given to a stranger since."""

import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class Account(NamedTuple):
    """A system user and its group, by number."""

    uid: int
    gid: int


def identity(pid: int) -> str | None:
    """What tells this process from any other that ever had its id, or None when it is not alive.

    A process that has ended but was not yet collected by its parent counts as not alive.
    """
    if PROC.joinpath("self", "stat").exists():
        return _identity_from_proc(pid)
    answer = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], check=False, capture_output=True, text=True
    ).stdout.strip()
    return None if not answer or answer.startswith("Z") else answer.split(maxsplit=1)[1]


def _identity_from_proc(pid: int) -> str | None:
    try:
        stat = (PROC / str(pid) / "stat").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    # The name in parentheses may hold spaces and parentheses: count from the last one.
    fields = stat.rpartition(")")[2].split()
    state, started = fields[0], fields[19]
    return None if state in {"Z", "X"} else started


def is_same(pid: int, known: str | None) -> bool:
    """Whether the process that had this identity is still alive."""
    return known is not None and identity(pid) == known


def command_of(pid: int) -> str:
    """The command line of a process, or an empty text when it cannot be read."""
    if PROC.joinpath("self", "stat").exists():
        with suppress(OSError):
            raw = (PROC / str(pid) / "cmdline").read_bytes()
            return raw.replace(b"\0", b" ").decode(errors="replace").strip()
        return ""
    return subprocess.run(
        ["ps", "-o", "command=", "-p", str(pid)], check=False, capture_output=True, text=True
    ).stdout.strip()


def end(pid: int, known: str, *, how: signal.Signals, grace: float) -> None:
    """End a process that an earlier run of ours left behind, with its group, and nobody else's.

    `how` asks; what is still alive after `grace` seconds is killed. Does nothing when the
    process with this identity is gone.
    """
    if not is_same(pid, known):
        return
    _signal_group(pid, how)
    until = time.monotonic() + grace
    while is_same(pid, known):
        if time.monotonic() > until:
            _signal_group(pid, signal.SIGKILL)
            return
        time.sleep(0.05)


def _signal_group(pid: int, number: signal.Signals) -> None:
    """Signal the group that this process leads; a process that leads none is signalled alone."""
    with suppress(ProcessLookupError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


def listener(port: int) -> str | None:
    """Who listens on this TCP port of this machine, as "name (process 123)", where that can be known."""
    inodes = {
        line.split()[9]
        for table in ("tcp", "tcp6")
        for line in _lines(PROC / "net" / table)
        if re.match(rf"\s*\d+: [0-9A-F]+:{port:04X} [0-9A-F:]+ 0A ", line)
    }
    if not inodes:
        return None
    sockets = {f"socket:[{inode}]" for inode in inodes}
    for folder in PROC.glob("[0-9]*"):
        if _holds(folder / "fd", sockets):
            pid = int(folder.name)
            words = command_of(pid).split()
            name = " ".join(Path(word).name if i == 0 else word for i, word in enumerate(words[:4]))
            return f"{name or 'a process'} (process {pid})"
    return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _holds(folder: Path, sockets: set[str]) -> bool:
    with suppress(OSError):
        for entry in folder.iterdir():
            with suppress(OSError):
                if str(entry.readlink()) in sockets:
                    return True
    return False
