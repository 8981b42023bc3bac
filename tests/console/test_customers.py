"""The console's customers: their copy, their holds and their erasure."""

import json
import re

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Customer, Erasure, Hold, Role
from agents.casework import SavedView
from audit.models import Event
from tests.console.desk import make_person, make_question
from tests.factories import make_customer, make_shop, make_ticket

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(shop) -> Customer:
    return make_customer(shop, name="Ada Moreno", email="ada@example.com")


@pytest.fixture
def admin(shop) -> Client:
    client = Client()
    user = make_person(shop, "root", role=Role.ADMIN)
    client.force_login(user, backend="accounts.backends.ConsoleBackend")
    return client


def at(name: str, customer: Customer) -> str:
    return reverse(f"console:{name}", args=[customer.pk])


def erase(admin: Client, customer: Customer, confirm: str):
    return admin.post(at("customer-erase", customer), {"confirm": confirm, "cause": "asked"})


def test_a_customer_is_found_by_a_part_of_the_name(admin: Client, ada: Customer):
    make_customer(ada.shop, name="Somebody Else")

    page = admin.get(reverse("console:customers"), {"q": "moren"}).content.decode()

    assert "Ada Moreno" in page
    assert "Somebody Else" not in page


def test_each_id_stands_once_on_the_page(admin: Client, ada: Customer):
    ids = re.findall(r'\sid="([^"]+)"', admin.get(at("customer", ada)).content.decode())

    assert "confirm" in ids
    assert sorted(ids) == sorted(set(ids))


def test_the_copy_is_a_file(admin: Client, ada: Customer):
    make_ticket(ada, subject="My broken mug")

    answer = admin.post(at("customer-copy", ada))

    assert answer.headers["Content-Disposition"].startswith('attachment; filename="')
    assert json.loads(answer.content)["conversations"][0]["subject"] == "My broken mug"
    assert Event.objects.get(action="customer.copied").actor == "admin:root"


@pytest.mark.parametrize("confirm", ["", "ada moreno", "Ada", "Ada Moreno!"])
def test_nobody_is_erased_before_they_are_named(admin: Client, ada: Customer, confirm: str):
    answer = erase(admin, ada, confirm)

    assert answer.status_code == 422
    assert "Nothing was erased" in answer.content.decode()
    assert not Erasure.objects.exists()
    assert Customer.objects.get(pk=ada.pk).name == "Ada Moreno"


def test_an_admin_erases_a_customer_and_the_trail_says_who(admin: Client, ada: Customer):
    make_ticket(ada, subject="My broken mug")

    answer = erase(admin, ada, "Ada Moreno")
    page = admin.get(answer.headers["Location"]).content.decode()

    assert "Ada" not in page
    assert "admin:root" in page
    assert Customer.objects.get(pk=ada.pk).name == ""
    assert Event.objects.get(action="erasure.done").actor == "admin:root"


def test_a_customer_without_a_name_is_named_by_number(admin: Client, shop):
    nameless = make_customer(shop, name="", external_id="c-77")

    assert erase(admin, nameless, "c-77").status_code == 302
    assert Erasure.objects.get().customer == nameless


def test_a_hold_is_placed_shown_and_lifted(admin: Client, ada: Customer):
    admin.post(at("customer-hold", ada), {"reason": "A letter of their lawyer"})
    page = admin.get(at("customer", ada)).content.decode()
    assert "A letter of their lawyer" in page
    assert "admin:root" in page

    refused = erase(admin, ada, "Ada Moreno")
    assert refused.status_code == 409
    assert not Erasure.objects.exists()

    hold = Hold.objects.get()
    admin.post(at("customer-lift", ada), {"hold": hold.pk})
    assert Hold.objects.get().lifted_by == "admin:root"
    assert erase(admin, ada, "Ada Moreno").status_code == 302


def test_a_search_that_staff_kept_for_the_customer_goes_too(admin: Client, ada: Customer):
    dana = make_person(ada.shop, "dana")
    for name, query in {
        "hers": "q=ada+moreno&status=open",
        "Ada Moreno": "status=open",
        "mail": "q=ADA%40example.com",
        "other": "q=mug&status=open",
    }.items():
        SavedView.objects.create(user=dana, page="tickets", name=name, query=query)

    erase(admin, ada, "Ada Moreno")

    assert [view.name for view in SavedView.objects.all()] == ["other"]


def test_an_erased_case_can_still_be_looked_at(admin: Client, ada: Customer):
    approval = make_question(ada.shop, customer=ada)
    operation = approval.operation
    erase(admin, ada, "Ada Moreno")

    pages = [
        reverse("console:ticket", args=[operation.ticket_id]),
        reverse("console:task", args=[operation.task_id]),
        reverse("console:approval", args=[approval.public_id]),
        reverse("console:desk-operation", args=[operation.pk]),
        reverse("console:task-log", args=[operation.task_id]),
        reverse("console:tickets"),
        reverse("console:audit"),
    ]
    for page in pages:
        answer = admin.get(page)
        assert answer.status_code == 200, page
        assert "Ada Moreno" not in answer.content.decode(), page
        assert "Larkspur" not in answer.content.decode(), page


def test_a_hold_on_somebody_else_s_ticket_is_refused(admin: Client, ada: Customer):
    other = make_ticket(make_customer(ada.shop))

    answer = admin.post(at("customer-hold", ada), {"reason": "A letter", "ticket": other.pk})

    assert answer.status_code == 422
    assert not Hold.objects.exists()


def test_an_admin_of_another_shop_finds_nobody(ada: Customer):
    client = Client()
    user = make_person(make_shop(), "elsewhere", role=Role.ADMIN)
    client.force_login(user, backend="accounts.backends.ConsoleBackend")
    hold = Hold.objects.create(
        shop=ada.shop, customer=ada, reason="A letter", placed_by="admin:root",
        placed_at=ada.created_at,
    )  # fmt: skip

    assert "Ada Moreno" not in client.get(reverse("console:customers")).content.decode()
    assert client.get(at("customer", ada)).status_code == 404
    for name, given in {
        "customer-copy": {},
        "customer-hold": {"reason": "x"},
        "customer-lift": {"hold": hold.pk},
        "customer-erase": {"confirm": "Ada Moreno", "cause": "asked"},
    }.items():
        assert client.post(at(name, ada), given).status_code == 404
    assert Hold.objects.get().lifted_at is None
    assert not Erasure.objects.exists()
    assert not Event.objects.filter(action="customer.copied").exists()


def test_a_hold_of_another_customer_is_not_lifted_here(admin: Client, ada: Customer):
    bob = make_customer(ada.shop, name="Bob")
    admin.post(at("customer-hold", bob), {"reason": "A letter"})

    answer = admin.post(at("customer-lift", ada), {"hold": Hold.objects.get().pk})

    assert answer.status_code == 404
    assert Hold.objects.get().lifted_at is None
