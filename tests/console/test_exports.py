"""Exports in the console: asked for, watched, fetched by whoever asked, and refused in words."""

import io
import json
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient
from django.urls import reverse
from django.utils import timezone

from accounts.models import Role
from audit import export_work
from audit.export_models import Export
from audit.models import Event
from tests.audit.bundles import verify
from tests.audit.facts import full_entry, record_committed, seal
from tests.console.desk import make_person, text_of
from tests.factories import make_shop

pytestmark = pytest.mark.django_db(transaction=True)


def post(client, name, *ids, **fields):
    page = client.get(reverse("console:audit"))
    address = reverse(f"console:{name}", args=ids)
    return client.post(address, {"csrfmiddlewaretoken": page.context["csrf_token"]} | fields)


def ask(client, **fields) -> Export:
    answer = post(client, "export", **{"form": "all"} | fields)
    assert answer.status_code == 302, text_of(answer)
    export = Export.objects.latest("created_at")
    assert answer.headers["Location"] == reverse("console:export-state", args=[export.pk])
    return export


def make(client, **fields) -> Export:
    export = ask(client, **fields)
    assert export_work.run(export.pk)
    export.refresh_from_db()
    return export


def state(client, export, **headers) -> str:
    page = client.get(reverse("console:export-state", args=[export.pk]), headers=headers)
    assert page.status_code == 200
    return text_of(page)


def test_a_bundle_holds_the_filtered_events_and_can_be_checked_with_what_the_console_gives(
    shop, auditor, sign_in, tmp_path
):
    record_committed(full_entry(shop_id=shop.pk), full_entry(shop_id=shop.pk, order_id="2000"))
    record_committed(full_entry(shop_id=make_shop().pk, order_id="2000"))
    seal()
    client = sign_in(auditor)

    export = make(client, order_id="2000")
    answer = post(client, "export-download", export.pk)

    content = b"".join(answer.streaming_content)
    assert answer.headers["Content-Type"] == "application/zip"
    assert answer.headers["Content-Length"] == str(len(content))
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{export.file_name}"'
    with zipfile.ZipFile(io.BytesIO(content)) as bundle:
        (line,) = bundle.read("events.jsonl").splitlines()
    assert json.loads(line)["shop_id"] == shop.pk
    (tmp_path / "bundle.zip").write_bytes(content)
    key = tmp_path / "key.pem"
    key.write_bytes(client.get(reverse("console:public-key")).content)
    assert verify(tmp_path / "bundle.zip", key)[0] == 0
    assert client.get(reverse("console:verifier")).content.startswith(b"#!/usr/bin/env python3")


def test_each_step_is_on_record_with_who_what_and_the_digest(shop, auditor, sign_in):
    client = sign_in(auditor)

    export = make(client, customer="ada", form="csv")
    post(client, "export-download", export.pk).close()

    made = Event.objects.filter(subject=export.subject).order_by("id")
    assert [event.action for event in made] == [
        "export.requested", "export.created", "export.downloaded",
    ]  # fmt: skip
    assert {event.actor for event in made} == {"auditor:audrey"}
    assert made[1].data["filter"] == {"shop_id": shop.pk, "customer": "ada"}
    assert made[2].data["manifest"] == bytes(export.manifest_digest or b"").hex()


def test_an_open_page_follows_the_export_and_a_reload_shows_the_same(shop, auditor, sign_in):
    record_committed(full_entry(shop_id=shop.pk))
    client = sign_in(auditor)
    export = ask(client)

    assert "It waits for a worker." in state(client, export)
    Export.objects.filter(pk=export.pk).update(
        state="running", epoch=1, lease_until=timezone.now(), total=1000, done=430, percent=34
    )
    for headers in ({}, {"HX-Request": "true"}):
        page = state(client, export, **headers)
        assert "430 of 1,000 events, 34 %" in page
        assert 'hx-trigger="every 2s"' in page
        assert ("<html" in page) is not bool(headers)
    Export.objects.filter(pk=export.pk).update(state="queued", epoch=0)
    export_work.run(export.pk)

    page = state(client, export, **{"HX-Request": "true"})
    assert "Download the bundle" in page
    assert "hx-trigger" not in page
    assert "The export has ended: ready." in page


def test_a_second_one_under_way_is_refused_in_words(shop, auditor, sign_in):
    client = sign_in(auditor)
    first = ask(client)

    answer = post(client, "export", form="csv")

    assert answer.status_code == 409
    assert "You have an export under way. Wait for it, or stop it." in text_of(answer)
    assert Export.objects.get() == first
    assert Event.objects.filter(action="export.requested").count() == 1


def test_it_can_be_stopped_and_another_begun(shop, auditor, sign_in):
    client = sign_in(auditor)
    export = ask(client)

    answer = post(client, "export-stop", export.pk)

    assert answer.status_code == 302
    assert "It was stopped." in state(client, export)
    assert ask(client).state == "queued"


@pytest.mark.parametrize(
    "fields", [{}, {"form": "exe"}, {"form": "csv", "task_id": "x"}, {"form": "csv", "until": "x"}]
)
def test_an_export_that_cannot_be_read_is_not_begun(shop, auditor, sign_in, fields):
    answer = post(sign_in(auditor), "export", **fields)

    assert answer.status_code == 422
    assert "That filter cannot be read; nothing was exported." in text_of(answer)
    assert (Export.objects.count(), Event.objects.count()) == (0, 0)


def test_a_bundle_is_for_whoever_asked_and_nobody_else(shop, auditor, sign_in):
    export = make(sign_in(auditor))
    colleague = sign_in(make_person(shop, "bob", role=Role.AUDITOR))

    for name in ("export-download", "export-stop"):
        assert post(colleague, name, export.pk).status_code == 404
    assert colleague.get(reverse("console:export-state", args=[export.pk])).status_code == 404
    assert "You have exported nothing yet." in text_of(colleague.get(reverse("console:exports")))
    assert not Event.objects.filter(action="export.downloaded").exists()


def test_a_link_to_a_bundle_that_is_passed_on_gives_nothing(shop, auditor, sign_in):
    """The address answers a form of the same session alone, and no link."""
    client = sign_in(auditor)
    export = make(client)
    address = reverse("console:export-download", args=[export.pk])

    assert client.get(address).status_code == 405
    assert client.post(address).status_code == 403
    assert not Event.objects.filter(action="export.downloaded").exists()


def test_whoever_lost_the_right_meanwhile_fetches_nothing(shop, auditor, sign_in):
    export = make(sign_in(auditor))
    auditor.role = Role.STAFF
    auditor.save(update_fields=["role"])

    assert post(sign_in(auditor), "export-download", export.pk).status_code == 403

    auditor.role, auditor.shop = Role.AUDITOR, make_shop()
    auditor.save(update_fields=["role", "shop"])
    assert post(sign_in(auditor), "export-download", export.pk).status_code == 404
    assert not Event.objects.filter(action="export.downloaded").exists()


def test_a_bundle_that_is_over_says_so(shop, auditor, sign_in):
    client = sign_in(auditor)
    export = make(client)
    Export.objects.filter(pk=export.pk).update(expires_at=timezone.now() - timedelta(seconds=1))

    answer = post(client, "export-download", export.pk)

    assert answer.status_code == 410
    assert "This bundle is not there any more. Export again." in text_of(answer)


def test_a_failed_export_says_why(shop, auditor, sign_in):
    client = sign_in(auditor)
    export = ask(client)
    Export.objects.filter(pk=export.pk).update(state="failed", error="No space left on device.")

    assert "No space left on device." in state(client, export)
    assert "failed" in text_of(client.get(reverse("console:exports")))


def test_auditors_are_not_given_peoples_words(shop, auditor, sign_in):
    client = sign_in(auditor)
    assert "own words, which are otherwise left out" not in text_of(
        client.get(reverse("console:audit"))
    )

    answer = post(client, "export", form="jsonl", words="yes", reason="I am curious")

    assert answer.status_code == 403
    assert (Export.objects.count(), Event.objects.count()) == (0, 0)


def test_an_admin_takes_words_with_a_reason_that_is_recorded(shop, sign_in):
    record_committed(full_entry(shop_id=shop.pk, personal="It came broken"))
    client = sign_in(make_person(shop, "root", role=Role.ADMIN))
    assert "own words, which are otherwise left out" in text_of(
        client.get(reverse("console:audit"))
    )
    refused = post(client, "export", form="jsonl", words="yes", reason=" ")
    assert (refused.status_code, Export.objects.count()) == (422, 0)

    export = make(client, form="jsonl", words="yes", reason="Case 12 of the ombudsman")

    with zipfile.ZipFile(export.path) as bundle:
        assert b"It came broken" in bundle.read("events.jsonl")
    assert Event.objects.get(action="export.created").data["reason"] == "Case 12 of the ombudsman"
    assert "Case 12 of the ombudsman" in state(client, export)


def test_staff_are_not_offered_an_export(shop, approver, sign_in):
    page = text_of(sign_in(approver).get(reverse("console:audit")))

    assert "Take it away" not in page
    assert reverse("console:verifier") not in page


def test_a_download_streams_under_asgi_as_well(shop, auditor, sign_in):
    export = make(sign_in(auditor))
    client = AsyncClient()
    client.force_login(auditor, backend="accounts.backends.ConsoleBackend")

    async def take() -> bytes:
        answer: Any = await client.post(reverse("console:export-download", args=[export.pk]))
        assert answer.is_async
        return b"".join([chunk async for chunk in answer.streaming_content])

    assert async_to_sync(take)() == export.path.read_bytes()
