"""`script/restore`: a backup becomes the product's database, and pays nothing a second time.

Everything is done in a new database beside the old one. It gets the old one's name last, when it is
known to be whole and asks every shop before it sends; whatever stops the work before that has changed
nothing. The old database is kept under another name.
"""

import argparse
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psycopg
from cryptography.exceptions import InvalidSignature
from psycopg.conninfo import make_conninfo

from script.lib.backup import archive, place, programs, target
from script.lib.backup.archive import Backup, Manifest
from script.lib.backup.place import Place
from script.lib.backup.take import head, rows, server_major
from script.lib.bootstrap import ROOT, SetupError, say
from script.lib.prepared import APPS

INTO_DATABASE = ("--format=custom", "--no-owner", "--exit-on-error", "--single-transaction")


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What the person has asked for."""

    by: str
    replaces: bool = False
    is_confirmed: bool = False
    migrates: bool = False
    erasures: Path | None = None
    programs: Path | None = None


def main(arguments: Sequence[str]) -> int:
    """0 when the backup is the product's database now; 1 when nothing was changed."""
    options = _options(arguments)
    wishes = Wishes(
        by=options.by,
        replaces=options.replace,
        is_confirmed=options.yes,
        migrates=options.migrate,
        erasures=options.erasures,
        programs=options.programs,
    )
    try:
        with archive.reading(options.file) as backup:
            place.with_database(lambda there: restore(backup, there, wishes), stopped=True)
    except (SetupError, psycopg.Error, OSError) as exc:
        print(f"script/restore: {exc}\nNothing was changed.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="script/restore",
        description="Make a backup of script/backup the product's database, which must not be in "
        "use. Nothing is sent from it before the shop was asked whether it has happened already.",
        epilog="It needs the keys that were in use at the time of the backup, and a role that may "
        "create databases.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="what script/backup has written")
    parser.add_argument("--replace", action="store_true", help="though the database is not empty")
    parser.add_argument("--yes", action="store_true", help="do not ask before replacing")
    parser.add_argument("--migrate", action="store_true", help="bring an older backup up to date")
    parser.add_argument(
        "--by", default="restore", metavar="NAME", help="who does it, for the trail"
    )
    parser.add_argument(
        "--erasures", type=Path, metavar="FILE",
        help="the list of erasures (default: COUNTERSIGN_ERASURE_LIST_FILE)",
    )  # fmt: skip
    parser.add_argument(
        "--programs", type=Path, metavar="DIR", help="the folder of PostgreSQL's pg_restore"
    )
    return parser.parse_args(arguments)


def restore(backup: Backup, there: Place, wishes: Wishes) -> None:
    """Put the backup in the place of the database. Raises SetupError with nothing changed."""
    manifest = backup.manifest
    _require_signature(manifest, there)
    with psycopg.connect(there.url) as connection:
        major = server_major(connection)
        old = target.look_at(connection)
        _require_fit(manifest, there, major, target.roles(connection))
    program = programs.find("pg_restore", major, wishes.programs)
    _require_leave(old, wishes)
    fresh = target.create_beside(there.url, old)
    try:
        there_now = _at(there, fresh)
        _fill(backup, program, there_now.url)
        _prove(manifest, there_now, wishes)
        _look_first(manifest, there_now, wishes.by)
        _erase_again(there_now, wishes)
        kept = target.put_in_place(there.url, old, fresh)
    except BaseException:
        with suppress(SetupError, psycopg.Error):  # what went wrong first is what to tell
            target.drop(there.url, fresh)
        raise
    _say_done(manifest, there, kept)


def _require_signature(manifest: Manifest, there: Place) -> None:
    """Refuse what somebody else may have made: whoever writes a database makes themselves its admin."""
    key = place.seal_keys(there.env).get(manifest.signed_by)
    if key is None:
        raise SetupError(
            f"it is signed with the key {manifest.signed_by}, which is not known here: set "
            "COUNTERSIGN_SEAL_KEY as it was, or its public key in COUNTERSIGN_SEAL_PUBLIC_KEYS"
        )
    try:
        key.verify(bytes.fromhex(manifest.signature), manifest.content())
    except InvalidSignature as exc:
        raise SetupError("its signature is false: the manifest was changed") from exc


def _require_fit(manifest: Manifest, there: Place, major: int, roles: set[str]) -> None:
    """Refuse what could not be read or run afterwards, before anything is made."""
    if manifest.postgres > major:
        raise SetupError(f"it is of PostgreSQL {manifest.postgres}, and the server here is {major}")
    unknown = sorted(set(_ours(manifest.migrations)) - set(_migrations_here()))
    if unknown:
        raise SetupError(
            f"it is of a newer version ({manifest.version}): the migration {unknown[0]} is not known "
            "here. Restore it with that version's checkout"
        )
    needed = {*manifest.keys["encryption"], *manifest.keys["seal"]}
    missing = needed - {*place.encryption_ids(there.env), *place.seal_keys(there.env)}
    if missing:
        raise SetupError(
            f"the keys {', '.join(sorted(missing))} are not here. Set what was set at the time of "
            "the backup: COUNTERSIGN_ENCRYPTION_KEYS (all of them), COUNTERSIGN_SEAL_KEY and "
            "COUNTERSIGN_SEAL_PUBLIC_KEYS"
        )
    if set(manifest.roles) - roles:
        names = ", ".join(sorted(set(manifest.roles) - roles))
        raise SetupError(f"it gives rights to roles that are not here; create them first: {names}")


def _ours(names: list[str]) -> list[str]:
    return [name for name in names if name.partition(".")[0] in APPS]


def _migrations_here() -> list[str]:
    found = (path for app in APPS for path in (ROOT / app / "migrations").glob("[0-9]*.py"))
    return [f"{path.parts[-3]}.{path.stem}" for path in found]


def _require_leave(old: target.Database, wishes: Wishes) -> None:
    if old.others:
        raise SetupError(
            f"{old.others} other connection(s) to the database {old.name} are open ({old.who}). Stop "
            "the product, and whatever else looks at it"
        )
    if old.is_empty:
        return
    if not wishes.replaces:
        raise SetupError(
            f"the database {old.name} is not empty. --replace puts the backup in its place and keeps "
            "it under another name"
        )
    if not wishes.is_confirmed and not _confirmed(old.name):
        raise SetupError("it was not confirmed")


def _confirmed(name: str) -> bool:
    if not sys.stdin.isatty():
        raise SetupError("nobody is here to confirm it; --yes does")
    return input(f"Type the name of the database to replace it ({name}): ").strip() == name


def _at(there: Place, name: str) -> Place:
    url = make_conninfo(there.url, dbname=name)
    return Place(url, {**there.env, "DATABASE_URL": url})


def _fill(backup: Backup, program: Path, url: str) -> None:
    say(f"Restoring what was there at {backup.manifest.taken_at}")
    words, env = programs.command(program, url, INTO_DATABASE)
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stderr=errors) as process,
    ):
        assert process.stdin is not None  # noqa: S101 - asked for above
        try:
            _pour(backup, process.stdin)
        except BaseException:
            process.kill()
            raise
        if process.wait() != 0:
            errors.seek(0)
            raise SetupError(f"pg_restore failed: {errors.read().strip()}")


def _pour(backup: Backup, into: IO[bytes]) -> None:
    """Hand over all of the dump; a program that has ended says itself why it reads no more."""
    with suppress(BrokenPipeError), backup.dump() as dump:
        try:
            while chunk := dump.read(archive.CHUNK):
                into.write(chunk)
        except (zipfile.BadZipFile, EOFError) as exc:
            raise SetupError(f"the file changed while it was read: {exc}") from exc
    with suppress(BrokenPipeError):
        into.close()


def _prove(manifest: Manifest, there: Place, wishes: Wishes) -> None:
    """It is all there, this code can work with it, and the trail holds."""
    with psycopg.connect(there.url) as connection:
        found, newest = rows(connection), head(connection)
    if found != manifest.rows or newest != manifest.head:
        differs = sorted(name for name, count in manifest.rows.items() if found.get(name) != count)
        raise SetupError(f"the rows are not those of the manifest: {', '.join(differs) or 'seals'}")
    say(f"All {sum(found.values()):,} rows are there")
    if manage(there, "migrate", "--check").returncode != 0:
        if not wishes.migrates:
            raise SetupError(
                f"it is of an older version ({manifest.version}) and has migrations to catch up "
                "with: add --migrate"
            )
        _managed(there, "migrate", "--no-input", "--verbosity", "1")
    _managed(there, "audit_verify")


def _look_first(manifest: Manifest, there: Place, by: str) -> None:
    _managed(there, "after_restore", "--since", manifest.taken_at, "--by", by)


def _erase_again(there: Place, wishes: Wishes) -> None:
    """What is not done yet (a hold, something under way) is said, and left to the workers."""
    named = there.env.get("COUNTERSIGN_ERASURE_LIST_FILE")
    path = wishes.erasures or (Path(named) if named else None)
    if path is None or (wishes.erasures is None and not path.exists()):
        say("No list of erasures is here: whoever was erased since the backup is back. Erase them")
        say("again before anybody looks: script/manage replay_erasures FILE, or in the console.")
        return
    done = manage(there, "replay_erasures", str(path))
    _repeat(done.stdout + done.stderr)
    if done.returncode not in {0, 1} or not done.stdout:
        raise SetupError(f"the erasures were not done again: {done.stderr.strip()}")


def manage(there: Place, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a management command on this database."""
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *words],
        env=dict(there.env),
        check=False,
        capture_output=True,
        text=True,
    )


def _managed(there: Place, *words: str) -> None:
    """Run it, and repeat what it says. Raises SetupError with its words when it fails."""
    done = manage(there, *words)
    if done.returncode != 0:
        raise SetupError(f"{words[0]}: {(done.stdout + done.stderr).strip()}")
    _repeat(done.stdout)


def _repeat(words: str) -> None:
    for line in words.splitlines():
        say(line.strip())


def _say_done(manifest: Manifest, there: Place, kept: str | None) -> None:
    say(
        "Restored. What was changed after the backup is as it was: people and their rights, switches,"
    )
    say("settings, keys of shops, blocked customers. Look at those before you start the product.")
    if kept:
        say(f'The database before is kept as "{kept}": dropdb it when it is of no more use.')
    published = there.env.get("COUNTERSIGN_SEAL_HEAD_FILE")
    if published and manifest.head:
        say(
            f"{published} may name a newer seal than {manifest.head.seal}: keep it as evidence, and"
        )
        say("name another file for the chain that begins here.")
