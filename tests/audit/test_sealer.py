"""Sealing: everything committed, once, in one chain."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from audit import sealer, services
from audit.canonical import GENESIS, merkle_root, seal_digest
from audit.heads import (
    HeadConflictError,
    HeadFileError,
    head_line,
    publish_newest,
    uncovered_since,
)
from audit.keys import Keyring, get_signer
from audit.models import Event, Seal, Unsealed
from audit.verify import verify
from tests.audit.facts import NOW, plain_entry, record_committed, sealed_trail, tamper
from tests.audit.facts import seal as seal_waiting


@contextmanager
def in_thread(work):
    """Run `work` beside the test; whatever it raises is raised at the end of the block."""
    faults = []

    def run():
        try:
            work()
        except BaseException as exc:  # noqa: BLE001 - handed to the test below
            faults.append(exc)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join(20)
    assert not thread.is_alive()
    if faults:
        raise faults[0]


def test_a_seal_holds_the_waiting_events_in_order(db):
    events = record_committed(plain_entry(), plain_entry(), plain_entry())

    seal = seal_waiting()

    stored = Seal.objects.get()
    leaves = [event.digest for event in events]
    assert seal == stored
    assert (stored.pk, stored.count, stored.signed_at) == (1, 3, NOW)
    assert stored.event_ids == [event.pk for event in events]
    assert bytes(stored.previous) == GENESIS
    assert bytes(stored.leaves) == b"".join(leaves)
    assert bytes(stored.root) == merkle_root(leaves)
    assert bytes(stored.digest) == seal_digest(stored.content().document())
    assert not Unsealed.objects.exists()


def test_a_seal_is_signed_with_the_key_of_the_settings(db):
    record_committed(plain_entry())

    seal = seal_waiting()
    signature, digest = bytes(seal.signature), bytes(seal.digest)

    assert seal.key_id == get_signer().key_id
    assert Keyring().fault(seal.key_id, signature, digest) is None
    assert Keyring().fault(seal.key_id, signature, GENESIS) == "its signature is false"
    assert Keyring().fault("0" * 16, signature, digest) == (
        "it is signed with the unknown key 0000000000000000"
    )


def test_each_seal_continues_the_one_before(db):
    sealed_trail(seals=3, events=1)

    first, second, third = Seal.objects.order_by("id")
    assert bytes(second.previous) == bytes(first.digest)
    assert bytes(third.previous) == bytes(second.digest)


def test_with_nothing_waiting_no_seal_is_made(db):
    sealed_trail(seals=1)

    assert sealer.seal_once() is None
    assert Seal.objects.count() == 1


def test_more_than_a_batch_goes_into_several_seals(db, monkeypatch):
    monkeypatch.setattr(sealer, "BATCH", 2)
    record_committed(*[plain_entry() for _ in range(5)])

    call_command("audit_sealer", "--once", verbosity=0)

    assert list(Seal.objects.order_by("id").values_list("count", flat=True)) == [2, 2, 1]


def test_a_second_seal_after_the_same_one_is_refused_by_the_table(db):
    sealed_trail(seals=1)
    events = record_committed(plain_entry())
    fork = sealer._make(None, [(events[0].pk, events[0].digest)], get_signer(), NOW)
    fork.pk = 2

    with pytest.raises(IntegrityError, match="previous"), transaction.atomic():
        Seal.objects.bulk_create([fork])

    assert Seal.objects.count() == 1


def test_an_unusable_key_stops_sealing_and_takes_nothing_from_the_outbox(db, settings):
    record_committed(plain_entry())
    settings.SEAL_KEY = "dG9vIHNob3J0"

    with pytest.raises(ImproperlyConfigured, match="SEAL_KEY"):
        sealer.seal_once()

    assert Unsealed.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_event_in_flight_is_sealed_later_and_not_skipped():
    recorded, commit = threading.Event(), threading.Event()

    def slow_writer():
        with transaction.atomic():
            services.record_many([plain_entry(subject="task:1")])
            recorded.set()
            assert commit.wait(20)

    with in_thread(slow_writer):
        assert recorded.wait(20)
        record_committed(plain_entry(subject="task:2"))
        while_in_flight = seal_waiting()
        commit.set()
    after = seal_waiting()

    early, late = Event.objects.order_by("id")
    assert (early.subject, late.subject) == ("task:1", "task:2")
    assert while_in_flight.event_ids == [late.pk]
    assert after.event_ids == [early.pk]
    assert verify().holds


@pytest.mark.django_db(transaction=True)
def test_while_one_sealer_is_at_work_another_does_nothing():
    record_committed(plain_entry())
    locked, release = threading.Event(), threading.Event()

    def other_sealer():
        with transaction.atomic():
            assert sealer._lock()
            locked.set()
            assert release.wait(20)

    with in_thread(other_sealer):
        assert locked.wait(20)
        assert sealer.seal_once() is None
        release.set()

    assert not Seal.objects.exists()
    assert seal_waiting().count == 1


@pytest.mark.django_db(transaction=True)
def test_many_writers_and_two_sealers_make_one_chain_with_every_event_once():
    writing = threading.Event()
    writing.set()

    def write():
        for n in range(10):
            record_committed(plain_entry(subject=f"task:{n}"), plain_entry())

    def seal():
        while writing.is_set():
            sealer.seal_once()

    with in_thread(seal), in_thread(seal):
        with in_thread(write), in_thread(write), in_thread(write), in_thread(write):
            pass
        writing.clear()
    sealer.seal_once()

    report = verify()
    assert report.holds, report.faults
    assert (report.sealed, report.unsealed) == (80, 0)
    assert list(Seal.objects.order_by("id").values_list("id", flat=True)) == list(
        range(1, report.seals + 1)
    )


@pytest.mark.django_db(transaction=True)
def test_the_sealer_goes_on_after_it_lost_its_connection(caplog):
    stop = threading.Event()
    backend = []

    def run():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            backend.append(cursor.fetchone()[0])
        sealer.run(stop.wait, interval=0.02)

    with in_thread(run):
        record_committed(plain_entry())
        wait_until(lambda: Seal.objects.count() == 1)
        connection.cursor().execute("SELECT pg_terminate_backend(%s)", backend)
        record_committed(plain_entry())
        wait_until(lambda: Seal.objects.count() == 2)
        stop.set()

    assert "The sealer lost the database" in caplog.text
    assert verify().holds


def wait_until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_the_command_seals_until_it_is_told_to_stop(stop):
    record_committed(plain_entry())
    name = connection.settings_dict["NAME"]
    process = subprocess.Popen(
        [sys.executable, "manage.py", "audit_sealer", "--interval", "0.1"],
        cwd=settings.BASE_DIR,
        env=child_environment(name),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until(lambda: Seal.objects.count() == 1)
        process.send_signal(stop)
        output, _ = process.communicate(timeout=20)
    finally:
        process.kill()

    assert process.returncode == 0, output
    assert output == "The sealer is running.\nThe sealer has stopped.\n"


def child_environment(database):
    host = connection.settings_dict["HOST"]
    user = connection.settings_dict["USER"]
    return os.environ | {"DATABASE_URL": f"dbname={database} host={host} user={user}"}


def test_the_newest_head_is_published_and_replaced(db, tmp_path, settings):
    settings.SEAL_HEAD_FILE = str(tmp_path / "head")
    sealed_trail(seals=1)
    sealer.publish()
    first = json.loads((tmp_path / "head").read_bytes())
    sealed_trail(seals=1)
    sealer.publish()
    second = json.loads((tmp_path / "head").read_bytes())

    assert (first["seal"]["number"], second["seal"]["number"]) == (1, 2)
    assert second["digest"] == bytes(Seal.objects.get(pk=2).digest).hex()
    assert [path.name for path in tmp_path.iterdir()] == ["head"]


def test_a_head_that_is_not_in_the_chain_is_kept_as_evidence(db, tmp_path, settings, caplog):
    settings.SEAL_HEAD_FILE = str(tmp_path / "head")
    sealed_trail(seals=2)
    sealer.publish()
    published = (tmp_path / "head").read_bytes()
    tamper("DELETE FROM audit_seal WHERE id = 2")
    record_committed(plain_entry())
    sealer.seal_once(now=NOW + timedelta(seconds=1))

    with pytest.raises(HeadConflictError, match="seal 2, is not in the chain"):
        publish_newest(tmp_path / "head")
    sealer.publish()

    assert (tmp_path / "head").read_bytes() == published
    assert "is not in the chain; the file was left as it is" in caplog.text


def test_a_file_that_is_no_head_is_not_overwritten(db, tmp_path):
    sealed_trail(seals=1)
    (tmp_path / "head").write_text("shopping list\n")

    with pytest.raises(HeadFileError, match="line 1: not a published head"):
        publish_newest(tmp_path / "head")

    assert (tmp_path / "head").read_text() == "shopping list\n"


def test_a_head_that_cannot_be_written_does_not_stop_the_sealer(db, tmp_path, settings, caplog):
    settings.SEAL_HEAD_FILE = str(tmp_path / "no such folder" / "head")
    sealed_trail(seals=1)

    assert not sealer.publish()

    assert "head was not published" in caplog.text
    record_committed(plain_entry())
    assert sealer.seal_once(now=NOW + timedelta(seconds=1)) is not None


def test_what_no_published_head_covers_is_told_from_its_oldest_event_on(db, tmp_path, settings):
    path = tmp_path / "head"
    settings.SEAL_HEAD_FILE = str(path)
    assert uncovered_since(path) is None
    first = sealed_trail(seals=1)
    assert uncovered_since(path) == min(event.at for event in first)
    sealer.publish()
    assert uncovered_since(path) is None

    more = record_committed(*[plain_entry(at=NOW + timedelta(minutes=1))] * 2)
    assert uncovered_since(path) == min(event.at for event in more)
    sealer.seal_once(now=NOW + timedelta(seconds=1))
    assert uncovered_since(path) == min(event.at for event in more)
    sealer.publish()
    assert uncovered_since(path) is None

    path.write_text("shopping list\n")
    assert uncovered_since(path) == min(event.at for event in first)


@pytest.mark.django_db(transaction=True)
def test_a_head_that_could_not_be_published_is_tried_again_without_a_new_seal(tmp_path, settings):
    folder = tmp_path / "away"
    settings.SEAL_HEAD_FILE = str(folder / "head")
    record_committed(plain_entry())
    pauses: list[float] = []

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        if sum(pauses) > sealer.PUBLISH_AGAIN / 2:
            folder.mkdir(exist_ok=True)
        return sum(pauses) > 2 * sealer.PUBLISH_AGAIN

    sealer.run(wait, interval=5.0)

    assert Seal.objects.count() == 1
    assert (folder / "head").read_bytes() == head_line(Seal.objects.get())
