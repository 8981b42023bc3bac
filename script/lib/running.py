"""The server that runs on this checkout, or one for as long as it is needed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from script.lib import environment, ports, record
from script.lib.bootstrap import ROOT, SetupError
from script.lib.record import Record

SERVER = ROOT / "script" / "server"
READY_WITHIN = 180  # seconds, from nothing


@contextmanager
def ensure_server() -> Iterator[Record]:
    """The running server of this data folder, ready; one started quietly if there is none.

    A server that was started here is stopped at the end, with its data kept; one that ran before
    is left alone. Raises SetupError, with the server's own words, when none comes up.
    """
    env = environment.of_person()
    folder = environment.data_folder(env)
    if record.running(folder):
        yield _wait_until_ready(folder, None)
        return
    words = [sys.executable, str(SERVER), "--quiet", "--port", _port(env)]
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # Ctrl-C is for us, and we stop it in order
    ) as process:
        try:
            yield _wait_until_ready(folder, process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def _port(env: Mapping[str, str]) -> str:
    """The usual ports, so that links stay good, or any free ones when somebody has those."""
    usual = ports.choose(env.get("PORT") or str(ports.DEFAULT))
    return str(usual.web) if all(map(ports.is_free, usual.named().values())) else "0"


def _wait_until_ready(folder: Path, process: "subprocess.Popen[str] | None") -> Record:
    until = time.monotonic() + READY_WITHIN
    while time.monotonic() < until:
        if process and process.poll() is not None:
            raise SetupError(f"the server did not start:\n{process.communicate()[0].strip()}")
        found = record.running(folder)
        if found and found.ready_at:
            return found
        if not found and not process:
            raise SetupError(
                "the server stopped before it was ready; run script/server to see why."
            )
        time.sleep(0.1)
    raise SetupError(f"the server was not ready after {READY_WITHIN} s; see {folder / 'logs'}.")


def manage(arguments: list[str]) -> int:
    """Run `manage.py` with the environment of the running server; its exit status."""
    folder = environment.data_folder(environment.of_person())
    if not record.running(folder):
        print(
            f"script/manage: no server runs on {folder}. Start it: script/server", file=sys.stderr
        )
        return 1
    env = {**os.environ, **environment.read(folder / "env")}
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments], env=env, check=False
    ).returncode
