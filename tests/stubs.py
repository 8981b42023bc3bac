"""The pretend shop as a process of its own, started on a free port for as long as a test needs it.

with run_shop(tmp_path) as shop:
    shop.fault("timeout_after", scope={"path": "/refunds"}, times=1)
    ...
    assert [effect["kind"] for effect in shop.effects(order_id="1042")] == ["refund"]
"""

import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 20
STOP_SECONDS = 10
HOLDING = frozenset({"latency", "timeout_before", "timeout_after", "webhook_late"})
CLIENT = ("countersign", "demo-client-secret-of-the-pretend-shop")


@dataclass
class RunningShop:
    """A pretend shop that is up: where it is, and its control door as methods."""

    url: str
    data: Path
    process: subprocess.Popen[str]
    http: httpx.Client
    # Whether a request or an event may still be on its way in here after the test that made it.
    may_hold: bool = False

    def ledger(self, **filters: str) -> dict[str, list[dict[str, Any]]]:
        """Effects and calls; filters are `order_id` and `idempotency_key`."""
        found: dict[str, list[dict[str, Any]]] = self._asked("GET", "ledger", params=filters).json()
        return found

    def effects(self, **filters: str) -> list[dict[str, Any]]:
        """What really happened, oldest first."""
        return self.ledger(**filters)["effects"]

    def calls(self, **filters: str) -> list[dict[str, Any]]:
        """What was asked of the shop, oldest first."""
        return self.ledger(**filters)["calls"]

    def forget_calls(self) -> None:
        """Empty the list of calls; effects stay."""
        self._asked("DELETE", "ledger")

    def fault(
        self,
        fault: str,
        *,
        scope: dict[str, str] | None = None,
        times: int | None = None,
        **params: Any,
    ) -> str:
        """Switch a fault on and give its id: `fault("latency", scope={"order": "1042"}, ms=200)`."""
        self.may_hold = self.may_hold or fault in HOLDING
        rule = {"fault": fault, "scope": scope or {}, "times": times, "params": params}
        return str(self._asked("POST", "faults", json=rule).json()["id"])

    def clear_faults(self) -> None:
        """Switch all faults off."""
        self._asked("DELETE", "faults")

    def sign(self, customer: str, **options: Any) -> str:
        """A signed identity of a customer; `expires_in` and `claims` make odd ones."""
        body = {"customer": customer} | options
        return str(self._asked("POST", "sign", json=body).json()["token"])

    def block(self, customer: str, *, blocked: bool = True) -> None:
        """Close a customer's account, or open it again."""
        self._asked("POST", f"customers/{customer}", json={"blocked": blocked})

    def order(self, order_id: str) -> dict[str, Any]:
        """An order as the shop's staff see it."""
        found: dict[str, Any] = self._asked("GET", f"orders/{order_id}").json()
        return found

    def edit_order(self, order_id: str, **changes: Any) -> dict[str, Any]:
        """Change an order as the shop's own staff."""
        found: dict[str, Any] = self._asked("PATCH", f"orders/{order_id}", json=changes).json()
        return found

    def refund_by_hand(self, order_id: str, amount: int) -> dict[str, Any]:
        """Refund in the shop's back office, past the agent."""
        done: dict[str, Any] = self._asked(
            "POST", f"orders/{order_id}/refunds", json={"amount": amount, "reason": "by hand"}
        ).json()
        return done

    def reverse(self, refund_id: str, reason: str = "account_closed") -> dict[str, Any]:
        """Let a refund's money come back to the shop."""
        done: dict[str, Any] = self._asked(
            "POST", f"refunds/{refund_id}/reverse", json={"reason": reason}
        ).json()
        return done

    def arrive(self, refund_id: str) -> dict[str, Any]:
        """Let the money of a pending refund be paid out."""
        done: dict[str, Any] = self._asked("POST", f"refunds/{refund_id}/arrive").json()
        return done

    def events(self, order_id: str | None = None) -> list[dict[str, Any]]:
        """What the shop tells, or has told, by webhook (of one order where given), oldest first."""
        params = {"order_id": order_id} if order_id else {}
        found: list[dict[str, Any]] = self._asked("GET", "webhooks", params=params).json()[
            "webhooks"
        ]
        return found

    def load(self, catalogue: Path) -> str:
        """Load a catalogue file into the running shop; gives the command's output."""
        done = shop_command("load_shop", str(catalogue), "--data", str(self.data))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _asked(self, method: str, path: str, **options: Any) -> httpx.Response:
        response = self.http.request(method, f"/control/{path}", **options)
        assert response.is_success, f"{method} /control/{path}: {response.text}"
        return response


@contextmanager
def run_shop(
    data_dir: Path,
    port: int | None = None,
    agent_url: str = "http://127.0.0.1:8000",
    arguments: tuple[str, ...] = (),
) -> Iterator[RunningShop]:
    """Serve a pretend shop from `data_dir`, on a free port unless one is given, until the end."""
    command = ("serve", "--port", str(port or 0), "--data", str(data_dir), "--agent-url", agent_url)
    log_path = data_dir.parent / f"{data_dir.name}.log"
    with log_path.open("a+") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "orders_stub", *command, *arguments],
            cwd=ROOT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            url = _ready_url(process, log_path)
            with httpx.Client(base_url=url, timeout=15, trust_env=False) as http:
                assert http.get("/healthz").json() == {"status": "ok"}
                yield RunningShop(url=url, data=data_dir, process=process, http=http)
        finally:
            stop(process)


def stop(process: subprocess.Popen[str]) -> None:
    """End one process that was started here; by force when it does not go."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_SECONDS)
    finally:
        if process.stdout is not None:
            process.stdout.close()


def shop_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the pretend shop to its end."""
    return subprocess.run(
        [sys.executable, "-m", "orders_stub", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _ready_url(process: subprocess.Popen[str], log_path: Path) -> str:
    """Wait for the one line that says where the process listens."""
    stdout = process.stdout
    assert stdout is not None
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: lines.put(stdout.readline()), daemon=True).start()
    try:
        line = lines.get(timeout=START_SECONDS)
    except queue.Empty:
        line = ""
    found = re.search(r"http://\S+", line)
    if found is None:
        raise AssertionError(f"the pretend shop did not start: {line}{log_path.read_text()}")
    return found.group()
