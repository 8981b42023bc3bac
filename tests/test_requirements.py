"""docs/requirements.md is complete, and every test that it names is there."""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "requirements.md"
COUNTS = {"R": 76, "I": 56, "C": 20, "F": 50, "A": 25, "B": 22, "M": 27, "J": 12, "W": 18, "E": 20}
ROW = re.compile(r"\| ([A-Z]-?\d\d) \| (.*) \| (.*) \|")
LINK = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
NOT_YET = "not yet: "


def rows(page: str) -> list[tuple[str, str, str]]:
    """Number, what and shown by, of every row as it stands."""
    return [match.groups() for line in page.splitlines() if (match := ROW.fullmatch(line))]  # type: ignore[misc]


def numbers() -> list[str]:
    """Every number there is, in order."""
    return [
        f"{letter}{'-' if letter in 'RI' else ''}{n:02}"
        for letter, count in COUNTS.items()
        for n in range(1, count + 1)
    ]


@cache
def defined_in(path: Path) -> frozenset[str]:
    """The tests that a file defines."""
    tree = ast.parse(path.read_text())
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def faults_of(row: tuple[str, str, str]) -> list[str]:
    """What is wrong with a row."""
    number, what, shown = row
    faults = [] if what.strip() else [f"{number} says nothing"]
    if shown.startswith(NOT_YET):
        if len(shown) <= len(NOT_YET):
            faults.append(f"{number} does not say what is missing")
        if "::" in shown:
            faults.append(f"{number} is not yet shown, and names a test")
        return faults
    links = LINK.findall(shown)
    if not links or shown != "<br>".join(f"`{file}::{name}`" for file, name in links):
        faults.append(f"{number} is shown by something that is no test: {shown}")
    for file, name in links:
        path = ROOT / file
        if not path.is_file() or name not in defined_in(path):
            faults.append(f"{number}: there is no {file}::{name}")
    return faults


def test_every_number_is_there_once_and_in_order():
    assert [number for number, _, _ in rows(PAGE.read_text())] == numbers()


def test_no_row_of_a_table_is_left_unread():
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    heads = [line for line in lines if line in {"| number | what | shown by |", "|---|---|---|"}]

    assert len(lines) - len(heads) == len(numbers())


def test_each_row_names_tests_that_exist_or_what_is_missing(capsys):
    found = rows(PAGE.read_text())

    faults = [fault for row in found for fault in faults_of(row)]

    missing = [number for number, _, shown in found if shown.startswith(NOT_YET)]
    with capsys.disabled():
        sys.stdout.write(f"{len(found) - len(missing)} of {len(found)} shown, not yet: ")
        sys.stdout.write(f"{' '.join(missing)}\n")
    assert faults == []


@pytest.mark.parametrize(
    "row",
    [
        ("R-01", "", "`tests/test_requirements.py::rows`"),
        ("R-01", "x", ""),
        ("R-01", "x", "not yet: "),
        ("R-01", "x", "not yet: `tests/test_requirements.py::test_no_row_of_a_table_is_left_unread`"),
        ("R-01", "x", "`tests/test_requirements.py::test_that_nobody_wrote`"),
        ("R-01", "x", "`tests/test_nothing.py::test_no_row_of_a_table_is_left_unread`"),
        ("R-01", "x", "somebody looked at it"),
    ],
)  # fmt: skip
def test_a_row_that_shows_nothing_is_found(row: tuple[str, str, str]):
    assert faults_of(row)
