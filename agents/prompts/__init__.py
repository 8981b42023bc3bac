"""Prompts: files with versions. A released version never changes; a new one gets a new file.

Nothing in a prompt is secret and nothing belongs to one shop, so the bytes are the same for every
task and a provider can remember them. `manifest.json` names the current version of each prompt
and the SHA-256 of every released file.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent


class PromptError(LookupError):
    """No such prompt or version, or a released file that was edited."""


@cache
def load(name: str, version: str) -> str:
    """The text of a released prompt, the same bytes for as long as that version exists.

    Raises PromptError when it is not in the manifest or its file no longer matches it.
    """
    expected = _manifest().released.get(name, {}).get(version)
    if expected is None:
        raise PromptError(f"there is no prompt {name} {version}")
    try:
        data = (FOLDER / name / f"{version}.md").read_bytes()
    except OSError as exc:
        raise PromptError(f"prompt {name} {version} cannot be read") from exc
    if hashlib.sha256(data).hexdigest() != expected:
        raise PromptError(f"prompt {name} {version} was edited after its release")
    return data.decode()


def current(name: str) -> str:
    """The version that new tasks use. Raises PromptError for an unknown name."""
    version = _manifest().current.get(name)
    if version is None:
        raise PromptError(f"there is no prompt {name}")
    return version


def released(name: str) -> list[str]:
    """Every version of a prompt that can be loaded, whichever is current."""
    return sorted(_manifest().released.get(name, {}))


@dataclass(frozen=True)
class _Manifest:
    current: dict[str, str]
    released: dict[str, dict[str, str]]


@cache
def _manifest() -> _Manifest:
    return _Manifest(**json.loads((FOLDER / "manifest.json").read_bytes()))
