"""`server.json` is believed only while the very process that wrote it is alive."""

import os
import subprocess
import sys

import pytest

from script.lib import processes, record


@pytest.fixture
def sleeper():
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True
    )
    yield process
    process.kill()
    process.wait()


def write(folder, pid: int, identity: str | None, **more) -> record.Record:
    assert identity
    written = record.Record(pid=pid, identity=identity, started_at=record.now(), **more)
    record.save(folder, written)
    return written


def test_a_running_server_is_found_with_everything_it_wrote(tmp_path, sleeper):
    identity = processes.identity(sleeper.pid)
    written = write(
        tmp_path, sleeper.pid, identity, ports={"web": 8000}, urls={"web": "http://127.0.0.1:8000"}
    )

    assert record.running(tmp_path) == written


def test_the_record_of_a_dead_server_is_stale(tmp_path, sleeper):
    write(tmp_path, sleeper.pid, processes.identity(sleeper.pid))
    sleeper.kill()
    sleeper.wait()

    assert record.running(tmp_path) is None


def test_a_stranger_with_the_servers_old_process_id_is_not_the_server(tmp_path, sleeper):
    write(tmp_path, sleeper.pid, "started in another life")

    assert record.running(tmp_path) is None


def test_a_server_that_ended_but_was_not_collected_is_dead(sleeper):
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)

    assert processes.identity(sleeper.pid) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"pid": 1, "odd": 2}'])
def test_an_unreadable_record_counts_as_none(tmp_path, text):
    record.path_in(tmp_path).write_text(text)

    assert record.load(tmp_path) is None


def test_what_a_killed_server_left_running_is_ended_but_no_stranger_with_an_old_id(
    tmp_path, sleeper
):
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    left = write(
        tmp_path,
        1,
        "dead",
        children={"web": sleeper.pid, "worker": stranger.pid},
        identities={
            "web": processes.identity(sleeper.pid) or "",
            "worker": "started in another life",
        },
    )

    ended = record.end_leftovers(left)

    assert ended == ["web"]
    assert sleeper.wait(5) != 0
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_only_the_owner_can_read_the_record(tmp_path):
    record.save(tmp_path, record.fresh(ports={}, urls={}))

    assert record.path_in(tmp_path).stat().st_mode & 0o777 == 0o600
