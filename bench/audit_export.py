"""What an export of a long trail takes, and its check: processor time, peak memory, bytes.

Fills the trail of a private instance and makes a bundle of everything in each form with the command that
operators use, then checks it with the standalone verifier: programs of their own, whose peak memory the
system tells. `--here` fills and measures the database of DATABASE_URL instead.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from script.lib.bootstrap import ROOT

BOUND = 400  # MB that an export or a check may take at most, whatever the number of rows
FORMS = ("jsonl", "csv", "parquet", "all")
# Runs a command, and says on the last line of its errors what it took: seconds of processor time, and KB.
MEASURED = (
    "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); "
    "took = resource.getrusage(resource.RUSAGE_CHILDREN); "
    "print(took.ru_utime + took.ru_stime, took.ru_maxrss, file=sys.stderr); sys.exit(code)"
)


@dataclass(frozen=True)
class Took:
    """What a program took."""

    seconds: float  # of processor time
    memory: int  # MB, at its peak


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="script/bench audit_export", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--form", action="append", choices=FORMS, help="only this form")
    parser.add_argument("--here", action="store_true", help="use the database of DATABASE_URL")
    options = parser.parse_args(arguments)
    if options.here:
        peak = _measure_all(os.environ, options.rows, options.form or FORMS)
    else:
        peak = asyncio.run(_privately(options.rows, options.form or FORMS))
    return 0 if peak <= BOUND else 1


async def _privately(rows: int, forms: Sequence[str]) -> int:
    # Loaded here: a measurement of one's own database needs no instance.
    from script.lib.prove.instance import running_instance  # noqa: PLC0415

    async with running_instance(keep=False, extra={}) as instance:
        return await asyncio.to_thread(_measure_all, instance.env, rows, forms)


def _measure_all(env: Mapping[str, str], rows: int, forms: Sequence[str]) -> int:
    """Fill, measure each form, print a table; the highest peak in MB."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**env, "COUNTERSIGN_EXPORT_FOLDER": folder}
        key = Path(folder) / "key.pem"
        began = time.monotonic()
        _run(env, "-m", "bench.audit_rows", "--rows", str(rows), "--key", str(key))
        print(f"{rows:,} events written and sealed in {time.monotonic() - began:.0f} s\n")
        print("| form | export, CPU | peak memory | bundle | check, CPU | peak memory |")
        print("|---|---|---|---|---|---|")
        return max(peak for form in forms for peak in _measure(env, Path(folder), form, key))


def _measure(env: Mapping[str, str], folder: Path, form: str, key: Path) -> Iterator[int]:
    bundle = folder / f"{form}-bundle.zip"
    made = _run(env, "manage.py", "audit_export", str(bundle), "--form", form)
    checked = _run(env, "audit/verify_export.py", str(bundle), "--key", str(key))
    print(
        f"| {form} | {made.seconds:.0f} s | {made.memory} MB | {bundle.stat().st_size / 1e6:.0f} MB "
        f"| {checked.seconds:.0f} s | {checked.memory} MB |",
        flush=True,
    )
    bundle.unlink()
    yield from (made.memory, checked.memory)


def _run(env: Mapping[str, str], *command: str) -> Took:
    """Run one of our programs. Raises RuntimeError with what it said when it fails."""
    done = subprocess.run(  # noqa: S603 - our own programs
        [sys.executable, "-c", MEASURED, sys.executable, *command],
        cwd=ROOT,
        env=dict(env),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    seconds, kilobytes = done.stderr.split()[-2:]
    return Took(float(seconds), int(kilobytes) // 1024)


if __name__ == "__main__":
    sys.exit(main())
