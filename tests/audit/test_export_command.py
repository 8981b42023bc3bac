"""The command that makes a bundle for whoever runs the service."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from audit import bundle, dispatch, export_work
from audit.export_models import Export
from audit.models import Event
from tests.audit.bundles import ask, verify, write_key
from tests.audit.facts import NOW, SHOP, full_entry, record_committed, sealed_trail

pytestmark = pytest.mark.django_db(transaction=True)


def export(path, *options):
    said = StringIO()
    call_command("audit_export", str(path), *options, stdout=said, stderr=said)
    return said.getvalue()


def test_it_puts_a_bundle_that_holds_where_it_is_wanted_and_is_on_record(tmp_path):
    sealed_trail()
    path = tmp_path / "mine.zip"

    said = export(path, "--shop-id", str(SHOP), "--since", "2026-03-01", "--until", "2026-03-02T00:00:00Z")  # fmt: skip

    made = Export.objects.get()
    digest = bytes(made.manifest_digest or b"").hex()
    assert said == f"6 events in {path}\nManifest {digest}\n"
    assert verify(path, write_key(tmp_path), "--expect", digest)[0] == 0
    assert made.filter == {
        "shop_id": SHOP,
        "since": "2026-03-01T00:00:00.000000Z",
        "until": "2026-03-02T00:00:00.000000Z",
    }
    events = Event.objects.filter(subject=made.subject).order_by("id")
    assert [(event.actor, event.action) for event in events] == [
        ("operator", "export.requested"),
        ("operator", "export.created"),
        ("operator", "export.downloaded"),
    ]


def test_words_come_with_a_reason(tmp_path):
    record_committed(full_entry(personal="It came broken"))

    export(tmp_path / "mine.zip", "--words", "Case 12")

    assert Export.objects.get().reason == "Case 12"
    with pytest.raises(CommandError, match="say why"):
        export(tmp_path / "mine.zip", "--words", " ")


def test_one_that_is_under_way_already_is_said_and_nothing_is_written(tmp_path):
    ask(owner_id=0)

    with pytest.raises(CommandError, match="You have an export under way"):
        export(tmp_path / "mine.zip")

    assert not (tmp_path / "mine.zip").exists()


def test_no_worker_is_asked_for_what_the_command_makes(tmp_path, monkeypatch):
    sealed_trail()
    asked: list[str] = []
    monkeypatch.setattr(dispatch, "_send", asked.append)
    seen_by_a_worker = []

    def while_it_is_made(*given, **named):
        found = Export.objects.get()
        seen_by_a_worker.append((found.state, export_work.claim(found.pk, now=NOW)))
        return pack(*given, **named)

    pack = bundle.pack
    monkeypatch.setattr(bundle, "pack", while_it_is_made)

    export(tmp_path / "mine.zip")

    assert asked == []
    assert seen_by_a_worker == [("running", None)]


def test_while_enough_are_being_made_it_is_not_begun(tmp_path):
    for owner in (1, 2):
        assert export_work.claim(ask(owner_id=owner).pk, now=NOW)
    events = Event.objects.count()

    with pytest.raises(CommandError, match="Enough exports are being made now"):
        export(tmp_path / "mine.zip")

    assert Export.objects.count() == 2
    assert Event.objects.count() == events
    assert not (tmp_path / "mine.zip").exists()


def test_what_cannot_be_made_exits_1_with_the_reason(tmp_path, monkeypatch):
    def no_space(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle, "pack", no_space)
    said = StringIO()

    with pytest.raises(SystemExit) as ended:
        call_command("audit_export", str(tmp_path / "mine.zip"), stdout=said, stderr=said)

    assert ended.value.code == 1
    assert said.getvalue() == "The file could not be written: No space left on device.\n"
    assert not (tmp_path / "mine.zip").exists()
