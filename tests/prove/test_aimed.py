"""A scenario of `script/prove` whose request comes to nothing is given up at once and tried again."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from script.lib.prove.aimed import Aim, NotSeenError
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
