"""The programs of a local server and how each is called."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from script.lib.bootstrap import ROOT
from script.lib.ports import HOST, Ports
from script.lib.supervisor import Program

__all__ = ["NAMES", "STORES", "Local", "Program"]

STORES = ("postgres", "redis")
CELERY = ("celery", "--quiet", "-A", "config")
NAMES = ["web", "worker", "beat", "sealer", "shop", "model", "migrate", "seed", *STORES]


@dataclass(frozen=True, kw_only=True)
class Local:
    """Everything as it runs on one machine."""

    env: Mapping[str, str]
    folder: Path
    ports: Ports

    def web(self) -> Program:
        access = str(self.folder / "logs" / "access.log")
        program = self._module(
            *("web", "config.web", "-b", HOST, "-p", str(self.ports.web), "--access-log", access),
        )
        return _without_warning(program, "No directory at")  # static files come from their sources

    def worker(self) -> Program:
        options = (
            "-P",
            "threads",
            "-c",
            "16",
            "-l",
            "WARNING",
            "--without-gossip",
            "--without-mingle",
        )
        program = self._module("worker", *CELERY, "worker", *options)
        # Under root Celery advises against it at each start. Here root is somebody's container.
        return _without_warning(program, "You're running the worker with superuser privileges")

    def beat(self) -> Program:
        schedule = str(self.folder / "celerybeat-schedule")
        return self._module("beat", *CELERY, "beat", "-l", "WARNING", "--schedule", schedule)

    def sealer(self) -> Program:
        return self._manage("sealer", "audit_sealer")

    def migrate(self) -> Program:
        return self._manage("migrate", "migrate", "--no-input", "--verbosity", "0")

    def seed(self) -> Program:
        return self._manage("seed", "seed_demo", "--shop-url", f"http://{HOST}:{self.ports.shop}")

    def shop(self) -> Program:
        return self._module(
            *("shop", "orders_stub", "serve", "--port", str(self.ports.shop)),
            *("--data", str(self.folder / "orders_stub")),
            *("--agent-url", f"http://{HOST}:{self.ports.web}"),
            *("--mail-port", str(self.ports.mail)),
            *("--webhook-url", f"http://{HOST}:{self.ports.web}/v1/webhooks/demo"),
        )

    def model(self) -> Program:
        return self._module("model", "model_stub", "serve", "--port", str(self.ports.model))

    def _manage(self, name: str, *words: str) -> Program:
        return self._program(name, str(ROOT / "manage.py"), *words)

    def _module(self, name: str, module: str, *words: str) -> Program:
        return self._program(name, "-m", module, *words)

    def _program(self, name: str, *words: str) -> Program:
        return Program(name=name, argv=[sys.executable, *words], env=self.env, cwd=ROOT)


def _without_warning(program: Program, beginning: str) -> Program:
    return replace(program, env={**program.env, "PYTHONWARNINGS": f"ignore:{beginning}"})
