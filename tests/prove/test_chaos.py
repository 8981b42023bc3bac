"""What goes wrong in a run of `script/prove` keeps step with what comes to its end."""

import asyncio
from typing import Any, cast

from script.lib.prove.chaos import FAULTS_AT_FIRST, REQUESTS_PER_FAULT, Chaos


def broken_within(monkeypatch, ended: int) -> int:
    """How many faults there are while so many requests have ended, with all the time for more."""
    done = []

    class Quick:
        """An event that never comes, whose waiting takes no time: so many waits, then it does."""

        waits = 0

        def is_set(self) -> bool:
            self.waits += 1
            return self.waits > 400

        async def wait(self) -> None:
            raise TimeoutError

    async def do(self: Chaos, name: str) -> None:
        done.append(name)
        self.events.append({"what": name})

    monkeypatch.setattr(Chaos, "_do", do)
    breaking = Chaos(cast("Any", None), 1, ended=lambda: ended)
    breaking._calm = cast("Any", Quick())
    asyncio.run(breaking.run())
    return len(done)


def test_faults_stop_where_nothing_comes_to_its_end_and_go_on_with_what_does(monkeypatch):
    assert broken_within(monkeypatch, ended=0) == FAULTS_AT_FIRST
    more = broken_within(monkeypatch, ended=30)
    assert more == FAULTS_AT_FIRST + 30 // REQUESTS_PER_FAULT
