"""The private server: `script/server` with two workers, both of which can be made to stand still.

Called as `python -m script.lib.prove.server`; takes everything from the environment, and nothing
from `.env`: a person's own database is no place for this.
"""

import asyncio
import os
import sys
from collections.abc import Iterator
from dataclasses import replace

from typing_extensions import override

from script.lib import environment, programs
from script.lib import ports as portlib
from script.lib.server import Server, lock_folder

WORKERS = ("worker", "worker2")


class PrivateServer(Server):
    """Starts each program as the ordinary server does, but the worker twice."""

    @override
    async def _start_all(self, *starting: programs.Program) -> None:
        await super()._start_all(
            *(ours for program in starting for ours in _two_workers_for_one(program))
        )


def _two_workers_for_one(program: programs.Program) -> Iterator[programs.Program]:
    if program.name != "worker":
        yield program
        return
    celery = list(program.argv)
    options = celery[celery.index("celery") + 1 :]
    for name in WORKERS:
        argv = [celery[0], "-m", "script.lib.prove.worker", *options, "-n", f"{name}@%h"]
        yield replace(program, name=name, argv=argv)


def main() -> int:
    """Serve until a signal."""
    env = dict(os.environ)
    folder = environment.data_folder(env)
    lock = lock_folder(folder)
    try:
        server = PrivateServer(folder=folder, ports=portlib.choose("0"), env=env, quiet=True)
        return asyncio.run(server.serve())
    finally:
        os.close(lock)


if __name__ == "__main__":
    sys.exit(main())
