"""A scenario of `script/prove` whose request comes to nothing is given up at once and tried again."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from script.lib.prove import aimed
from script.lib.prove.aimed import TRIES, Aim, Aimed, NotSeenError, Scenario
from script.lib.prove.drive import Crowd


def aim_in(folder) -> Aim:
    crowd = cast("Any", SimpleNamespace(instance=SimpleNamespace(rehearsal=folder, held=set())))
    return Aim(cast("Crowd", crowd), "fence", "aimed-fence-1", "90004", "Please refund {id}")


def test_a_request_that_ends_before_a_worker_stands_still_is_given_up_at_once(tmp_path):
    aim = aim_in(tmp_path)

    async def story() -> None:
        aim.following = asyncio.create_task(asyncio.sleep(0, cast("Any", None)))
        await aim.stopped()

    with pytest.raises(NotSeenError, match="the request ended before"):
        asyncio.run(asyncio.wait_for(story(), timeout=20))
    assert aim.crowd.instance.held == set()


def test_a_worker_that_stands_still_is_held(tmp_path):
    aim = aim_in(tmp_path)
    (tmp_path / "after_reply.90004.4711").touch()

    assert asyncio.run(aim.stopped()) == 4711
    assert aim.crowd.instance.held == {4711}


@pytest.mark.parametrize(("found", "is_seen"), [([], False), ([{"id": "re_1"}], True)])
def test_an_ended_request_is_asked_once_more_for_its_effect_and_no_longer(
    tmp_path, monkeypatch, found: list[dict[str, Any]], is_seen: bool
):
    aim = aim_in(tmp_path)
    looks = []

    async def effects(self: Aim) -> list[dict[str, Any]]:
        looks.append(self.order_id)
        return found

    monkeypatch.setattr(Aim, "effects", effects)

    async def story() -> None:
        aim.following = asyncio.create_task(asyncio.sleep(0, cast("Any", None)))
        await aim.following
        await aim.until_effects(1, seconds=60)

    if is_seen:
        asyncio.run(story())
    else:
        with pytest.raises(NotSeenError, match="waited in vain for effect 1"):
            asyncio.run(story())
    assert looks == ["90004"]


def test_nobody_stands_still_for_a_scenario_that_has_given_up(tmp_path, monkeypatch):
    aim = aim_in(tmp_path)
    monkeypatch.setattr(aimed, "PATIENCE", 0.0)
    aim.stop_at("before_wire")

    with pytest.raises(NotSeenError, match="a worker to stand still"):
        asyncio.run(aim.stopped())

    assert list(tmp_path.iterdir()) == []


# --- Tries ----------------------------------------------------------------------------------------


def play(monkeypatch, story, *, stops_a_worker: bool = False, calm_after: float = 0) -> Aimed:
    """What comes of a scenario with this story, each try of which is told its order."""

    async def told(aim: Aim) -> str:
        return str(await story(aim.order_id))

    async def called_again(_: object) -> None:
        return None

    scenario = Scenario("fence", told, "", stops_a_worker=stops_a_worker)
    monkeypatch.setattr(aimed, "until_called_again", called_again)
    monkeypatch.setattr(aimed, "SCENARIOS", [scenario])
    result = Aimed("fence")

    async def played() -> None:
        calm = asyncio.Event()
        asyncio.get_running_loop().call_later(calm_after, calm.set)
        playing = aimed.run(cast("Crowd", None), result, asyncio.Lock(), calm)
        await asyncio.wait_for(playing, timeout=20)

    asyncio.run(played())
    return result


def test_a_try_that_comes_to_nothing_is_followed_by_another_at_once(monkeypatch):
    orders = []

    async def story(order_id: str) -> str:
        orders.append(order_id)
        if len(orders) < TRIES:
            raise NotSeenError("nothing came")
        return "it came"

    result = play(monkeypatch, story, stops_a_worker=True)

    assert (result.arose, result.tries, result.story) == (True, TRIES, "it came")
    assert result.in_vain == ["nothing came"] * (TRIES - 1)
    assert len(set(orders)) == TRIES


def test_the_last_try_waits_until_nothing_is_broken_any_more(monkeypatch):
    tries_before_the_calm: list[str] = []

    async def story(order_id: str) -> str:
        calm_is_here = time.monotonic() >= began + 0.3
        if calm_is_here:
            return "it came"
        tries_before_the_calm.append(order_id)
        raise NotSeenError("the faults ended its request")

    began = time.monotonic()
    result = play(monkeypatch, story, calm_after=0.4)

    assert (result.arose, result.tries) == (True, TRIES)
    assert len(tries_before_the_calm) == TRIES - 1


def test_a_scenario_whose_tries_are_long_waits_for_the_calm_with_its_second(monkeypatch):
    """Else a run whose faults spoil it twice would outlast its five minutes."""
    tries_before_the_calm: list[str] = []

    async def story(order_id: str) -> str:
        if time.monotonic() >= began + 0.3:
            return "it came"
        tries_before_the_calm.append(order_id)
        raise NotSeenError("the faults ended its request")

    monkeypatch.setattr(aimed, "LATE", 0.0)
    began = time.monotonic()
    result = play(monkeypatch, story, calm_after=0.4)

    assert (result.arose, result.tries) == (True, 2)
    assert len(tries_before_the_calm) == 1


def test_in_the_calm_nobody_tries_while_the_shop_is_left_alone():
    looks: list[str] = []

    class Instance:
        def read(self, query: str) -> list[tuple[int]]:
            looks.append(query)
            return [(1,)] if len(looks) < 3 else []

    class Everybody:
        instance = Instance()

    asyncio.run(aimed.until_called_again(cast("Crowd", Everybody())))

    assert len(looks) == 3


def test_a_situation_that_never_arises_says_why(monkeypatch):
    async def story(order_id: str) -> str:
        raise NotSeenError(f"nothing came of {order_id}")

    result = play(monkeypatch, story)

    assert (result.arose, result.tries) == (False, TRIES)
    assert result.story == "; ".join(result.in_vain)
    assert len(result.in_vain) == TRIES
