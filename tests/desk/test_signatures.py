"""Who may tell us something: the shop itself, within five minutes, to the byte; and nobody else."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts import demo, webhooks
from accounts.models import WebhookSecret
from audit.models import Event
from tests.desk.telling import Teller, about_refund, everything, signature
from tests.factories import make_shop
from tests.tools.desk import approved

pytestmark = pytest.mark.django_db


@pytest.fixture
def body(buyer) -> bytes:
    """An event that would be taken, were it signed."""
    operation = approved(buyer, buyer.order(4000))
    return json.dumps(about_refund(operation)).encode()


def assert_refused(answer, before, status=401, code="not-signed"):
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["type"].endswith(f"#{code}")
    assert everything() == before


def test_an_event_signed_by_the_shop_is_taken(teller, body):
    answer = teller.post(body, teller.headers(body))

    assert (answer.status_code, answer.json()) == (200, {"taken": "accepted"})


FORGED = {
    "another_secret": lambda t, b: t.headers(b, secrets=(webhooks.new_webhook_secret(),)),
    "no_headers": lambda t, b: {},
    "no_id": lambda t, b: t.headers(b) | {"webhook-id": ""},
    "no_timestamp": lambda t, b: t.headers(b) | {"webhook-timestamp": ""},
    "no_signature": lambda t, b: t.headers(b) | {"webhook-signature": ""},
    "another_id": lambda t, b: t.headers(b) | {"webhook-id": "evt_other"},
    "another_time": lambda t, b: (
        t.headers(b) | {"webhook-timestamp": t.headers(b, age=9)["webhook-timestamp"]}
    ),
    "six_minutes_old": lambda t, b: t.headers(b, age=360),
    "six_minutes_ahead": lambda t, b: t.headers(b, age=-360),
    "time_is_no_number": lambda t, b: t.headers(b) | {"webhook-timestamp": "yesterday"},
    "time_is_nan": lambda t, b: t.headers(b) | {"webhook-timestamp": "nan"},
    "time_is_endless": lambda t, b: t.headers(b) | {"webhook-timestamp": "1e400"},
    "another_version": lambda t, b: (
        t.headers(b)
        | {"webhook-signature": t.headers(b)["webhook-signature"].replace("v1,", "v2,")}
    ),
    "no_comma": lambda t, b: t.headers(b) | {"webhook-signature": "v1"},
    "two_commas": lambda t, b: t.headers(b) | {"webhook-signature": "v1,a,b"},
    "not_base64": lambda t, b: t.headers(b) | {"webhook-signature": "v1,é!"},
    "cut_short": lambda t, b: (
        t.headers(b) | {"webhook-signature": t.headers(b)["webhook-signature"][:20]}
    ),
    "no_secret_at_all": lambda t, b: (
        t.headers(b) | {"webhook-signature": signature("whsec_", "evt_1", "1", b)}
    ),
}


@pytest.mark.parametrize("how", FORGED)
def test_a_forged_event_changes_nothing(teller, body, how):
    before = everything()

    assert_refused(teller.post(body, FORGED[how](teller, body)), before)


@pytest.mark.parametrize("place", [0, 20, -1])
def test_a_byte_that_was_changed_voids_the_signature(teller, body, place):
    headers = teller.headers(body)
    changed = bytearray(body)
    changed[place] ^= 1
    before = everything()

    assert_refused(teller.post(bytes(changed), headers), before)


def test_a_body_that_is_no_text_is_refused_before_it_is_read(teller, body):
    junk = b"\xff\xfe" + body
    before = everything()

    assert_refused(teller.post(junk, teller.headers(junk)), before)


def test_another_shops_secret_opens_nothing_here(teller, body):
    other = Teller.of(make_shop())
    before = everything()

    assert_refused(teller.post(body, other.headers(body)), before)


def test_a_shop_that_is_not_there_is_answered_like_a_bad_signature(teller, body):
    before = everything()
    unknown = teller.post(body, teller.headers(body), slug="nobody-here")
    bad = teller.post(body, FORGED["another_secret"](teller, body))

    assert_refused(unknown, before)
    assert {k: v for k, v in unknown.json().items() if k not in {"instance", "request_id"}} == {
        k: v for k, v in bad.json().items() if k not in {"instance", "request_id"}
    }


def test_a_shop_without_a_secret_can_tell_nothing(body, shop_row):
    mute = Teller(shop_row, webhooks.new_webhook_secret())
    before = everything()

    assert_refused(mute.post(body, mute.headers(body)), before)


def test_one_of_several_signatures_is_enough(teller, body):
    headers = teller.headers(body, secrets=(webhooks.new_webhook_secret(), teller.secret))

    assert teller.post(body, headers).json() == {"taken": "accepted"}


def test_both_secrets_count_while_they_are_exchanged(teller, body):
    newer = Teller.of(teller.shop)
    first = teller.post(body, teller.headers(body, event_id="evt_a"))
    second = newer.post(body, newer.headers(body, event_id="evt_b"))
    assert [first.json(), second.json()] == [{"taken": "accepted"}] * 2

    name = WebhookSecret.objects.earliest("pk").name
    webhooks.retire_webhook_secret(
        shop_id=teller.shop.pk,
        name=name,
        at=timezone.now(),
        actor="admin:root",
        now=timezone.now(),
    )

    before = everything()
    assert_refused(teller.post(body, teller.headers(body)), before)
    assert newer.post(body, newer.headers(body)).status_code == 200


def test_a_retired_secret_counts_until_its_hour(teller, body):
    WebhookSecret.objects.update(retired_at=timezone.now() + timedelta(hours=1))

    assert teller.post(body, teller.headers(body)).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 415, "unsupported-media-type"),
        (b"[]", 422, "invalid"),
        (b"{", 400, "malformed-json"),
        (b'{"type":"refund.succeeded","type":"x"}', 400, "malformed-json"),
        (b'{"type":"refund.succeeded","data":{"amount":NaN}}', 400, "malformed-json"),
        (b"{}", 422, "invalid"),
        (b'{"type":["refund.succeeded"]}', 422, "invalid"),
        (b'{"type":"refund.succeeded"}', 422, "invalid"),
        (b'{"type":"refund.succeeded","data":{"id":"re_1"}}', 422, "invalid"),
        (b'{"type":"order.changed","data":{"id":"1042","version":"1"}}', 422, "invalid"),
        (b'{"type":"order.changed","data":{"id":"../1042","version":1}}', 422, "invalid"),
    ],
)
def test_what_the_shop_signed_but_cannot_mean_is_refused(teller, body, status, code):
    before = everything()
    kind = "" if body else "text/plain"

    assert_refused(teller.post(body, teller.headers(body), content=kind), before, status, code)


def test_a_large_body_is_refused_before_a_byte_of_it_is_looked_at(teller):
    body = b" " * 70_000
    before = everything()

    answer = teller.post(body, teller.headers(body))

    assert_refused(answer, before, 413, "body-too-large")


def test_an_odd_event_id_is_refused(teller, body):
    before = everything()

    answer = teller.post(body, teller.headers(body, event_id="evt 1/../2"))

    assert_refused(answer, before, 400, "bad-request")


def test_the_door_is_for_post_alone(teller):
    assert teller.client.get(f"/v1/webhooks/{teller.shop.slug}").status_code == 405


# --- The secrets themselves ---------------------------------------------------------------------


def test_a_secret_is_stored_encrypted_and_kept_out_of_the_trail(teller):
    row = WebhookSecret.objects.get()

    assert teller.secret.encode() not in bytes(row.secret_encrypted)
    assert webhooks.list_webhook_secrets(shop_id=teller.shop.pk, now=timezone.now()) == [
        teller.secret
    ]
    event = Event.objects.get(action="webhook_secret.added")
    assert event.data == {"name": row.name}


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_c2hvcnQ=", "c2VjcmV0", "whsec_" + "A" * 200, "whsec_!!!!"]
)
def test_a_weak_or_odd_secret_is_not_taken(shop_row, secret):
    with pytest.raises(webhooks.BadSecretError):
        webhooks.add_webhook_secret(
            shop_id=shop_row.pk, name="a", secret=secret, actor="system", now=timezone.now()
        )

    assert not WebhookSecret.objects.exists()
    assert not Event.objects.filter(action="webhook_secret.added").exists()


def run(*words: str) -> str:
    out = StringIO()
    call_command("webhook_secret", *words, stdout=out)
    return out.getvalue()


def test_the_command_makes_a_secret_shows_it_once_and_retires_it(shop_row, body):
    secret = run("add", shop_row.slug, "2026-03").split()[-1]
    shop = Teller(shop_row, secret)
    assert shop.post(body, shop.headers(body)).status_code == 200

    run("retire", shop_row.slug, "2026-03")

    assert shop.post(body, shop.headers(body)).status_code == 401
    assert secret not in json.dumps(list(Event.objects.values("data", "subject")), default=str)


def test_the_command_says_what_it_cannot_do(shop_row):
    run("add", shop_row.slug, "one")

    for words in (
        ("add", "nobody", "x"),
        ("add", shop_row.slug, "one"),
        ("add", shop_row.slug, "a b"),
        ("retire", shop_row.slug, "two"),
    ):
        with pytest.raises(CommandError):
            run(*words)
    assert WebhookSecret.objects.count() == 1


def seed(shop_url: str, secret: str) -> list[str]:
    """The demo seeded for a pretend shop that signs with this secret; gives the secrets that count."""
    at = demo.DemoShop(shop_url, "countersign", "client secret", secret)
    shop = demo.seed(at=at, jwks=[], now=timezone.now())
    return webhooks.list_webhook_secrets(shop_id=shop.pk, now=timezone.now())


def test_the_demo_believes_the_one_secret_that_its_shop_signs_with(settings, db):
    settings.DEMO = True
    first, second = webhooks.new_webhook_secret(), webhooks.new_webhook_secret()

    assert seed("http://127.0.0.1:9", first) == [first]
    rows = list(WebhookSecret.objects.values())
    assert seed("http://127.0.0.1:9", first) == [first]
    assert list(WebhookSecret.objects.values()) == rows
    assert seed("http://127.0.0.1:9", second) == [second]
    assert seed("http://127.0.0.1:9", first) == [first]
    assert [
        event.action for event in Event.objects.filter(action__startswith="webhook_secret")
    ] == [
        "webhook_secret.added",
        "webhook_secret.retired",
        "webhook_secret.added",
        "webhook_secret.retired",
        "webhook_secret.reinstated",
    ]
