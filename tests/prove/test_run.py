"""`script/prove` itself: a short run holds, and with a guard taken away it says what broke."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from script.lib.bootstrap import ROOT

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
    code, text, report = prove(tmp_path, "--tasks", "20", "--seed", "4", "--aimed", "look_up")

    assert code == 0, text
    assert report["holds"], text
    assert set(report["must_be_zero"].values()) == {0}
    assert report["figures"]["tasks"]["done"] > 5
    assert sum(report["figures"]["tasks"].values()) >= 21
    assert report["chaos"], "nothing went wrong, so nothing was shown"
    assert "Every promise held" in text


@pytest.mark.parametrize(
    ("guard", "breaks", "says"),
    [
        ("look_up", "undecided", "although the shop shows it by its key"),
        ("deadline", "duplicate", "2 effects under one key"),
    ],
)
def test_with_a_guard_taken_away_it_names_what_broke(tmp_path, guard, breaks, says):
    words = ("--tasks", "2", "--seed", "4", "--calm", "--aimed", guard, "--ablate", guard)

    code, text, report = prove(tmp_path, *words)

    assert code == 1, text
    assert report["must_be_zero"][breaks] > 0, text
    assert f"{breaks}: operation task-" in text
    assert says in text
