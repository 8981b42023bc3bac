"""A refund on its way is looked up again by ourselves, and in the end the desk is told."""

from datetime import timedelta

import pytest
from django.db import Error, connection, transaction
from django.test import Client
from django.urls import reverse

from accounts.models import Shop, User
from agents import dispatch
from audit.models import Event
from config.celery import app
from tests.desk.telling import about_refund
from tests.desk.test_pending import taken
from tests.desk.world import approver, of, told
from tests.factories import make_approver, make_shop
from tools import adapters, arrivals, inquiries, unresolved
from tools.clock import database_now
from tools.models import Inquiry, Observation, Operation, Reversal, Switch, Transit

pytestmark = pytest.mark.django_db


@pytest.fixture
def pending(buyer) -> Operation:
    operation = taken(buyer)
    buyer.shop.forget_calls()
    return operation


def age(operation: Operation, **passed: float) -> None:
    """Let so much time have passed since the shop took it; a look is due."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE tools_transit DISABLE TRIGGER transit_guard")
        moment = database_now() - timedelta(**passed)
        Transit.objects.filter(operation=operation).update(began_at=moment, next_look_at=moment)
        cursor.execute("ALTER TABLE tools_transit ENABLE TRIGGER transit_guard")


def pause(operation: Operation) -> timedelta:
    """How long it is until the next look."""
    return (
        Transit.objects.get(operation=operation).next_look_at or database_now()
    ) - database_now()


def asked(buyer, operation: Operation) -> int:
    return len(buyer.shop.calls(idempotency_key=operation.idempotency_key))


def test_the_shop_has_a_minute_to_tell_by_itself(pending, buyer):
    assert arrivals.look_after() == 0
    assert asked(buyer, pending) == 0
    assert timedelta(seconds=50) < pause(pending) <= timedelta(minutes=1)


def test_a_look_that_finds_it_paid_out_says_so(pending, buyer):
    buyer.shop.arrive(pending.reference)
    age(pending, hours=2)
    before = Operation.objects.filter(pk=pending.pk).values().get()

    assert arrivals.look_after() == 1

    assert not of(pending).is_on_its_way
    assert Operation.objects.filter(pk=pending.pk).values().get() == before
    assert pending.observations.get().body["effect"]["status"] == "succeeded"
    assert Event.objects.get(action="refund.arrived").actor == "agent"
    assert arrivals.look_after() == 0
    assert len(buyer.shop.effects(order_id=pending.order_id)) == 1


def test_a_look_that_finds_it_failed_opens_a_case_and_tells_the_customer(pending, buyer, teller):
    buyer.shop.reverse(pending.reference)
    age(pending, hours=2)

    arrivals.look_after()

    case = Reversal.objects.get()
    assert (case.operation, case.event) == (pending, None)
    assert "did not stay with you" in told(pending)[-1]
    assert Event.objects.get(action="refund.reversed").data == {"source": "look_up"}
    said = told(pending)
    teller.told(about_refund(pending, "failed", id=pending.reference))
    assert arrivals.look_after() == 0
    assert (Reversal.objects.count(), told(pending)) == (1, said)


@pytest.mark.parametrize(
    ("passed", "waits"),
    [
        (timedelta(seconds=70), timedelta(minutes=1)),
        (timedelta(hours=2), timedelta(hours=1)),
        (timedelta(days=3), timedelta(hours=12)),
        (timedelta(days=13, hours=23), timedelta(hours=1)),
    ],
)
def test_while_it_is_pending_the_looks_grow_rarer_within_bounds(pending, buyer, passed, waits):
    age(pending, seconds=passed.total_seconds())

    assert arrivals.look_after() == 1
    assert arrivals.look_after() == 0

    assert asked(buyer, pending) == 1
    assert waits - timedelta(seconds=30) < pause(pending) <= waits
    assert of(pending).is_on_its_way
    assert pending.observations.get().body["effect"]["status"] == "pending"
    assert not Inquiry.objects.exists()


def test_after_two_weeks_the_desk_is_told_and_nobody_looks_any_more(pending, buyer):
    age(pending, days=14)

    arrivals.look_after()

    assert asked(buyer, pending) == 1
    assert Inquiry.objects.get().kind == "no_end"
    assert Event.objects.get(action="refund.overdue").subject.endswith(pending.idempotency_key)
    assert list(unresolved.list_asked_about(shop_id=pending.shop_id)) == [pending]
    assert unresolved.count_for_people(shop_id=pending.shop_id) == 1
    assert of(pending).is_on_its_way
    age(pending, days=20)
    assert arrivals.look_after() == 0
    assert asked(buyer, pending) == 1


def test_a_last_look_that_finds_it_leaves_the_desk_alone(pending, buyer):
    buyer.shop.arrive(pending.reference)
    age(pending, days=15)

    arrivals.look_after()

    assert not of(pending).is_on_its_way
    assert not Inquiry.objects.exists()


def test_a_shop_that_cannot_be_asked_is_told_of_in_the_end_too(pending, buyer):
    Shop.objects.filter(pk=pending.shop_id).update(provider="some_other")
    age(pending, days=13)
    arrivals.look_after()
    assert not Inquiry.objects.exists()

    age(pending, days=14)
    arrivals.look_after()

    assert asked(buyer, pending) == 0
    assert Inquiry.objects.get().kind == "no_end"


def test_what_the_shop_tells_later_is_still_believed(pending, teller):
    age(pending, days=14)
    arrivals.look_after()

    teller.told(about_refund(pending, id=pending.reference))

    assert not of(pending).is_on_its_way
    assert Inquiry.objects.get().closed_by == f"shop:{pending.shop.slug}"
    assert unresolved.count_for_people(shop_id=None) == 0


def test_what_fails_later_is_a_case_and_no_question_beside_it(pending, teller):
    age(pending, days=14)
    arrivals.look_after()

    teller.told(about_refund(pending, "failed", id=pending.reference))

    assert Inquiry.objects.get().closed_at is not None
    assert Reversal.objects.get().closed_at is None
    assert unresolved.count_for_people(shop_id=None) == 1


def test_an_effect_of_something_else_is_for_the_desk_at_once(pending, buyer):
    age(pending, hours=2)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE tools_operation DISABLE TRIGGER USER")
        Operation.objects.filter(pk=pending.pk).update(amount=3999)
        cursor.execute("ALTER TABLE tools_operation ENABLE TRIGGER USER")

    arrivals.look_after()

    assert of(pending).is_on_its_way
    assert Inquiry.objects.get().kind == "contradicted"
    age(pending, hours=9)
    assert arrivals.look_after() == 0


def test_a_switch_holds_the_looks_back(pending, buyer):
    Switch.objects.create(
        shop=None, tool="", is_off=True, changed_by="x", changed_at=database_now()
    )
    age(pending, hours=2)

    arrivals.look_after()

    assert asked(buyer, pending) == 0
    assert not pending.observations.exists()
    assert pause(pending) > timedelta(minutes=50)


def test_a_shop_that_is_not_called_is_not_called_for_this_either(pending, buyer):
    adapters.pause(pending.shop)
    age(pending, hours=2)

    arrivals.look_after()

    assert asked(buyer, pending) == 0
    assert not pending.observations.exists()


def test_the_shop_is_not_asked_before_the_time_that_it_has_named(pending, buyer):
    buyer.shop.fault(
        "error_before", scope={"path": "/effects"}, status=429, retry_after=3000, times=1
    )
    age(pending, seconds=70)

    arrivals.look_after()

    assert pause(pending) > timedelta(minutes=45)
    assert not pending.observations.exists()


def test_of_two_workers_at_once_one_looks(pending):
    age(pending, hours=2)
    one, other = Transit.objects.get(), Transit.objects.get()

    assert arrivals._take_up(one)
    assert not arrivals._take_up(other)
    assert pending.observations.count() == 1


def test_beat_has_it_done(pending, buyer):
    age(pending, hours=2)
    (plan,) = [one for one in app.conf.beat_schedule.values() if one["task"] == dispatch.LOOK_AFTER]

    assert plan["schedule"] <= 60
    app.tasks[dispatch.LOOK_AFTER]()
    assert asked(buyer, pending) == 1


def test_one_made_by_code_from_before_is_looked_up_as_well(pending, buyer):
    Transit.objects.update(next_look_at=None)

    assert arrivals.look_after() == 1
    assert asked(buyer, pending) == 1


# --- At the desk -----------------------------------------------------------------------------------


def test_an_approver_takes_it_off_the_desk_with_what_was_found_out(pending):
    age(pending, days=14)
    arrivals.look_after()
    dana = approver(pending)

    for user, note in [(make_approver(make_shop()), "Seen."), (dana, " \n"), (dana, "x" * 2001)]:
        with pytest.raises(inquiries.InquiryError):
            inquiries.close(operation_id=pending.pk, user_id=user.pk, note=note)
    assert Inquiry.objects.get().closed_at is None
    inquiries.close(
        operation_id=pending.pk, user_id=dana.pk, note="The bank has it, says the shop."
    )

    assert Inquiry.objects.get().closed_by == dana.actor
    assert unresolved.count_for_people(shop_id=None) == 0
    assert Event.objects.get(action="refund.inquiry_closed").personal_digest is not None
    with pytest.raises(inquiries.InquiryError):
        inquiries.close(operation_id=pending.pk, user_id=dana.pk, note="Again.")


def test_the_page_says_what_is_asked_and_takes_the_answer(pending):
    age(pending, days=14)
    arrivals.look_after()
    client = Client()
    client.force_login(approver(pending))

    assert "still calls this refund pending" in client.get("/console/desk/").content.decode()
    page = client.get(f"/console/desk/{pending.pk}/").content.decode()
    assert "What have you found out?" in page
    answer = client.post(
        reverse("console:desk-close-case", args=[pending.pk]), {"note": "It is with the bank."}
    )

    assert answer.status_code == 302
    assert Inquiry.objects.get().closed_at is not None
    assert "still calls" not in client.get("/console/desk/").content.decode()


def check(pending, client) -> str:
    """What the page says after somebody has the shop asked at once."""
    address = reverse("console:desk-check", args=[pending.pk])
    assert "Check with the shop now" in client.get(f"/console/desk/{pending.pk}/").content.decode()
    page = client.post(address, follow=True)
    assert page.status_code == 200
    return str(page.content.decode())


@pytest.fixture
def dana(pending) -> Client:
    client = Client()
    client.force_login(approver(pending))
    return client


def test_a_person_may_have_the_shop_asked_at_once(pending, buyer, dana):
    age(pending, days=14)
    arrivals.look_after()

    assert "still calls it pending" in check(pending, dana)
    assert Inquiry.objects.get().closed_at is None
    buyer.shop.arrive(pending.reference)
    assert "was paid out" in check(pending, dana)

    assert not of(pending).is_on_its_way
    assert Inquiry.objects.get().closed_at is not None
    arrived = Event.objects.get(action="refund.arrived")
    assert arrived.actor == Inquiry.objects.get().closed_by == approver_of(dana)
    again = dana.post(reverse("console:desk-check", args=[pending.pk]))
    assert again.status_code == 409
    assert Event.objects.filter(action="refund.arrived").count() == 1


def approver_of(client: Client) -> str:
    return User.objects.get(pk=client.session["_auth_user_id"]).actor


def test_a_shop_that_does_not_answer_a_person_changes_nothing(pending, buyer, dana):
    before = written(pending)
    buyer.shop.fault("error_before", scope={"path": "/effects"}, status=503)

    assert "did not answer" in check(pending, dana)

    assert of(pending).is_on_its_way
    assert written(pending) == before


def written(operation: Operation) -> tuple[list[str], int, int]:
    """What the customer was told, what was seen of it, and what the trail has of it."""
    events = Event.objects.filter(action__startswith="refund.")
    return told(operation), Observation.objects.count(), events.count()


def test_a_question_is_closed_once_and_stays(pending):
    age(pending, days=14)
    arrivals.look_after()

    def refused(statement: str) -> None:
        before = list(Inquiry.objects.values())
        with pytest.raises(Error), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
        assert list(Inquiry.objects.values()) == before

    closing = "UPDATE tools_inquiry SET closed_by = 'x', closed_at = clock_timestamp()"
    refused("DELETE FROM tools_inquiry")
    refused("UPDATE tools_inquiry SET kind = 'contradicted'")
    with connection.cursor() as cursor:
        cursor.execute(closing)
    refused(closing)
