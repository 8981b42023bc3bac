"""Gate six and the wire, against a real shop: what was approved is sent once, or not at all."""

import threading
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts import services as accounts
from accounts.keys import encrypt
from accounts.models import User
from approvals.services import is_still_granted
from audit.models import Event
from tests.factories import ADDRESS, make_approved_operation
from tests.tools.desk import approved, lease, look, send, trail, writes
from tests.two_people import loosen
from tools import adapters, execution, sending
from tools.clients import capabilities
from tools.clients.errors import UnavailableError
from tools.clients.shop import ShopClient
from tools.clock import database_now
from tools.models import Finding, Gate, Operation, State, Switch, Verdict

pytestmark = pytest.mark.django_db

NEW = ADDRESS | {"line1": "7 Quay Street"}


def is_untouched(buyer, operation):
    """No byte went out under the operation's key, and nothing happened to the order."""
    return not writes(buyer, operation) and not buyer.shop.effects(order_id=operation.order_id)


def verdict_of_gate_six(operation):
    """The last finding of gate six, with its rule."""
    found = Verdict.objects.filter(task_id=operation.task_id, gate=Gate.EXECUTE).order_by("id")
    return found.values_list("rule", "finding").last()


# --- What was approved happens, once ------------------------------------------------------------


def test_an_approved_refund_reaches_the_shop_once_under_its_key(buyer):
    operation = approved(buyer, buyer.order(4000))

    sent = send(operation)

    assert sent.state == State.SUCCEEDED
    (effect,) = buyer.shop.effects(order_id=operation.order_id)
    assert (effect["amount"], effect["currency"]) == (4000, "USD")
    assert effect["idempotency_key"] == operation.idempotency_key
    assert effect["id"] == sent.reference
    assert trail(operation) == [(1, "succeeded", "confirmed")]
    assert verdict_of_gate_six(operation) == ("same_decision", Finding.ALLOW)


def test_a_refund_over_the_limit_goes_out_once_staff_have_said_yes_too(buyer):
    operation = approved(buyer, buyer.order(40_000))

    assert set(operation.granted_roles) == {"customer", "staff"}
    assert send(operation).state == State.SUCCEEDED
    assert [effect["amount"] for effect in buyer.shop.effects(order_id=operation.order_id)] == [
        40_000
    ]


def test_an_approved_cancellation_happens_once(buyer):
    operation = approved(buyer, buyer.order(2500, status="pending"), "cancel_order")

    assert send(operation).state == State.SUCCEEDED
    assert [effect["kind"] for effect in buyer.shop.effects(order_id=operation.order_id)] == [
        "cancel"
    ]
    assert buyer.shop.order(operation.order_id)["status"] == "cancelled"


def test_an_approved_address_is_the_one_the_shop_gets(buyer):
    operation = approved(buyer, buyer.order(status="processed"), "change_address")

    assert send(operation).state == State.SUCCEEDED
    (effect,) = buyer.shop.effects(order_id=operation.order_id)
    assert effect["detail"]["to"] == NEW
    assert buyer.shop.order(operation.order_id)["shipping_address"] == NEW


def test_sending_a_finished_operation_again_sends_nothing(buyer):
    operation = approved(buyer, buyer.order(4000))
    first = send(operation)

    again = send(operation, epoch=2)

    assert (again.state, again.reference) == (State.SUCCEEDED, first.reference)
    assert len(writes(buyer, operation)) == 1


@pytest.mark.django_db(transaction=True)
def test_two_workers_that_send_at_once_send_once(buyer):
    operation = approved(buyer, buyer.order(4000))
    buyer.shop.fault("latency", scope={"path": "/refunds"}, ms=150)
    barrier = threading.Barrier(2)

    def work(epoch):
        barrier.wait()
        try:
            send(operation, epoch=epoch)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(epoch,)) for epoch in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    operation = sending.get(operation.pk)
    assert operation.state == State.SUCCEEDED
    assert len(writes(buyer, operation)) == 1
    assert len(buyer.shop.effects(order_id=operation.order_id)) == 1


@pytest.mark.django_db(transaction=True)
def test_the_intent_is_committed_and_no_connection_held_when_the_bytes_leave(buyer, monkeypatch):
    operation = approved(buyer, buyer.order(4000))
    refund = ShopClient.refund
    seen: dict[str, Any] = {}

    def watched(self, *args):
        seen["is_connected"] = connection.connection is not None
        seen["state"] = Operation.objects.get(pk=operation.pk).state
        seen["attempts"] = trail(operation)
        return refund(self, *args)

    monkeypatch.setattr(ShopClient, "refund", watched)
    send(operation)

    assert seen == {"is_connected": False, "state": "sending", "attempts": [(1, "", "")]}


@pytest.mark.django_db(transaction=True)
def test_no_connection_is_held_while_the_order_is_read(buyer, monkeypatch):
    operation = approved(buyer, buyer.order(4000))
    get_order = ShopClient.get_order
    held = []

    def watched(self, order_id):
        held.append(connection.connection is not None)
        return get_order(self, order_id)

    monkeypatch.setattr(ShopClient, "get_order", watched)
    send(operation)

    assert held == [False]


def test_a_token_that_the_shop_has_forgotten_is_replaced(buyer):
    operation = approved(buyer, buyer.order(4000))
    buyer.row.delegations.update(access_token_encrypted=encrypt("forgotten-token"))

    assert send(operation).state == State.SUCCEEDED


# --- Refused and unknown ------------------------------------------------------------------------


def test_a_definite_refusal_fails_the_operation(buyer):
    operation = approved(buyer, buyer.order(4000))
    less_left = {"payments": [{"amount": 1000}]}
    buyer.shop.fault("change_order", scope={"path": "/refunds"}, set=less_left)

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.FAILED, "amount_over_captured")
    assert not sent.is_already_done
    assert buyer.shop.effects(order_id=operation.order_id) == []
    assert trail(operation) == [(1, "refused", "amount_over_captured")]


@pytest.mark.parametrize(
    ("tool", "status", "path"),
    [("cancel_order", "pending", "/cancel"), ("refund_order", "delivered", "/refunds")],
)
def test_an_order_cancelled_elsewhere_while_it_is_sent_leaves_nothing_to_do(
    buyer, tool, status, path
):
    operation = approved(buyer, buyer.order(4000, status=status), tool)
    buyer.shop.fault("change_order", scope={"path": path}, set={"status": "cancelled"})

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.FAILED, "already_done")
    assert sent.is_final
    assert sent.is_already_done
    assert buyer.shop.effects(order_id=operation.order_id) == []
    assert trail(operation) == [(1, "refused", "already_cancelled")]
    event = Event.objects.get(action=f"{operation.kind}.failed")
    assert event.data == {"detail": "already_cancelled", "reason": "already_done", "epoch": 1}


def test_an_order_refunded_elsewhere_while_it_is_sent_is_not_refunded_twice(buyer, monkeypatch):
    operation = approved(buyer, buyer.order(4000))
    refund = ShopClient.refund

    def beaten(self, *args):
        buyer.shop.refund_by_hand(operation.order_id, 4000)
        return refund(self, *args)

    monkeypatch.setattr(ShopClient, "refund", beaten)
    sent = send(operation)

    assert (sent.state, sent.reason) == (State.FAILED, "already_done")
    (effect,) = buyer.shop.effects(order_id=operation.order_id)
    assert effect["idempotency_key"] is None
    assert trail(operation) == [(1, "refused", "already_refunded")]


def test_a_shop_without_a_word_for_it_has_refused(buyer, monkeypatch):
    record = replace(capabilities.for_provider("orders_stub"), already_done=frozenset())
    monkeypatch.setitem(capabilities._PROVIDERS, "orders_stub", record)
    operation = approved(buyer, buyer.order(status="pending"), "cancel_order")
    buyer.shop.fault("change_order", scope={"path": "/cancel"}, set={"status": "cancelled"})

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.FAILED, "already_cancelled")
    assert not sent.is_already_done


def test_an_order_edited_in_the_last_moment_is_not_cancelled(buyer):
    operation = approved(buyer, buyer.order(status="pending"), "cancel_order")
    buyer.shop.fault("change_order", scope={"path": "/cancel"}, set={"status": "processed"})

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.FAILED, "version_mismatch")
    assert buyer.shop.effects(order_id=operation.order_id) == []


def test_a_token_refused_at_the_write_itself_changes_nothing(buyer):
    operation = approved(buyer, buyer.order(4000))
    buyer.shop.fault("revoke_customer", scope={"path": "/refunds"})

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.FAILED, "access_revoked")
    assert buyer.shop.effects(order_id=operation.order_id) == []


@pytest.mark.parametrize(
    ("fault", "detail", "effects"),
    [
        ("timeout_before", "timeout", 0),
        ("timeout_after", "timeout", 1),
        ("error_before", "error", 0),
        ("error_after", "error", 1),
        ("unreadable", "unreadable", 1),
    ],
)
def test_an_answer_that_proves_nothing_leaves_the_outcome_unknown(buyer, fault, detail, effects):
    operation = approved(buyer, buyer.order(4000))
    buyer.shop.fault(fault, scope={"path": "/refunds"}, times=1)

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.UNKNOWN, detail)
    assert len(buyer.shop.effects(order_id=operation.order_id)) == effects
    assert trail(operation) == [(1, "unknown", detail)]
    assert not sent.is_final


def test_a_key_that_the_shop_knows_for_something_else_calls_a_person(buyer):
    other = buyer.order(4000)
    operation = approved(buyer, buyer.order(4000))
    token = accounts.access_token(customer_id=buyer.row.pk)
    body = b'{"amount":1,"currency":"USD","lines":[],"reason":"other"}'
    ShopClient(buyer.shop.url, token, 5).refund(other, body, operation.idempotency_key)

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.NEEDS_PERSON, "key_reused")
    assert buyer.shop.effects(order_id=operation.order_id) == []


# --- Certainly nothing sent: it stays approved and everything is decided anew -------------------


def assert_held_back(buyer, operation, detail):
    operation = sending.get(operation.pk)
    assert operation.state == State.APPROVED
    assert operation.first_sent_at is None
    assert trail(operation)[-1][1:] == ("not_sent", detail)
    assert buyer.shop.effects(order_id=operation.order_id) == []


def test_a_lease_too_short_for_an_answer_starts_no_send(buyer):
    operation = approved(buyer, buyer.order(4000))

    sending.send(
        operation_id=operation.pk, lease=lease(seconds=0.9), still_granted=is_still_granted
    )

    assert_held_back(buyer, operation, "lease_too_short")
    assert writes(buyer, operation) == []
    assert send(operation, epoch=2).state == State.SUCCEEDED
    assert len(buyer.shop.effects(order_id=operation.order_id)) == 1


def test_a_shop_that_throttles_has_done_nothing(buyer):
    operation = approved(buyer, buyer.order(4000))
    buyer.shop.fault("error_before", scope={"path": "/refunds"}, times=1, status=429)

    send(operation)

    assert_held_back(buyer, operation, "throttled")
    assert send(operation, epoch=2).state == State.SUCCEEDED


def test_a_connection_that_was_never_made_has_done_nothing(buyer, monkeypatch):
    operation = approved(buyer, buyer.order(4000))

    def refuse(*_):
        raise UnavailableError("connect")

    with monkeypatch.context() as patch:
        patch.setattr(ShopClient, "refund", refuse)
        send(operation)

    assert_held_back(buyer, operation, "unavailable")
    assert send(operation, epoch=2).state == State.SUCCEEDED


def test_leave_taken_back_after_the_order_was_read_stops_the_send(buyer):
    """The shop need not know of it yet: what counts is our own record, from its commit on."""
    operation = approved(buyer, buyer.order(4000))
    client, order = sending.look_at_subject(operation)
    accounts.revoke_delegation(
        customer_id=buyer.row.pk, reason="customer", actor="customer", now=timezone.now()
    )

    ended, attempt = sending._begin(operation.pk, order, lease(), is_still_granted)

    assert client is not None
    assert attempt is None
    assert (ended.state, ended.reason) == (State.CANCELLED, "access_revoked")
    assert is_untouched(buyer, operation)


def test_a_cancellation_pays_back_the_amount_that_people_were_shown(buyer):
    operation = approved(buyer, buyer.order(4000, status="pending"), "cancel_order")
    order = look(buyer, operation.order_id)
    now = database_now()

    def why_not(seen):
        with transaction.atomic():
            return execution.why_not(operation, seen, is_still_granted, now)

    refusal = why_not(order.model_copy(update={"total": order.total + 500}))
    assert refusal is not None
    assert (refusal.reason, refusal.end) == ("policy_changed", State.SUPERSEDED)
    assert why_not(order) is None


def test_an_operation_that_was_held_back_can_still_be_taken_back_or_superseded(buyer):
    operation = approved(buyer, buyer.order(4000))
    sending.send(operation_id=operation.pk, lease=lease(seconds=0), still_granted=is_still_granted)
    buyer.shop.edit_order(operation.order_id, status="cancelled")

    assert send(operation, epoch=2).state == State.SUPERSEDED
    assert is_untouched(buyer, operation)


def test_an_unreachable_shop_leaves_it_approved_and_untried(buyer, monkeypatch):
    operation = approved(buyer, buyer.order(4000))
    buyer.shop.fault("error_before", scope={"method": "GET"}, times=1)

    with pytest.raises(UnavailableError):
        send(operation)

    operation = sending.get(operation.pk)
    assert operation.state == State.APPROVED
    assert trail(operation) == []
    assert is_untouched(buyer, operation)


# --- Decided again ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "cancelled"},
        {"lines": [{"id": "LINE", "title": "Thing", "unit_price": 3000}]},
        {"payments": [{"amount": 5000}]},
        {"shipping_address": NEW},
    ],
)
def test_an_order_that_changed_while_people_decided_is_proposed_anew(buyer, changes):
    order_id = buyer.order(4000)
    operation = approved(buyer, order_id)
    if "lines" in changes:
        changes = {"lines": [changes["lines"][0] | {"id": f"{order_id}-1"}]}
    buyer.shop.edit_order(order_id, **changes)

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.SUPERSEDED, "order_changed")
    assert is_untouched(buyer, operation)
    assert verdict_of_gate_six(operation) == ("facts_unchanged", Finding.DENY)
    assert Event.objects.filter(action="refund.superseded").count() == 1


def test_a_refund_made_by_hand_meanwhile_is_noticed_before_the_send(buyer):
    operation = approved(buyer, buyer.order(4000))
    buyer.shop.refund_by_hand(operation.order_id, 500)

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.SUPERSEDED, "order_changed")
    assert writes(buyer, operation) == []


@pytest.mark.parametrize(
    ("tool", "status"),
    [("refund_order", "delivered"), ("cancel_order", "pending"), ("change_address", "pending")],
)
def test_a_new_note_voids_nothing(buyer, tool, status):
    operation = approved(buyer, buyer.order(status=status), tool)
    buyer.shop.edit_order(operation.order_id, notes=[{"author": "merchant", "text": "Fragile"}])

    assert send(operation).state == State.SUCCEEDED
    assert len(buyer.shop.effects(order_id=operation.order_id)) == 1


def test_an_order_that_is_not_there_any_more_is_not_changed(buyer):
    operation = approved(buyer, buyer.order(4000))
    buyer.shop.fault("error_before", scope={"method": "GET"}, times=1, status=404)

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.SUPERSEDED, "order_not_found")
    assert is_untouched(buyer, operation)


def test_a_limit_lowered_meanwhile_asks_staff_after_all(buyer, shop_row):
    operation = approved(buyer, buyer.order(4000))
    shop_row.staff_limit = 3999
    shop_row.save()

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.SUPERSEDED, "policy_changed")
    assert is_untouched(buyer, operation)


def test_a_limit_raised_meanwhile_changes_nothing(buyer, shop_row):
    operation = approved(buyer, buyer.order(40_000))
    loosen(shop_row, staff_limit=50_000)

    assert send(operation).state == State.SUCCEEDED


def test_a_window_shortened_meanwhile_closes(buyer, shop_row):
    operation = approved(buyer, buyer.order(4000))
    shop_row.refund_window_days = 3
    shop_row.save()

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.SUPERSEDED, "policy_changed")
    assert is_untouched(buyer, operation)


@pytest.mark.parametrize("change", [{"is_approver": False}, {"is_active": False}])
def test_a_yes_of_somebody_who_may_not_any_more_is_none(buyer, change):
    operation = approved(buyer, buyer.order(40_000))
    User.objects.update(**change)

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.SUPERSEDED, "approval_no_longer_valid")
    assert is_untouched(buyer, operation)
    assert verdict_of_gate_six(operation) == ("approvals_still_hold", Finding.DENY)


def test_a_delegation_revoked_here_stops_the_send(buyer):
    operation = approved(buyer, buyer.order(4000))
    accounts.revoke_delegation(
        customer_id=buyer.row.pk, reason="signed_out", actor="customer:x", now=timezone.now()
    )

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.CANCELLED, "access_revoked")
    assert is_untouched(buyer, operation)


def test_a_delegation_revoked_at_the_shop_stops_the_send(buyer):
    operation = approved(buyer, buyer.order(4000))
    buyer.shop.block(buyer.row.external_id)

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.CANCELLED, "access_revoked")
    assert is_untouched(buyer, operation)


def test_a_customer_blocked_after_the_order_was_read_stops_the_send(buyer, monkeypatch):
    operation = approved(buyer, buyer.order(4000))
    order = look(buyer, operation.order_id)
    buyer.row.status = "blocked"
    buyer.row.save()

    sent, attempt = sending._begin(operation.pk, order, lease(), is_still_granted)

    assert attempt is None
    assert (sent.state, sent.reason) == (State.CANCELLED, "customer_blocked")
    assert is_untouched(buyer, operation)


def test_a_yes_that_is_too_old_is_not_sent(buyer, shop_row):
    shop_row.customer_approval_seconds = 1
    shop_row.save()
    buyer.row.shop = shop_row
    operation = approved(buyer, buyer.order(4000))
    time.sleep(1.05)

    assert send(operation).state == State.EXPIRED
    assert is_untouched(buyer, operation)


@pytest.mark.parametrize("why", ["cannot be asked", "wants us to wait", "is not asked any more"])
def test_a_yes_that_runs_out_while_the_shop_is_away_ends_there_and_then(
    buyer, shop_row, monkeypatch, why
):
    operation = approved(buyer, buyer.order(4000))
    later = operation.expires_at + timedelta(seconds=1)
    if why == "cannot be asked":
        buyer.shop.fault("error_before", scope={"path": "/api/orders"})
    elif why == "wants us to wait":
        Operation.objects.filter(pk=operation.pk).update(not_before=later + timedelta(hours=1))
    else:
        adapters.pause(shop_row)
    monkeypatch.setattr(sending, "database_now", lambda: later)
    buyer.shop.forget_calls()

    ended = send(operation)

    assert (ended.state, ended.reason) == (State.EXPIRED, "not_sent_in_time")
    assert buyer.shop.calls() == []
    assert is_untouched(buyer, operation)
    assert Operation.objects.get(pk=operation.pk).state == State.EXPIRED


@pytest.mark.parametrize("scope", ["everything", "shop", "tool", "tool of this shop"])
def test_a_kill_switch_holds_every_send_until_it_is_off_again(buyer, shop_row, scope):
    operation = approved(buyer, buyer.order(4000))
    switch = Switch.objects.create(
        shop=shop_row if "shop" in scope else None,
        tool="refund_order" if "tool" in scope else "",
        reason="An incident.",
        changed_by="admin:root",
        changed_at=timezone.now(),
    )

    assert send(operation).state == State.APPROVED
    assert is_untouched(buyer, operation)
    assert trail(operation) == []

    switch.is_off = False
    switch.save()
    assert send(operation, epoch=2).state == State.SUCCEEDED


def test_a_kill_switch_for_something_else_holds_nothing(buyer, new_buyer):
    operation = approved(buyer, buyer.order(4000))
    Switch.objects.create(
        tool="cancel_order", reason="Other.", changed_by="admin:root", changed_at=timezone.now()
    )

    assert send(operation).state == State.SUCCEEDED


@pytest.mark.django_db(transaction=True)
def test_bytes_that_are_not_the_approved_ones_are_never_sent(buyer):
    operation = approved(buyer, buyer.order(4000))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tools_operation DISABLE TRIGGER operation_guard")
        Operation.objects.filter(pk=operation.pk).update(
            seal=bytes(operation.seal).replace(b'"amount":4000', b'"amount":9000')
        )
        cursor.execute("ALTER TABLE tools_operation ENABLE TRIGGER operation_guard")

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.SUPERSEDED, "seal_broken")
    assert is_untouched(buyer, operation)


# --- Fenced -------------------------------------------------------------------------------------


def test_a_stale_worker_changes_no_state_and_leaves_evidence(buyer):
    operation = approved(buyer, buyer.order(4000))
    order = look(buyer, operation.order_id)
    started, attempt = sending._begin(operation.pk, order, lease(1), is_still_granted)
    assert attempt is not None
    Operation.objects.filter(pk=operation.pk).update(epoch=2)

    carrier = sending.carrier_of(*sending.look_at_subject(started))
    sent = sending.transmit(started, attempt, carrier, lease(1))

    assert (sent.state, sent.epoch) == (State.SENDING, 2)
    (observation,) = operation.observations.all()
    assert observation.source == "stale_worker"
    assert observation.body["outcome"] == "succeeded"
    (effect,) = buyer.shop.effects(order_id=operation.order_id)
    assert observation.body["reference"] == effect["id"]
    assert Event.objects.get(action="refund.observed").data == {"source": "stale_worker"}


def test_a_stale_worker_does_not_start_what_a_younger_one_has_held_back(buyer):
    operation = approved(buyer, buyer.order(4000))
    sending.send(
        operation_id=operation.pk, lease=lease(5, seconds=0), still_granted=is_still_granted
    )
    assert trail(operation) == [(1, "not_sent", "lease_too_short")]

    sent = send(operation, epoch=4)

    assert (sent.state, sent.epoch) == (State.APPROVED, 5)
    assert len(trail(operation)) == 1
    assert is_untouched(buyer, operation)
    assert send(operation, epoch=6).state == State.SUCCEEDED


def test_every_send_and_its_outcome_is_in_the_trail(buyer):
    operation = approved(buyer, buyer.order(4000))

    send(operation)

    events = Event.objects.filter(subject=f"operation:{operation.idempotency_key}").order_by("id")
    assert list(events.values_list("action", "outcome")) == [
        ("refund.proposed", "awaiting_approval"),
        ("refund.granted", "approved"),
        ("refund.sending", "sending"),
        ("refund.succeeded", "succeeded"),
    ]


def test_no_refund_happens_without_its_record(buyer, monkeypatch):
    operation = approved(buyer, buyer.order(4000))

    def fail(**_):
        raise RuntimeError("the trail cannot be written")

    monkeypatch.setattr("tools.operations.audit.record", fail)
    with pytest.raises(RuntimeError):
        send(operation)

    operation = sending.get(operation.pk)
    assert operation.state == State.APPROVED
    assert is_untouched(buyer, operation)


def test_a_second_customer_cannot_be_sent_for_with_the_first_one_s_order(buyer, new_buyer):
    order = look(buyer, buyer.order(4000))
    operation = make_approved_operation(new_buyer().row, order)

    sent = send(operation)

    assert (sent.state, sent.reason) == (State.SUPERSEDED, "order_not_found")
    assert is_untouched(buyer, operation)
