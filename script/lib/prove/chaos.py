"""What goes wrong, and when: a loop of faults drawn from a seed, each of them written down."""

import asyncio
import random
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg
import redis

from script.lib.prove.doors import NoAnswerError
from script.lib.prove.instance import ADVANCE, LEASE_SECONDS, Instance
from script.lib.prove.server import WORKERS

QUEUE = "celery"
FAULTS_AT_FIRST, REQUESTS_PER_FAULT = 20, 3
# The orders of the crowd begin so; those of the aimed scenarios do not.
CROWD = "/api/orders/2"
SHOP_FAULTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("timeout_before", {"ms": 4000}),
    ("timeout_before", {"ms": 4000, "ignore_hangup": True}),
    ("timeout_after", {"ms": 4000}),
    ("error_before", {"status": 500}),
    ("error_before", {"status": 503}),
    ("error_before", {"status": 429, "retry_after": 1}),
    ("error_after", {"status": 500}),
    ("error_after", {"status": 502}),
    ("unreadable", {}),
    ("latency", {"ms": 900}),
    ("latency", {"ms": 3500}),
)
MODEL_FAULTS: tuple[tuple[str, dict[str, int]], ...] = (
    ("rate_limit", {"retry_after": 1}),
    ("error", {"status": 500}),
    ("error", {"status": 503}),
    ("cut_stream", {"after_chunks": 2}),
    ("malformed_tool_json", {}),
    ("empty_choices", {}),
    ("missing_usage", {}),
    ("latency", {"ms": 1200}),
    ("hang", {"ms": 3000}),
    ("down", {}),
)


@dataclass
class Chaos:
    """The faults of one run. `events` tells what was done: seconds since the start, what, to whom."""

    instance: Instance
    seed: int
    # How many requests have come to their end so far.
    ended: Callable[[], int] = lambda: 0
    events: list[dict[str, Any]] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)
    _calm: asyncio.Event = field(default_factory=asyncio.Event)
    _last: dict[str, float] = field(default_factory=dict)
    _lasting: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._random = random.Random(f"chaos-{self.seed}")  # noqa: S311 - repeatable on purpose

    async def run(self) -> None:
        """One fault after another until the calm; none of them outlives it.

        Where little comes to its end little more is broken: a slow machine is given no more to bear
        for its slowness, and a run has an end.
        """
        while not self._calm.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._calm.wait(), self._random.uniform(0.4, 1.4))
                return
            if len(self.events) >= FAULTS_AT_FIRST + self.ended() / REQUESTS_PER_FAULT:
                continue
            name = self._random.choices(list(_DEEDS), [weight for _, weight, _ in _DEEDS.values()])
            await self._do(name[0])

    async def calm(self, running: "asyncio.Task[None]") -> None:
        """End the loop and take every fault of ours back; the aimed scenarios keep theirs."""
        self._calm.set()
        await asyncio.wait({running})
        for lasting in self._lasting:
            lasting.cancel()
        await asyncio.gather(*self._lasting, return_exceptions=True)

    @property
    def counts(self) -> dict[str, int]:
        counted: dict[str, int] = {}
        for event in self.events:
            counted[event["what"]] = counted.get(event["what"], 0) + 1
        return dict(sorted(counted.items()))

    async def _do(self, name: str) -> None:
        deed, _, pause = _DEEDS[name]
        if time.monotonic() - self._last.get(name, -pause) < pause:
            return
        self._last[name] = time.monotonic()
        with suppress(NoAnswerError, redis.RedisError, psycopg.Error, OSError):
            detail = await deed(self)
            if detail is not None:
                at = round(time.monotonic() - self._began, 2)
                self.events.append({"at": at, "what": name, "detail": detail})

    def _meanwhile(self, work: Awaitable[None]) -> None:
        """Let something end later by itself, or at the calm."""

        async def until_done() -> None:
            await work

        lasting = asyncio.create_task(until_done())
        self._lasting.add(lasting)
        lasting.add_done_callback(self._lasting.discard)

    # --- Processes ------------------------------------------------------------------------------

    async def kill_worker(self) -> str | None:
        if self.instance.held:  # the one that is left has enough to do
            return None
        name = self._random.choice(WORKERS)
        return _told(name, self.instance.signal(name, signal.SIGKILL))

    async def freeze_worker(self) -> str | None:
        """Stand a worker still until its leases are long over, then let it go on."""
        if self.instance.held:
            return None
        name = self._random.choice(WORKERS)
        seconds = LEASE_SECONDS + self._random.uniform(1, 3)
        pid = self.instance.signal(name, signal.SIGSTOP)
        if pid is not None:
            self._meanwhile(self._wake(name, pid, seconds))
        return _told(name, pid, f" for {seconds:.1f} s")

    async def _wake(self, name: str, pid: int, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            if self.instance.pid(name) == pid:
                self.instance.signal(name, signal.SIGCONT)

    async def kill_web(self) -> str | None:
        """Not at the very start, when everybody is asking: a request whose process died keeps its
        Idempotency-Key taken for a lease."""
        if time.monotonic() - self._began < 10:
            return None
        return _told("web", self.instance.signal("web", signal.SIGKILL))

    async def kill_helper(self) -> str | None:
        name = self._random.choice(["beat", "sealer"])
        return _told(name, self.instance.signal(name, signal.SIGKILL))

    async def restart_postgres(self) -> str | None:
        """An immediate stop: no time to finish anything; the next start recovers."""
        if self.instance.held:
            return None
        return _told("postgres", self.instance.signal("postgres", signal.SIGQUIT))

    # --- Redis and the queue --------------------------------------------------------------------

    async def kill_redis(self) -> str | None:
        return _told("redis", self.instance.signal("redis", signal.SIGKILL))

    async def freeze_redis(self) -> str | None:
        seconds = self._random.uniform(1, 2.5)
        pid = self.instance.signal("redis", signal.SIGSTOP)
        if pid is not None:
            self._meanwhile(self._wake("redis", pid, seconds))
        return _told("redis", pid, f" for {seconds:.1f} s")

    async def flush_redis(self) -> str:
        await asyncio.to_thread(self._with_redis, lambda store: store.flushall())
        return "everything"

    async def drop_messages(self) -> str:
        """Lose every message that waits, the delivered and unacknowledged ones too."""
        names = (QUEUE, "unacked", "unacked_index")
        gone = await asyncio.to_thread(self._with_redis, lambda store: store.delete(*names))
        return f"{gone} lists"

    async def double_messages(self) -> str:
        """Wake tasks twice, in any order: those under way, and ended ones too."""
        query = "SELECT id FROM agents_task ORDER BY id DESC LIMIT 60"
        ids = [row[0] for row in await asyncio.to_thread(self.instance.read, query)]
        chosen = self._random.sample(ids, min(len(ids), 30)) * 2
        self._random.shuffle(chosen)

        def publish() -> None:
            with self.instance.broker() as broker:
                for task_id in chosen:
                    broker.send_task(ADVANCE, kwargs={"task_ids": [task_id]}, retry=False)

        await asyncio.to_thread(publish)
        return f"{len(chosen)} messages"

    async def delay_messages(self) -> str:
        """Take all waiting messages out and put them back later, in another order."""
        taken: list[bytes] = await asyncio.to_thread(self._with_redis, _take_all)
        self._random.shuffle(taken)
        seconds = self._random.uniform(1, 4)
        self._meanwhile(self._put_back(taken, seconds))
        return f"{len(taken)} messages by {seconds:.1f} s"

    async def _put_back(self, messages: list[bytes], seconds: float) -> None:
        await asyncio.sleep(seconds)
        if messages:
            with suppress(redis.RedisError):
                await asyncio.to_thread(
                    self._with_redis, lambda store: store.rpush(QUEUE, *messages)
                )

    def _with_redis(self, work: Callable[["redis.Redis"], Any]) -> Any:
        with self.instance.redis() as store:
            return work(store)

    # --- The outside ----------------------------------------------------------------------------

    async def shop_fault(self) -> str:
        fault, params = self._random.choice(SHOP_FAULTS)
        scope = {"path": CROWD}
        if self._random.random() < 0.7:
            scope["method"] = self._random.choice(["POST", "POST", "PUT"])
        seconds = self._random.uniform(2, 5)
        rule = await self.instance.shop.fault(fault, scope=scope, **params)
        self._meanwhile(self._end(self.instance.shop.no_fault, rule, seconds))
        return f"{fault} {params} for {scope}, {seconds:.1f} s"

    async def shop_lookup_fault(self) -> str:
        """Look-ups behind the truth, or not to be had."""
        fault, params = self._random.choice(
            [
                ("lookup_lag", {"seconds": 4}),
                ("error_before", {"status": 503}),
                ("latency", {"ms": 2500}),
            ]
        )
        scope = {"path": "/api/effects"}
        seconds = self._random.uniform(2, 5)
        rule = await self.instance.shop.fault(fault, scope=scope, **params)
        self._meanwhile(self._end(self.instance.shop.no_fault, rule, seconds))
        return f"{fault} {params} for look-ups, {seconds:.1f} s"

    async def model_fault(self) -> str:
        fault, params = self._random.choice(MODEL_FAULTS)
        times = self._random.randrange(2, 9)
        rule = await self.instance.model.fault(fault, times=times, **params)
        self._meanwhile(self._end(self.instance.model.no_fault, rule, 4))
        return f"{fault} {params}, {times} times at most"

    async def webhook_fault(self) -> str:
        """The shop's events doubled, or forged by somebody without its secret."""
        fault = self._random.choice(["webhook_twice", "webhook_forged"])
        seconds = self._random.uniform(3, 8)
        rule = await self.instance.shop.fault(fault)
        self._meanwhile(self._end(self.instance.shop.no_fault, rule, seconds))
        return f"{fault}, {seconds:.1f} s"

    async def _end(self, end: Callable[[str], Awaitable[None]], rule: str, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            with suppress(NoAnswerError):
                await end(rule)


def _take_all(store: "redis.Redis") -> list[bytes]:
    pipe = store.pipeline()
    pipe.lrange(QUEUE, 0, -1)
    pipe.delete(QUEUE)
    messages: list[bytes] = pipe.execute()[0]
    return messages


def _told(name: str, pid: int | None, rest: str = "") -> str | None:
    return None if pid is None else f"{name} (process {pid}){rest}"


# Each deed with its weight, and the seconds that lie between two of the kind at least.
_DEEDS: dict[str, tuple[Callable[[Chaos], Awaitable[str | None]], int, float]] = {
    "kill a worker": (Chaos.kill_worker, 7, 10),
    "freeze a worker": (Chaos.freeze_worker, 4, 20),
    "kill the web process": (Chaos.kill_web, 2, 60),
    "kill beat or sealer": (Chaos.kill_helper, 2, 15),
    "restart PostgreSQL": (Chaos.restart_postgres, 6, 20),
    "kill Redis": (Chaos.kill_redis, 3, 12),
    "freeze Redis": (Chaos.freeze_redis, 2, 10),
    "flush Redis": (Chaos.flush_redis, 5, 3),
    "drop messages": (Chaos.drop_messages, 5, 2),
    "double messages": (Chaos.double_messages, 5, 2),
    "delay messages": (Chaos.delay_messages, 5, 2),
    "shop fault": (Chaos.shop_fault, 14, 0),
    "look-up fault": (Chaos.shop_lookup_fault, 5, 3),
    "webhook fault": (Chaos.webhook_fault, 4, 5),
    "model fault": (Chaos.model_fault, 10, 0),
}
