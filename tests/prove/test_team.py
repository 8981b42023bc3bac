"""Who of staff answers in a run: two different people, some of whom lose the right in between."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from script.lib.prove.doors import Staff
from script.lib.prove.drive import Crowd, Followed
from script.lib.prove.plan import Request
from script.lib.prove.team import LEAVERS, Team


def person(name: str) -> Staff:
    return Staff(cast("Any", None), name)


def team(**changes: Any) -> Team:
    people: dict[str, Any] = {
        "approvers": [person("staff"), person("staff2")],
        "double": person("double"),
        "leavers": [person(LEAVERS[0])],
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

    assert firsts[0] == LEAVERS[0]
    assert firsts[1] != LEAVERS[0]
    assert ours.leavers == []


# --- Two of staff ---------------------------------------------------------------------------------


@dataclass
class Told:
    """A member of staff whose answers are written down instead of given."""

    name: str
    heard: list[tuple[str, str]] = field(default_factory=list)

    async def decide(self, task_id: int, action: dict[str, Any], says: str) -> int:
        self.heard.append((self.name, says))
        return 200

    async def decide_on_page(self, action: dict[str, Any], says: str) -> int:
        return await self.decide(0, action, says)


def answered(**says: Any) -> list[tuple[str, str]]:
    """What staff answer to a request of which two of them are asked, one after the other."""
    heard: list[tuple[str, str]] = []
    ours = Team(
        approvers=[cast("Staff", Told("staff", heard)), cast("Staff", Told("staff2", heard))],
        double=cast("Staff", Told("double", heard)),
        leavers=[cast("Staff", Told(LEAVERS[0], heard))],
    )

    def end_right(person: Staff) -> None:
        heard.append((person.name, "right ended"))

    instance = SimpleNamespace(team=ours, end_right=end_right)
    crowd = Crowd(cast("Any", instance))
    request = Request(kind="", customer="ada", order_id="1", message="", **says)
    item = Followed(request)

    async def story() -> None:
        for role in ("staff", "second_staff"):
            await crowd._staff_answer(item, {"role": role})

    asyncio.run(story())
    return heard


def test_two_different_people_answer():
    assert answered(second_says="no") == [("staff2", "yes"), ("staff", "no")]


def test_the_first_tries_to_be_the_second_too():
    assert answered(first_again="self") == [("staff2", "yes"), ("staff2", "yes"), ("staff", "yes")]


def test_the_first_tries_it_by_another_account():
    told = [("staff", "yes"), ("double", "yes"), ("staff2", "yes")]

    assert answered(first_again="double") == told


def test_the_right_of_the_first_ends_before_the_second_answers():
    leaver = LEAVERS[0]

    told = [(leaver, "yes"), (leaver, "right ended"), ("staff", "yes")]
    assert answered(first_leaves=True) == told
