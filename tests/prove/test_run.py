"""`script/prove` itself: a short run holds, and with a guard taken away it says what broke."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from script.lib.bootstrap import ROOT
from script.lib.prove import cli

pytestmark = pytest.mark.timeout(300)


class Outcome(NamedTuple):
    code: int
    text: str
    report: dict[str, Any]


def prove(folder: Path, *words: str) -> Outcome:
    file = folder / "report.json"
    done = subprocess.run(
        [sys.executable, str(ROOT / "script" / "prove"), *words, "--json", str(file)],
        env={name: value for name, value in os.environ.items() if name != "COUNTERSIGN_DATA"},
        capture_output=True,
        text=True,
        check=False,
    )
    text = done.stdout + done.stderr
    assert file.exists(), text
    return Outcome(done.returncode, text, json.loads(file.read_text()))


def test_a_short_run_under_faults_breaks_no_promise(tmp_path):
    code, text, report = prove(tmp_path, "--tasks", "12", "--seed", "4", "--aimed", "look_up")

    assert code == 0, text
    assert report["holds"], text
    assert set(report["must_be_zero"].values()) == {0}
    assert report["figures"]["tasks"]["done"] > 3
    assert sum(report["figures"]["tasks"].values()) >= 13
    assert report["chaos"], "nothing went wrong, so nothing was shown"
    assert "Every promise held" in text


def test_with_guards_taken_away_it_names_what_broke(tmp_path):
    """Two at once, since a run of its own for each would mostly wait for its server."""
    guards = "look_up,deadline"
    words = ("--tasks", "1", "--seed", "4", "--calm", "--aimed", guards, "--ablate", guards)

    code, text, report = prove(tmp_path, *words)

    assert code == 1, text
    for breaks, says in (
        ("undecided", "although the shop shows it by its key"),
        ("duplicate", "2 effects under one key"),
    ):
        assert report["must_be_zero"][breaks] > 0, text
        assert f"{breaks}: operation task-" in text
        assert says in text


@pytest.mark.parametrize("words", [("--ablate", "fence,nerve"), ("--aimed", "nerve")])
def test_a_guard_that_there_is_none_of_is_refused(capsys, words):
    with pytest.raises(SystemExit) as refused:
        cli.main(list(words))

    assert refused.value.code == 2
    assert "no such guard: nerve" in capsys.readouterr().err
