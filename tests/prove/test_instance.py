"""The private instance: nobody else's database is touched, and what a killed run left is cleared."""

import os
import signal
import subprocess
import sys

from script.lib import processes
from script.lib.prove import instance, server


def test_the_private_server_takes_nothing_from_a_persons_own_settings(tmp_path, monkeypatch):
    theirs = dict(os.environ) | {"DATABASE_URL": "postgresql://somebody@elsewhere/real"}
    monkeypatch.setattr("script.lib.environment.of_person", lambda: theirs)
    monkeypatch.setenv("COUNTERSIGN_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    seen = {}

    async def serve(self):
        seen.update(self.env)
        return 0

    monkeypatch.setattr(server.PrivateServer, "serve", serve)

    assert server.main() == 0
    assert "DATABASE_URL" not in seen
    assert seen["COUNTERSIGN_DATA"] == str(tmp_path / "data")


def test_stores_and_models_of_the_person_are_left_out():
    given = {"DATABASE_URL": "x", "REDIS_URL": "x", "OPENAI_API_KEY": "x", "HOME": "/home/ada"}

    assert instance._without(given) == {"HOME": "/home/ada"}


def test_what_a_killed_run_has_left_is_cleared_and_a_living_one_is_let_be(tmp_path):
    living, dead, kept = (tmp_path / f"prove-{name}" for name in ("living", "dead", "kept"))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    known = processes.identity(ended.pid) or "gone"
    ended.wait()
    for folder in (living, dead, kept):
        folder.mkdir()
    instance._remember(living / instance.OWNER, os.getpid())
    (dead / instance.OWNER).write_text(f"{ended.pid} {known}")

    instance.sweep(tmp_path)

    assert (living.exists(), dead.exists(), kept.exists()) == (True, False, True)


def test_a_worker_stands_still_where_a_file_asks_for_it_and_goes_on_when_told(tmp_path):
    code = (
        "import sys; from pathlib import Path; from script.lib.prove import worker;"
        "worker.stand_still(Path(sys.argv[1]), 'before_wire', '90001'); print('went on')"
    )
    wanted = tmp_path / "before_wire.90001"
    wanted.touch()
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert [path.name for path in tmp_path.iterdir()] == [f"before_wire.90001.{process.pid}"]

        os.kill(process.pid, signal.SIGCONT)
        out, _ = process.communicate(timeout=30)

    assert (out, process.returncode) == ("went on\n", 0)
