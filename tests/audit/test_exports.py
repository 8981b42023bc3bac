"""Exports as jobs: one at a time for a person, never half of one, and each step on record."""

import os
import shutil
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, OperationalError, transaction
from django.utils import timezone

from audit import bundle, export_work, exports, jobs, services
from audit.export_models import Export, ExportState
from audit.exports import ExportGoneError, TooManyExportsError
from audit.models import Event
from audit.selectors import EventFilter
from tests.audit.bundles import EVERYTHING, OURS, OWNER, ask, make_export, manifest_of
from tests.audit.facts import NOW, SHOP, full_entry, record_committed, sealed_trail, tamper

pytestmark = pytest.mark.django_db(transaction=True)
LATER = NOW + timedelta(hours=25)


def events_of(export: Export) -> list[tuple[str, str]]:
    found = Event.objects.filter(subject=export.subject).order_by("id")
    return [(event.actor, event.action) for event in found]


def run(export: Export) -> bool:
    return export_work.run(export.pk, clock=lambda: NOW)


def lose_the_worker(export: Export) -> None:
    """Its lease is over, as that of a worker that was killed."""
    tamper(
        "UPDATE audit_export SET lease_until = clock_timestamp() - interval '1 second' WHERE id = %s",
        [export.pk],
    )


def fetch(export: Export, **changes) -> Export:
    details: dict[str, Any] = {
        "owner_id": OWNER,
        "shop_id": SHOP,
        "actor": "auditor:audrey",
        "now": NOW,
    }
    return exports.fetch(export_id=export.pk, **details | changes)


# --- From asking to fetching ----------------------------------------------------------------------


def test_an_export_is_asked_for_made_and_fetched_and_each_step_is_on_record(sent):
    sealed_trail()

    export = ask(EventFilter(shop_id=SHOP, action="refund"))
    assert (export.state, sent) == ("queued", [export.pk])
    jobs.export(export_id=str(export.pk))
    export.refresh_from_db()

    assert (export.state, export.done, export.total, export.percent) == ("ready", 6, 6, 100)
    assert export.size == export.path.stat().st_size
    assert fetch(export) == export
    assert events_of(export) == [
        ("auditor:audrey", "export.requested"),
        ("auditor:audrey", "export.created"),
        ("auditor:audrey", "export.downloaded"),
    ]


def test_the_record_says_who_which_filter_how_much_and_which_digest():
    record_committed(full_entry(), full_entry())
    asked = EventFilter(shop_id=SHOP, since=NOW, action="refund", customer="ada")

    export = make_export(asked, form="csv")

    created = Event.objects.get(action="export.created")
    assert (created.actor, created.shop_id, created.at) == ("auditor:audrey", SHOP, NOW)
    assert created.data == {
        "format": "csv",
        "filter": {
            "shop_id": SHOP,
            "since": "2026-03-01T12:30:15.123456Z",
            "action": "refund",
            "customer": "ada",
        },
        "redacted": True,
        "count": 2,
        "sha256": manifest_of(export)["files"]["events.jsonl"]["sha256"],
        "manifest": bytes(export.manifest_digest or b"").hex(),
    }


def test_words_need_a_reason_and_the_reason_is_on_record():
    with pytest.raises(exports.ReasonMissingError):
        ask(is_redacted=False, reason="  ")
    assert (Export.objects.count(), Event.objects.count()) == (0, 0)

    ask(is_redacted=False, reason="Case 12")

    assert Event.objects.get().data["reason"] == "Case 12"
    assert Event.objects.get().data["redacted"] is False


def test_an_export_that_cannot_be_recorded_is_not_asked_for(sent):
    with pytest.raises(services.InvalidEntryError):
        ask(actor="nobody!")

    assert (Export.objects.count(), sent) == (0, [])


# --- How many -------------------------------------------------------------------------------------


def test_a_person_has_one_under_way_and_the_second_is_refused(sent):
    first = ask()

    with pytest.raises(TooManyExportsError, match="You have an export under way"):
        ask()

    assert Export.objects.get() == first
    assert (Event.objects.count(), sent) == (1, [first.pk])


def test_the_database_refuses_a_second_one_under_way_as_well():
    first = ask()

    with pytest.raises(IntegrityError, match="one_under_way"), transaction.atomic():
        Export.objects.create(owner_id=first.owner_id, shop_id=9, actor="a", form="csv", created_at=NOW)  # fmt: skip


def test_a_shop_has_so_many_under_way_and_one_more_is_refused():
    for owner in range(exports.PER_SHOP):
        ask(owner_id=owner)

    with pytest.raises(TooManyExportsError, match="3 exports of this shop are under way"):
        ask(owner_id=99)

    assert Export.objects.count() == exports.PER_SHOP
    ask(EventFilter(shop_id=SHOP + 1), owner_id=99)


def test_once_it_has_ended_the_next_one_may_begin():
    make_export()

    assert ask().state == ExportState.QUEUED


def test_the_deployment_makes_so_many_at_once_and_the_others_wait_their_turn(monkeypatch):
    monkeypatch.setattr(export_work, "RUNNING_AT_ONCE", 1)
    first, second = ask(owner_id=1), ask(owner_id=2)
    assert export_work.claim(first.pk, now=NOW)

    assert not run(second)

    second.refresh_from_db()
    assert (second.state, second.epoch) == ("queued", 0)
    lose_the_worker(first)
    assert run(second)


def test_a_persons_oldest_bundle_makes_room_for_the_newest(monkeypatch, folder):
    monkeypatch.setattr(exports, "KEPT", 2)
    sealed_trail(seals=1, events=1)

    made = [make_export(now=NOW + timedelta(seconds=n)) for n in range(3)]

    made[0].refresh_from_db()
    assert made[0].state == ExportState.EXPIRED
    assert {path.name for path in folder.iterdir()} == {one.path.name for one in made[1:]}
    assert events_of(made[0])[-1] == ("system", "export.expired")


# --- Never half of one ----------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["gather", "pack", "sign", "_finish"])
def test_a_worker_that_dies_anywhere_leaves_nothing_that_is_called_done(monkeypatch, folder, where):
    sealed_trail()
    export = ask()
    place = export_work if where == "_finish" else bundle

    def die(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(place, where, die)
        with pytest.raises(KeyboardInterrupt):
            run(export)

    export.refresh_from_db()
    assert (export.state, export.manifest_digest) == ("running", None)
    with pytest.raises(ExportGoneError):
        fetch(export)
    assert not run(export)  # while the lease holds, nobody else begins

    lose_the_worker(export)
    exports.sweep(now=NOW)
    assert run(export)
    export.refresh_from_db()
    assert (export.state, export.epoch) == ("ready", 2)
    exports.sweep(now=NOW)
    assert [path.name for path in folder.iterdir()] == [export.path.name]


def test_a_worker_that_was_overtaken_changes_nothing(monkeypatch, folder):
    sealed_trail()
    export = ask()
    pack = bundle.pack

    def slow(*args, **options):
        lose_the_worker(export)
        taken = export_work.claim(export.pk, now=NOW)
        assert taken is not None
        pack(*args, **options)

    monkeypatch.setattr(bundle, "pack", slow)
    monkeypatch.setattr(export_work, "BEAT_SECONDS", 3600)

    assert not run(export)

    export.refresh_from_db()
    assert (export.state, export.epoch, export.manifest_digest) == ("running", 2, None)
    assert list(folder.iterdir()) == []


def test_an_export_that_never_ends_is_given_up():
    export = ask()
    for _ in range(export_work.MOST_TRIES):
        assert export_work.claim(export.pk, now=NOW)
        lose_the_worker(export)

    assert not run(export)

    export.refresh_from_db()
    assert (export.state, export.error) == ("failed", "It was begun 3 times and never ended.")
    assert events_of(export)[-1] == ("system", "export.failed")
    assert ask().state == "queued"


def test_a_full_disk_is_said_and_leaves_nothing(monkeypatch, folder):
    sealed_trail()
    export = ask()

    def no_space(*_, **__):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(bundle, "pack", no_space)

    assert not run(export)

    export.refresh_from_db()
    assert export.error == "The file could not be written: No space left on device."
    assert (export.state, list(folder.iterdir())) == ("failed", [])


def test_a_database_that_goes_away_is_no_failure_of_the_export(monkeypatch):
    export = ask()

    def gone(*_, **__):
        raise OperationalError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(bundle, "gather", gone)
        with pytest.raises(OperationalError):
            run(export)

    lose_the_worker(export)
    assert run(export)


def test_a_stopped_export_stops_where_it_is(monkeypatch, folder):
    sealed_trail()
    export = ask()
    monkeypatch.setattr(export_work, "BEAT_SECONDS", 0)
    gather = bundle.gather

    def stopped(order, place, *, started, progress):
        exports.cancel(export_id=export.pk, owner_id=OWNER, now=NOW)
        return gather(order, place, started=started, progress=progress)

    monkeypatch.setattr(bundle, "gather", stopped)

    assert not run(export)

    export.refresh_from_db()
    assert (export.state, list(folder.iterdir())) == ("cancelled", [])
    assert events_of(export)[-1] == ("auditor:audrey", "export.cancelled")
    assert ask().state == "queued"


def test_stopping_what_has_ended_changes_nothing():
    export = make_export()

    exports.cancel(export_id=export.pk, owner_id=OWNER, now=NOW)

    export.refresh_from_db()
    assert export.state == "ready"
    assert events_of(export)[-1] == ("auditor:audrey", "export.created")


def test_the_row_tells_how_far_it_is(monkeypatch):
    sealed_trail(seals=2, events=3)
    export = ask(EventFilter(shop_id=SHOP, action="refund"))
    monkeypatch.setattr(export_work, "BEAT_SECONDS", 0)
    seen = []
    tell = export_work._Beat._tell

    def heard(self, **facts):
        tell(self, **facts)
        row = Export.objects.get(pk=export.pk)
        seen.append((row.total, row.done, row.percent))

    monkeypatch.setattr(export_work._Beat, "_tell", heard)

    assert run(export)

    assert seen[:3] == [(6, 0, 0), (6, 3, 40), (6, 6, 80)]
    assert [percent for _, _, percent in seen] == sorted(percent for _, _, percent in seen)
    assert seen[-1][2] <= 99


def test_a_lost_message_is_found_by_the_sweep(sent):
    export = ask()
    sent.clear()

    jobs.sweep()

    assert sent == [export.pk]


def test_a_message_that_comes_twice_or_for_nothing_makes_one_bundle():
    export = make_export()

    assert not run(export)
    assert not export_work.run(uuid4())

    assert Event.objects.filter(action="export.created").count() == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"state": "done"},
        {"state": "ready"},
        {"state": "running"},
        {"form": "exe"},
        {"is_redacted": False},
    ],
)
def test_the_database_refuses_what_must_not_be(fields):
    export = ask()

    with pytest.raises(IntegrityError), transaction.atomic():
        Export.objects.filter(pk=export.pk).update(**fields)


# --- Whose, and for how long ----------------------------------------------------------------------


@pytest.mark.parametrize("who", [{"owner_id": OWNER + 1}, {"shop_id": SHOP + 1}, {"shop_id": None}])
def test_nobody_else_may_fetch_it_nor_the_same_person_from_another_shop(who):
    export = make_export()

    with pytest.raises(Export.DoesNotExist):
        fetch(export, **who)

    assert ("auditor:audrey", "export.downloaded") not in events_of(export)


def test_nobody_else_may_stop_it():
    export = ask()

    with pytest.raises(Export.DoesNotExist):
        exports.cancel(export_id=export.pk, owner_id=OWNER + 1, now=NOW)

    export.refresh_from_db()
    assert export.state == "queued"


def test_a_list_holds_ones_own_newest_first():
    make_export(owner_id=9)
    first, second = make_export(), make_export(now=NOW + timedelta(seconds=1))
    make_export(EVERYTHING)

    assert exports.list_exports(owner_id=OWNER, shop_id=SHOP) == [second, first]


def test_after_its_time_the_file_is_gone_and_cannot_be_fetched(folder):
    export = make_export()
    with pytest.raises(ExportGoneError, match="not there any more"):
        fetch(export, now=LATER)

    exports.sweep(now=LATER)

    export.refresh_from_db()
    assert (export.state, list(folder.iterdir())) == ("expired", [])
    assert events_of(export)[-1] == ("system", "export.expired")


def test_before_its_time_the_sweep_leaves_it():
    export = make_export()

    exports.sweep(now=NOW + timedelta(hours=23))

    assert fetch(export).path.is_file()


def test_files_that_no_export_has_are_removed_and_others_left(folder):
    export = make_export()
    strays = [folder / f"{uuid4()}.1.zip", folder / f"{export.pk}.7.zip"]
    for stray in strays:
        stray.write_bytes(b"")
    (folder / f"{uuid4()}.1.part").mkdir()
    (folder / "somebody's notes").write_bytes(b"")

    exports.sweep(now=NOW)

    assert {path.name for path in folder.iterdir()} == {export.path.name, "somebody's notes"}


def test_a_file_that_is_not_on_this_server_is_said_to_be_missing(folder):
    export = make_export()
    shutil.rmtree(folder)

    with pytest.raises(ExportGoneError, match="not on this server"):
        fetch(export)


def test_words_that_were_erased_after_the_export_are_not_fetched_and_the_file_goes(folder):
    record_committed(full_entry(personal="It came broken"))
    told = make_export(is_redacted=False, reason="Case 12")
    redacted = make_export()
    services.erase_customer(shop_id=SHOP, customer="ada", actor="system", at=timezone.now())

    with pytest.raises(ExportGoneError, match="have since been erased"):
        fetch(told)
    exports.sweep(now=NOW)

    told.refresh_from_db()
    assert (told.state, told.path.exists()) == ("expired", False)
    assert fetch(redacted).path.exists()


def test_a_filter_is_restored_as_it_was_asked():
    asked = EventFilter(
        shop_id=SHOP, since=NOW, until=NOW + timedelta(1), task_id=3, amount_min=0, currency="USD"
    )

    assert EventFilter.restore(asked.describe(), shop_id=SHOP) == asked
    assert EventFilter.restore({}, shop_id=SHOP) == OURS
