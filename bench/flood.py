"""What one customer's flood costs the others: their waiting times beside it and without it.

One private instance, with the limits that a deployment has. Other customers ask where an order is, at
an even pace; in every second round another customer sends new requests as fast as it is told to, over
many connections, and never waits when it is refused. Quiet and flooded rounds take turns, so that
whatever else this machine does falls on both.
"""

import argparse
import asyncio
import itertools
import json
import os
import platform
import statistics
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from script.lib.bootstrap import SetupError
from script.lib.prove.instance import Instance, running_instance
from script.lib.prove.server import WORKERS

BOUND = 2.0  # times the quiet p95
OTHERS = {"bob": "1051", "cleo": "1052", "dmitri": "1053", "esther": "1061"}
FLOODER = "ada"
PROCESSES = ("web", *WORKERS)
PAUSE = 0.8  # seconds between two questions: each of the others stays under its twenty a minute
PATIENCE = 30.0
# A deployment's own limits, not the wide ones of a rehearsal.
LIMITS = {
    "COUNTERSIGN_API_READS_PER_MINUTE": "600",
    "COUNTERSIGN_API_WRITES_PER_MINUTE": "120",
    "COUNTERSIGN_MODEL_TIMEOUT": "10",
    "COUNTERSIGN_LEASE_SECONDS": "30",
}


@dataclass
class Waits:
    """Seconds that the others waited."""

    accepted: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    # Seconds of processor time that the product spent meanwhile, by process.
    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PROCESSES, 0.0))

    def add(self, other: "Waits") -> None:
        self.accepted += other.accepted
        self.ended += other.ended
        for name, seconds in other.spent.items():
            self.spent[name] += seconds


@dataclass
class Flood:
    """What the flooding customer was answered."""

    statuses: Counter[int] = field(default_factory=Counter)


def main(arguments: Sequence[str]) -> int:
    """0 when the others wait less than twice as long under the flood, 1 when not or not measured."""
    options = _options(arguments)
    try:
        report = asyncio.run(_measure(options))
    except (SetupError, httpx.HTTPError) as exc:
        print(f"flood: {exc}")
        return 1
    _tell(report)
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=1) + "\n")
    return 0 if max(report["ratios"].values()) < BOUND else 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="script/bench flood", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=4, help="pairs of a quiet and a flooded round"
    )
    parser.add_argument("--seconds", type=float, default=20, help="length of a round")
    parser.add_argument("--rate", type=float, default=50, help="requests a second of the flood")
    parser.add_argument("--connections", type=int, default=24, help="the flood's connections")
    parser.add_argument("--json", help="write the figures to this file")
    return parser.parse_args(arguments)


async def _measure(options: argparse.Namespace) -> dict[str, Any]:
    quiet, beside, flood = Waits(), Waits(), Flood()
    async with running_instance(keep=False, extra=LIMITS) as instance:
        tokens = {name: await instance.shop.sign(name) for name in (FLOODER, *OTHERS)}
        url = str(instance.customers.door.http.base_url)
        # One turn through all rounds: begun anew in each, it would come to the first of them too often.
        turn = itertools.cycle(OTHERS.items())
        await _round(url, tokens, turn, seconds=5)  # everything is imported and connected after it
        for n in range(1, options.rounds + 1):
            with _spending(instance, quiet):
                quiet.add(await _round(url, tokens, turn, seconds=options.seconds))
            flooding = asyncio.create_task(_flood(url, tokens[FLOODER], options, flood))
            with _spending(instance, beside):
                beside.add(await _round(url, tokens, turn, seconds=options.seconds))
            flooding.cancel()
            await asyncio.gather(flooding, return_exceptions=True)
            await _settled(instance)
            print(f"round {n} of {options.rounds}: {_line(quiet)} | {_line(beside)}", flush=True)
    return _report(quiet, beside, flood, options)


@contextmanager
def _spending(instance: Instance, waits: Waits) -> Iterator[None]:
    """Note what web and workers spend meanwhile; where there is no /proc, nothing is noted."""
    before = {name: _spent(instance.pid(name)) for name in PROCESSES}
    yield
    for name in PROCESSES:
        waits.spent[name] += _spent(instance.pid(name)) - before[name]


def _spent(pid: int | None) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _round(
    url: str, tokens: dict[str, str], turn: Iterator[tuple[str, str]], *, seconds: float
) -> Waits:
    """The others ask in turn, each answer awaited beside the next question."""
    waits = Waits()
    ends_at = time.monotonic() + seconds
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE, trust_env=False) as http:
        asking = []
        while time.monotonic() < ends_at:
            name, order = next(turn)
            asking.append(asyncio.create_task(_ask(http, tokens[name], order, waits)))
            await asyncio.sleep(PAUSE)
        await asyncio.gather(*asking)
    return waits


async def _ask(http: httpx.AsyncClient, token: str, order: str, waits: Waits) -> None:
    began = time.monotonic()
    answer = await _post(http, token, f"Where is my order {order}?")
    if not answer.is_success:
        raise SetupError(f"one of the others was refused: {answer.status_code} {answer.text[:200]}")
    waits.accepted.append(time.monotonic() - began)
    path = f"/v1/tasks/{answer.json()['id']}"
    while time.monotonic() < began + PATIENCE:
        task = (await http.get(path, headers=_as(token))).json()
        if task.get("finished_at"):
            waits.ended.append(time.monotonic() - began)
            return
        await asyncio.sleep(0.1)
    waits.ended.append(PATIENCE)


async def _flood(url: str, token: str, options: argparse.Namespace, flood: Flood) -> None:
    """New requests at an even rate from many connections; no answer makes it wait."""
    limits = httpx.Limits(max_connections=options.connections)
    async with httpx.AsyncClient(
        base_url=url, timeout=PATIENCE, trust_env=False, limits=limits
    ) as http:
        sending: set[asyncio.Task[None]] = set()
        while True:
            if len(sending) < options.connections:
                one = asyncio.create_task(_one_of_flood(http, token, flood))
                sending.add(one)
                one.add_done_callback(sending.discard)
            await asyncio.sleep(1 / options.rate)


async def _one_of_flood(http: httpx.AsyncClient, token: str, flood: Flood) -> None:
    try:
        answer = await _post(http, token, "Please tell me about your return policy")
    except httpx.HTTPError:
        flood.statuses[0] += 1
    else:
        flood.statuses[answer.status_code] += 1


async def _post(http: httpx.AsyncClient, token: str, message: str) -> httpx.Response:
    headers = _as(token) | {"Idempotency-Key": f'"{uuid.uuid4()}"'}
    return await http.post("/v1/tasks", headers=headers, json={"message": message, "ticket": "new"})


def _as(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def _settled(instance: Instance) -> None:
    """What the flood has begun is over before the next quiet round."""
    query = (
        "SELECT count(*) FROM agents_task WHERE status IN ('queued', 'running', 'waiting_model')"
    )
    while (await asyncio.to_thread(instance.read, query))[0][0]:
        await asyncio.sleep(0.2)


def _p95(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=20, method="inclusive")[-1]


def _line(waits: Waits) -> str:
    accepted, ended = _p95(waits.accepted), _p95(waits.ended)
    return f"accepted {1000 * accepted:.0f} ms, ended {1000 * ended:.0f} ms (p95)"


def _report(
    quiet: Waits, beside: Waits, flood: Flood, options: argparse.Namespace
) -> dict[str, Any]:
    figures = {
        name: {
            "n": len(waits.ended),
            "accepted_p95_ms": round(1000 * _p95(waits.accepted)),
            "ended_p95_ms": round(1000 * _p95(waits.ended)),
            "cpu_seconds": {name: round(spent, 1) for name, spent in waits.spent.items()},
        }
        for name, waits in (("quiet", quiet), ("flooded", beside))
    }
    return {
        "ratios": {
            "accepted": round(_p95(beside.accepted) / _p95(quiet.accepted), 2),
            "ended": round(_p95(beside.ended) / _p95(quiet.ended), 2),
        },
        "figures": figures,
        "flood": {str(status): count for status, count in sorted(flood.statuses.items())},
        "settings": {
            name: getattr(options, name) for name in ("rounds", "seconds", "rate", "connections")
        },
        "machine": {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)},
        "python": platform.python_version(),
    }


def _tell(report: dict[str, Any]) -> None:
    print(
        "\nwaiting times of the others beside a flood, against quiet ones (p95, below 2 is well):"
    )
    for name, ratio in report["ratios"].items():
        print(f"  {name:<9} x {ratio}")
    for name, figures in report["figures"].items():
        print(f"  {name:<9} {figures}")
    print(f"  the flood was answered {report['flood']}")
    print(f"  {report['machine']}")
