"""Run the pretend model as a process of its own, on a free port of this machine."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 20


@dataclass(frozen=True)
class ModelServer:
    """A running pretend model. `url` is what a client takes as its base URL, `…/v1`."""

    url: str
    pid: int

    @property
    def root(self) -> str:
        """The address without `/v1`, where `/control` and `/healthz` are."""
        return self.url.removesuffix("/v1")

    def calls(self, *, bodies: bool = False) -> list[dict[str, Any]]:
        """Return the calls received, oldest first; with their bodies (the newest 200) if asked."""
        found: list[dict[str, Any]] = self.control("GET", f"calls{'?bodies=1' if bodies else ''}")[
            "calls"
        ]
        return found

    def fault(
        self,
        fault: str,
        *,
        times: int | None = 1,
        scope: dict[str, str] | None = None,
        **params: int,
    ) -> str:
        """Switch a fault on for the next `times` calls in scope (None: until cleared); return its id."""
        rule = {"fault": fault, "times": times, "params": params, "scope": scope or {}}
        return str(self.control("POST", "faults", rule)["id"])

    def script(self, name: str, replies: list[dict[str, Any]], *, after: str = "repeat") -> str:
        """Keep a script in memory; return the model name that plays it."""
        self.control("PUT", f"scripts/{name}", {"replies": replies, "after": after})
        return f"script:{name}"

    def clear(self) -> None:
        """Forget calls, faults and scripts put in at run time."""
        for what in ("calls", "faults", "scripts"):
            self.control("DELETE", what)

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """Speak to the control endpoint; return the JSON of the answer, None if it has no body."""
        request = urllib.request.Request(
            f"{self.root}/control/{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            raw = response.read()
        return json.loads(raw) if raw else None


@contextmanager
def run_model(port: int | None = None, scripts: Path | None = None) -> Iterator[ModelServer]:
    """Run a pretend model until the block ends. Without a port it takes a free one."""
    command = [sys.executable, "-m", "model_stub", "serve", "--port", str(port or 0)]
    if scripts is not None:
        command += ["--scripts", str(scripts)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if "ready on " not in line:
            raise RuntimeError(f"the pretend model did not start: {line!r}, exit {process.poll()}")
        yield ModelServer(line.rsplit(" ", 1)[1].strip(), process.pid)
    finally:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
