"""Five scenarios, each aimed at one guard: with that guard off, each of them breaks a promise.

They run in every run, beside the crowd. A worker stands still at an exact place because the
product's rehearsal flag lets it (`tools/ablation.py`); everything else comes from the shop's faults.
"""

import asyncio
import math
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from script.lib.prove.drive import Crowd, Followed
from script.lib.prove.plan import Request, customer
from script.lib.prove.worker import AFTER_REPLY, BEFORE_WIRE

TRIES = 4  # the last of them once nothing is broken any more
LATE = 60.0  # seconds that tries may have taken before any further one waits for the calm
PAUSE = 60.0  # seconds, the longest that the product leaves a shop alone that does not answer
ENDED_BEFORE = -1
PATIENCE = 100.0  # seconds until what a scenario waits for has come, faults and crowd included
KEY_WINDOW = 60  # seconds, as the provider's record says (tools/clients)
OUT_OF_WINDOW = "not found and no safe way to send again"
DECIDED = {"needs_person", "succeeded"}
ROW_EVERY = 0.4  # seconds between two looks at a row
FIRST_ORDER = 90001
SLOW = 28  # seconds that a request can take on its way; a second one is sent long before
REFUND = "I would like $7.00 back for order {id}, please. It arrived damaged."
ADDRESS = "Please change the delivery address of order {id} to 7 Elm Street, Salem, OR 97301"
HOME = {"line1": "1 Mill Street", "city": "Portland", "region": "OR", "postal_code": "97205"}


class NotSeenError(Exception):
    """What a scenario waits for did not come; the text says what."""


@dataclass
class Aim:
    """One try at one scenario: a customer and an order of its own."""

    crowd: Crowd
    guard: str
    customer: str
    order_id: str
    message: str
    following: "asyncio.Task[Followed] | None" = None
    rules: list[str] = field(default_factory=list)

    @property
    def rehearsal_mark(self) -> str:
        return f"*.{self.order_id}.*"

    def ask(self) -> None:
        """Let the customer ask, and say yes when asked back."""
        request = Request(
            kind=f"aimed at {self.guard}",
            customer=self.customer,
            order_id=self.order_id,
            message=self.message.format(id=self.order_id),
            pause=0.2,
        )
        self.following = asyncio.create_task(self.crowd.follow(request))

    async def fault(
        self, fault: str, *, write: bool = False, times: int | None = None, **params: Any
    ) -> str:
        """A fault for this customer's calls alone, or for the `write` of their order alone."""
        scope = {"customer": self.customer}
        if write:
            scope["path"] = f"/api/orders/{self.order_id}/"
        rule = await self.crowd.instance.shop.fault(fault, scope=scope, times=times, **params)
        self.rules.append(rule)
        return rule

    async def no_faults(self) -> None:
        for rule in self.rules:
            await self.crowd.instance.shop.no_fault(rule)
        self.rules.clear()

    @property
    def has_ended(self) -> bool:
        """Whether the request has come to its end, with or without what it was for."""
        return self.following is not None and self.following.done()

    def stop_at(self, point: str) -> None:
        """Let the worker that comes to this point with our order stand still there."""
        (self.crowd.instance.rehearsal / f"{point}.{self.order_id}").touch()

    async def stopped(self) -> int:
        """The process that stands still; from now on the chaos leaves it alone.

        Raises NotSeenError, at once when the request has ended without coming there: the faults
        around it can do that.
        """

        def look() -> int:
            has_ended = self.has_ended
            for mark in self.crowd.instance.rehearsal.glob(self.rehearsal_mark):
                return int(mark.suffix[1:])
            return ENDED_BEFORE if has_ended else 0

        try:
            pid = int(await self.until("a worker to stand still", look, seconds=PATIENCE))
        except BaseException:
            self._stop_nobody()
            raise
        if pid == ENDED_BEFORE:
            raise NotSeenError("the request ended before a worker stood still")
        self.crowd.instance.held.add(pid)
        return pid

    def _stop_nobody(self) -> None:
        """Let nobody stand still for us any more: nobody would wake them."""
        folder = self.crowd.instance.rehearsal
        for point in (BEFORE_WIRE, AFTER_REPLY):
            (folder / f"{point}.{self.order_id}").unlink(missing_ok=True)
        for mark in folder.glob(self.rehearsal_mark):
            self.go_on(int(mark.suffix[1:]))

    def told(self, pid: int) -> str:
        """What a worker that stood still before its send came to afterwards."""
        mark = self.crowd.instance.rehearsal / f"{BEFORE_WIRE}.{self.order_id}.{pid}"
        return mark.read_text()

    def go_on(self, pid: int) -> None:
        self.crowd.instance.held.discard(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    async def effects(self) -> list[dict[str, Any]]:
        ledger = await self.crowd.instance.shop.ledger(order_id=self.order_id)
        return ledger["effects"]

    async def sends(self) -> int:
        ledger = await self.crowd.instance.shop.ledger(order_id=self.order_id)
        return sum(1 for call in ledger["calls"] if call["method"] != "GET")

    def row(self) -> tuple[Any, ...]:
        """State, epoch, the first attempt's epoch, late evidence, seconds since the first send, reason."""
        rows = self.crowd.instance.read(_ROW, self.order_id)
        return rows[0] if rows else ("", 0, 0, 0, 0.0, "")

    async def until(
        self, what: str, look: Callable[[], Any], *, seconds: float, every: float = 0.1
    ) -> Any:
        """The first true thing that `look` finds. Raises NotSeenError."""
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            found = await asyncio.to_thread(look)
            if found:
                return found
            await asyncio.sleep(every)
        raise NotSeenError(f"waited in vain for {what}")

    async def until_row(
        self, what: str, look: Callable[[tuple[Any, ...]], bool], *, seconds: float
    ) -> None:
        """Until the operation's row is so. Raises NotSeenError."""
        await self.until(what, lambda: look(self.row()), seconds=seconds, every=ROW_EVERY)

    async def until_effects(self, count: int, *, seconds: float) -> None:
        """So many effects at the shop. Raises NotSeenError, at once when the request ends without."""
        ends_at = time.monotonic() + seconds
        while True:
            has_ended = self.has_ended
            if len(await self.effects()) >= count:
                return
            if has_ended or time.monotonic() > ends_at:
                raise NotSeenError(f"waited in vain for effect {count}")
            await asyncio.sleep(0.2)


_ROW = """
    SELECT o.state, o.epoch,
        COALESCE((SELECT a.epoch FROM tools_attempt a
                  WHERE a.operation_id = o.id ORDER BY a.n LIMIT 1), 0),
        (SELECT count(*) FROM tools_observation b
         WHERE b.operation_id = o.id AND b.source = 'stale_worker'),
        COALESCE(extract(epoch FROM clock_timestamp() - o.first_sent_at), 0), o.reason
    FROM tools_operation o WHERE o.order_id = %s ORDER BY o.id LIMIT 1
"""


async def overslept(aim: Aim) -> str:
    """A worker stands still before its first byte until another has sent and the key is forgotten."""
    aim.stop_at(BEFORE_WIRE)
    aim.ask()
    pid = await aim.stopped()
    try:
        await aim.until_effects(1, seconds=PATIENCE)
        # Far sooner than it promises: nothing but the sleeper's own deadline is left to stop it.
        await aim.fault("key_window", seconds=0)
    finally:
        aim.go_on(pid)
    did = await aim.until("the sleeper to act", lambda: aim.told(pid), seconds=20)
    return f"process {pid} slept until another's refund was made and its key forgotten: {did}"


async def late_reply(aim: Aim) -> str:
    """A worker stands still with the shop's answer in its hand until another has taken over."""
    aim.stop_at(AFTER_REPLY)
    lag = await aim.fault("lookup_lag", seconds=600)
    aim.ask()
    pid = await aim.stopped()

    def taken_over(row: tuple[Any, ...]) -> bool:
        state, epoch, first, *_ = row
        return bool(state == "unknown" and epoch > first)

    try:
        await aim.until_row("another worker to take over", taken_over, seconds=PATIENCE)
    finally:
        aim.go_on(pid)

    def acted(row: tuple[Any, ...]) -> bool:
        state, _, _, late, *_ = row
        return bool(late) or state == "succeeded"

    await aim.until_row("the stale worker to act", acted, seconds=20)
    await aim.crowd.instance.shop.no_fault(lag)
    return f"process {pid} brought its answer home after another worker had taken over"


async def lost_answer(aim: Aim) -> str:
    """The money moves and the answer is lost."""
    await aim.fault("timeout_after", write=True, times=1, ms=4000)
    aim.ask()
    await aim.until_effects(1, seconds=PATIENCE)
    await aim.until_row("an unknown outcome", lambda row: row[0] not in {"", "sending"}, seconds=30)
    return "the shop's answer was lost after the money had moved"


async def slow_first(aim: Aim) -> str:
    """The first request takes so long on its way that a second one is sent in the meantime."""
    await aim.fault("latency", write=True, times=1, ms=SLOW * 1000)
    aim.ask()
    ends_at = time.monotonic() + PATIENCE
    first_at = 0.0
    while (sends := await aim.sends()) < 2:
        first_at = first_at or (time.monotonic() if sends else 0.0)
        if time.monotonic() > ends_at or (aim.has_ended and not sends):
            raise NotSeenError("waited in vain for a second send")
        await asyncio.sleep(0.2)
    if time.monotonic() - first_at > SLOW:
        raise NotSeenError("the first request was through before the second was sent")
    await asyncio.sleep(first_at + SLOW + 1 - time.monotonic())
    await aim.until_effects(1, seconds=10)
    return "a second request went out while the first was still on its way"


async def forgotten_key(aim: Aim) -> str:
    """The answer is lost, nothing shows the change, and the shop lets nobody ask until the key is
    forgotten.

    The shop's staff have put the old address back meanwhile, so that the order looks as it did. It
    says 429 and for how long, so that it is asked right then: a shop that fails would be asked with
    growing pauses, and by the crowd as well.
    """
    await aim.fault("error_after", write=True, times=1, status=500)
    await aim.fault("lookup_lag", seconds=600)
    await aim.fault("key_window", seconds=KEY_WINDOW)
    aim.ask()
    await aim.until_effects(1, seconds=PATIENCE)
    await aim.crowd.instance.shop.edit_order(aim.order_id, shipping_address=HOME)
    left = KEY_WINDOW + 1 - (await asyncio.to_thread(aim.row))[4]
    busy = await aim.fault("error_before", status=429, retry_after=math.ceil(left))
    await aim.until_row("the key to be forgotten", lambda row: row[4] > KEY_WINDOW, seconds=90)
    await aim.crowd.instance.shop.no_fault(busy)
    await aim.until_row("a decision", lambda row: row[0] in DECIDED, seconds=90)
    state, *_, reason = aim.row()
    if state == "needs_person" and reason != OUT_OF_WINDOW:
        raise NotSeenError(f"a person was asked for another reason: {reason}")
    return "nothing showed the change any more when the shop had forgotten its key"


@dataclass(frozen=True)
class Scenario:
    """`stops_a_worker`: one such at a time, or nobody would be left to take over."""

    guard: str
    story: Callable[[Aim], Awaitable[str]]
    message: str
    status: str = "delivered"
    stops_a_worker: bool = False


SCENARIOS = (
    Scenario("deadline", overslept, REFUND, stops_a_worker=True),
    Scenario("fence", late_reply, REFUND, stops_a_worker=True),
    Scenario("look_up", lost_answer, REFUND),
    Scenario("stable_key", slow_first, REFUND),
    Scenario("window", forgotten_key, ADDRESS, status="processed"),
)
GUARDS = tuple(scenario.guard for scenario in SCENARIOS)


@dataclass
class Aimed:
    """What came of one scenario: whether its situation truly arose, in how many tries and seconds.

    `in_vain` says why other tries came to nothing.
    """

    guard: str
    arose: bool = False
    tries: int = 0
    story: str = ""
    seconds: float = 0.0
    in_vain: list[str] = field(default_factory=list)


def catalogue(guards: Iterable[str]) -> dict[str, Any]:
    """A customer and an order for each try at each of these scenarios."""
    customers, orders = [], []
    for scenario in (one for one in SCENARIOS if one.guard in guards):
        for number in range(TRIES):
            name, order_id = _names(scenario, number)
            customers.append(customer(name, "Aimed Prover"))
            order = {
                "id": order_id,
                "customer": name,
                "status": scenario.status,
                "placed": "-9d",
                "lines": [{"title": "Oak stool", "quantity": 2, "unit_price": 3000}],
            }
            if scenario.status == "delivered":
                order |= {"shipped": "-7d", "delivered": "-4d"}
            orders.append(order)
    return {"customers": customers, "orders": orders}


async def prepare(crowd: Crowd, guards: Iterable[str]) -> None:
    """Let the shop's events about all this come much too late to tell anybody anything.

    Before anything else goes wrong: of two rules for the same fault the older one counts.
    """
    for scenario in (one for one in SCENARIOS if one.guard in guards):
        for number in range(TRIES):
            name, _ = _names(scenario, number)
            await crowd.instance.shop.fault("webhook_late", scope={"customer": name}, seconds=600)


async def run(crowd: Crowd, aimed: Aimed, turn: asyncio.Lock, calm: asyncio.Event) -> None:
    """Play a scenario until its situation has arisen, in at most TRIES tries, and to its end.

    The faults around it may end its request before it has come to anything, time and again: so the
    last try waits for the calm, and so does the second of a scenario whose tries are long.
    """
    scenario = next(one for one in SCENARIOS if one.guard == aimed.guard)
    began = time.monotonic()
    aims = [
        Aim(crowd, scenario.guard, *_names(scenario, number), scenario.message)
        for number in range(TRIES)
    ]
    try:
        for aim in aims:
            if aim is aims[-1] or (aimed.tries and time.monotonic() - began > LATE):
                await calm.wait()
                await until_called_again(crowd)
            await _try(aim, scenario, turn, aimed)
            if aimed.arose:
                break
    finally:
        aimed.story = aimed.story or "; ".join(aimed.in_vain)
        aimed.seconds = round(time.monotonic() - began, 1)
    followed = {aim.following for aim in aims if aim.following is not None}
    if followed:
        await asyncio.wait(followed, timeout=150)


_RESTS = "SELECT 1 FROM tools_adapter WHERE next_try_at > clock_timestamp()"


async def until_called_again(crowd: Crowd) -> None:
    """While the product leaves the shop alone, a request is told just that: nothing comes of it."""
    ends_at = time.monotonic() + PAUSE
    while time.monotonic() < ends_at:
        if not await asyncio.to_thread(crowd.instance.read, _RESTS):
            return
        await asyncio.sleep(0.5)


async def _try(aim: Aim, scenario: Scenario, turn: asyncio.Lock, aimed: Aimed) -> None:
    """One try. The turn is over with its situation: what follows needs no worker that stands still."""
    async with turn if scenario.stops_a_worker else nullcontext():
        aimed.tries += 1
        try:
            aimed.story = await scenario.story(aim)
            aimed.arose = True
        except NotSeenError as exc:
            aimed.in_vain.append(str(exc))
        finally:
            await aim.no_faults()


def _names(scenario: Scenario, number: int) -> tuple[str, str]:
    index = GUARDS.index(scenario.guard) * TRIES + number
    return f"aimed-{scenario.guard.replace('_', '-')}-{number + 1}", str(FIRST_ORDER + index)
