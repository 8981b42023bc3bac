"""Secrets of a local server: made once, kept in the data folder, readable by their owner alone."""

import base64
import os
import secrets
from collections.abc import Callable
from pathlib import Path


def _urlsafe(size: int) -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(size)).decode()


MAKERS: dict[str, Callable[[], str]] = {
    "COUNTERSIGN_SECRET_KEY": lambda: secrets.token_urlsafe(48),
    "COUNTERSIGN_ENCRYPTION_KEYS": lambda: _urlsafe(32),  # a Fernet key
    "COUNTERSIGN_SEAL_KEY": lambda: base64.b64encode(secrets.token_bytes(32)).decode(),  # Ed25519
}


def load(folder: Path) -> dict[str, str]:
    """The secrets of this data folder, by the name of their environment variable."""
    home = folder / "secrets"
    home.mkdir(mode=0o700, exist_ok=True)
    return {name: kept(home / name, make) for name, make in MAKERS.items()}


def kept(path: Path, make: Callable[[], str]) -> str:
    """The text kept at this path; made and kept with mode 0600 the first time."""
    if path.exists():
        return path.read_text().strip()
    value = make()
    write_private(path, value + "\n")
    return value


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
