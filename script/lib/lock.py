"""`script/lock`: writes requirements.txt and requirements-dev.txt from the list in pyproject.toml.

The locks name every package with its version and the SHA-256 of each of its files, so that one lock
holds for Linux and macOS on both kinds of processor, and pip refuses any other file.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from script.lib.bootstrap import ROOT

UV = "uv==0.13.9"
HELP = """usage: script/lock [option of "uv pip compile"]...

Write requirements.txt and requirements-dev.txt anew from pyproject.toml. Versions that are locked
stay; --upgrade takes the newest that the list allows, --upgrade-package NAME one package's. Commit
pyproject.toml and both locks together. A package index must be reachable."""
HEAD = "# Made by script/lock from pyproject.toml, with the hashes of all files. Do not edit.\n"
# What holds wherever this runs (tool.uv.environments in pyproject.toml), and so says nothing in a line.
ALWAYS = {
    "python_full_version < '3.15'",
    "platform_python_implementation == 'CPython'",
    "(sys_platform == 'darwin' or sys_platform == 'linux')",
}


def main(arguments: Sequence[str]) -> int:
    """0 when both locks were written."""
    if {"-h", "--help"} & set(arguments):
        print(HELP)
        return 0
    try:
        uv = _uv(ROOT / ".data" / "lock")
        _compile(uv, "requirements.txt", ["--extra", "local"], arguments)
        # The tests run with exactly what is served.
        both = ["--extra", "local", "--extra", "dev", "--constraint", "requirements.txt"]
        _compile(uv, "requirements-dev.txt", both, arguments)
    except subprocess.CalledProcessError as exc:
        print(f"script/lock: {' '.join(map(str, exc.cmd[:4]))} … failed", file=sys.stderr)
        return 1
    return 0


def _uv(folder: Path) -> Path:
    """The tool, in an environment of its own: nothing of it is needed to run or to test."""
    uv = folder / "bin" / "uv"
    stamp = folder / UV
    if not stamp.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, UV], check=True)
        stamp.touch()
    return uv


def _compile(uv: Path, name: str, what: Sequence[str], arguments: Sequence[str]) -> None:
    fixed = ["--universal", "--python-version", "3.11", "--generate-hashes"]
    fixed += ["--no-header", "--no-annotate", "--quiet", "--output-file", name]
    subprocess.run(
        [uv, "pip", "compile", "pyproject.toml", *what, *fixed, *arguments], cwd=ROOT, check=True
    )
    path = ROOT / name
    path.write_text(HEAD + plain(path.read_text()))
    print(f"{name}: {sum(line[0].isalpha() for line in path.read_text().splitlines())} packages")


def plain(lock: str) -> str:
    """A lock without the conditions that always hold."""
    return "".join(map(_plain, lock.removeprefix(HEAD).splitlines(keepends=True)))


def _plain(line: str) -> str:
    package, is_conditional, condition = line.partition(" ; ")
    if not is_conditional:
        return line
    parts = [part for part in condition.removesuffix(" \\\n").split(" and ") if part not in ALWAYS]
    return f"{package} ; {' and '.join(parts)} \\\n" if parts else f"{package} \\\n"
