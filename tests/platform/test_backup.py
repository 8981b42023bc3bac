"""A backup is whole or it is none."""

import base64
import io
import json
import os
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typing_extensions import override

from audit import keys as seal_keys
from audit.models import Event
from script.lib import environment, keys, postgres, record, server
from script.lib.backup import archive, programs, restore, take
from script.lib.backup import place as places
from script.lib.backup.archive import NoBackupError
from script.lib.bootstrap import SetupError
from tests.databases import FACTS, applied, made, other, place

__all__ = ["other"]
# --- The file -------------------------------------------------------------------------------------


def test_a_backup_is_read_as_it_was_written_and_its_owner_alone_may(tmp_path):
    path = made(tmp_path, b"bytes" * 1_000_000)

    with archive.reading(path) as backup, backup.dump() as dump:
        assert backup.manifest.taken_at == FACTS["taken_at"]
        assert dump.read() == b"bytes" * 1_000_000

    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_backup_that_was_not_finished_leaves_no_file(tmp_path):
    class Broken(io.BytesIO):
        @override
        def read(self, *_: Any) -> bytes:
            raise OSError("no space is left")

    for source, fault in ((Broken(), OSError), (io.BytesIO(b"all of it"), NoBackupError)):
        with pytest.raises(fault), archive.writing(tmp_path / "x") as draft:
            draft.write_dump(source)

    assert list(tmp_path.iterdir()) == []


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def cut_at_the_beginning(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:3000])


def change_a_byte_of_the_dump(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[5000] ^= 1
    path.write_bytes(whole)


def exchange_the_dump(path: Path) -> None:
    _pack(path, {archive.DUMP: b"another dump"})


def add_a_file(path: Path) -> None:
    _pack(path, {"more": b""})


def spoil_the_manifest(path: Path) -> None:
    _pack(path, {archive.MANIFEST: b'{"format": "countersign.backup/1"}'})


def spoil_the_types(path: Path) -> None:
    with zipfile.ZipFile(path) as old:
        told = json.loads(old.read(archive.MANIFEST))
    _pack(path, {archive.MANIFEST: json.dumps({**told, "keys": {}, "rows": ["x"]}).encode()})


def be_of_another_form(path: Path) -> None:
    _pack(path, {archive.MANIFEST: b'{"format": "countersign.backup/2"}'})


def be_something_else(path: Path) -> None:
    path.write_text("PGDMP")


def _pack(path: Path, changes: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w") as new:
        for name, content in {**parts, **changes}.items():
            new.writestr(name, content)


@pytest.mark.parametrize(
    "spoil",
    [cut, cut_at_the_beginning, change_a_byte_of_the_dump, exchange_the_dump, add_a_file,
     spoil_the_manifest, spoil_the_types, be_of_another_form, be_something_else, Path.unlink],
)  # fmt: skip
def test_a_file_that_is_not_as_it_was_written_is_refused_and_no_database_is_asked(
    tmp_path, monkeypatch, capsys, spoil
):
    path = made(tmp_path)
    spoil(path)
    monkeypatch.setattr(places, "with_database", lambda *_, **__: pytest.fail("it was asked"))

    assert restore.main([str(path), "--replace", "--yes"]) == 1

    assert "Nothing was changed." in capsys.readouterr().err


# --- Taking one -----------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_the_manifest_says_what_the_backup_is_and_holds_no_key(tmp_path):
    there = place()
    path = take.take(there, tmp_path)

    with archive.reading(path) as backup:
        manifest = backup.manifest
    text = str(asdict(manifest))
    assert manifest.migrations[-1] in {f"{app}.{name}" for app, name in applied()}
    assert len(manifest.migrations) == len(applied())
    assert manifest.rows["django_migrations"] == len(applied())
    assert manifest.rows.keys() >= {"audit_event", "tools_operation", "agents_task"}
    assert (manifest.postgres, manifest.roles) == (int(postgres.MAJOR), [])
    assert manifest.last_event == (Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0)  # fmt: skip
    for name in ("COUNTERSIGN_ENCRYPTION_KEYS", "COUNTERSIGN_SEAL_KEY", "COUNTERSIGN_SECRET_KEY"):
        assert there.env[name] not in text
    assert path.stat().st_mode & 0o777 == 0o600


def fake(folder: Path, name: str, words: str, major: str = postgres.MAJOR) -> Path:
    """A folder with a program of that name, which says its version when asked."""
    path = folder / "programs" / name
    path.parent.mkdir()
    told = f'[ "$1" = --version ] && echo "{name} (PostgreSQL) {major}.1" && exit 0'
    path.write_text(f"#!/bin/sh\n{told}\n{words}\n")
    path.chmod(0o755)
    return path.parent


@pytest.mark.django_db
def test_a_dump_that_breaks_off_is_no_backup(tmp_path):
    into = tmp_path / "backups"
    folder = fake(tmp_path, "pg_dump", "echo half a dump; echo the disk is gone >&2; exit 1")

    with pytest.raises(SetupError, match="pg_dump failed: the disk is gone"):
        take.take(place(), into, folder)

    assert list(into.iterdir()) == []


@pytest.mark.django_db
def test_an_empty_database_is_not_backed_up(tmp_path, other):
    with pytest.raises(SetupError, match="nothing to keep"):
        take.take(place(other), tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_programs_of_another_version_are_refused_and_the_wanted_one_is_named(tmp_path):
    folder = fake(tmp_path, "pg_dump", "exit 0", major="9")

    with pytest.raises(SetupError, match=r"PostgreSQL 98,.*no pg_dump.*postgresql-client-98"):
        programs.find("pg_dump", 98)
    with pytest.raises(SetupError, match=r"programs/pg_dump is 9\)"):
        programs.find("pg_dump", int(postgres.MAJOR), folder)
    assert programs.find("pg_dump", 9, folder) == folder / "pg_dump"
    assert programs.find("pg_dump", int(postgres.MAJOR)).is_relative_to(postgres.PACKAGE)


def test_a_password_is_not_among_the_words_that_everybody_can_read(monkeypatch):
    monkeypatch.setenv("PGSERVICE", "elsewhere")

    words, env = programs.command(
        Path("pg_dump"), "postgresql://me:secret%20one@h:6432/db?sslmode=require", ["-Fc"]
    )

    assert words[:2] == ["pg_dump", "-Fc"]
    assert "secret" not in " ".join(words)
    assert {"host=h", "port=6432", "dbname=db", "sslmode=require"} <= set(words[2].removeprefix("--dbname=").split())  # fmt: skip
    assert (env["PGPASSWORD"], "PGSERVICE" in env) == ("secret one", False)


def test_keys_are_named_as_the_seals_name_them(settings):
    mine = seal_keys.get_signer().key_id
    private = Ed25519PrivateKey.generate().public_key()
    retired = base64.b64encode(private.public_bytes_raw()).decode()
    env = {"COUNTERSIGN_SEAL_KEY": settings.SEAL_KEY, "COUNTERSIGN_SEAL_PUBLIC_KEYS": retired}

    assert list(places.seal_keys(env)) == [mine, seal_keys.key_id(private)]
    assert len(places.encryption_ids({"COUNTERSIGN_ENCRYPTION_KEYS": "a, b,"})) == 2


def test_a_deployments_settings_stand_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("COUNTERSIGN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DATABASE_URL", place("postgres").url)
    for name in ("COUNTERSIGN_DEMO", "COUNTERSIGN_PUBLIC_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)

    there = places.with_database(lambda there: there)

    assert there.url == place("postgres").url
    assert {"COUNTERSIGN_DEMO", "COUNTERSIGN_PUBLIC_URL"} & there.env.keys() == set()
    assert not (tmp_path / "data").exists()


def test_beside_a_database_of_the_persons_own_the_keys_of_the_data_folder_count(
    tmp_path, monkeypatch
):
    kept = keys.load(tmp_path)
    monkeypatch.setenv("COUNTERSIGN_DATA", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", place("postgres").url)
    for name in kept:
        monkeypatch.delenv(name)

    there = places.with_database(lambda there: there)

    assert {name: there.env[name] for name in kept} == kept


def test_the_database_of_a_running_server_is_the_one_that_it_was_given(tmp_path, monkeypatch):
    monkeypatch.setenv("COUNTERSIGN_DATA", str(tmp_path))
    monkeypatch.delenv("DATABASE_URL")
    record.save(tmp_path, record.fresh(ports={}, urls={"web": "http://127.0.0.1:8000"}))
    environment.write(tmp_path / "env", {"DATABASE_URL": "postgresql:///given", "PORT": "8000"})
    lock = server.lock_folder(tmp_path)

    there = places.with_database(lambda there: there)
    with pytest.raises(SetupError, match="a server already runs"):
        places.with_database(lambda there: there, stopped=True)

    os.close(lock)
    assert (there.url, there.env["PORT"]) == ("postgresql:///given", "8000")


def test_with_a_database_and_no_keys_nothing_is_made_up(tmp_path, monkeypatch):
    monkeypatch.setenv("COUNTERSIGN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DATABASE_URL", place("postgres").url)
    monkeypatch.delenv("COUNTERSIGN_SEAL_KEY")

    with pytest.raises(SetupError, match="set COUNTERSIGN_SEAL_KEY"):
        places.with_database(lambda there: there)

    assert not (tmp_path / "data" / "secrets").exists()
