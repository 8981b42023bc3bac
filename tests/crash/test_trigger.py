"""The named points themselves: nothing happens at them outside tests, and each has its place."""

import re
from pathlib import Path

import pytest

from tests.crash.points import at_every_point
from tools import trigger
from tools.trigger import Point, reach

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("agents", "approvals", "tools", "accounts", "audit")


def test_a_point_does_nothing_unless_a_test_says_so():
    assert trigger.handler is None

    for point in Point:
        reach(point)


def test_a_handler_hears_of_every_point_and_only_as_long_as_its_block_lasts():
    heard: list[Point] = []

    with at_every_point(heard.append):
        reach(Point.C14)
    reach(Point.C15)

    assert heard == [Point.C14]


def test_what_a_handler_raises_comes_out_of_the_point():
    def fail(_: Point) -> None:
        raise RuntimeError("here")

    with at_every_point(fail), pytest.raises(RuntimeError, match="here"):
        reach(Point.C01)
    assert trigger.handler is None


def test_every_point_but_the_commit_itself_has_a_place_in_the_product():
    code = "".join(path.read_text() for room in ROOMS for path in (ROOT / room).rglob("*.py"))

    placed = set(re.findall(r"reach\(Point\.(C\d\d)\)", code))

    assert placed == {point.name for point in Point} - {"C20"}


def test_no_setting_can_give_a_point_something_to_do():
    code = {path: path.read_text() for room in ROOMS for path in (ROOT / room).rglob("*.py")}

    setters = [path.name for path, text in code.items() if "trigger.handler" in text]

    assert setters == []
