"""The admin site: nothing secret, nothing deleted, every change on the trail."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Role, Shop, User
from audit.models import Event
from tests.accounts.factories import Signer
from tests.console.desk import make_person, text_of
from tests.factories import make_customer

PAGES = (
    "accounts_user",
    "accounts_shop",
    "accounts_shopchange",
    "accounts_signingkey",
    "accounts_widgetkey",
    "accounts_customer",
    "accounts_delegation",
    "tools_switch",
    "tools_policydocument",
)


@pytest.fixture
def root(db) -> Client:
    user = make_person(None, "root", role=Role.ADMIN, is_superuser=True, is_staff=True)
    client = Client()
    client.force_login(user, backend="accounts.backends.ConsoleBackend")
    return client


def form_of(client: Client, address: str) -> dict[str, Any]:
    """What a browser would send back if nothing was touched."""
    form = client.get(address).context["adminform"].form
    values = {name: form[name].value() for name in form.fields}
    shown: dict[str, Any] = {}
    for name, value in values.items():
        if value is None or value is False:
            continue
        shown[name] = ",".join(value) if isinstance(value, list) else value
    return shown


@pytest.mark.parametrize("name", PAGES)
def test_each_list_opens_and_offers_no_deletion(root, shop, name):
    Signer(shop)
    make_customer(shop)

    page = root.get(reverse(f"admin:{name}_changelist"))

    assert page.status_code == 200
    assert "delete_selected" not in text_of(page)


def test_a_shops_page_shows_no_secret_and_a_keys_page_neither(root, shop):
    signer = Signer(shop)
    pages = (
        root.get(reverse("admin:accounts_shop_change", args=[shop.pk])),
        root.get(reverse("admin:accounts_signingkey_change", args=[signer.row.pk])),
    )

    for page in pages:
        assert page.status_code == 200
        assert "secret" not in text_of(page).lower()


def test_a_changed_setting_is_recorded_with_the_old_value_and_shown_in_the_history(root, shop):
    address = reverse("admin:accounts_shop_change", args=[shop.pk])

    answer = root.post(address, form_of(root, address) | {"max_steps": "30"})

    assert answer.status_code == 302, answer.context["errors"]
    (event,) = Event.objects.filter(action="shop.changed")
    assert (event.actor, event.shop_id) == ("admin:root", shop.pk)
    assert event.data == {"changes": {"max_steps": [24, 30]}}
    assert "max_steps from 24 to 30" in text_of(root.get(address))


def test_what_takes_two_people_is_shown_here_and_not_changed(root, shop):
    address = reverse("admin:accounts_shop_change", args=[shop.pk])
    before = Shop.objects.filter(pk=shop.pk).values(*Shop.LOOSENED_BY_TWO).get()
    looser = {
        name: "1" if isinstance(value, bool) else "US,CA" if isinstance(value, list) else "99000"
        for name, value in before.items()
    }

    answer = root.post(address, form_of(root, address) | looser)

    assert answer.status_code == 302, answer.context["errors"]
    assert Shop.objects.filter(pk=shop.pk).values(*Shop.LOOSENED_BY_TWO).get() == before
    assert "Staff limit" in text_of(root.get(address))


def test_a_right_that_is_given_is_recorded(root, shop):
    dana = make_person(shop, "dana")
    address = reverse("admin:accounts_user_change", args=[dana.pk])

    answer = root.post(address, form_of(root, address) | {"is_approver": "on"})

    assert answer.status_code == 302, answer.context["errors"]
    assert User.objects.get(pk=dana.pk).is_approver
    (event,) = Event.objects.all()
    assert event.action == "user.changed"
    assert event.data["rights"] == {"is_approver": [False, True]}


def test_an_auditor_is_not_made_an_approver(root, auditor):
    address = reverse("admin:accounts_user_change", args=[auditor.pk])

    answer = root.post(address, form_of(root, address) | {"is_approver": "on"})

    assert answer.status_code == 200
    assert not User.objects.get(pk=auditor.pk).is_approver
    assert not Event.objects.exists()


def test_a_new_password_is_recorded_and_not_what_it_is(root, shop):
    dana = make_person(shop, "dana")
    address = reverse("admin:auth_user_password_change", args=[dana.pk])
    password = "another long password"

    answer = root.post(address, {"password1": password, "password2": password})

    assert answer.status_code == 302
    (event,) = Event.objects.all()
    assert (event.action, event.data) == ("user.password_set", {"user": "dana"})


def test_a_new_person_is_recorded(root, shop):
    password = "another long password"
    answer = root.post(
        reverse("admin:accounts_user_add"),
        {
            "username": "erin",
            "role": "staff",
            "shop": shop.pk,
            "usable_password": "true",
            "password1": password,
            "password2": password,
        },
    )

    assert answer.status_code == 302, answer.context["errors"]
    assert User.objects.get(username="erin").shop == shop
    (event,) = Event.objects.all()
    assert (event.action, event.shop_id) == ("user.created", shop.pk)


def test_nobody_is_deleted(root, shop):
    dana = make_person(shop, "dana")

    answer = root.post(reverse("admin:accounts_user_delete", args=[dana.pk]), {"post": "yes"})

    assert answer.status_code == 403
    assert User.objects.filter(pk=dana.pk).exists()
