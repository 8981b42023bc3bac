"""The supervisor brings the fallen back, and stops what it started and nothing else."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from script.lib import processes
from script.lib.output import Output
from script.lib.supervisor import Patience, Program, StoppedError, Supervisor

HASTY = Patience(first_wait=0.01, longest_wait=0.05, falls=3, quick=60)
FOREVER = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); " + FOREVER


def program(name: str, code: str, **changes) -> Program:
    return Program(
        name=name, argv=[sys.executable, "-c", code], env=dict(os.environ), cwd=Path("/"), **changes
    )


@pytest.fixture
def output(tmp_path):
    output = Output(logs=tmp_path / "logs", names=["web", "worker"])
    yield output
    output.close()


async def until(condition) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


def wrote(output: Output, name: str, text: str, *, times: int = 1) -> bool:
    path = output.log_path(name)
    return path.exists() and path.read_text().count(text) >= times


@pytest.mark.asyncio
async def test_lines_stand_under_the_aligned_name_of_who_wrote_them(output, capsys):
    supervisor = Supervisor(output=output)
    await supervisor.run(program("web", "print('one'); print('two')"))
    await supervisor.run(program("worker", "import sys; print('three', file=sys.stderr)"))

    assert capsys.readouterr().out == "web    │ one\nweb    │ two\nworker │ three\n"
    assert output.log_path("web").read_text() == "one\ntwo\n"


@pytest.mark.asyncio
async def test_a_program_that_is_killed_comes_back_however_often(output):
    supervisor = Supervisor(output=output, patience=HASTY)
    await supervisor.start(program("worker", FOREVER))
    seen = set()
    for count in range(1, HASTY.falls + 2):
        await until(lambda count=count: wrote(output, "worker", "up", times=count))
        seen.add(supervisor.pids()["worker"])
        os.kill(supervisor.pids()["worker"], signal.SIGKILL)

    await until(lambda: wrote(output, "worker", "up", times=HASTY.falls + 2))

    assert len(seen) == HASTY.falls + 1
    assert not supervisor.broken.is_set()
    await supervisor.stop()


@pytest.mark.asyncio
async def test_a_program_that_keeps_ending_at_once_brings_the_server_down_with_a_reason(output):
    supervisor = Supervisor(output=output, patience=HASTY)
    await supervisor.start(program("worker", "print('no'); raise SystemExit(7)"))

    await asyncio.wait_for(supervisor.broken.wait(), 10)

    assert supervisor.reason == "worker ended with status 7 at once, 3 times in a row"
    assert output.log_path("worker").read_text() == "no\n" * 3
    await supervisor.stop()


def test_the_pauses_between_starts_grow_to_a_limit():
    patience = Patience()

    assert [patience.wait(falls) for falls in (0, 1, 2, 3, 4, 9)] == [0.5, 0.5, 1, 2, 4, 15]


@pytest.mark.asyncio
async def test_a_stop_ends_each_program_with_what_it_had_started_and_nobody_else(output):
    bystander = subprocess.Popen([sys.executable, "-c", FOREVER], stdout=subprocess.DEVNULL)
    code = (
        "import subprocess, sys; "
        f"p = subprocess.Popen([sys.executable, '-c', {STUBBORN!r}]); print(p.pid, flush=True); p.wait()"
    )
    supervisor = Supervisor(output=output)
    await supervisor.start(program("web", code))
    await until(lambda: wrote(output, "web", "up"))
    child, grandchild = supervisor.pids()["web"], int(output.log_path("web").read_text().split()[0])

    await supervisor.stop()

    await until(lambda: processes.identity(grandchild) is None)
    assert processes.identity(child) is None
    assert bystander.poll() is None
    assert supervisor.pids() == {}
    bystander.kill()
    bystander.wait()


@pytest.mark.asyncio
async def test_a_program_that_will_not_end_is_killed_after_its_grace(output, capsys):
    supervisor = Supervisor(output=output)
    await supervisor.start(program("worker", STUBBORN, grace=0.1))
    await until(lambda: wrote(output, "worker", "up"))
    pid = supervisor.pids()["worker"]

    await supervisor.stop()

    assert processes.identity(pid) is None
    assert "worker does not end; ending it by force" in capsys.readouterr().out


@pytest.mark.asyncio
async def test_a_second_ctrl_c_waits_no_longer(output):
    supervisor = Supervisor(output=output)
    await supervisor.start(program("worker", STUBBORN, grace=60))
    await until(lambda: wrote(output, "worker", "up"))
    stopping = asyncio.create_task(supervisor.stop())
    await asyncio.sleep(0.1)
    assert not stopping.done()

    began = time.monotonic()
    supervisor.force()
    await stopping

    assert time.monotonic() - began < 5


@pytest.mark.asyncio
async def test_stores_end_only_after_those_who_use_them(output, tmp_path):
    code = (
        "import signal, sys, time\n"
        "def end(*_):\n"
        f"    time.sleep(float(sys.argv[2])); open({str(tmp_path / 'order')!r}, 'a').write(sys.argv[1]); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); time.sleep(60)"
    )
    supervisor = Supervisor(output=output)
    for name, tier, delay in (("redis", 0, "0"), ("web", 1, "0.2")):
        argv = [sys.executable, "-c", code, f"{name} ", delay]
        await supervisor.start(
            Program(name=name, argv=argv, env=dict(os.environ), cwd=Path("/"), tier=tier)
        )
        await until(lambda name=name: wrote(output, name, "up"))

    await supervisor.stop()

    assert (tmp_path / "order").read_text() == "web redis "


@pytest.mark.asyncio
async def test_a_program_waiting_for_its_next_start_is_not_started_after_a_stop(output):
    slow = Patience(first_wait=30, longest_wait=30)
    supervisor = Supervisor(output=output, patience=slow)
    await supervisor.start(program("worker", "print('no')"))
    await until(lambda: wrote(output, "worker", "no") and not supervisor.pids())

    await asyncio.wait_for(supervisor.stop(), 5)

    assert output.log_path("worker").read_text() == "no\n"


@pytest.mark.asyncio
async def test_a_failed_step_is_named_with_its_status(output):
    with pytest.raises(StoppedError, match=r"^web ended with status 3$"):
        await Supervisor(output=output).run(program("web", "raise SystemExit(3)"))


@pytest.mark.asyncio
async def test_a_step_that_is_cut_short_is_ended(output):
    supervisor = Supervisor(output=output)
    step = asyncio.create_task(supervisor.run(program("web", FOREVER)))
    await until(lambda: wrote(output, "web", "up"))
    pid = supervisor.pids()["web"]

    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step

    assert processes.identity(pid) is None


@pytest.mark.asyncio
async def test_a_line_longer_than_any_buffer_is_kept_whole_and_shown_in_part(output, capsys):
    await Supervisor(output=output).run(program("web", "print('x' * 50_000)"))

    assert len(output.log_path("web").read_text()) == 50_001
    assert len(capsys.readouterr().out) < 5_000
