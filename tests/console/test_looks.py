"""Who opened whose case is on the trail; a sensitive one asks for a reason first."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import looks
from accounts.looks import Case
from accounts.models import Customer, Look, Role, Shop, User
from agents.models import Ticket
from approvals.models import Approval
from audit import services as audit
from audit.models import Event
from tests.api.clients import Api
from tests.console.desk import decide, make_person, make_question, text_of
from tests.console.test_access import ROUTES, routes
from tests.factories import make_customer, make_shop, make_ticket

PAGES = ("approval", "ticket", "task", "task-log", "step", "desk-operation")
REASON = "Ada called about her parcel."


@pytest.fixture
def approval(shop) -> Approval:
    return make_question(shop, customer=make_customer(shop, external_id="ada"))


@pytest.fixture
def vip(approval) -> Customer:
    customer: Customer = approval.operation.customer
    Customer.objects.filter(pk=customer.pk).update(is_sensitive=True)
    customer.refresh_from_db(fields=["is_sensitive"])
    return customer


@pytest.fixture
def clerk(shop) -> User:
    return make_person(shop, "clerk")


def pages_of(approval: Approval) -> dict[str, str]:
    """Every page that shows something of the case."""
    operation = approval.operation
    return {
        "approval": reverse("console:approval", args=[approval.public_id]),
        "ticket": reverse("console:ticket", args=[operation.ticket_id]),
        "task": reverse("console:task", args=[operation.task_id]),
        "task-log": reverse("console:task-log", args=[operation.task_id]),
        "step": reverse("console:step", args=[operation.task_id, operation.step_n]),
        "desk-operation": reverse("console:desk-operation", args=[operation.pk]),
    }


def opened(**wanted: Any) -> list[Event]:
    return list(Event.objects.filter(action=looks.OPENED, **wanted).order_by("pk"))


def explain(client: Client, ticket_id: int, **fields: str) -> Any:
    token = client.get(reverse("console:queue")).context["csrf_token"]
    given = {"csrfmiddlewaretoken": token, "reason": REASON} | fields
    return client.post(reverse("console:explain", args=[ticket_id]), given)


# --- On the trail -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_opening_a_case_is_on_the_trail(approval, clerk, sign_in, name):
    assert sign_in(clerk).get(pages_of(approval)[name]).status_code == 200

    (event,) = opened()
    assert (event.actor, event.customer) == (clerk.actor, "ada")
    assert event.subject == f"ticket:{approval.operation.ticket_id}"
    assert (event.ticket_id, event.shop_id) == (
        approval.operation.ticket_id,
        approval.operation.shop_id,
    )
    assert event.data == {"page": name, "sensitive": False, "theirs": False}


def test_every_page_that_leads_to_a_ticket_is_tried_above():
    leading = {"ticket_id", "task_id", "operation_id", "public_id"}
    pages = {
        name
        for name, (method, _) in ROUTES.items()
        for route in routes()
        if route.name == name and method == "GET" and leading & set(route.pattern.converters)
    }

    assert pages == set(PAGES)


def test_a_reload_within_minutes_is_the_same_look_and_a_later_one_another(approval, clerk, sign_in):
    client = sign_in(clerk)
    for page in pages_of(approval).values():
        client.get(page)
        client.get(page)
    assert len(opened()) == 1

    Look.objects.update(recorded_at=timezone.now() - looks.SAME_LOOK - timedelta(seconds=1))
    client.get(pages_of(approval)["ticket"])

    assert [event.data["page"] for event in opened()] == ["approval", "ticket"]


def test_a_page_that_asks_again_by_itself_is_the_same_look(approval, clerk, sign_in):
    client = sign_in(clerk)
    page = pages_of(approval)["ticket"]
    client.get(page)
    Look.objects.update(recorded_at=timezone.now() - timedelta(hours=3))

    client.get(page, headers={"HX-Request": "true"})
    assert len(opened()) == 1
    client.get(page)
    assert len(opened()) == 2


def test_asking_like_a_page_does_hides_no_look(approval, clerk, sign_in):
    sign_in(clerk).get(pages_of(approval)["ticket"], headers={"HX-Request": "true"})

    assert len(opened()) == 1


def test_each_person_and_each_case_is_a_look_of_its_own(approval, clerk, auditor, shop, sign_in):
    other = make_question(shop)
    for user in (clerk, auditor):
        client = sign_in(user)
        client.get(pages_of(approval)["ticket"])
        client.get(pages_of(other)["ticket"])

    seen = {(event.actor, event.ticket_id) for event in opened()}
    assert len(seen) == len(opened()) == 4


def test_what_is_not_there_leaves_no_trace(approval, sign_in):
    stranger = make_person(make_shop(), "stranger")
    client = sign_in(stranger)
    for page in pages_of(approval).values():
        assert client.get(page).status_code == 404
    assert client.get("/console/tickets/999999/").status_code == 404

    assert opened() == []


def test_a_trail_that_cannot_be_written_keeps_nobody_from_reading(
    approval, clerk, sign_in, monkeypatch, caplog
):
    def fail(**_: object) -> None:
        raise OperationalError("disk full")

    monkeypatch.setattr(audit, "record", fail)

    assert sign_in(clerk).get(pages_of(approval)["ticket"]).status_code == 200
    assert "is not recorded" in caplog.text
    assert not Look.objects.exists()


def test_a_customers_own_page_is_on_the_trail_too(approval, shop, sign_in):
    admin = make_person(shop, "ann", role=Role.ADMIN)
    customer = approval.operation.customer

    sign_in(admin).get(reverse("console:customer", args=[customer.pk]))

    assert [event.subject for event in opened()] == [f"customer:{customer.pk}"]


def test_reading_over_the_api_is_on_the_trail(approval, clerk):
    task = approval.operation.task_id
    assert Api.staff(clerk).get(f"/v1/tasks/{task}").status_code == 200

    (event,) = opened()
    assert (event.actor, event.data["page"]) == (clerk.actor, "api")


@pytest.mark.django_db(transaction=True)
def test_of_two_pages_opened_at_once_one_is_recorded():
    shop = make_shop()
    user, customer = make_person(shop, "clerk"), make_customer(shop)
    case, now = Case(customer, make_ticket(customer).pk), timezone.now()
    gate = threading.Barrier(2)

    def run() -> None:
        gate.wait(10)
        looks.note_look(user, case, where="ticket", is_poll=False, now=now)
        connection.close()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert len(opened()) == 1


# --- Sensitive ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_a_sensitive_case_shows_nothing_before_a_reason(approval, vip, clerk, sign_in, name):
    answer = sign_in(clerk).get(pages_of(approval)[name])

    assert answer.status_code == 403
    text = text_of(answer)
    assert "Why do you open this case?" in text
    assert vip.name not in text
    assert approval.operation.order_id not in text
    assert opened() == []


def test_a_part_of_a_page_shows_nothing_either(approval, vip, clerk, sign_in):
    answer = sign_in(clerk).get(pages_of(approval)["ticket"], headers={"HX-Request": "true"})

    assert answer.status_code == 403
    assert "<html" not in text_of(answer)
    assert vip.name not in text_of(answer)


def test_nothing_is_done_in_it_either(approval, vip, clerk, sign_in):
    client = sign_in(clerk)
    ticket_id = approval.operation.ticket_id
    token = client.get(reverse("console:queue")).context["csrf_token"]

    for name in ("take-over", "reply"):
        address = reverse(f"console:{name}", args=[ticket_id])
        answer = client.post(address, {"csrfmiddlewaretoken": token, "text": "Hello"})
        assert answer.status_code == 403

    assert Ticket.objects.get(pk=ticket_id).assigned_to is None


def test_the_reason_opens_it_and_stands_beside_the_trail(approval, vip, clerk, sign_in):
    client = sign_in(clerk)
    page = pages_of(approval)["task"]
    asked = client.get(f"{page}?page=1")

    answer = explain(client, approval.operation.ticket_id, next=asked.context["back"])

    assert answer.headers["Location"] == f"{page}?page=1"
    assert client.get(page).status_code == 200
    said = Event.objects.get(action=looks.EXPLAINED)
    assert (said.actor, said.customer) == (clerk.actor, "ada")
    assert audit.read_personal(said) == REASON
    assert REASON not in str(said.data)
    (event,) = opened()
    assert event.data["sensitive"] is True


@pytest.mark.parametrize("reason", ["", "   ", "x" * 501])
def test_no_reason_opens_nothing(approval, vip, clerk, sign_in, reason):
    client = sign_in(clerk)

    assert explain(client, approval.operation.ticket_id, reason=reason).status_code == 422

    assert client.get(pages_of(approval)["ticket"]).status_code == 403
    assert not Event.objects.filter(action=looks.EXPLAINED).exists()


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example/console/", "/v1/tasks"]
)
def test_the_reason_leads_nowhere_else(approval, vip, clerk, sign_in, wanted):
    answer = explain(sign_in(clerk), approval.operation.ticket_id, next=wanted)

    assert answer.headers["Location"] == pages_of(approval)["ticket"]


def test_a_reason_holds_for_its_case_its_person_and_its_time(
    approval, vip, clerk, shop, sign_in, auditor
):
    client = sign_in(clerk)
    other = make_question(shop, customer=vip)
    explain(client, approval.operation.ticket_id)

    assert client.get(pages_of(other)["ticket"]).status_code == 403
    assert sign_in(auditor).get(pages_of(approval)["ticket"]).status_code == 403
    Look.objects.update(reason_at=timezone.now() - looks.REASON_HOLDS)
    assert client.get(pages_of(approval)["ticket"]).status_code == 403


def test_whoever_holds_the_case_is_asked_nothing(approval, vip, clerk, sign_in):
    Ticket.objects.filter(pk=approval.operation.ticket_id).update(
        speaker="staff", assigned_to=clerk
    )

    assert sign_in(clerk).get(pages_of(approval)["ticket"]).status_code == 200
    assert opened()[0].data == {"page": "ticket", "sensitive": True, "theirs": True}


def test_an_approver_is_asked_nothing_where_something_is_to_be_decided(
    approval, vip, approver, shop, sign_in
):
    client = sign_in(approver)
    idle = make_ticket(vip)

    assert client.get(pages_of(approval)["approval"]).status_code == 200
    assert client.get(reverse("console:ticket", args=[idle.pk])).status_code == 403
    assert decide(client, approval, "reject").status_code == 302
    assert client.get(pages_of(approval)["approval"]).status_code == 200
    other = make_person(shop, "other", is_approver=True)
    assert sign_in(other).get(pages_of(approval)["approval"]).status_code == 403


SUBJECT = "My ring from the gala is broken"


@pytest.fixture
def greta(shop) -> Approval:
    """A question about a sensitive customer whose name is known everywhere."""
    fields = {"external_id": "vip-7731", "name": "Greta Vipson", "email": "greta@vipson.example"}
    asked = make_question(shop, customer=make_customer(shop, is_sensitive=True, **fields))
    Ticket.objects.filter(pk=asked.operation.ticket_id).update(subject=SUBJECT)
    return asked


WORDS = ("Greta Vipson", "vipson", "vip-7731", "greta@vipson.example", SUBJECT)


@pytest.mark.parametrize("who", ["clerk", "auditor"])
def test_no_list_tells_whose_a_sensitive_case_is_and_no_search_finds_it(
    request, greta, sign_in, who
):
    client, operation = sign_in(request.getfixturevalue(who)), greta.operation

    for name in ("tickets", "queue"):
        page = text_of(client.get(reverse(f"console:{name}")))
        assert "Sensitive case" in page
        told = [word for word in (*WORDS, operation.order_id) if word.lower() in page.lower()]
        assert told == []
        for word in WORDS:
            found = text_of(client.get(reverse(f"console:{name}"), {"q": word}))
            assert "Sensitive case" not in found, (name, word)
        by_number = client.get(reverse(f"console:{name}"), {"q": f"#{operation.ticket_id}"})
        assert "Sensitive case" in text_of(by_number)
    assert opened() == []


def test_a_list_tells_it_to_whoever_has_said_why_or_holds_the_case(greta, clerk, shop, sign_in):
    tickets, ticket_id = reverse("console:tickets"), greta.operation.ticket_id
    client, holder = sign_in(clerk), make_person(shop, "holder")
    Ticket.objects.filter(pk=ticket_id).update(assigned_to=holder)

    explain(client, ticket_id)

    assert "Greta Vipson" in text_of(client.get(tickets))
    assert "Greta Vipson" in text_of(sign_in(holder).get(tickets, {"q": "vipson"}))


def test_whoever_has_to_decide_finds_it_in_the_inbox(greta, approver, sign_in):
    inbox = reverse("console:queue")

    assert "Greta Vipson" in text_of(sign_in(approver).get(inbox, {"q": "vipson"}))


def test_over_the_api_a_sensitive_case_stays_shut_without_a_reason(approval, vip, clerk, sign_in):
    api, task = Api.staff(clerk), approval.operation.task_id
    answer = api.get(f"/v1/tasks/{task}")
    assert (answer.status_code, answer.json()["type"][-14:]) == (403, "#reason-needed")
    assert opened() == []

    explain(sign_in(clerk), approval.operation.ticket_id)

    assert api.get(f"/v1/tasks/{task}").status_code == 200


def test_auditors_find_who_opened_a_customers_cases(approval, vip, clerk, auditor, sign_in):
    client = sign_in(clerk)
    explain(client, approval.operation.ticket_id)
    client.get(pages_of(approval)["ticket"])

    page = sign_in(auditor).get(reverse("console:audit"), {"action": "case", "customer": "ada"})

    found = {event.action for event in page.context["page"].events}
    assert found == {looks.OPENED, looks.EXPLAINED}


# --- Marking ------------------------------------------------------------------------------------


def mark(client: Client, shop: Shop, customer: str, **fields: str) -> Any:
    token = client.get(reverse("console:queue")).context["csrf_token"]
    given = {"csrfmiddlewaretoken": token, "customer": customer, "mark": "on", "reason": "Known."}
    return client.post(reverse("console:customer-mark", args=[shop.pk]), given | fields)


@pytest.fixture
def admin(shop, sign_in) -> Client:
    client: Client = sign_in(make_person(shop, "ann", role=Role.ADMIN))
    return client


def test_an_admin_marks_a_customer_and_takes_it_back(admin, shop, approval):
    assert mark(admin, shop, "ada").status_code == 302
    assert Customer.objects.get(external_id="ada").is_sensitive
    assert "ada" in text_of(admin.get(reverse("console:sensitive", args=[shop.pk])))

    assert mark(admin, shop, "ada", mark="off").status_code == 302

    assert not Customer.objects.get(external_id="ada").is_sensitive
    actions = list(
        Event.objects.filter(customer="ada", action__startswith="customer.")
        .order_by("pk")
        .values_list("action", "actor")
    )
    assert actions == [
        ("customer.marked_sensitive", "admin:ann"),
        ("customer.unmarked_sensitive", "admin:ann"),
    ]


@pytest.mark.parametrize(
    ("customer", "fields", "status"),
    [
        ("nobody", {}, 422),
        ("ada", {"reason": " "}, 422),
        ("ada", {"mark": "off"}, 409),
        ("theirs", {}, 422),
    ],
)
def test_what_cannot_be_marked_is_not(admin, shop, approval, customer, fields, status):
    make_customer(make_shop(), external_id="theirs")

    assert mark(admin, shop, customer, **fields).status_code == status

    assert not Customer.objects.filter(is_sensitive=True).exists()
