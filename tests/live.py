"""The whole product as a newcomer starts it: `script/server` with stores and data of its own.

Live tests speak to it over its doors only, and may kill what they like: every process of it is
known by its pid and nothing outside its data folder is touched.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import redis

from script.lib import environment, record
from script.lib.bootstrap import ROOT
from tests.model_server import ModelServer
from tests.stubs import RunningShop

READY_SECONDS = 90
STOP_SECONDS = 60
# Short leases, so that a killed worker's task is taken over within a test's patience.
QUICK = {
    "COUNTERSIGN_MODEL_TIMEOUT": "2",
    "COUNTERSIGN_SHOP_TIMEOUT": "2",
    "COUNTERSIGN_LEASE_SECONDS": "7",
    "COUNTERSIGN_SWEEP_SECONDS": "1",
    "COUNTERSIGN_APPROVALS_IN_A_ROW": "1000000",
}


@dataclass
class Product:
    """A running Countersign with its pretend shop and model."""

    folder: Path
    process: "subprocess.Popen[str]"
    http: httpx.Client
    shop: RunningShop
    identities: dict[str, str] = field(default_factory=dict)
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    @property
    def record(self) -> record.Record:
        found = record.running(self.folder)
        assert found is not None
        return found

    @property
    def url(self) -> str:
        return self.record.urls["web"]

    @property
    def model(self) -> ModelServer:
        root = f"http://127.0.0.1:{self.record.ports['model']}"
        return ModelServer(url=f"{root}/v1", pid=self.record.children["model"])

    def environment(self) -> dict[str, str]:
        """The environment of its programs, for `manage.py` beside them."""
        return _foreign() | environment.read(self.folder / "env")

    def manage(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *words],
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def allow_origin(self, origin: str) -> None:
        """Let one more site embed the demo shop's chat."""
        done = self.manage(
            "shell",
            "-c",
            "from accounts.models import Shop; shop = Shop.objects.get();"
            f"shop.allowed_origins = [*shop.allowed_origins, {origin!r}];"
            "shop.save(update_fields=['allowed_origins'])",
        )
        assert done.returncode == 0, done.stderr

    def newcomer(self, total: int = 6_000) -> tuple[str, str]:
        """A customer whom no other story knows, and their one order: delivered, `total` minor units.

        What a customer got back in a day decides whether staff are asked, and stories share this
        product in an order that nobody knows: whoever tells of a refund brings their own customer.
        """
        number = next(self.numbers)
        customer, order = f"newcomer-{number}", str(7000 + number)
        name = f"Newcomer {number}"
        address = {"name": name, "line1": "1 Mill Street", "city": "Salem", "region": "OR"}
        address |= {"postal_code": "97301", "country": "US"}
        lines = [{"title": "Cast iron teapot", "unit_price": total}]
        dates = {"placed": "-10d", "shipped": "-8d", "delivered": "-5d"}
        catalogue = {
            "customers": [
                {
                    "id": customer,
                    "name": name,
                    "email": f"{customer}@example.com",
                    "locale": "en-US",
                    "address": address,
                }
            ],
            "orders": [
                {"id": order, "customer": customer, "status": "delivered", "lines": lines} | dates
            ],
        }
        path = self.folder.parent / f"{customer}.json"
        path.write_text(json.dumps(catalogue))
        self.shop.load(path)
        return customer, order

    def redis(self) -> "redis.Redis":
        return redis.Redis.from_url(self.environment()["REDIS_URL"])

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal to one of its programs, by the pid on record."""
        pid = self.record.children[name]
        os.kill(pid, number)
        return pid

    def ask(self, customer: str, message: str, ticket: Any = "new") -> dict[str, Any]:
        """A customer's message over the API, in a conversation of its own."""
        return self.post(
            customer, "/v1/tasks", {"message": message, "ticket": ticket}, key=str(uuid.uuid4())
        )

    def look(self, customer: str, task_id: int) -> dict[str, Any]:
        answer = self.http.get(f"/v1/tasks/{task_id}", headers=self._as(customer))
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def decide(self, customer: str, task: dict[str, Any], decision: str) -> dict[str, Any]:
        action = task["action"]
        body = {"decision": decision, "digest": action["digest"]}
        return self.post(customer, f"/v1/tasks/{task['id']}/approvals/{action['step']}", body)

    def post(self, customer: str, path: str, body: dict[str, Any], key: str = "") -> dict[str, Any]:
        headers = self._as(customer) | ({"Idempotency-Key": f'"{key}"'} if key else {})
        answer = self.http.post(path, json=body, headers=headers)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def until(
        self,
        customer: str,
        task_id: int,
        holds: Callable[[dict[str, Any]], bool],
        seconds: float = 40,
    ) -> dict[str, Any]:
        """Look at a task until something holds of it."""
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            task = self.look(customer, task_id)
            if holds(task):
                return task
            time.sleep(0.1)
        raise AssertionError(f"it never came to that: {json.dumps(task, indent=1)}")

    def waiting(self, customer: str, task_id: int) -> dict[str, Any]:
        """The task once it asks for a yes."""
        return self.until(customer, task_id, lambda task: task["action"] is not None)

    def ended(self, customer: str, task_id: int, seconds: float = 40) -> dict[str, Any]:
        return self.until(customer, task_id, lambda task: task["finished_at"] is not None, seconds)

    def _as(self, customer: str) -> dict[str, str]:
        if customer not in self.identities:
            self.identities[customer] = self.shop.sign(customer)
        return {"Authorization": f"Bearer {self.identities[customer]}"}


def _foreign() -> dict[str, str]:
    """The environment without any setting of ours: those belong to the tests, not to the server."""
    return {
        name: value for name, value in os.environ.items() if not environment.OURS.fullmatch(name)
    }


@contextmanager
def running_product(folder: Path, **env: str) -> Iterator[Product]:
    """Start everything on free ports, wait until it is ready, and stop all of it at the end."""
    log_path = folder.parent / f"{folder.name}.log"
    with log_path.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "script" / "server"), "--port", "0"],
            cwd=ROOT,
            env=_foreign() | QUICK | env | {"COUNTERSIGN_DATA": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    try:
        found = _ready(folder, process, log_path)
        with (
            httpx.Client(base_url=found.urls["web"], timeout=15, trust_env=False) as http,
            httpx.Client(base_url=found.urls["shop"], timeout=15, trust_env=False) as shop,
        ):
            yield Product(
                folder=folder,
                process=process,
                http=http,
                shop=RunningShop(
                    url=found.urls["shop"],
                    data=folder / "orders_stub",
                    process=process,
                    http=shop,
                ),
            )
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_SECONDS)


def _ready(folder: Path, process: "subprocess.Popen[str]", log_path: Path) -> record.Record:
    ends_at = time.monotonic() + READY_SECONDS
    while time.monotonic() < ends_at and process.poll() is None:
        found = record.running(folder)
        if found and found.ready_at:
            return found
        time.sleep(0.1)
    raise AssertionError(f"the server did not become ready:\n{log_path.read_text()}")
