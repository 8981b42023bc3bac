"""The settings of a shop in the console: look, change, propose, confirm, and the keys it signs with."""

from datetime import timedelta
from typing import Any

import pytest
from django import forms
from django.test import Client
from django.test.html import parse_html
from django.urls import reverse
from django.utils import timezone

from accounts import shop_settings
from accounts.keyring import add_secret
from accounts.models import ChangeStatus, Role, Shop, ShopChange, SigningKey, User, WebhookSecret
from accounts.setting_forms import SECTIONS, LongSelect, in_words
from accounts.webhooks import list_webhook_secrets
from agents.models import Task
from audit.models import Event
from tests.console.desk import PASSWORD, make_person, make_question, text_of
from tests.factories import make_shop
from tests.two_people import loosen, propose_change
from tools import switches

NOW = timezone.now


@pytest.fixture
def admin(shop: Shop) -> User:
    return make_person(shop, "ann", role=Role.ADMIN)


@pytest.fixture
def second(shop: Shop) -> User:
    return make_person(shop, "ben", role=Role.ADMIN)


@pytest.fixture
def page(admin, sign_in) -> Client:
    client: Client = sign_in(admin)
    return client


def here(shop: Shop) -> str:
    return reverse("console:shop-settings", args=[shop.pk])


def form_of(client: Client, shop: Shop, key: str) -> dict[str, Any]:
    """What a browser would send back for one section, with the password put in."""
    answer = client.get(here(shop))
    (form,) = (form for form in answer.context["forms"] if form.section.key == key)
    values = {name: form[name].value() for name in form.fields}
    given = {name: value for name, value in values.items() if value not in {None, False}}
    return given | {
        "section": key,
        "password": PASSWORD,
        "csrfmiddlewaretoken": answer.context["csrf_token"],
    }


def send(client: Client, shop: Shop, key: str, **changes: Any) -> Any:
    given = form_of(client, shop, key) | changes
    return client.post(reverse("console:shop-change", args=[shop.pk]), given)


def answer(client: Client, shop: Shop, change: ShopChange, what: str, **fields: Any) -> Any:
    token = client.get(here(shop)).context["csrf_token"]
    details = {"csrfmiddlewaretoken": token, "password": PASSWORD, "reason": "No."}
    return client.post(
        reverse(f"console:change-{what}", args=[shop.pk, change.pk]), details | fields
    )


def limit_of(shop: Shop) -> int:
    return Shop.objects.get(pk=shop.pk).staff_limit


# --- Changing -----------------------------------------------------------------------------------


def test_every_setting_that_takes_two_but_the_currency_is_on_the_page(page, shop):
    names = {name for section in SECTIONS for name in section.names}

    assert set(Shop.LOOSENED_BY_TWO) - names == {"currency"}
    text = text_of(page.get(here(shop)))
    assert 'name="staff_limit" value="100.00"' in text
    assert 'name="max_cost" value="0.50"' in text


@pytest.mark.parametrize("key", [section.key for section in SECTIONS])
def test_a_form_sent_back_untouched_changes_nothing(page, shop, key):
    before = Shop.objects.filter(pk=shop.pk).values().get()

    sent = send(page, shop, key)

    assert sent.status_code == 302, sent.context["refusal"]
    assert "Nothing was different" in text_of(page.get(sent.headers["Location"]))
    assert Shop.objects.filter(pk=shop.pk).values().get() == before
    assert not Event.objects.exists()


def test_a_lower_limit_counts_at_once(page, shop, admin):
    sent = send(page, shop, "money", staff_limit="50.00")

    assert "1 setting changed." in text_of(page.get(sent.headers["Location"]))
    assert limit_of(shop) == 5_000
    event = Event.objects.get()
    assert (event.actor, event.data["changes"]) == (admin.actor, {"staff_limit": [10_000, 5_000]})


def test_the_second_limit_is_empty_at_first_and_set_at_once(page, shop, admin):
    shown = text_of(page.get(here(shop)))
    assert 'name="second_limit" min' in shown
    assert "set it once every process runs the new one" in shown

    sent = send(page, shop, "money", second_limit="500.00")

    assert "1 setting changed." in text_of(page.get(sent.headers["Location"]))
    assert Shop.objects.get(pk=shop.pk).second_limit == 50_000
    assert Event.objects.get().data["changes"] == {"second_limit": [None, 50_000]}


def test_taking_the_second_limit_away_waits_for_another_admin(page, shop, second, sign_in):
    send(page, shop, "money", second_limit="500.00")
    given = form_of(page, shop, "money") | {"second_limit": "", "reason": "We are enough."}
    sent = page.post(reverse("console:shop-change", args=[shop.pk]), given)

    text = text_of(page.get(sent.headers["Location"]))
    assert "<del>$500.00</del> → <ins>none</ins>" in text
    assert Shop.objects.get(pk=shop.pk).second_limit == 50_000

    answer(sign_in(second), shop, ShopChange.objects.get(), "confirm")
    assert Shop.objects.get(pk=shop.pk).second_limit is None


def test_a_second_limit_below_the_first_is_told_at_its_field(page, shop):
    refused = send(page, shop, "money", second_limit="99.99")

    assert refused.status_code == 422
    assert "Two of staff cannot be asked below the limit above which one is." in text_of(refused)
    assert Shop.objects.get(pk=shop.pk).second_limit is None


def test_a_higher_limit_waits_and_is_shown_as_what_it_would_become(page, shop):
    sent = send(page, shop, "money", staff_limit="250.00", reason="The season begins.")

    text = text_of(page.get(sent.headers["Location"]))
    assert "1 waits for a second admin." in text
    assert "<del>$100.00</del> → <ins>$250.00</ins>" in text
    assert "The season begins." in text
    assert "Take it back" in text
    assert "Confirm exactly this" not in text
    assert limit_of(shop) == 10_000


def test_another_admin_confirms_it(page, shop, admin, second, sign_in):
    change = propose_change(shop, admin)
    other = sign_in(second)
    assert "Confirm exactly this" in text_of(other.get(here(shop)))

    assert answer(other, shop, change, "confirm").status_code == 302

    assert limit_of(shop) == 25_000
    assert "confirmed" in text_of(other.get(here(shop)))


def test_the_proposer_is_told_that_it_takes_another(page, shop, admin):
    change = propose_change(shop, admin)

    refused = answer(page, shop, change, "confirm")

    assert refused.status_code == 403
    assert "It takes a second person." in text_of(refused)
    assert limit_of(shop) == 10_000


def test_neither_changing_money_nor_confirming_goes_without_the_password(
    page, shop, second, sign_in
):
    for wrong in ("", "wrong"):
        refused = send(page, shop, "money", staff_limit="50.00", password=wrong)
        assert refused.status_code == 403
        assert "That is not your password. Nothing was changed." in text_of(refused)
    change = propose_change(shop)
    refused = answer(sign_in(second), shop, change, "confirm", password="wrong")

    assert refused.status_code == 403
    assert limit_of(shop) == 10_000
    assert ShopChange.objects.get().status == ChangeStatus.OPEN


def test_a_change_is_turned_down_with_a_reason(page, shop):
    change = propose_change(shop)
    assert answer(page, shop, change, "turn-down", reason=" ").status_code == 422

    assert answer(page, shop, change, "turn-down", reason="Too much.").status_code == 302

    text = text_of(page.get(here(shop)))
    assert "turned down" in text
    assert "Too much." in text
    assert answer(page, shop, change, "confirm").status_code == 409


def test_loosening_without_a_reason_is_refused_and_the_form_keeps_what_was_typed(page, shop):
    refused = send(page, shop, "money", staff_limit="250.00")

    assert refused.status_code == 422
    assert 'value="250.00"' in text_of(refused)
    assert not ShopChange.objects.exists()


def test_a_page_that_is_out_of_date_changes_nothing(page, shop, admin):
    given = form_of(page, shop, "money") | {"refund_window_days": "20"}
    send(page, shop, "money", staff_limit="50.00")

    refused = page.post(reverse("console:shop-change", args=[shop.pk]), given)

    assert refused.status_code == 409
    assert "since you opened the page" in text_of(refused)
    assert Shop.objects.get().refund_window_days == 30


@pytest.mark.parametrize(
    ("key", "name", "value", "said"),
    [
        ("money", "staff_limit", "100.005", "no more than 2 decimal places"),
        ("money", "staff_limit", "-1", "greater than or equal to 0"),
        ("money", "staff_limit", "NaN", "Enter a number."),
        ("money", "countries_served", "USA", "is not a country code"),
        ("shop", "allowed_origins", "http://shop.example", "https"),
        ("shop", "allowed_origins", "*", "not a web address"),
        ("shop", "time_zone", "Mars/Olympus", "not one of the available choices"),
        ("limits", "max_steps", "0", "shop_caps_positive"),
        ("budgets", "max_cost", "1e30", "no more than 15 digits"),
    ],
)
def test_what_no_shop_can_be_like_is_said_at_its_field(page, shop, key, name, value, said):
    before = Shop.objects.filter(pk=shop.pk).values().get()

    refused = send(page, shop, key, **{name: value}, reason="x")

    assert refused.status_code == 422
    assert said in text_of(refused)
    assert Shop.objects.filter(pk=shop.pk).values().get() == before
    assert not ShopChange.objects.exists()


def test_origins_and_the_zone_are_one_persons_business_and_need_no_password(page, shop):
    sent = send(
        page,
        shop,
        "shop",
        allowed_origins="https://a.example\nhttps://b.example\nhttps://a.example",
        time_zone="Europe/Berlin",
        password="",
    )

    assert sent.status_code == 302, sent.context["refusal"]
    found = Shop.objects.get()
    assert found.allowed_origins == ["https://a.example", "https://b.example"]
    assert found.time_zone == "Europe/Berlin"


def test_a_form_of_no_section_is_none(page, shop):
    assert send(page, shop, "money", section="secrets").status_code == 422


def test_another_shops_settings_and_changes_are_not_there(page, shop):
    other = make_shop()
    change = propose_change(other)

    assert page.get(here(other)).status_code == 404
    assert answer(page, shop, change, "confirm").status_code == 404
    assert answer(page, shop, change, "turn-down").status_code == 404
    assert limit_of(other) == 10_000


def test_an_admin_of_every_shop_chooses_one(shop, sign_in):
    other = make_shop(name="Second shop")
    propose_change(other)
    client = sign_in(make_person(None, "root", role=Role.ADMIN))

    text = text_of(client.get(reverse("console:settings")))

    assert text.index("Juniper &amp; Clay") < text.index("Second shop")
    assert "1 waiting for a second admin" in text


def test_one_of_a_single_shop_is_led_to_it(page, shop):
    assert page.get(reverse("console:settings")).headers["Location"] == here(shop)


def test_an_odd_address_is_not_believed(page, shop):
    text = text_of(page.get(f"{here(shop)}?set=<script>&waits=99999999"))

    assert "second admin." not in text.split("Waiting for a second admin")[0]


def test_a_tool_that_is_off_is_shown_with_its_reason(page, shop):
    switches.throw(shop=shop, tool="refund_order", reason="Flood.", by="system", now=NOW())

    text = text_of(page.get(here(shop)))

    assert text.index("refund_order") < text.index("Flood.")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("staff_limit", 1_234_500, "$12,345.00"),
        ("max_cost", 500_000, "$0.50"),
        ("max_cost", 1, "$0.000001"),
        ("staff_also_for_cancel", True, "yes"),
        ("countries_served", ["US", "CA"], "US, CA"),
        ("max_tokens", 60_000, "60,000"),
    ],
)
def test_values_are_said_as_people_say_them(shop, name, value, words):
    assert in_words(name, value, shop) == words


# --- What was asked before ----------------------------------------------------------------------


def test_a_looser_limit_does_not_reach_what_waits_already(shop, approver, sign_in):
    approval = make_question(shop)
    loosen(shop, staff_limit=1_000_000)

    approval.operation.refresh_from_db(fields=["required_roles"])
    assert "staff" in approval.operation.required_roles
    assert "Approve" in text_of(
        sign_in(approver).get(reverse("console:approval", args=[approval.public_id]))
    )


def test_a_task_keeps_the_budget_that_it_was_opened_with(shop):
    approval = make_question(shop)
    task = approval.operation.task_id
    loosen(shop, max_tokens=90_000)

    assert Task.objects.get(pk=task).max_tokens == 60_000


# --- Keys and secrets ---------------------------------------------------------------------------


def secrets_of(shop: Shop) -> str:
    return reverse("console:shop-secrets", args=[shop.pk])


def do(client: Client, shop: Shop, deed: str, **fields: Any) -> Any:
    token = client.get(secrets_of(shop)).context["csrf_token"]
    details = {"csrfmiddlewaretoken": token, "password": PASSWORD}
    return client.post(reverse(f"console:secret-{deed}", args=[shop.pk]), details | fields)


def test_a_webhook_secret_is_made_shown_once_and_exchanged_without_a_gap(page, shop, admin):
    made = do(page, shop, "add", what="webhook", name="spring")

    (secret,) = list_webhook_secrets(shop_id=shop.pk, now=NOW())
    assert secret in text_of(made)
    assert secret not in text_of(page.get(secrets_of(shop)))
    do(page, shop, "add", what="webhook", name="summer")
    do(page, shop, "retire", what="webhook", name="spring", hours="24")
    assert len(list_webhook_secrets(shop_id=shop.pk, now=NOW())) == 2
    assert len(list_webhook_secrets(shop_id=shop.pk, now=NOW() + timedelta(hours=25))) == 1
    actions = list(Event.objects.order_by("pk").values_list("action", "actor"))
    assert actions == [
        ("webhook_secret.added", admin.actor),
        ("webhook_secret.added", admin.actor),
        ("webhook_secret.retired", admin.actor),
    ]
    assert not any(secret in str(event.data) for event in Event.objects.all())


def test_a_shared_secret_for_identities_is_made_and_retired(page, shop):
    made = do(page, shop, "add", what="shared", name="2026-02")
    key = SigningKey.objects.get()
    assert made.status_code == 200
    assert made.context["fresh"]["secret"] in text_of(made)

    assert do(page, shop, "retire", what="shared", name="2026-02", hours="1").status_code == 302

    key.refresh_from_db()
    assert key.retired_at is not None
    assert key.retired_at > NOW() + timedelta(minutes=59)
    assert "runs out" in text_of(page.get(secrets_of(shop)))


def test_a_public_key_is_taken_and_nothing_secret_shown(page, shop):
    jwk = '{"kty":"OKP","crv":"Ed25519","kid":"k1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"private"}'

    assert do(page, shop, "add", what="public", jwk=jwk).status_code == 302

    assert SigningKey.objects.get().public_jwk == {
        "kty": "OKP",
        "crv": "Ed25519",
        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    }


@pytest.mark.parametrize(
    ("deed", "fields", "status"),
    [
        ("add", {"what": "webhook", "name": "two words"}, 422),
        ("add", {"what": "webhook", "name": "used"}, 422),
        ("add", {"what": "shared", "name": ""}, 422),
        ("add", {"what": "public", "jwk": "[1]"}, 422),
        ("add", {"what": "public", "jwk": "{"}, 422),
        ("add", {"what": "oauth", "name": "x"}, 422),
        ("add", {"what": "webhook", "name": "x", "password": "wrong"}, 403),
        ("retire", {"what": "webhook", "name": "none", "hours": "1"}, 409),
        ("retire", {"what": "shared", "name": "used", "hours": "1"}, 409),
        ("retire", {"what": "webhook", "name": "used", "hours": "-5"}, 422),
        ("retire", {"what": "webhook", "name": "used", "hours": "0", "password": ""}, 403),
    ],
)
def test_what_cannot_be_added_or_retired_changes_nothing(page, shop, deed, fields, status):
    do(page, shop, "add", what="webhook", name="used")
    before = Event.objects.count()

    assert do(page, shop, deed, **fields).status_code == status

    assert WebhookSecret.objects.filter(retired_at__isnull=True).count() == 1
    assert not SigningKey.objects.exists()
    assert Event.objects.count() == before


def test_a_key_that_has_run_out_is_called_retired(page, shop):
    add_secret(shop_id=shop.pk, kid="old", secret="s" * 32, actor="system", now=NOW())
    SigningKey.objects.update(
        active_from=NOW() - timedelta(days=2), retired_at=NOW() - timedelta(days=1)
    )

    assert ">retired<" in text_of(page.get(secrets_of(shop)))


def test_the_right_ends_with_the_role_also_in_the_middle_of_a_page(page, shop, admin):
    given = form_of(page, shop, "money") | {"staff_limit": "50.00"}
    User.objects.filter(pk=admin.pk).update(role=Role.STAFF)

    sent = page.post(reverse("console:shop-change", args=[shop.pk]), given)

    assert sent.status_code == 302
    assert sent.headers["Location"].startswith(reverse("console:login"))
    assert limit_of(shop) == 10_000
    assert shop_settings.list_open(shop_id=shop.pk, now=NOW()) == []


def test_a_long_select_is_drawn_as_django_draws_one():
    choices = [("Europe/Rome", "Rome & more"), ("a<b", "'a' < b"), ("UTC", "UTC")]
    details: dict[str, Any] = {
        "name": "zone",
        "value": "a<b",
        "attrs": {"id": "id_zone", "required": True},
    }

    drawn = LongSelect(choices=choices).render(**details)

    assert parse_html(drawn) == parse_html(forms.Select(choices=choices).render(**details))
