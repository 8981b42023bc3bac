"""`.venv` is made once, remade when the requirements change, and never half."""

import shutil
import sys
import threading
import time
from pathlib import Path

import pytest

from script.lib import bootstrap

# Stands in for .venv/bin/python: notes how it was called.
INTERPRETER = """#!/bin/sh
echo "$@" >> "{calls}"
case "$*" in *pip\\ install*) sleep {seconds}; exit {status};; esac
"""


class Checkout:
    """A checkout whose interpreter only notes what pip was asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls = root / "calls"
        (root / "requirements.txt").write_text("one==1\n")
        (root / "requirements-dev.txt").write_text("-r requirements.txt\ntwo==2\n")
        self.use_pip()

    def use_pip(self, *, status: int = 0, seconds: float = 0) -> None:
        python = self.root / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True, exist_ok=True)
        text = INTERPRETER.format(calls=self.calls, status=status, seconds=seconds)
        python.write_text(text)
        python.chmod(0o755)

    def installs(self) -> list[str]:
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [Path(line.split()[-1]).name for line in lines if "pip install" in line]


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    return Checkout(tmp_path)


def test_the_second_start_installs_nothing(checkout):
    bootstrap.ensure_venv(checkout.root, dev=False)
    bootstrap.ensure_venv(checkout.root, dev=False)

    assert checkout.installs() == ["requirements.txt"]


def test_a_changed_requirement_is_installed_at_the_next_start(checkout):
    bootstrap.ensure_venv(checkout.root, dev=False)
    (checkout.root / "requirements.txt").write_text("one==2\n")

    bootstrap.ensure_venv(checkout.root, dev=False)

    assert checkout.installs() == ["requirements.txt", "requirements.txt"]


def test_the_tests_libraries_are_installed_on_top_and_serve_the_server_too(checkout):
    bootstrap.ensure_venv(checkout.root, dev=True)
    bootstrap.ensure_venv(checkout.root, dev=False)

    assert checkout.installs() == ["requirements-dev.txt"]


def test_a_changed_test_requirement_does_not_slow_the_server(checkout):
    bootstrap.ensure_venv(checkout.root, dev=True)
    (checkout.root / "requirements-dev.txt").write_text("-r requirements.txt\ntwo==3\n")

    bootstrap.ensure_venv(checkout.root, dev=False)

    assert checkout.installs() == ["requirements-dev.txt"]


def test_a_failed_install_is_explained_and_tried_again(checkout):
    checkout.use_pip(status=1)
    with pytest.raises(bootstrap.SetupError, match=r"pip could not install requirements\.txt"):
        bootstrap.ensure_venv(checkout.root, dev=False)
    assert not bootstrap.is_current(checkout.root, dev=False)

    checkout.use_pip()
    bootstrap.ensure_venv(checkout.root, dev=False)

    assert checkout.installs() == ["requirements.txt", "requirements.txt"]


def test_of_two_starts_at_once_one_installs_and_the_other_waits_for_it(checkout, capsys):
    checkout.use_pip(seconds=0.3)
    other = threading.Thread(
        target=bootstrap.ensure_venv, args=(checkout.root,), kwargs={"dev": False}
    )
    other.start()
    time.sleep(0.1)

    bootstrap.ensure_venv(checkout.root, dev=False)
    other.join()

    assert checkout.installs() == ["requirements.txt"]
    assert "waiting for it" in capsys.readouterr().err


def test_a_venv_whose_interpreter_is_gone_is_made_again(checkout, monkeypatch):
    bootstrap.ensure_venv(checkout.root, dev=False)
    (checkout.root / ".venv" / "bin" / "python").unlink()
    made = []

    def make_venv(root: Path) -> None:
        made.append(root)
        checkout.use_pip()

    monkeypatch.setattr(bootstrap, "make_venv", make_venv)

    bootstrap.ensure_venv(checkout.root, dev=False)

    assert made == [checkout.root]
    assert checkout.installs() == ["requirements.txt", "requirements.txt"]


def test_an_old_python_hands_over_to_a_newer_one(monkeypatch):
    started: list[str] = []
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setattr(shutil, "which", lambda name: f"/opt/{name}")

    def execute(python: str) -> None:
        started.append(python)
        raise SystemExit

    monkeypatch.setattr(bootstrap, "execute", execute)
    with pytest.raises(SystemExit):
        bootstrap.require_python()

    assert started == ["/opt/python3.11"]


def test_an_old_python_alone_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setattr(shutil, "which", lambda _: None)

    with pytest.raises(bootstrap.SetupError, match=r"3\.11 or newer is needed and this is 3\.9"):
        bootstrap.require_python()
