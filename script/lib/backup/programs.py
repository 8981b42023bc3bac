"""PostgreSQL's own programs, of the same major version as the server, and what they are given."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from script.lib.bootstrap import SetupError
from script.lib.postgres import PACKAGE

# Where Debian, Ubuntu and Red Hat keep several versions side by side.
ELSEWHERE = ("/usr/lib/postgresql/{major}/bin", "/usr/pgsql-{major}/bin")


def find(name: str, major: int, folder: Path | None = None) -> Path:
    """The program `name` of this major version: in `folder`, or in our wheel, on PATH, or where
    distributions keep it. Raises SetupError with what to install when there is none."""
    seen = []
    for path in _candidates(name, major, folder):
        found = _major_of(path)
        if found == major:
            return path
        if found is not None:
            seen.append(f"{path} is {found}")
    others = f" ({'; '.join(seen)})" if seen else ""
    raise SetupError(
        f"the server is PostgreSQL {major}, and there is no {name} of that version here{others}. "
        f"Install its client programs (on Debian: postgresql-client-{major}), or name their folder: "
        "--programs FOLDER"
    )


def _candidates(name: str, major: int, folder: Path | None) -> Iterator[Path]:
    if folder:
        yield folder / name
        return
    yield PACKAGE / "pginstall" / "bin" / name
    on_path = shutil.which(name)
    if on_path:
        yield Path(on_path)
    yield from (Path(place.format(major=major)) / name for place in ELSEWHERE)


def _major_of(path: Path) -> int | None:
    try:
        told = subprocess.run([path, "--version"], check=False, capture_output=True, text=True)
    except OSError:
        return None
    found = re.search(r"\(PostgreSQL\) (\d+)", told.stdout)
    return int(found[1]) if found else None


def command(program: Path, url: str, options: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The words and the environment of a call. The password is not among the words: all can see those."""
    parts = conninfo_to_dict(url)
    password = parts.pop("password", None)
    env = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    if password is not None:
        env["PGPASSWORD"] = str(password)
    return [str(program), *options, f"--dbname={make_conninfo('', **parts)}"], env
