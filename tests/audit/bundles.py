"""Short words for tests about bundles: make one, look into it, spoil it."""

import io
import json
import sys
import zipfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import run
from typing import Any

from audit import export_work, exports, verify_export
from audit.bundle import public_pem
from audit.export_models import Export
from audit.keys import get_signer
from audit.selectors import EventFilter
from audit.verify_export import MANIFEST
from tests.audit.facts import NOW, SHOP

OURS = EventFilter(shop_id=SHOP)
EVERYTHING = EventFilter(shop_id=None)
OWNER = 41


def make_export(wanted: EventFilter = OURS, **options) -> Export:
    """A bundle, asked for and made."""
    export = ask(wanted, **options)
    assert export_work.run(export.pk, clock=lambda: options.get("now", NOW))
    export.refresh_from_db()
    return export


def ask(wanted: EventFilter = OURS, **options) -> Export:
    details: dict[str, Any] = {
        "owner_id": OWNER,
        "actor": "auditor:audrey",
        "form": "all",
        "now": NOW,
    }
    return exports.request_export(wanted=wanted, **details | options)


def read(export: Export, name: str) -> bytes:
    with zipfile.ZipFile(export.path) as bundle:
        return bundle.read(name)


def rows_of(export: Export) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read(export, "events.jsonl").splitlines()]


def manifest_of(export: Export) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(read(export, MANIFEST))
    return found


def unpack(path: Path, folder: Path) -> Path:
    """The bundle as a folder, whose files may be changed."""
    with zipfile.ZipFile(path) as bundle:
        bundle.extractall(folder)
    return folder


def write_key(folder: Path) -> Path:
    path = folder / "believed.pem"
    path.write_bytes(public_pem(get_signer()))
    return path


def verify(bundle: Path, key: Path, *options: str) -> tuple[int, str]:
    """The verifier's exit code and what it says."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = verify_export.main([str(bundle), "--key", str(key), *options])
    return code, said.getvalue()


def verify_alone(program: Path, bundle: Path, key: Path) -> tuple[int, str]:
    """The same, by a program without anything of ours about it."""
    done = run(
        [sys.executable, "-I", str(program), str(bundle), "--key", str(key)],
        capture_output=True,
        text=True,
        check=False,
        cwd=key.parent,
    )
    return done.returncode, done.stdout + done.stderr


def edit_lines(path: Path, change: Callable[[list[bytes]], object]) -> None:
    """Change a file's lines in place."""
    lines = path.read_bytes().splitlines(keepends=True)
    change(lines)
    path.write_bytes(b"".join(lines))
