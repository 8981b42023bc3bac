"""Typed reads of the environment, and one error that lists everything wrong with it."""

import os
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from psycopg.conninfo import conninfo_to_dict

T = TypeVar("T")

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


class Environment:
    """Reads settings from the environment and remembers each fault instead of stopping at the first.

    Call `check()` after the last read: it raises ImproperlyConfigured naming every
    missing or odd value at once.
    """

    def __init__(self) -> None:
        self.faults: list[str] = []

    def text(self, name: str, default: str | None = None) -> str:
        return self._read(name, default, str)

    def integer(self, name: str, default: int, *, minimum: int = 0) -> int:
        def parse(raw: str) -> int:
            value = int(raw)
            if value < minimum:
                raise ValueError(f"must be at least {minimum}")
            return value

        return self._read(name, str(default), parse)

    def flag(self, name: str, *, default: bool) -> bool:
        def parse(raw: str) -> bool:
            if raw.lower() in _TRUE:
                return True
            if raw.lower() in _FALSE:
                return False
            raise ValueError("must be true or false")

        return self._read(name, "true" if default else "false", parse)

    def words(self, name: str, default: str = "") -> list[str]:
        """A comma-separated list."""
        return [word.strip() for word in self.text(name, default).split(",") if word.strip()]

    def url(self, name: str, default: str | None = None) -> str:
        def parse(raw: str) -> str:
            parts = urlsplit(raw)
            if parts.scheme not in {"http", "https"} or not parts.netloc:
                raise ValueError("must be an http(s) address")
            return raw.rstrip("/")

        return self._read(name, default, parse)

    def database(self, name: str) -> dict[str, object]:
        """A libpq connection string or URL, as Django's DATABASES entry."""

        def parse(raw: str) -> dict[str, object]:
            info = conninfo_to_dict(raw)
            if not info.get("dbname"):
                raise ValueError("must name a database")
            return {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": info["dbname"],
                "USER": info.get("user", ""),
                "PASSWORD": info.get("password", ""),
                "HOST": info.get("host", ""),
                "PORT": str(info.get("port", "")),
            }

        return self._read(name, None, parse)

    def database_options(self, name: str) -> dict[str, str]:
        """What else that connection string says: `sslmode`, `application_name` and the like."""

        def parse(raw: str) -> dict[str, str]:
            named = {"dbname", "user", "password", "host", "port"}
            info = conninfo_to_dict(raw)
            return {key: str(value) for key, value in info.items() if key not in named}

        # Whatever is wrong with it, `database` has said.
        return parse(os.environ.get(name, "")) if not self._is_faulty(name) else {}

    def check(self) -> None:
        if self.faults:
            raise ImproperlyConfigured(
                "Countersign cannot start with this environment:\n  - " + "\n  - ".join(self.faults)
            )

    def _is_faulty(self, name: str) -> bool:
        return any(fault.startswith((f"{name}:", f"{name} ")) for fault in self.faults)

    def _read(self, name: str, default: str | None, parse: Callable[[str], T]) -> T:
        raw = os.environ.get(name, default)
        # A line of `.env` that nobody filled in is no value either.
        if raw is None or (default is None and not raw.strip()):
            self.faults.append(f"{name} is not set")
            return _placeholder(parse)
        try:
            return parse(raw)
        except Exception as exc:  # noqa: BLE001 - whatever is wrong, the operator reads it in one list
            self.faults.append(f"{name}: {exc}")
            return _placeholder(parse)


def _placeholder(parse: Callable[[str], T]) -> T:
    """A value that lets the remaining settings be read; `check()` stops the start before its use."""
    for sample in ("0", "true", "http://invalid.invalid", "dbname=invalid", "x"):
        try:
            return parse(sample)
        except Exception:  # noqa: BLE001, S112 - try the next sample
            continue
    raise ImproperlyConfigured("no placeholder fits")
