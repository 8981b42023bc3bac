"""Who of staff answers in a run: two different people, some of whom lose the right in between."""

from typing import Any, cast

from script.lib.prove.doors import Staff
from script.lib.prove.team import Team


def person(name: str) -> Staff:
    return Staff(cast("Any", None), name)


def team(**changes: Any) -> Team:
    people: dict[str, Any] = {
        "approvers": [person("staff"), person("staff2")],
        "double": person("double"),
        "leavers": [person("leaver")],
    }
    return Team(**people | changes)


def test_the_approvers_take_turns_and_the_second_is_never_the_first():
    ours = team()

    firsts = [ours.next_first(leaves=False, has_double=False) for _ in range(4)]

    assert {first.name for first in firsts} == {"staff", "staff2"}
    assert all(ours.other_than(first).name != first.name for first in firsts)


def test_who_has_a_second_account_answers_where_it_is_tried():
    ours = team()

    assert {ours.next_first(leaves=False, has_double=True).name for _ in range(3)} == {"staff"}


def test_who_leaves_answers_once_and_then_the_others():
    ours = team()

    firsts = [ours.next_first(leaves=True, has_double=False).name for _ in range(2)]

    assert firsts[0] == "leaver"
    assert firsts[1] != "leaver"
    assert ours.leavers == []
