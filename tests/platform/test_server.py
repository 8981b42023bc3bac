"""`script/server` from outside: its ready line, its record, its stop, its refusals."""

import http.client
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from script.lib import processes, record, running
from script.lib.bootstrap import ROOT, SetupError

STAND_IN = Path(__file__).with_name("stand_in_server.py")
SETTINGS = {"PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}


class Started:
    """One server with its data folder, ended at the latest with the test."""

    def __init__(self, folder: Path, *arguments: str, **env: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, str(STAND_IN), *(arguments or ("--port", "0"))],
            cwd=ROOT,
            env={**os.environ, **SETTINGS, "COUNTERSIGN_DATA": str(folder), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def ready(self) -> record.Record:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            found = record.running(self.folder)
            if found and found.ready_at:
                return found
            if self.process.poll() is not None:
                raise AssertionError(self.output())
            time.sleep(0.02)
        raise AssertionError("not ready")

    def output(self) -> str:
        return self.process.communicate(timeout=60)[0]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> str:
        self.process.send_signal(number)
        return self.output()


@pytest.fixture
def start(tmp_path):
    started: list[Started] = []

    def start_(*arguments: str, folder: str = "data", **env: str) -> Started:
        started.append(Started(tmp_path / folder, *arguments, **env))
        return started[-1]

    yield start_
    for server in started:
        if server.process.poll() is None:
            server.stop()


def alive(found: record.Record) -> set[str]:
    return {
        name
        for name, pid in found.children.items()
        if processes.is_same(pid, found.identities[name])
    }


def test_a_start_serves_and_says_where_and_a_stop_leaves_nothing_of_it(start):
    server = start()
    found = server.ready()
    connection = http.client.HTTPConnection("127.0.0.1", found.ports["web"], timeout=5)
    connection.request("GET", "/healthz/ready")
    status = connection.getresponse().status
    connection.close()
    names = alive(found)

    text = server.stop(signal.SIGINT)

    assert status == 200
    assert names == {"web", "worker", "beat", "sealer", "shop", "model"}
    assert found.urls["console"] in text
    assert found.urls["shop"] in text
    assert "staff, staff2, auditor, admin, admin2; password countersign-demo" in text
    assert server.process.returncode == 0
    assert alive(found) == set()
    assert not record.path_in(server.folder).exists()


def test_a_second_server_on_the_same_data_is_refused_and_the_first_goes_on(start):
    first = start()
    found = first.ready()

    second = start()
    text = second.output()

    assert second.process.returncode == 1
    assert f"already runs on {first.folder} at {found.urls['web']}" in text
    assert record.running(first.folder) == found


def test_two_servers_with_data_of_their_own_run_side_by_side(start):
    first, second = start(folder="one"), start(folder="two")
    both = (first.ready(), second.ready())

    first.stop()

    assert set(both[0].ports.values()).isdisjoint(both[1].ports.values())
    assert record.running(second.folder) == both[1]
    assert len(alive(both[1])) == 6


def test_a_taken_port_stops_the_start_before_anything_runs(start):
    found = start(folder="one").ready()

    refused = start("--port", str(found.ports["web"]), folder="two")
    text = refused.output()

    assert refused.process.returncode == 1
    assert f"port {found.ports['web']} (web) is taken by" in text
    assert not (refused.folder / "logs").exists()


def test_what_a_killed_server_left_is_ended_by_the_next_start_which_serves_as_before(start):
    killed = start()
    left = killed.ready()
    killed.process.kill()
    killed.output()
    assert len(alive(left)) == 6

    server = start("--port", str(left.ports["web"]))
    found = server.ready()

    assert alive(left) == set()
    assert found.ports == left.ports
    assert "left running" in server.stop()


def test_a_failed_migration_ends_the_start_with_its_own_words_even_when_quiet(start):
    server = start("--quiet", "--port", "0", BROKEN_MIGRATION="1")
    text = server.output()

    assert server.process.returncode == 1
    assert "migrate ended with status 1\nno such table" in text
    assert not record.path_in(server.folder).exists()


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none"),
        ("REDIS_URL", "redis://127.0.0.1:1/0"),
        ("REDIS_URL", "nonsense"),
    ],
)
def test_a_store_of_the_persons_own_that_cannot_be_reached_is_named_before_anything_uses_it(
    start, name, url
):
    server = start(**{name: url})
    text = server.output()

    assert server.process.returncode == 1
    assert f"of {name} cannot be reached" in text
    assert f"leave {name} unset" in text
    assert "demo" not in text  # the migrations' stand-in says this word


def test_a_killed_worker_is_back_and_on_record_at_once(start):
    server = start()
    before = server.ready()
    os.kill(before.children["worker"], signal.SIGKILL)

    until = time.monotonic() + 10
    while time.monotonic() < until:
        found = record.running(server.folder)
        if found and found.children.get("worker", 0) not in {0, before.children["worker"]}:
            break
        time.sleep(0.02)

    assert found
    assert len(alive(found)) == 6
    assert found.children["worker"] != before.children["worker"]
    assert "worker was ended by SIGKILL; starting it again" in server.stop()


def test_outside_the_demo_no_shop_is_pretended_and_no_password_printed(start):
    server = start(COUNTERSIGN_DEMO="false")
    found = server.ready()

    text = server.stop()

    assert set(found.children) == {"web", "worker", "beat", "sealer", "model"}
    assert "password" not in text


@pytest.fixture
def surroundings(tmp_path, monkeypatch):
    """This very process, set up as a person's terminal would be."""
    folder = tmp_path / "data"
    for name, value in {**SETTINGS, "COUNTERSIGN_DATA": str(folder)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(running, "SERVER", STAND_IN)
    return folder


def test_who_needs_a_server_uses_the_running_one_and_leaves_it_running(start, surroundings):
    server = start()
    found = server.ready()

    with running.ensure_server() as used:
        assert used == found

    assert record.running(server.folder) == found


def test_who_needs_a_server_gets_one_for_as_long_as_needed(surroundings):
    with running.ensure_server() as used:
        assert alive(used) == {"web", "worker", "beat", "sealer", "shop", "model"}

    assert alive(used) == set()
    assert record.running(surroundings) is None


def test_who_needs_a_server_that_cannot_start_is_told_why(surroundings, monkeypatch):
    monkeypatch.setenv("BROKEN_MIGRATION", "1")

    with (
        pytest.raises(SetupError, match=r"did not start(.|\n)*no such table"),
        running.ensure_server(),
    ):
        pytest.fail("there is no server to use")
