"""A restore that cannot be done changes nothing; one that can be asks before it sends."""

import io
import subprocess
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from script.lib.backup import archive, restore, take, target
from script.lib.backup import place as places
from script.lib.backup.place import Place
from script.lib.bootstrap import SetupError
from tests.databases import ME, applied, ask, made, made_beside, other, place, put_back
from tools.models import LookFirst

__all__ = ["other"]


def assert_unchanged(name: str, tables: list[str]) -> None:
    """The database has these tables, and nothing was left beside it."""
    found = ask(name, "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
    assert [table for (table,) in found] == tables
    assert made_beside(name) == [name]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("forged", "why"),
    [
        ({"dump_sha256": "00" * 32}, "its signature is false"),
        ({"taken_at": "2026-02-01T00:00:00Z"}, "its signature is false"),
        ({"signature": "00" * 64}, "its signature is false"),
        ({"signed_by": "0123456789abcdef"}, "with the key 0123456789abcdef, which is not known"),
    ],
)
def test_what_another_hand_has_made_is_refused_and_nothing_is_changed(tmp_path, other, forged, why):
    with archive.reading(made(tmp_path)) as backup:
        other_hands = replace(backup, manifest=replace(backup.manifest, **forged))

        with pytest.raises(SetupError, match=why):
            restore.restore(other_hands, place(other), ME)

    assert_unchanged(other, [])


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"postgres": 99}, "of PostgreSQL 99, and the server here is"),
        ({"migrations": ["tools.9999_later"]}, r"newer version .*tools\.9999_later is not known"),
        ({"keys": {"encryption": ["0123"], "seal": ["4567"]}}, "the keys 0123, 4567 are not here"),
        ({"roles": ["nobody_here"]}, "create them first: nobody_here"),
    ],
)
def test_what_could_not_be_used_afterwards_is_refused_and_nothing_is_changed(
    tmp_path, other, facts, why
):
    with pytest.raises(SetupError, match=why):
        put_back(made(tmp_path, **facts), place(other))

    assert_unchanged(other, [])


@pytest.mark.django_db
def test_a_database_that_is_not_empty_is_replaced_only_when_that_is_said_and_confirmed(
    tmp_path, other, monkeypatch
):
    path = made(tmp_path)
    ask(other, "CREATE TABLE mine ()")
    wished = replace(ME, replaces=True)

    with pytest.raises(SetupError, match=rf"{other} is not empty\. --replace"):
        put_back(path, place(other))
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    with pytest.raises(SetupError, match="nobody is here to confirm it"):
        put_back(path, place(other), wished)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: "yes")
    with pytest.raises(SetupError, match="it was not confirmed"):
        put_back(path, place(other), wished)

    assert_unchanged(other, ["mine"])


@pytest.mark.django_db
def test_a_database_that_somebody_works_with_is_refused(tmp_path, other):
    with (
        psycopg.connect(place(other).url, application_name="worker"),
        pytest.raises(SetupError, match=r"1 other connection.* are open \(worker\)"),
    ):
        put_back(made(tmp_path), place(other))

    assert_unchanged(other, [])


@pytest.mark.django_db
def test_who_connects_at_the_last_moment_keeps_the_old_database(tmp_path, other):
    ask(other, "CREATE TABLE mine ()")
    with psycopg.connect(place(other).url) as there:
        old = target.look_at(there)
        fresh = target.create_beside(place(other).url, old)
        with pytest.raises(SetupError, match=r"connected to .* meanwhile"):
            target.put_in_place(place(other).url, old, fresh)
    target.drop(place(other).url, fresh)

    assert_unchanged(other, ["mine"])


@pytest.mark.django_db
def test_a_dump_that_cannot_be_loaded_leaves_the_old_database(tmp_path, other):
    ask(other, "CREATE TABLE mine ()")
    wishes = replace(ME, replaces=True, is_confirmed=True)

    with pytest.raises(SetupError, match="pg_restore failed"):
        put_back(made(tmp_path), place(other), wishes)

    assert_unchanged(other, ["mine"])


@pytest.mark.django_db
def test_a_role_that_may_not_create_databases_is_told_what_it_needs(tmp_path, other):
    role = f"{other}_role"
    ask("postgres", f'CREATE ROLE "{role}" LOGIN')
    try:
        ask("postgres", f'ALTER DATABASE "{other}" OWNER TO "{role}"')
        url = psycopg.conninfo.make_conninfo(place(other).url, user=role)
        with pytest.raises(SetupError, match="may not create databases"):
            put_back(made(tmp_path), Place(url, place(other).env))
    finally:
        ask("postgres", f'ALTER DATABASE "{other}" OWNER TO CURRENT_USER')
        ask("postgres", f'DROP ROLE "{role}"')

    assert_unchanged(other, [])


@pytest.fixture
def managed(monkeypatch):
    """What was asked of `manage.py`, which does nothing and fails where it is told to."""
    asked: list[tuple[str, ...]] = []
    fails: set[str] = set()

    def manage(_: Place, *words: str) -> "subprocess.CompletedProcess[str]":
        asked.append(words)
        return subprocess.CompletedProcess(words, int(" ".join(words[:2]) in fails), "done", "")

    monkeypatch.setattr(restore, "manage", manage)
    return asked, fails


@pytest.mark.django_db(transaction=True)
def test_an_older_backup_is_brought_up_to_date_only_when_that_is_said(tmp_path, other, managed):
    asked, fails = managed
    path = take.take(place(), tmp_path)
    fails.add("migrate --check")

    with pytest.raises(SetupError, match=r"older version .* add --migrate"):
        put_back(path, place(other))
    assert_unchanged(other, [])
    asked.clear()
    put_back(path, place(other), replace(ME, migrates=True))

    with archive.reading(path) as backup:
        since = backup.manifest.taken_at
    assert [words[0] for words in asked] == ["migrate", "migrate", "audit_verify", "after_restore"]
    assert asked[-1] == ("after_restore", "--since", since, "--by", "dana")
    assert made_beside(other) == [other]
    assert ask(other, "SELECT count(*) FROM django_migrations") == [(len(applied()),)]


@pytest.mark.django_db(transaction=True)
def test_a_database_that_would_not_look_first_is_not_put_in_place(tmp_path, other, managed):
    _, fails = managed
    path = take.take(place(), tmp_path)
    fails.add("after_restore --since")

    with pytest.raises(SetupError, match="after_restore: done"):
        put_back(path, place(other))

    assert_unchanged(other, [])


@pytest.mark.django_db(transaction=True)
def test_whoever_is_on_the_list_of_erasures_is_erased_again_before_anybody_looks(
    tmp_path, other, managed, capsys
):
    asked, fails = managed
    path = take.take(place(), tmp_path)
    listed, there = tmp_path / "erasures", place(other)
    listed.touch()
    fails.add(f"replay_erasures {listed}")  # something of it has to wait, which is no failure

    put_back(path, Place(there.url, {**there.env, "COUNTERSIGN_ERASURE_LIST_FILE": str(listed)}))

    assert asked[-1] == ("replay_erasures", str(listed))
    assert "No list of erasures" not in capsys.readouterr().err
    assert ask(other, "SELECT count(*) FROM django_migrations") == [(len(applied()),)]


@pytest.mark.django_db(transaction=True)
def test_rows_that_are_not_those_of_the_manifest_are_refused(tmp_path, other, managed):
    asked, _ = managed
    path = take.take(place(), tmp_path)
    with archive.reading(path) as backup:
        told = replace(backup.manifest, rows={**backup.manifest.rows, "agents_task": 10**6})
        told = replace(told, signature=places.signer(place().env).sign(told.content()).hex())

        with pytest.raises(SetupError, match="not those of the manifest: agents_task"):
            restore.restore(replace(backup, manifest=told), place(other), ME)

    assert asked == []
    assert_unchanged(other, [])


# --- What a restored database needs ---------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("since", ["soon", "2026-13-01T00:00:00Z", "2026-01-31T14:05:00", "2999-01-01T00:00:00Z"])  # fmt: skip
def test_a_moment_that_makes_no_sense_changes_nothing(since):
    before = ask_numbers()

    with pytest.raises(CommandError):
        call_command("after_restore", since=since, by="dana")

    assert not LookFirst.objects.exists()
    assert ask_numbers() == before


def ask_numbers() -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sequencename, last_value FROM pg_sequences ORDER BY 1")
        return list(cursor.fetchall())


@pytest.mark.django_db
def test_every_number_that_we_give_out_goes_on_beyond_those_that_were_lost():
    before = dict(ask_numbers())

    call_command("after_restore", since="2026-01-31T14:05:00Z", by="dana", verbosity=0)

    skipped = {
        name for name, value in ask_numbers() if (value or 0) > (before[name] or 0) + 999_999
    }
    ours = ("agents_", "approvals_", "tools_", "accounts_", "audit_")
    assert {name for name in before if name.startswith(ours)} - skipped <= LINKS
    assert skipped >= {"agents_task_id_seq", "agents_ticket_id_seq", "tools_operation_id_seq"}


# Rows between two tables, whose numbers nobody is told.
LINKS = {"accounts_user_groups_id_seq", "accounts_user_user_permissions_id_seq"}
