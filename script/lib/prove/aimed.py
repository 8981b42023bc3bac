"""Five scenarios, each aimed at one guard: with that guard off, each of them breaks a promise.

They run in every run, beside the crowd. A worker stands still at an exact place because the
product's rehearsal flag lets it (`tools/ablation.py`); everything else comes from the shop's faults.
"""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from script.lib.prove.drive import Crowd, Followed
from script.lib.prove.plan import Request, customer
from script.lib.prove.worker import AFTER_REPLY, BEFORE_WIRE

TRIES = 3
ENDED_BEFORE = -1
PATIENCE = 100.0  # seconds until what a scenario waits for has come, faults and crowd included
# The provider's record says 60 seconds, of which a tenth is kept as a margin (tools/clients).
KEY_WINDOW, RESEND_UNTIL = 60, 54
OUT_OF_WINDOW = "not found and no safe way to send again"
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

        pid = int(await self.until("a worker to stand still", look, seconds=PATIENCE))
        if pid == ENDED_BEFORE:
            raise NotSeenError("the request ended before a worker stood still")
        self.crowd.instance.held.add(pid)
        return pid

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

    async def until(self, what: str, look: Callable[[], Any], *, seconds: float) -> Any:
        """The first true thing that `look` finds. Raises NotSeenError."""
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            found = await asyncio.to_thread(look)
            if found:
                return found
            await asyncio.sleep(0.1)
        raise NotSeenError(f"waited in vain for {what}")

    async def until_effects(self, count: int, *, seconds: float) -> None:
        """So many effects at the shop. Raises NotSeenError, at once when the request ends without."""
        ends_at = time.monotonic() + seconds
        while True:
            has_ended = self.has_ended
            if len(await self.effects()) >= count:
                return
            if has_ended or time.monotonic() > ends_at:
                raise NotSeenError(f"waited in vain for effect {count}")
            await asyncio.sleep(0.1)


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

    def taken_over() -> bool:
        state, epoch, first, *_ = aim.row()
        return bool(state == "unknown" and epoch > first)

    try:
        await aim.until("another worker to take over", taken_over, seconds=PATIENCE)
    finally:
        aim.go_on(pid)

    def acted() -> bool:
        state, _, _, late, *_ = aim.row()
        return bool(late) or state == "succeeded"

    await aim.until("the stale worker to act", acted, seconds=20)
    await aim.crowd.instance.shop.no_fault(lag)
    return f"process {pid} brought its answer home after another worker had taken over"


async def lost_answer(aim: Aim) -> str:
    """The money moves and the answer is lost."""
    await aim.fault("timeout_after", write=True, times=1, ms=4000)
    aim.ask()
    await aim.until_effects(1, seconds=PATIENCE)
    await aim.until("an unknown outcome", lambda: aim.row()[0] not in {"", "sending"}, seconds=30)
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
    """The answer is lost, nothing shows the change, and the shop is away until the key is forgotten.

    The shop's staff have put the old address back meanwhile, so that the order looks as it did.
    """
    await aim.fault("error_after", write=True, times=1, status=500)
    await aim.fault("lookup_lag", seconds=600)
    await aim.fault("key_window", seconds=KEY_WINDOW)
    aim.ask()
    await aim.until_effects(1, seconds=PATIENCE)
    await aim.crowd.instance.shop.edit_order(aim.order_id, shipping_address=HOME)
    away = await aim.fault("error_before", status=503)
    await aim.until("the window to close", lambda: aim.row()[4] > RESEND_UNTIL + 1, seconds=70)
    await aim.until("the key to be forgotten", lambda: aim.row()[4] > KEY_WINDOW, seconds=20)
    await aim.crowd.instance.shop.no_fault(away)
    await aim.until("a decision", lambda: aim.row()[0] in {"needs_person", "succeeded"}, seconds=60)
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
    """What came of one scenario: whether its situation truly arose, and in how many tries."""

    guard: str
    arose: bool = False
    tries: int = 0
    story: str = ""


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


async def run(crowd: Crowd, guard: str, turn: asyncio.Lock) -> Aimed:
    """Play a scenario until its situation has arisen, in at most TRIES tries, and to its end."""
    scenario = next(one for one in SCENARIOS if one.guard == guard)
    if not scenario.stops_a_worker:
        return await _play(crowd, scenario)
    async with turn:
        return await _play(crowd, scenario)


async def _play(crowd: Crowd, scenario: Scenario) -> Aimed:
    guard = scenario.guard
    aimed = Aimed(guard)
    for number in range(TRIES):
        aimed.tries += 1
        name, order_id = _names(scenario, number)
        aim = Aim(crowd, guard, name, order_id, scenario.message)
        try:
            aimed.story = await scenario.story(aim)
            aimed.arose = True
        except NotSeenError as exc:
            aimed.story = str(exc)
        finally:
            await aim.no_faults()
        if aim.following is not None:
            await asyncio.wait({aim.following}, timeout=150)
        if aimed.arose:
            break
    return aimed


def _names(scenario: Scenario, number: int) -> tuple[str, str]:
    index = GUARDS.index(scenario.guard) * TRIES + number
    return f"aimed-{scenario.guard.replace('_', '-')}-{number + 1}", str(FIRST_ORDER + index)
