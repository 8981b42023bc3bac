"""`script/test` says what failed, ends on pytest's own line and leaves nothing behind."""

import os
import shutil
import subprocess
import sys

import pytest

from script.lib import checks, processes, record
from script.lib.bootstrap import SetupError
from script.lib.output import Output

CLOSING = "======= 2 failed, 1,024 passed, 3 skipped, 1 warning in 61.02s (0:01:01) ======="


@pytest.fixture
def run(tmp_path):
    run = checks.Run(folder=tmp_path, arguments=[])
    run.output = Output(logs=tmp_path / "logs", names=[], quiet=True)
    return run


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_pytests_closing_line_comes_last_whatever_else_failed(run, capsys):
    run.check("mypy", python("raise SystemExit(1)"), dict(os.environ))
    closing = run.check("pytest", python(f"print({CLOSING!r}); print('bye')"), dict(os.environ))
    run.conclude(closing)

    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == CLOSING
    assert lines[-2].startswith("── failed: mypy ──")
    assert run.failed == ["mypy"]


def test_every_check_stands_under_its_heading_with_its_lines_passed_through(run, capsys):
    run.check(
        "lint-imports",
        python("import sys; print('one', flush=True); print('two', file=sys.stderr)"),
        {},
    )

    heading, one, two, took = capsys.readouterr().out.strip().splitlines()
    assert heading.startswith("── lint-imports ──")
    assert (one, two) == ("one", "two")
    assert took.endswith(" s)")
    assert run.failed == []


@pytest.mark.parametrize(
    "words", [["tests/platform", "-k", "seal"], ["-n", "2", "--dist", "loadfile", "tests"]]
)
def test_what_follows_the_command_goes_to_pytest_as_it_stands(run, words, monkeypatch):
    called = []
    monkeypatch.setattr(run, "check", lambda name, words, env: called.append((name, words)))
    run.arguments = words

    run.checks({})

    assert [name for name, _ in called] == ["pytest"]
    assert called[0][1][-len(words) :] == words


def test_without_arguments_every_check_runs_in_order_and_pytest_last(run, monkeypatch):
    called = []
    monkeypatch.setattr(run, "check", lambda name, *_: called.append(name))

    run.checks({})

    assert called == ["ruff format", "ruff check", "mypy", "lint-imports", "migrations", "pytest"]


@pytest.mark.parametrize(("cores", "at_once"), [(None, "2"), (1, "2"), (2, "3"), (16, "4")])
def test_one_process_more_than_there_are_cores_runs_tests_and_never_more_than_four(
    run, cores, at_once, monkeypatch
):
    called = []
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(run, "check", lambda name, words, env: called.append(words))

    run.checks({})

    assert called[-1][-2:] == ["-n", at_once]


def test_after_an_interruption_no_further_check_begins(run, capsys):
    run.interrupted = True

    assert run.check("mypy", python("print('ran')"), {}) == ""
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("line", "closes"),
    [
        (CLOSING, True),
        ("5 passed in 0.76s", True),
        ("===== 5 passed in 0.76s =====", True),
        ("===== no tests ran in 0.75s =====", True),
        ("===== slowest 8 durations =====", False),
        ("tests/platform/test_checks.py ....", False),
    ],
)
def test_the_closing_line_is_told_from_all_others(line, closes):
    assert bool(checks.CLOSING.fullmatch(line)) is closes


def test_what_a_killed_run_left_is_ended_and_deleted_and_a_living_run_is_left_alone(tmp_path):
    left_server = subprocess.Popen(python("import time; time.sleep(60)"), start_new_session=True)
    dead, living, stranger = (
        tmp_path / name for name in ("test-dead", "test-living", "orders_stub")
    )
    for folder in (dead, living, stranger):
        folder.mkdir()
    own = record.fresh(ports={}, urls={})
    record.save(living, own)
    own.identity = "of a run that was killed"
    own.children = {"redis": left_server.pid}
    own.identities = {"redis": processes.identity(left_server.pid) or ""}
    record.save(dead, own)

    checks.sweep(tmp_path)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["orders_stub", "test-living"]
    assert left_server.wait(5) != 0


def test_without_chromium_an_ordinary_user_is_told_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(SetupError, match="apt-get install chromium"):
        checks.ensure_chromium(needed=True)
    checks.ensure_chromium(needed=False)

    assert "Note: the browser tests need Chromium" in capsys.readouterr().out
