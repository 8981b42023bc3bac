"""Measures exports of a long trail and their check: seconds, peak memory, bytes.

    DATABASE_URL=… nice -n 19 python -m bench.audit_export --rows 1000000

Give it a database of its own: it adds the rows to whatever trail is there.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

# ruff: noqa: E402 - models can be imported once Django is set up
from django.core.management import call_command

from audit import sealer
from audit.bundle import public_pem
from audit.keys import get_signer
from audit.models import Event
from bench.audit_rows import add_events

ROOT = Path(__file__).resolve().parents[1]
# Runs a command, and says on the last line of its errors how much memory it took at most.
MEASURED = (
    "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(code)"
)


def measure(*command: str) -> tuple[float, int]:
    """Run it; seconds, and its peak memory in MB. Raises when it fails."""
    began = time.monotonic()
    done = subprocess.run(  # noqa: S603 - our own programs
        [sys.executable, "-c", MEASURED, sys.executable, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
    return time.monotonic() - began, int(done.stderr.split()[-1]) // 1024


def fill(rows: int) -> None:
    """Add rows until the trail has so many, all of them sealed."""
    missing = rows - Event.objects.count()
    if missing > 0:
        add_events(missing, shop_id=1)
    while sealer.seal_once() is not None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    call_command("migrate", verbosity=0)
    began = time.monotonic()
    fill(rows)
    say = sys.stdout.write
    say(f"{rows:,} events recorded and sealed in {time.monotonic() - began:.0f} s\n\n")
    say(
        "| form | export | peak memory | bundle | check | peak memory |\n|---|---|---|---|---|---|\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COUNTERSIGN_EXPORT_FOLDER"] = folder
        key = Path(folder) / "key.pem"
        key.write_bytes(public_pem(get_signer()))
        for form in ("jsonl", "csv", "parquet", "all"):
            bundle = Path(folder) / f"{form}-bundle.zip"
            seconds, memory = measure("manage.py", "audit_export", str(bundle), "--form", form)
            checked, checking = measure("audit/verify_export.py", str(bundle), "--key", str(key))
            say(
                f"| {form} | {seconds:.0f} s | {memory} MB | {bundle.stat().st_size / 1e6:.0f} MB "
                f"| {checked:.0f} s | {checking} MB |\n"
            )
            sys.stdout.flush()
            bundle.unlink()


if __name__ == "__main__":
    main()
