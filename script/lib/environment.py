"""The environment that every program of a local server runs in."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from script.lib import keys
from script.lib.bootstrap import ROOT, SetupError
from script.lib.ports import HOST, Ports

OURS = re.compile(r"(COUNTERSIGN|OPENAI|ORDERS_STUB|MODEL_STUB)_\w+|DATABASE_URL|REDIS_URL|PORT")
LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")


def of_person(root: Path = ROOT) -> dict[str, str]:
    """What the person has set: the environment, and below it the lines of `.env`, if there is one.

    Raises SetupError naming the line when `.env` cannot be read.
    """
    file = root / ".env"
    return {**(_parse(file) if file.exists() else {}), **os.environ}


def _parse(file: Path) -> dict[str, str]:
    values: dict[str, str] = {}
    for number, raw in enumerate(file.read_text().splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        found = LINE.fullmatch(line)
        if not found:
            raise SetupError(f"{file}, line {number} is not NAME=value: {line}")
        name, value = found.groups()
        quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "'\""
        values[name] = value[1:-1] if quoted else value
    return values


def data_folder(env: Mapping[str, str]) -> Path:
    """The folder that keeps everything of this server, made if need be."""
    folder = Path(env.get("COUNTERSIGN_DATA") or ROOT / ".data").expanduser().resolve()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def brings_own_model(env: Mapping[str, str]) -> bool:
    return bool(env.get("OPENAI_API_KEY") or env.get("OPENAI_BASE_URL"))


def is_demo(env: Mapping[str, str]) -> bool:
    """Whether demo data and the pretend shop belong to this server: yes unless told otherwise."""
    return (env.get("COUNTERSIGN_DEMO") or "true").lower() in {"1", "true", "yes", "on"}


def complete(
    env: Mapping[str, str], *, folder: Path, ports: Ports, database_url: str, redis_url: str
) -> dict[str, str]:
    """The person's settings, and ours for whatever they left open."""
    ours = {
        **keys.load(folder),
        "COUNTERSIGN_DATA": str(folder),
        "COUNTERSIGN_DEMO": "true",
        "COUNTERSIGN_EXPORT_FOLDER": str(folder / "exports"),
        "COUNTERSIGN_PUBLIC_URL": f"http://{HOST}:{ports.web}",
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "PYTHONUNBUFFERED": "1",
    }
    if is_demo(env):
        ours["COUNTERSIGN_SMTP_URL"] = f"smtp://{HOST}:{ports.mail}"
    if not brings_own_model(env):
        ours["OPENAI_BASE_URL"] = f"http://{HOST}:{ports.model}/v1"
        ours["COUNTERSIGN_MODEL_IS_STAND_IN"] = "true"
    # A variable of ours that is set to nothing is left open too: `.env` may hold many such lines.
    given = {name: value for name, value in env.items() if value or not OURS.fullmatch(name)}
    return {**ours, **given, "COUNTERSIGN_DATA": str(folder)}


def write(path: Path, env: Mapping[str, str]) -> None:
    """Keep what the programs were given, so that `script/manage` can run one more beside them."""
    lines = (f"{name}={value}\n" for name, value in sorted(env.items()) if OURS.fullmatch(name))
    keys.write_private(path, "".join(lines))


def read(path: Path) -> dict[str, str]:
    """What `write` has kept."""
    return _parse(path)
