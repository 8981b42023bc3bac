"""`script/server`: everything on one machine, under one supervisor."""

import argparse
import asyncio
import fcntl
import http.client
import os
import signal
import sys
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from script.lib import environment, postgres, prepared, programs, record, redis_server
from script.lib import ports as portlib
from script.lib.bootstrap import SetupError
from script.lib.output import BOLD, RED, Output
from script.lib.ports import HOST, Ports
from script.lib.supervisor import StoppedError, Supervisor, identities

READY_WITHIN = 90  # seconds
USERS = ("staff", "staff2", "auditor", "admin", "admin2")
PASSWORD = "countersign-demo"  # noqa: S105 - of the demo, printed for everybody, refused elsewhere


def main(arguments: list[str]) -> int:
    """Serve until a signal. 0 after a wanted stop, 1 when something was in the way or broke."""
    options = _options(arguments)
    try:
        env = environment.of_person()
        folder = environment.data_folder(env)
        ports = portlib.choose(options.port or env.get("PORT") or str(portlib.DEFAULT))
        lock = lock_folder(folder)
        try:
            return asyncio.run(
                Server(folder=folder, ports=ports, env=env, quiet=options.quiet).serve()
            )
        finally:
            os.close(lock)
    except (SetupError, OSError) as exc:
        print(f"script/server: {exc}", file=sys.stderr)
        return 1


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="script/server",
        description="Set everything up and serve Countersign on this machine until Ctrl-C.",
        epilog="Data stay in .data (COUNTERSIGN_DATA). DATABASE_URL, REDIS_URL, OPENAI_BASE_URL and "
        "OPENAI_API_KEY put your own services in place of the bundled ones; .env is read.",
    )
    parser.add_argument(
        "--port", help="serve on PORT to PORT+3 (default: $PORT or 8000; 0: any free ones)"
    )
    parser.add_argument(
        "--quiet", action="store_true", help="keep the programs' lines in files only"
    )
    return parser.parse_args(arguments)


def lock_folder(folder: Path) -> int:
    """Be the one server of this data folder; the lock goes with the process, however it ends."""
    handle = os.open(folder / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        os.close(handle)
        other = record.running(folder)
        where = f" at {other.urls['web']} (process {other.pid})" if other else ""
        raise SetupError(
            f"a server already runs on {folder}{where}. Use that one, stop it with Ctrl-C, or start "
            f"a second one beside it: COUNTERSIGN_DATA=.data/second PORT={portlib.suggest()} script/server"
        ) from exc
    return handle


@dataclass(kw_only=True)
class Server:
    """One start of everything, from the ports' check to the last process's end."""

    folder: Path
    ports: Ports
    env: dict[str, str]
    quiet: bool
    _cluster: postgres.Cluster | None = None
    _store: redis_server.Store | None = None
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self) -> int:
        self._clear_leftovers()
        portlib.require_free(self._needed_ports())
        self.output = Output(
            logs=self.folder / "logs",
            names=programs.NAMES,
            hidden=programs.STORES,
            quiet=self.quiet,
        )
        self.record = record.fresh(ports=self.ports.named(), urls=self._urls())
        self.supervisor = Supervisor(output=self.output, on_change=self._save)
        self._listen_for_signals()
        try:
            return await self._run()
        finally:
            self.output.say("Stopping" + ("" if self.quiet else " (Ctrl-C again: at once)"))
            await self.supervisor.stop()
            record.remove(self.folder)
            self.output.close()

    async def _run(self) -> int:
        """Start, then wait; whatever ends first decides."""
        try:
            if not await self._unless_stopped(self._start()):
                return 0
            await self._unless_stopped(asyncio.Event().wait())
        except (SetupError, StoppedError, OSError) as exc:
            self.output.say(f"script/server: {exc}", style=RED)
            self.output.say(f"Everything that was printed is in {self.output.logs}")
            return 1
        return 0

    async def _unless_stopped(self, work: Coroutine[Any, Any, object]) -> bool:
        """Do the work; False when a stop came first. Raises StoppedError when a program broke."""
        doing = asyncio.create_task(work)
        stopped = asyncio.create_task(self._stop.wait())
        broken = asyncio.create_task(self.supervisor.broken.wait())
        await asyncio.wait({doing, stopped, broken}, return_when=asyncio.FIRST_COMPLETED)
        for waiting in (stopped, broken):
            waiting.cancel()
        if doing.done():
            doing.result()
            return True
        doing.cancel()
        with suppress(asyncio.CancelledError):
            await doing
        if self.supervisor.broken.is_set() and not self._stop.is_set():
            raise StoppedError(self._explain(self.supervisor.reason))
        return False

    async def _start(self) -> None:
        self.output.say("Starting")
        is_new_shop = not (self.folder / "orders_stub").exists()
        env = await self._start_stores()
        environment.write(self.folder / "env", env)
        local = programs.Local(env=env, folder=self.folder, ports=self.ports)
        await self._start_all(*self._neighbours(local))
        await self._stores_ready(env)
        mark = prepared.fingerprint(env["COUNTERSIGN_DEMO"], *self.record.urls.values())
        is_prepared = not is_new_shop and await self._is_prepared(mark)
        if not is_prepared:
            await self._do(local.migrate())
        await self._start_all(local.web(), local.worker())
        if environment.is_demo(env):
            await self._answers(self.ports.shop, "/healthz", "shop")
            if not is_prepared:
                await self._do(local.seed())
        await self._answers(self.ports.web, "/healthz/ready", "web")
        # These two are in no hurry, and would make everybody wait for their start.
        await self._start_all(local.sealer(), local.beat())
        if self._cluster and not is_prepared:
            await asyncio.to_thread(prepared.remember, self._cluster, mark)
        self.record.ready_at = record.now()
        self._save()
        self._welcome(env)

    async def _start_all(self, *starting: programs.Program) -> None:
        for program in starting:
            await self.supervisor.start(program)

    async def _is_prepared(self, mark: str) -> bool:
        """Of a database that the person brought we know nothing."""
        return self._cluster is not None and await asyncio.to_thread(
            prepared.is_prepared, self._cluster, mark
        )

    async def _start_stores(self) -> dict[str, str]:
        """Start what the person did not bring, and return the environment that names it all."""
        database_url, redis_url = self.env.get("DATABASE_URL", ""), self.env.get("REDIS_URL", "")
        if not database_url:
            self._cluster = await asyncio.to_thread(postgres.prepare, self.folder)
            database_url = self._cluster.url()
            if not self._cluster.data.is_relative_to(self.folder):
                self.output.say(
                    f"PostgreSQL's data are in {self._cluster.data}: its user cannot reach {self.folder}"
                )
            await self.supervisor.start(self._cluster.program(self.env))
        if not redis_url:
            self._store = redis_server.prepare(self.folder)
            redis_url = self._store.url()
            await self.supervisor.start(self._store.program(self.env))
        return environment.complete(
            self.env,
            folder=self.folder,
            ports=self.ports,
            database_url=database_url,
            redis_url=redis_url,
        )

    async def _stores_ready(self, env: Mapping[str, str]) -> None:
        """Wait for our own stores; those that the person named must be up already."""
        if self._cluster:
            await postgres.wait_until_ready(self._cluster)
        else:
            await asyncio.to_thread(postgres.require, env["DATABASE_URL"])
        if self._store:
            await redis_server.wait_until_ready(self._store)
        else:
            await asyncio.to_thread(redis_server.require, env["REDIS_URL"])

    def _neighbours(self, local: programs.Local) -> list[programs.Program]:
        """The pretend shop belongs to the demo, the pretend model to whoever has no other."""
        shop = [local.shop()] if environment.is_demo(local.env) else []
        return shop + ([] if environment.brings_own_model(self.env) else [local.model()])

    async def _do(self, program: programs.Program) -> None:
        """Run one step to its end; a failure brings its own words."""
        try:
            await self.supervisor.run(program)
        except StoppedError as exc:
            raise StoppedError(self._explain(str(exc), program.name)) from exc

    def _explain(self, reason: str, name: str = "") -> str:
        """The reason, with the program's last lines when they were not shown."""
        name = name or reason.split()[0]
        tail = "" if self.output.shows(name) else self.output.tail(name)
        return f"{reason}\n{tail}" if tail else reason

    async def _answers(self, port: int, path: str, name: str) -> None:
        """Wait until this address answers with 200."""
        until = asyncio.get_running_loop().time() + READY_WITHIN
        while (answer := await asyncio.to_thread(_ask, port, path)) is not None:
            if asyncio.get_running_loop().time() > until:
                reason = f"{name} did not answer GET {path} with 200 in {READY_WITHIN} s: {answer}"
                raise StoppedError(self._explain(reason, name))
            await asyncio.sleep(0.1)

    def _needed_ports(self) -> dict[str, int]:
        needed = self.ports.named()
        if environment.brings_own_model(self.env):
            del needed["model"]
        if not environment.is_demo(self.env):
            del needed["shop"], needed["mail"]
        return needed

    def _clear_leftovers(self) -> None:
        """We hold the folder's lock, so whatever an older record names has lost its supervisor."""
        old = record.load(self.folder)
        if old:
            ended = record.end_leftovers(old)
            if ended:
                print(
                    f"Ended what a killed server had left running: {', '.join(ended)}", flush=True
                )
            record.remove(self.folder)

    def _listen_for_signals(self) -> None:
        def stop() -> None:
            if self._stop.is_set():
                self.supervisor.force()
            self._stop.set()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop)

    def _save(self) -> None:
        self.record.children = self.supervisor.pids()
        self.record.identities = identities(self.record.children)
        record.save(self.folder, self.record)

    def _urls(self) -> dict[str, str]:
        web, shop, model = (
            f"http://{HOST}:{port}" for port in (self.ports.web, self.ports.shop, self.ports.model)
        )
        return {
            "web": web,
            "console": f"{web}/console/",
            "docs": f"{web}/docs/",
            "shop": shop,
            "model": model,
        }

    def _welcome(self, env: Mapping[str, str]) -> None:
        urls, say = self.record.urls, self.output.say
        say("")
        say("Countersign is ready.", style=BOLD)
        if environment.is_demo(env):
            say(f"  Be a customer   {urls['shop']}/  the pretend shop: sign in as ada or bob")
            say(f"  Be staff        {urls['console']}  {', '.join(USERS)}; password {PASSWORD}")
        else:
            say(f"  Console         {urls['console']}")
        say(f"  Use the API     {urls['docs']}")
        if not environment.brings_own_model(self.env):
            say("  No language model is attached: a rule-based stand-in answers (OPENAI_API_KEY).")
        say(f"  Logs and data   {self.folder}")
        say('In another terminal: script/chat "Please refund order 1042" --as ada')
        say("Ctrl-C stops everything; the data stay.")
        say("")


def _ask(port: int, path: str) -> str | None:
    """None when this address answers with 200, else what it says instead."""
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read(500).decode(errors="replace")
    except (OSError, http.client.HTTPException) as exc:
        return str(exc) or type(exc).__name__
    finally:
        connection.close()
    return None if response.status == 200 else f"{response.status} {body}"
