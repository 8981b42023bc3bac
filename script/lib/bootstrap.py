"""Makes `.venv` as the pinned requirements say, then goes on inside it.

This runs before anything is installed, under whatever Python 3 the machine offers: it uses the
standard library alone and no syntax newer than Python 3.7, so that an old one gets a sentence
instead of a traceback.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, NoReturn  # noqa: UP035 - see the module's first paragraph

ROOT = Path(__file__).resolve().parents[2]
OLDEST = (3, 11)
NEWER = ("python3.11", "python3.12", "python3.13", "python3.14")
RUNTIME = ("requirements.txt",)
DEVELOPMENT = ("requirements.txt", "requirements-dev.txt")


class SetupError(Exception):
    """The machine lacks something; the text says what and what to do."""


def enter(*, dev: bool = False) -> None:
    """Return only inside `.venv` with everything installed; otherwise re-execute this command there.

    Ends the process with status 1 and one explanation when that cannot be had.
    """
    try:
        require_python()
        python = ensure_venv(ROOT, dev=dev)
    except SetupError as exc:
        sys.exit(f"{Path(sys.argv[0]).name}: {exc}")
    except KeyboardInterrupt:
        sys.exit(130)
    if Path(sys.prefix).resolve() != (ROOT / ".venv").resolve():
        execute(str(python))


def require_python() -> None:
    """Go on under a Python that is new enough, looking for one on PATH if need be."""
    if sys.version_info >= OLDEST:
        return
    for name in NEWER:
        found = shutil.which(name)
        if found:
            execute(found)
    raise SetupError(
        "Python {}.{} or newer is needed and this is {}.{}. Install python3.11 (or newer) and its "
        "venv module, then run the command again.".format(*OLDEST, *sys.version_info[:2])
    )


def execute(python: str) -> NoReturn:
    """Replace this process by the same command under another interpreter."""
    for name in ("PYTHONHOME", "__PYVENV_LAUNCHER__"):
        os.environ.pop(name, None)
    sys.stdout.flush()
    os.execv(python, [python, os.path.abspath(sys.argv[0]), *sys.argv[1:]])  # noqa: S606


def ensure_venv(root: Path, *, dev: bool) -> Path:
    """The interpreter of `root/.venv`, with the pinned libraries installed.

    Quick when the stamp matches the requirement files. Of several starts at once one installs and
    the others wait. The stamp is written last, so a start that was cut short is made good by the next.
    """
    python = root / ".venv" / "bin" / "python"
    if is_current(root, dev=dev):
        return python
    with only_one(root):
        if not is_current(root, dev=dev):
            make_venv(root)
            install(root, dev=dev)
    return python


def is_current(root: Path, *, dev: bool) -> bool:
    """Whether `.venv` was finished for exactly these requirement files."""
    stamp = stamp_path(root, dev=dev)
    if not (root / ".venv" / "bin" / "python").exists() or not stamp.exists():
        return False
    return stamp.read_text() == digest(root, dev=dev)


def digest(root: Path, *, dev: bool) -> str:
    """A fingerprint of the requirement files that apply."""
    total = hashlib.sha256()
    for name in DEVELOPMENT if dev else RUNTIME:
        total.update(name.encode() + b"\0" + (root / name).read_bytes() + b"\0")
    return total.hexdigest()


def stamp_path(root: Path, *, dev: bool) -> Path:
    return root / ".venv" / (".installed-development" if dev else ".installed-runtime")


def make_venv(root: Path) -> None:
    """Create `.venv` unless a working one is there already."""
    python = root / ".venv" / "bin" / "python"
    if python.exists() and succeeds([str(python), "-c", "import pip"]):
        return
    say("Making .venv")
    done = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(root / ".venv")],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SetupError(
            f"could not make .venv with {sys.executable}: {(done.stderr or done.stdout).strip()}\n"
            "On Debian and Ubuntu: apt-get install python3-venv"
        )


def install(root: Path, *, dev: bool) -> None:
    """Install the pinned libraries and stamp the result."""
    name = (DEVELOPMENT if dev else RUNTIME)[-1]
    say(f"Installing the libraries of {name} into .venv (a minute or two, this once)")
    python = root / ".venv" / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-input"]
    # With the hashes of the lock: a file that was exchanged since is refused.
    command += ["--disable-pip-version-check", "--require-hashes", "-r", str(root / name)]
    if subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode != 0:
        raise SetupError(
            f"pip could not install {name} (its words are above). A package index must be "
            "reachable; run the command again once it is."
        )
    for both in (False, True) if dev else (False,):
        write_stamp(stamp_path(root, dev=both), digest(root, dev=both))


def write_stamp(path: Path, text: str) -> None:
    """Write so that a reader sees the whole text or none."""
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(text)
    os.replace(str(draft), str(path))


@contextmanager
def only_one(root: Path) -> Iterator[None]:
    """Hold the setup lock of this checkout: a lock on the folder itself, so there is no file to leave behind."""
    handle = os.open(str(root), os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("Another start is setting up .venv; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def succeeds(command: list[str]) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def say(text: str) -> None:
    """Progress goes to standard error: standard output belongs to the command."""
    print(f"· {text}", file=sys.stderr, flush=True)
