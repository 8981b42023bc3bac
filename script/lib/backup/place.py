"""Where the product's database is, and the environment that its programs would run in."""

import asyncio
import base64
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from script.lib import environment, keys, ports, postgres, record, redis_server, server
from script.lib.bootstrap import SetupError
from script.lib.output import Output
from script.lib.programs import STORES
from script.lib.supervisor import Supervisor

T = TypeVar("T")
# Settings ask for one; without it everything waits for the sweep, and nothing else is different.
NO_REDIS = "redis://127.0.0.1:6379/0"


@dataclass(frozen=True)
class Place:
    """The database and the environment of whoever works with it."""

    url: str
    env: Mapping[str, str]


def with_database(work: Callable[[Place], T], *, stopped: bool = False) -> T:
    """Do this with the database that `DATABASE_URL` names, or else with our own.

    Our own is that of the running server, or is started for as long as the work takes. With
    `stopped` a running server is refused. Raises SetupError when there is no way to the database.
    """
    env = environment.of_person()
    url = env.get("DATABASE_URL")
    if url:
        postgres.require(url)
        return work(Place(url, _of_deployment(env, url)))
    folder = environment.data_folder(env)
    if record.running(folder) and not stopped:
        kept = environment.read(folder / "env")
        return work(Place(kept["DATABASE_URL"], {**env, **kept}))
    lock = server.lock_folder(folder)
    try:
        return asyncio.run(_with_own(folder, env, work))
    finally:
        os.close(lock)


def _of_deployment(env: Mapping[str, str], url: str) -> dict[str, str]:
    """With keys of its own a deployment's settings stand as they are; else they are `script/server`'s."""
    if all(env.get(name) for name in keys.MAKERS):
        return {"REDIS_URL": NO_REDIS, **env}
    folder = environment.data_folder(env)
    if not (folder / "secrets").exists():
        missing = ", ".join(name for name in keys.MAKERS if not env.get(name))
        raise SetupError(f"the product's keys are needed beside DATABASE_URL: set {missing}")
    return _completed(folder, env, url, env.get("REDIS_URL") or NO_REDIS)


def _completed(folder: Path, env: Mapping[str, str], url: str, redis_url: str) -> dict[str, str]:
    usual = ports.Ports(ports.DEFAULT)
    return environment.complete(
        env, folder=folder, ports=usual, database_url=url, redis_url=redis_url
    )


async def _with_own(folder: Path, env: Mapping[str, str], work: Callable[[Place], T]) -> T:
    """Start our stores, as `script/server` would, and stop them at the end."""
    cluster, store = await asyncio.to_thread(postgres.prepare, folder), redis_server.prepare(folder)
    output = Output(logs=folder / "logs", names=[*STORES], quiet=True)
    supervisor = Supervisor(output=output)
    try:
        await supervisor.start(cluster.program(env))
        await supervisor.start(store.program(env))
        await postgres.wait_until_ready(cluster)
        await redis_server.wait_until_ready(store)
        whole = _completed(folder, env, cluster.url(), store.url())
        return await asyncio.to_thread(work, Place(cluster.url(), whole))
    finally:
        await supervisor.stop()
        output.close()


def encryption_ids(env: Mapping[str, str]) -> list[str]:
    """An id for each encryption key, by which it is known and from which it cannot be told."""
    found = env.get("COUNTERSIGN_ENCRYPTION_KEYS", "").split(",")
    return [_id(key.strip().encode()) for key in found if key.strip()]


def seal_keys(env: Mapping[str, str]) -> dict[str, Ed25519PublicKey]:
    """The public keys that are believed, by the ids that seals name them with; our own comes first."""
    retired = env.get("COUNTERSIGN_SEAL_PUBLIC_KEYS", "").split(",")
    raw = [base64.b64decode(text.strip()) for text in retired if text.strip()]
    keys = [signer(env).public_key(), *map(Ed25519PublicKey.from_public_bytes, raw)]
    return {_id(key.public_bytes_raw()): key for key in keys}


def signer(env: Mapping[str, str]) -> Ed25519PrivateKey:
    """The key that signs the trail's seals."""
    return Ed25519PrivateKey.from_private_bytes(base64.b64decode(env["COUNTERSIGN_SEAL_KEY"]))


def _id(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()[:16]
