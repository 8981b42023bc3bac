"""Whoever approves money without looking is made to stop, and it is on the trail."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client, RequestFactory
from django.urls import reverse

from accounts.models import Shop, User
from approvals import pace, services
from approvals.models import Approval
from audit.models import Event
from config.metrics import metrics
from tests.api.clients import Api
from tests.console.desk import PASSWORD, decide, make_question, operation_of, text_of
from tests.factories import (
    make_approver,
    make_customer,
    make_line,
    make_operation,
    make_order,
    make_shop,
    say_no,
    say_yes,
)

MANY = 3


@pytest.fixture(autouse=True)
def _three_in_five_minutes(settings):
    settings.APPROVALS_IN_A_ROW = MANY
    settings.APPROVALS_ROW_SECONDS = 300


@pytest.fixture
def shop(db) -> Shop:
    return make_shop()


@pytest.fixture
def dana(shop: Shop) -> User:
    return make_approver(shop)


def approve(approval: Approval, by: User) -> Approval:
    return say_yes(approval.operation, by)


def approve_many(shop: Shop, by: User, count: int = MANY) -> list[Approval]:
    return [approve(make_question(shop), by) for _ in range(count)]


def paused() -> list[Event]:
    return list(Event.objects.filter(action=pace.PAUSED).order_by("pk"))


def test_one_more_than_so_many_is_refused_and_nothing_is_decided(shop, dana):
    approve_many(shop, dana)
    asked = make_question(shop)
    before = Event.objects.exclude(action=pace.PAUSED).count()

    with pytest.raises(services.TooFastError) as refused:
        approve(asked, dana)

    assert 290 <= refused.value.seconds <= 300
    assert operation_of(asked).granted_roles == ["customer"]
    assert Event.objects.exclude(action=pace.PAUSED).count() == before


def test_it_is_noted_once_with_the_person_and_the_limit(shop, dana):
    approve_many(shop, dana)
    for _ in range(3):
        with pytest.raises(services.TooFastError):
            approve(make_question(shop), dana)

    (event,) = paused()
    assert (event.actor, event.shop_id) == (dana.actor, shop.pk)
    assert event.data == {"approvals": MANY, "seconds": 300}


def test_after_a_while_it_goes_on_as_the_oldest_falls_out(shop, dana):
    oldest = approve_many(shop, dana)[0].decided_at
    assert oldest is not None

    waits = {
        after: pace.seconds_to_wait(user_id=dana.pk, now=oldest + timedelta(seconds=after))
        for after in (100, 299, 300, 1000)
    }

    assert waits == {100: 200, 299: 1, 300: 0, 1000: 0}


def test_each_person_has_their_own_pace(shop, dana):
    approve_many(shop, dana)

    approve(make_question(shop), make_approver(shop))

    assert paused() == []


def test_an_admin_of_every_shop_is_counted_over_all_of_them(db):
    chief = make_approver(None)
    for _ in range(MANY):
        approve(make_question(make_shop()), chief)

    with pytest.raises(services.TooFastError):
        approve(make_question(make_shop()), chief)


def test_a_no_is_never_slowed_and_counts_for_nothing(shop, dana):
    for _ in range(2 * MANY):
        say_no(make_question(shop).operation, dana)

    approve_many(shop, dana)
    say_no(make_question(shop).operation, dana)

    assert paused() == []


def test_a_yes_that_is_sent_again_is_answered_and_not_counted_again(shop, dana):
    *_, last = approve_many(shop, dana)

    again = approve(last, dana)

    assert again.status == "approved"
    assert paused() == []


def test_customers_say_yes_as_fast_as_they_like(shop):
    customer = make_customer(shop)
    for _ in range(2 * MANY):
        operation = make_operation(customer, make_order(make_line(100)))
        assert say_yes(operation).status == "approved"


def test_the_page_says_take_a_breath_and_when_it_goes_on(shop, dana):
    approve_many(shop, dana)
    client = Client(enforce_csrf_checks=True)
    dana.set_password(PASSWORD)
    dana.save()
    client.force_login(dana, backend="accounts.backends.ConsoleBackend")
    asked = make_question(shop)

    answer = decide(client, asked, "approve")

    assert answer.status_code == 429
    assert 1 <= int(answer.headers["Retry-After"]) <= 300
    assert "Take a breath" in text_of(answer)
    assert operation_of(asked).granted_roles == ["customer"]
    assert decide(client, asked, "reject").status_code == 302


def test_the_api_says_429_and_when_it_goes_on(shop, dana):
    approve_many(shop, dana)
    asked = make_question(shop)
    operation = asked.operation

    answer = Api.staff(dana).post(
        f"/v1/tasks/{operation.task_id}/approvals/{operation.step_n}",
        {"decision": "yes", "digest": asked.digest},
    )

    assert answer.status_code == 429
    assert 1 <= int(answer.headers["Retry-After"]) <= 300
    assert answer.json()["type"].endswith("#too-fast")
    assert operation_of(asked).granted_roles == ["customer"]


def test_it_is_counted_for_whoever_watches(shop, dana):
    approve_many(shop, dana)
    with pytest.raises(services.TooFastError):
        approve(make_question(shop), dana)

    text = metrics(RequestFactory().get("/metrics")).content.decode()

    assert "countersign_approvers_paused_total 1.0" in text


def test_no_address_takes_several_yeses(shop, dana):
    first, second = make_question(shop), make_question(shop)
    client = Client(enforce_csrf_checks=True)
    client.force_login(dana, backend="accounts.backends.ConsoleBackend")
    token = client.get(reverse("console:queue")).context["csrf_token"]
    several = {"csrfmiddlewaretoken": token, "which": [str(first.public_id), str(second.public_id)]}

    for word in ("approve", "yes"):
        answer = client.post(reverse("console:several"), several | {"what": word})
        assert answer.status_code == 422

    assert [operation_of(each).granted_roles for each in (first, second)] == [["customer"]] * 2


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_only_the_last_free_one_is_taken():
    shop = make_shop()
    dana = make_approver(shop)
    approve_many(shop, dana, MANY - 1)
    asked = [make_question(shop), make_question(shop)]
    gate, found = threading.Barrier(2), []

    def run(approval: Approval) -> None:
        gate.wait(10)
        try:
            approve(approval, dana)
            found.append("taken")
        except services.TooFastError:
            found.append("too fast")
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(each,)) for each in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(found) == ["taken", "too fast"]
