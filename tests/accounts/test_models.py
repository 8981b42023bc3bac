"""What the database itself refuses about shops and people."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import DataError, IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils import timezone

from accounts.models import (
    APPROVABLE,
    Customer,
    Delegation,
    Role,
    Shop,
    SigningKey,
    User,
    WidgetKey,
)
from tests.accounts.factories import Signer, make_customer, make_shop, make_user
from tests.two_people import loosen
from tools.models import Kind

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "fields",
    [
        {"slug": "Demo Shop"},
        {"slug": ""},
        {"currency": "usd"},
        {"currency": ""},
        {"currency": "US"},
        {"base_url": "file:///etc/passwd"},
        {"base_url": "https://"},
        {"identity_issuer": ""},
        {"identity_audience": ""},
        {"countries_served": []},
        {"allowed_origins": ["https://shop.example; script-src *"]},
        {"allowed_origins": ["https://shop.example", "*"]},
        {"allowed_origins": ["https://shop.example\r\nX: y"]},
        {"staff_limit": -1},
        {"refund_window_days": -1},
        {"customer_approval_seconds": 0},
        {"staff_approval_seconds": 0},
        {"max_steps": 0},
        {"max_tokens": 0},
        {"max_cost": 0},
        {"max_active_seconds": 0},
        {"max_open_tasks_per_customer": 0},
        {"tasks_per_minute_per_customer": 0},
        {"policy_version": 0},
    ],
)
def test_a_shop_with_a_senseless_setting_is_refused(fields):
    with pytest.raises((IntegrityError, DataError)), transaction.atomic():
        make_shop(**fields)

    assert not Shop.objects.exists()


def test_two_shops_cannot_share_a_name_or_an_issuer():
    make_shop(slug="demo", identity_issuer="issuer-of-demo")

    for fields in ({"slug": "demo"}, {"identity_issuer": "issuer-of-demo"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            make_shop(**fields)

    assert Shop.objects.count() == 1


CHANGES: list[tuple[str, Any]] = [
    ("currency", "EUR"),
    ("staff_limit", 20_000),
    ("second_limit", 20_000),
    ("staff_also_for_cancel", True),
    ("refund_window_days", 60),
    ("countries_served", ["US", "CA"]),
    ("customer_approval_seconds", 60),
    ("staff_approval_seconds", 60),
]


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_a_change_of_a_money_setting_raises_the_policy_version(name, value):
    shop = make_shop()

    loosen(shop, **{name: value})
    assert shop.policy_version == 2

    Shop.objects.filter(pk=shop.pk).update(**{name: value})
    shop.refresh_from_db()
    assert shop.policy_version == 2


def test_every_money_setting_is_tried_above():
    assert {name for name, _ in CHANGES} == set(Shop.MONEY_SETTINGS)


def test_other_changes_leave_the_policy_version_alone():
    shop = make_shop()

    Shop.objects.filter(pk=shop.pk).update(name="New name", max_steps=12)

    shop.refresh_from_db()
    assert shop.policy_version == 1


def test_a_stale_copy_does_not_lower_the_policy_version():
    shop = make_shop()
    stale = Shop.objects.get(pk=shop.pk)
    loosen(shop, staff_limit=20_000)
    stale.name = "New name"

    stale.save()

    shop.refresh_from_db()
    assert shop.policy_version == 3  # the stale copy put the old limit back: a change once more


def test_a_right_reaches_to_what_it_names_and_without_names_to_everything():
    narrow = make_user(make_shop(), approve_kinds=["refund"], approve_up_to=50_000)
    wide = make_user(make_shop())

    assert narrow.may_decide_kind("refund")
    assert not narrow.may_decide_kind("cancel")
    assert [narrow.may_approve_sum(sum_) for sum_ in (None, 50_000, 50_001)] == [True, True, False]
    assert wide.may_decide_kind("cancel")
    assert wide.may_approve_sum(10**12)


def test_a_right_names_only_what_is_there_to_decide():
    user = make_user(make_shop())

    with pytest.raises(IntegrityError, match="user_approves_known_kinds"), transaction.atomic():
        User.objects.filter(pk=user.pk).update(approve_kinds=["refund", "everything"])

    user.refresh_from_db()
    assert user.approve_kinds is None
    assert set(APPROVABLE) == set(Kind.values)


@pytest.mark.parametrize(
    ("fields", "can_approve"),
    [
        ({"role": Role.STAFF, "is_approver": True}, True),
        ({"role": Role.ADMIN, "is_approver": True}, True),
        ({"role": Role.STAFF}, False),
        ({"role": Role.ADMIN}, False),
        ({"role": Role.AUDITOR}, False),
        ({"role": Role.STAFF, "is_approver": True, "is_active": False}, False),
    ],
)
def test_only_an_active_approver_may_approve(fields, can_approve):
    user = make_user(make_shop(), **fields)

    assert user.can_approve is can_approve
    assert user.can_read_console is user.is_active
    assert user.actor == f"{user.role}:{user.username}"


@pytest.mark.parametrize(
    "fields",
    [
        {"role": Role.AUDITOR, "is_approver": True},
        {"role": Role.CUSTOMER},
        {"role": "owner"},
        {"role": Role.STAFF, "shop": None},
        {"role": Role.AUDITOR, "shop": None},
    ],
)
def test_a_console_user_who_must_not_be_is_refused(fields):
    shop = make_shop()

    with pytest.raises(IntegrityError), transaction.atomic():
        make_user(**{"shop": shop} | fields)

    assert not User.objects.exists()


def test_a_superuser_is_an_admin_of_all_shops():
    root = User.objects.create_superuser("root", password="correct horse")

    assert (root.role, root.shop, root.is_staff, root.can_approve) == (
        Role.ADMIN,
        None,
        True,
        False,
    )


@pytest.mark.parametrize("external_id", ["", "../ada", "ada bob", "staff:dana", "-ada", "a" * 121])
def test_a_customer_with_an_odd_id_is_refused(external_id):
    shop = make_shop()

    with pytest.raises((IntegrityError, DataError)), transaction.atomic():
        make_customer(shop, external_id=external_id)

    assert not Customer.objects.exists()


def test_a_customer_exists_once_per_shop():
    customer = make_customer(external_id="ada")
    make_customer(external_id="ada")

    with pytest.raises(IntegrityError), transaction.atomic():
        make_customer(customer.shop, external_id="ada")

    assert Customer.objects.count() == 2


@pytest.mark.parametrize(
    ("name", "first_name"),
    [("Ada Lovelace", "Ada"), ("  Ada\tL.", "Ada"), ("Ada", "Ada"), ("", "")],
)
def test_a_first_name_is_the_first_word_of_the_name(name, first_name):
    assert Customer(name=name).first_name == first_name


@pytest.mark.parametrize(
    "fields",
    [
        {"algorithm": "RS256"},
        {"algorithm": "none"},
        {"public_jwk": None},
        {"secret_encrypted": b"x"},
        {"algorithm": "HS256"},
        {"retired_at": timezone.now(), "active_from": timezone.now()},
    ],
)
def test_a_signing_key_whose_parts_do_not_fit_is_refused(fields):
    key = Signer(make_shop()).row

    with pytest.raises(IntegrityError), transaction.atomic():
        SigningKey.objects.filter(pk=key.pk).update(**fields)

    key.refresh_from_db()
    assert (key.algorithm, key.secret_encrypted, key.retired_at) == ("EdDSA", None, None)


@pytest.mark.parametrize(
    "fields", [{"revoked_at": timezone.now()}, {"revoked_reason": "signed_out"}]
)
def test_a_revocation_has_a_time_and_a_reason(fields):
    with pytest.raises(IntegrityError), transaction.atomic():
        Delegation.objects.create(
            customer=make_customer(),
            refresh_token_encrypted=b"x",
            access_token_encrypted=b"x",
            access_expires_at=timezone.now(),
            **fields,
        )

    assert not Delegation.objects.exists()


def test_a_shop_with_customers_or_keys_is_not_deleted():
    shop = make_shop()
    make_customer(shop)
    WidgetKey.objects.create(shop=shop, key="demo")

    with pytest.raises(ProtectedError):
        shop.delete()

    assert Shop.objects.count() == Customer.objects.count() == 1


OTHERS = {field.name for field in Shop._meta.fields} - {"allowed_origins"}


@pytest.mark.parametrize(
    "origin",
    ["https://shop.example", "https://shop.example:8443", "http://127.0.0.1:8001", "http://localhost:8001"],
)  # fmt: skip
def test_an_origin_as_browsers_send_it_is_accepted(origin):
    make_shop(allowed_origins=[origin]).clean_fields()


@pytest.mark.parametrize(
    "origin",
    ["*", "null", "https://*.example", "https://shop.example/", "https://shop.example/page",
     "https://Shop.example", "https://shop.example:443", "http://shop.example", "shop.example",
     "javascript:alert(1)", "https://user@shop.example", "https://shop.example evil",
     "https://shop.example; script-src *", "https://shop.example:port", "https://[::1", ""],
)  # fmt: skip
def test_what_is_no_exact_origin_is_refused(origin):
    with pytest.raises(ValidationError):
        Shop(allowed_origins=[origin]).clean_fields(exclude=OTHERS)


@pytest.mark.parametrize(
    "url",
    ["https://api.shop.example", "https://shop.example/support", "http://127.0.0.1:8001", "http://10.0.0.7",
     "http://orders_stub:8001"],
)  # fmt: skip
def test_a_shops_address_over_tls_or_named_inside_is_accepted(url, settings):
    settings.INSIDE_HOSTS = ["10.0.0.7", "orders_stub"]
    make_shop(base_url=url).clean_fields()


@pytest.mark.parametrize(
    "url",
    ["http://shop.example", "http://8.8.8.8", "http://169.254.169.254", "http://10.0.0.8", "https://10.0.0.8",
     "http://orders_stub:8001", "https://user:pw@shop.example",
     "https://shop.example/", "https://shop.example?x=1", "https://shop.example#x"],
)  # fmt: skip
def test_a_shops_address_that_would_leak_tokens_is_refused(url):
    with pytest.raises(ValidationError):
        make_shop(base_url=url).clean_fields()


@pytest.mark.parametrize(
    ("name", "value"),
    [("time_zone", "Mars/Olympus"), ("locale", "english please"), ("countries_served", ["usa"])],
)
def test_other_odd_settings_are_refused_by_the_form(name, value):
    shop = make_shop()
    setattr(shop, name, value)

    with pytest.raises(ValidationError) as caught:
        shop.clean_fields()

    assert set(caught.value.message_dict) == {name}
