"""What the shop tells is evidence: taken once, believed only where it fits, never a second effect."""

import itertools
import json
import threading
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import Error, connection, transaction
from django.utils import timezone

from accounts.models import WebhookSecret
from agents.api import webhooks
from agents.models import Task
from approvals.services import is_still_granted
from audit.models import Event
from tests.desk.telling import about_change, about_refund, everything
from tests.factories import make_shop, make_task, make_ticket
from tests.tools.desk import approved, find_out, lease, look, send, writes
from tools import sending
from tools.models import Inquiry, Observation, Operation, ShopEvent, State

pytestmark = pytest.mark.django_db


def lost(buyer, fault="error_after", tool="refund_order", status="delivered", path="/refunds"):
    """An operation whose send met a fault and is unknown now; the shop cannot be asked about it."""
    operation = approved(buyer, buyer.order(4000, status=status), tool)
    buyer.shop.fault(fault, scope={"path": path}, times=1)
    assert send(operation).state == State.UNKNOWN
    buyer.shop.fault("error_before", scope={"path": "/effects"})
    return operation


def of(operation):
    return Operation.objects.get(pk=operation.pk)


def effects(buyer, operation):
    return buyer.shop.effects(order_id=operation.order_id)


def test_an_event_is_an_observation_and_an_audit_event_and_moves_no_state(buyer, teller):
    operation = lost(buyer)
    before = Operation.objects.filter(pk=operation.pk).values().get()

    assert teller.told(about_refund(operation), event_id="evt_1") == "accepted"

    assert Operation.objects.filter(pk=operation.pk).values().get() == before
    observation = operation.observations.get()
    assert observation.source == "webhook"
    assert observation.body["event"] == "evt_1"
    assert observation.body["effect"]["reference"] == "re_told"
    event = Event.objects.get(action="refund.observed")
    assert event.actor == f"shop:{teller.shop.slug}"
    assert event.data == {"source": "webhook", "event": "evt_1", "type": "refund.succeeded"}


def test_reconciliation_believes_a_fitting_event_without_asking_the_shop(buyer, teller):
    operation = lost(buyer)
    teller.told(about_refund(operation))
    asked = len(buyer.shop.calls(idempotency_key=operation.idempotency_key))

    found = find_out(operation)

    assert (found.state, found.reference) == (State.SUCCEEDED, "re_told")
    assert len(buyer.shop.calls(idempotency_key=operation.idempotency_key)) == asked
    assert len(effects(buyer, operation)) == 1


@pytest.mark.parametrize(
    ("tool", "path"), [("cancel_order", "/cancel"), ("change_address", "/address")]
)
def test_a_change_of_an_order_is_believed_in_the_same_way(buyer, teller, tool, path):
    operation = lost(buyer, tool=tool, status="pending", path=path)
    assert teller.told(about_change(operation)) == "accepted"

    found = find_out(operation)

    assert (found.state, found.reference) == (State.SUCCEEDED, "ch_told")
    assert len(writes(buyer, operation)) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"amount": 3999},
        {"currency": "EUR"},
        {"order_id": "1042"},
    ],
)
def test_an_event_that_does_not_fit_calls_a_person(buyer, teller, changes):
    operation = lost(buyer, "error_before")
    assert teller.told(about_refund(operation, **changes)) == "accepted"

    found = find_out(operation)

    assert (found.state, found.reason) == (State.NEEDS_PERSON, "webhook_mismatch")
    assert len(writes(buyer, operation)) == 1
    assert effects(buyer, operation) == []


@pytest.mark.parametrize(
    ("tool", "path"), [("cancel_order", "/cancel"), ("change_address", "/address")]
)
def test_a_change_that_other_hands_made_proves_nothing_about_ours(buyer, teller, tool, path):
    operation = lost(buyer, "error_before", tool=tool, status="pending", path=path)

    assert teller.told(about_change(operation, idempotency_key=None)) == "accepted"

    assert find_out(operation).state == State.UNKNOWN
    assert operation.observations.get().body["order_version"] == 2
    assert effects(buyer, operation) == []


def test_an_event_of_another_kind_under_our_key_calls_a_person(buyer, teller):
    operation = lost(buyer, "error_before")
    teller.told(about_change(operation, kind="cancel"))

    assert find_out(operation).reason == "webhook_mismatch"
    assert effects(buyer, operation) == []


@pytest.mark.parametrize("kind", ["failed", "reversed"])
@pytest.mark.parametrize("is_last", [True, False])
def test_money_that_came_back_is_for_a_person_whatever_came_first(buyer, teller, kind, is_last):
    operation = lost(buyer)
    told = [about_refund(operation), about_refund(operation, kind)]
    for document in told if is_last else reversed(told):
        teller.told(document)

    found = find_out(operation)

    assert (found.state, found.reason) == (State.NEEDS_PERSON, "webhook_taken_back")
    assert len(writes(buyer, operation)) == 1


def test_an_event_from_before_our_send_proves_nothing_about_it(buyer, teller):
    operation = approved(buyer, buyer.order(4000))
    teller.told(about_refund(operation))
    buyer.shop.fault("error_before", scope={"path": "/refunds"}, times=1)
    send(operation)
    buyer.shop.fault("error_before", scope={"path": "/effects"})

    assert find_out(operation).state == State.UNKNOWN
    assert effects(buyer, operation) == []


@pytest.mark.parametrize("minutes", [-10, 10])
def test_a_web_server_s_wrong_clock_makes_no_event_older_or_younger(
    buyer, teller, monkeypatch, minutes
):
    operation = approved(buyer, buyer.order(4000))
    if minutes > 0:  # from before the send: it proves nothing, whatever that clock says
        skew(monkeypatch, minutes)
        teller.told(about_refund(operation))
        assert lost_by(buyer, operation).state == State.UNKNOWN
        assert find_out(operation).state == State.UNKNOWN
        return
    lost_by(buyer, operation)
    skew(monkeypatch, minutes)
    teller.told(about_refund(operation))
    assert find_out(operation).state == State.SUCCEEDED


def skew(monkeypatch, minutes):
    """The clock of the process that takes events is wrong by so much."""
    wrong = SimpleNamespace(now=lambda: timezone.now() + timedelta(minutes=minutes))
    monkeypatch.setattr(webhooks, "timezone", wrong)
    WebhookSecret.objects.update(active_from=timezone.now() - timedelta(hours=1))


def lost_by(buyer, operation):
    buyer.shop.fault("error_before", scope={"path": "/refunds"}, times=1)
    sent = send(operation)
    buyer.shop.fault("error_before", scope={"path": "/effects"})
    return sent


def test_an_event_while_the_answer_is_on_its_way_changes_nothing_of_it(buyer, teller):
    operation = approved(buyer, buyer.order(4000))
    order = look(buyer, operation.order_id)
    started, attempt = sending._begin(operation.pk, order, lease(), is_still_granted)
    assert attempt is not None
    assert teller.told(about_refund(operation)) == "accepted"
    assert of(operation).state == State.SENDING

    carrier = sending.carrier_of(*sending.look_at_subject(operation))
    done = sending.transmit(started, attempt, carrier, lease())

    (effect,) = effects(buyer, operation)
    assert (done.state, done.reference) == (State.SUCCEEDED, effect["id"])


def test_an_event_after_the_end_changes_nothing_of_it(buyer, teller):
    operation = approved(buyer, buyer.order(4000))
    send(operation)
    before = Operation.objects.filter(pk=operation.pk).values().get()

    told = about_refund(operation, id=before["reference"])
    assert teller.told(told) == "accepted"

    assert find_out(operation).state == State.SUCCEEDED
    assert Operation.objects.filter(pk=operation.pk).values().get() == before
    assert len(effects(buyer, operation)) == 1
    assert not Inquiry.objects.exists()


# --- Once, in any order, about something of ours -------------------------------------------------


def test_an_event_that_comes_twice_is_taken_once(buyer, teller):
    operation = lost(buyer)
    document = about_refund(operation)
    assert teller.told(document, event_id="evt_1") == "accepted"
    before = everything()

    assert teller.told(document, event_id="evt_1") == "repeated"
    assert teller.told(about_refund(operation, amount=1), event_id="evt_1") == "repeated"

    assert everything() == before


@pytest.mark.django_db(transaction=True)
def test_of_two_deliveries_at_once_one_is_taken(buyer, teller):
    document = about_refund(lost(buyer))
    gate = threading.Barrier(4)
    answers: list[str] = []

    def deliver() -> None:
        gate.wait()
        answers.append(teller.told(document, event_id="evt_1"))
        connection.close()

    threads = [threading.Thread(target=deliver) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == ["accepted", *["repeated"] * 3]
    assert Observation.objects.count() == ShopEvent.objects.count() == 1
    assert Event.objects.filter(action="refund.observed").count() == 1


def test_two_shops_may_use_the_same_event_id(buyer, teller):
    from_ours = teller.told(about_refund(lost(buyer)), event_id="evt_1")
    other = type(teller).of(make_shop())

    assert from_ours == "accepted"
    assert other.told({"type": "refund.succeeded", "data": REFUND}, event_id="evt_1") == "unmatched"


REFUND = {"id": "re_9", "order_id": "9", "amount": 1, "currency": "USD"}


@pytest.mark.parametrize(
    ("document", "becomes"),
    [
        ({"type": "refund.succeeded", "data": REFUND | {"idempotency_key": "x"}}, "unmatched"),
        ({"type": "refund.succeeded", "data": REFUND}, "unmatched"),
        ({"type": "refund.reversed", "data": REFUND}, "unmatched"),
        ({"type": "order.changed", "data": {"id": "9", "version": 2}}, "unmatched"),
        ({"type": "parcel.lost", "data": {}}, "ignored"),
    ],
)
def test_what_is_about_nothing_of_ours_is_noted_once_and_left_alone(teller, document, becomes):
    answers = [teller.told(document, event_id="evt_1") for _ in range(2)]

    assert answers == [becomes, "repeated"]
    event = Event.objects.get(action=f"webhook.{becomes}")
    assert event.subject == "webhook:evt_1"
    assert ShopEvent.objects.get().operation is None
    assert not Observation.objects.exists()


@pytest.mark.parametrize("document", [{"data": {}}, {"type": ["refund.succeeded"], "data": {}}])
def test_an_event_that_does_not_say_its_kind_is_refused_and_not_noted(teller, document):
    body = json.dumps(document).encode()
    before = everything()

    answer = teller.post(body, teller.headers(body))

    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "#/type")
    assert everything() == before


def test_another_shops_key_is_not_found_by_it(buyer, teller):
    operation = lost(buyer)
    other = type(teller).of(make_shop())

    assert other.told(about_refund(operation)) == "unmatched"
    assert not operation.observations.exists()


def test_an_order_that_its_staff_changed_is_noted_with_the_change_under_way(buyer, teller):
    operation = approved(buyer, buyer.order(4000))
    document = {"type": "order.changed", "data": {"id": operation.order_id, "version": 7}}

    assert teller.told(document) == "accepted"

    assert operation.observations.get().body["order_version"] == 7
    assert send(operation).state == State.SUCCEEDED


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_in_whatever_order_events_come_twice_there_is_one_effect_and_one_end(buyer, teller, order):
    operation = lost(buyer)
    told: list[Any] = [
        (about_refund(operation), "evt_1"),
        ({"type": "order.changed", "data": {"id": operation.order_id, "version": 2}}, "evt_2"),
        (about_refund(operation), "evt_3"),
    ]
    for at in (*order, *order):
        teller.told(told[at][0], event_id=told[at][1])

    assert find_out(operation).state == State.SUCCEEDED
    assert find_out(operation, epoch=3).state == State.SUCCEEDED
    assert len(effects(buyer, operation)) == 1
    assert len(writes(buyer, operation)) == 1
    assert operation.observations.count() == 3


@pytest.mark.parametrize("statement", ["UPDATE {} SET kind = 'x'", "DELETE FROM {}"])
def test_what_was_taken_stays_as_it_was_taken(teller, statement):
    teller.told({"type": "refund.succeeded", "data": REFUND})

    with pytest.raises(Error, match="append-only"), transaction.atomic():
        connection.cursor().execute(statement.format("tools_shopevent"))


# --- Whoever waits is woken -----------------------------------------------------------------------


def waiting(operation, **fields):
    """The operation's task, asleep for another five minutes."""
    ticket = make_ticket(operation.customer)
    details = {
        "status": "waiting_outcome",
        "operation": operation,
        "steps_planned": 1,
        "wake_at": timezone.now() + timedelta(minutes=5),
    }
    return make_task(ticket, pk=operation.task_id, **details | fields)


@pytest.fixture
def after_commit(django_capture_on_commit_callbacks):
    return lambda: django_capture_on_commit_callbacks(execute=True)


def test_the_task_that_waits_for_the_outcome_looks_at_once(buyer, teller, after_commit):
    operation = lost(buyer)
    task = waiting(operation)

    with after_commit():
        teller.told(about_refund(operation))

    task.refresh_from_db()
    assert task.wake_at <= timezone.now()


def test_a_task_that_waits_for_something_else_sleeps_on(buyer, teller, after_commit):
    operation = lost(buyer)
    task = waiting(operation, status="waiting_model")

    with after_commit():
        teller.told(about_refund(operation))

    assert Task.objects.get(pk=task.pk).wake_at == task.wake_at
