"""What becomes of an outcome that nobody knows, against a real shop that misbehaves."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts import services as accounts
from accounts.models import User
from approvals.services import is_still_granted
from audit.models import Event
from tests.tools.desk import approved, find_out, lease, look, send, trail, writes
from tools import reconcile, sending
from tools.clients import capabilities
from tools.clients.errors import InProgressError
from tools.clients.shop import ShopClient
from tools.models import AttemptOutcome, Finding, Operation, State, Switch, Verdict
from tools.outcome import Outcome

pytestmark = pytest.mark.django_db

KINDS = [
    ("refund_order", "delivered", "/refunds"),
    ("cancel_order", "pending", "/cancel"),
    ("change_address", "pending", "/address"),
]
# An order of which less is left than is to be refunded.
LESS_LEFT = {"payments": [{"amount": 1000}]}


@pytest.fixture
def provider(monkeypatch):
    """Changes what is on record about the shop's API; look-ups do not lag unless told so."""

    def change(**fields):
        record = replace(capabilities.for_provider("orders_stub"), **fields)
        monkeypatch.setitem(capabilities._PROVIDERS, "orders_stub", record)

    change(lookup_lag_seconds=0)
    return change


def lost(buyer, fault, *, tool="refund_order", status="delivered", path="/refunds", **params):
    """An operation whose send met a fault and is unknown now."""
    operation = approved(buyer, buyer.order(4000, status=status), tool)
    buyer.shop.fault(fault, scope={"path": path}, times=1, **params)
    assert send(operation).state == State.UNKNOWN
    return operation


def effects(buyer, operation):
    return buyer.shop.effects(order_id=operation.order_id)


# --- Found, or not there ------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["timeout_after", "error_after", "unreadable"])
def test_what_did_happen_is_found_by_its_key_and_not_sent_again(buyer, provider, fault):
    operation = lost(buyer, fault)

    found = find_out(operation)

    (effect,) = effects(buyer, operation)
    assert (found.state, found.reference) == (State.SUCCEEDED, effect["id"])
    assert len(writes(buyer, operation)) == 1


@pytest.mark.parametrize("fault", ["timeout_before", "error_before"])
@pytest.mark.parametrize(("tool", "status", "path"), KINDS)
def test_what_did_not_happen_is_sent_again_with_the_same_key(
    buyer, provider, fault, tool, status, path
):
    operation = lost(buyer, fault, tool=tool, status=status, path=path)

    found = find_out(operation)

    assert found.state == State.SUCCEEDED
    (effect,) = effects(buyer, operation)
    assert effect["idempotency_key"] == operation.idempotency_key
    assert len(writes(buyer, operation)) == 2
    assert len(set(operation.attempts.values_list("request_digest", flat=True))) == 1


def test_a_miss_counts_only_after_the_provider_s_own_lag(buyer, provider):
    provider(lookup_lag_seconds=60)
    operation = lost(buyer, "error_before")

    assert find_out(operation).state == State.UNKNOWN
    assert len(writes(buyer, operation)) == 1
    assert operation.observations.get().body == {"found": False}
    event = Event.objects.get(action="refund.observed")
    assert event.data == {"source": "look_up", "found": False}

    provider(lookup_lag_seconds=0)
    assert find_out(operation, epoch=3).state == State.SUCCEEDED
    assert len(effects(buyer, operation)) == 1


def test_a_look_up_that_lags_longer_than_it_says_still_pays_once(buyer, provider):
    operation = lost(buyer, "error_after")
    buyer.shop.fault("lookup_lag", scope={"path": "/effects"}, seconds=60)

    found = find_out(operation)

    # The order already shows the refund, so nothing is sent again: a person looks.
    assert (found.state, found.reason) == (State.NEEDS_PERSON, "not sent again: order_changed")
    assert len(writes(buyer, operation)) == 1
    assert len(effects(buyer, operation)) == 1


def test_a_repeated_send_that_the_shop_had_carried_out_is_answered_from_its_memory(buyer, provider):
    provider(lookup_by_key=False)
    operation = lost(buyer, "error_after", tool="change_address", status="pending", path="/address")
    before = {"shipping_address": {"line1": "12 Larkspur Lane"}}
    buyer.shop.edit_order(operation.order_id, **before)

    found = find_out(operation)

    assert found.state == State.SUCCEEDED
    assert len(effects(buyer, operation)) == 1
    assert len(writes(buyer, operation)) == 2


def test_an_effect_of_another_amount_under_our_key_calls_a_person(buyer, provider):
    operation = lost(buyer, "error_before")
    token = accounts.access_token(customer_id=buyer.row.pk)
    body = b'{"amount":1,"currency":"USD","lines":[],"reason":"other"}'
    client = ShopClient(buyer.shop.url, token, 5)
    client.refund(operation.order_id, body, operation.idempotency_key)

    found = find_out(operation)

    assert (found.state, found.reason) == (State.NEEDS_PERSON, "look_up_mismatch")
    assert [effect["amount"] for effect in effects(buyer, operation)] == [1]


@pytest.mark.parametrize(("fault", "is_there"), [("error_after", True), ("error_before", False)])
def test_one_who_dies_between_the_look_and_its_record_is_followed_by_another(
    buyer, provider, monkeypatch, fault, is_there
):
    operation = lost(buyer, fault)
    look_up, seen = ShopClient.find_effect, []

    def look_and_die(self, key):
        seen.append(look_up(self, key))
        raise PowerCutError

    with monkeypatch.context() as patch:
        patch.setattr(ShopClient, "find_effect", look_and_die)
        with pytest.raises(PowerCutError):
            find_out(operation)
    assert [found is not None for found in seen] == [is_there]
    assert sending.get(operation.pk).state == State.UNKNOWN
    assert len(writes(buyer, operation)) == 1

    found = find_out(operation, epoch=3)

    (effect,) = effects(buyer, operation)
    assert (found.state, found.reference) == (State.SUCCEEDED, effect["id"])
    assert len(writes(buyer, operation)) == (1 if is_there else 2)


class PowerCutError(BaseException):
    """The process ends here."""


# --- Not for ever, and not blindly --------------------------------------------------------------


def test_nothing_is_sent_again_once_the_key_window_has_closed(buyer, provider):
    operation = lost(buyer, "error_before")
    provider(key_window_seconds=0)

    found = find_out(operation)

    assert found.state == State.NEEDS_PERSON
    assert found.reason == "not found and no safe way to send again"
    assert Event.objects.get(action="refund.needs_person").data == {"reason": found.reason}
    assert len(writes(buyer, operation)) == 1
    assert effects(buyer, operation) == []


def test_an_unknown_window_is_never_trusted(buyer, provider):
    operation = lost(buyer, "error_before")
    provider(key_window_seconds=None)

    assert find_out(operation).state == State.NEEDS_PERSON
    assert len(writes(buyer, operation)) == 1


def test_the_number_of_sends_is_capped(buyer, provider):
    operation = approved(buyer, buyer.order(4000))
    buyer.shop.fault("error_before", scope={"path": "/refunds"})
    send(operation)

    states = [find_out(operation, epoch=epoch).state for epoch in range(2, 8)]

    assert states == [State.UNKNOWN] * 4 + [State.NEEDS_PERSON] * 2
    sent = writes(buyer, operation)
    assert len(sent) == reconcile.MAX_SENDS
    assert {call["idempotency_key"] for call in sent} == {operation.idempotency_key}
    assert effects(buyer, operation) == []


def test_tries_that_certainly_sent_nothing_do_not_count_as_sends(buyer, provider):
    operation = lost(buyer, "error_before")
    buyer.shop.fault("error_before", scope={"path": "/refunds"}, times=6, status=429)
    for epoch in range(2, 8):
        assert find_out(operation, epoch=epoch).state == State.UNKNOWN

    assert find_out(operation, epoch=8).state == State.SUCCEEDED
    assert len(effects(buyer, operation)) == 1


def test_a_person_is_asked_when_the_shop_cannot_be_asked_for_a_day(buyer, provider, monkeypatch):
    operation = lost(buyer, "timeout_after")
    buyer.shop.fault("error_before", scope={"path": "/effects"})

    assert find_out(operation).state == State.UNKNOWN

    monkeypatch.setattr(reconcile, "GIVE_UP_AFTER", timedelta(0))
    found = find_out(operation, epoch=3)
    assert (found.state, found.reason) == (
        State.NEEDS_PERSON,
        "look-up failed: UnavailableError",
    )
    assert len(writes(buyer, operation)) == 1


def test_a_person_is_asked_after_a_day_however_long_the_key_lives(buyer, provider, monkeypatch):
    operation = lost(buyer, "error_before")
    provider(key_window_seconds=30 * 24 * 3600)
    Switch.objects.create(
        tool="refund_order", reason="An incident.", changed_by="x", changed_at=timezone.now()
    )
    assert find_out(operation).state == State.UNKNOWN

    monkeypatch.setattr(reconcile, "GIVE_UP_AFTER", timedelta(0))
    found = find_out(operation, epoch=3)

    assert found.state == State.NEEDS_PERSON
    assert len(writes(buyer, operation)) == 1


def test_without_our_leave_to_act_it_stays_unknown_and_is_not_sent(buyer, provider):
    operation = lost(buyer, "error_before")
    accounts.revoke_delegation(
        customer_id=buyer.row.pk, reason="signed_out", actor="customer:x", now=timezone.now()
    )

    assert find_out(operation).state == State.UNKNOWN
    assert len(writes(buyer, operation)) == 1


def test_a_send_that_is_still_in_progress_there_is_waited_for_and_is_no_failure(
    buyer, provider, monkeypatch
):
    operation = approved(buyer, buyer.order(4000))
    with monkeypatch.context() as patch:
        patch.setattr(ShopClient, "refund", in_progress)
        assert send(operation).state == State.UNKNOWN
        assert find_out(operation).state == State.UNKNOWN
    assert trail(operation) == [(1, "unknown", "in_progress"), (2, "unknown", "in_progress")]

    assert find_out(operation, epoch=3).state == State.SUCCEEDED

    (effect,) = effects(buyer, operation)
    assert effect["idempotency_key"] == operation.idempotency_key
    assert len(set(operation.attempts.values_list("request_digest", flat=True))) == 1


def in_progress(*_):
    raise InProgressError


# --- A provider that cannot be asked ------------------------------------------------------------


def test_without_look_up_it_is_sent_again_inside_the_window(buyer, provider):
    provider(lookup_by_key=False)
    operation = lost(buyer, "error_before")

    assert find_out(operation).state == State.SUCCEEDED
    assert buyer.shop.calls(idempotency_key=operation.idempotency_key) == writes(buyer, operation)
    assert len(effects(buyer, operation)) == 1


@pytest.mark.parametrize("window", [None, 0])
def test_without_look_up_and_window_a_person_is_asked(buyer, provider, window):
    provider(lookup_by_key=False, key_window_seconds=window)
    operation = lost(buyer, "timeout_after")

    found = find_out(operation)

    assert found.state == State.NEEDS_PERSON
    assert len(buyer.shop.calls(idempotency_key=operation.idempotency_key)) == 1
    assert len(effects(buyer, operation)) == 1


def test_without_look_up_a_refusal_of_the_second_send_is_no_word_about_the_first(buyer, provider):
    provider(lookup_by_key=False)
    operation = lost(buyer, "error_before")
    buyer.shop.fault("change_order", scope={"path": "/refunds"}, set=LESS_LEFT)

    assert find_out(operation).state == State.UNKNOWN
    found = find_out(operation, epoch=3)

    assert found.state == State.NEEDS_PERSON
    assert found.reason == "refused when sent again: amount_over_captured"


# --- A refusal after an unknown outcome ---------------------------------------------------------


def test_a_second_send_that_is_refused_fails_once_a_look_up_shows_nothing(buyer, provider):
    operation = lost(buyer, "error_before")
    buyer.shop.fault("change_order", scope={"path": "/refunds"}, set=LESS_LEFT)

    assert find_out(operation).state == State.UNKNOWN
    found = find_out(operation, epoch=3)

    assert (found.state, found.reason) == (State.FAILED, "amount_over_captured")
    assert effects(buyer, operation) == []
    assert [outcome for _, outcome, _ in trail(operation)] == ["unknown", "refused"]


def test_a_refusal_that_the_shop_will_forget_is_no_last_word(buyer, provider):
    """A worker that stood still at the socket may yet send the first one, and be obeyed."""
    provider(errors_cached=False)
    operation = lost(buyer, "error_before")
    buyer.shop.fault("change_order", scope={"path": "/refunds"}, set=LESS_LEFT)

    assert find_out(operation).state == State.UNKNOWN
    found = find_out(operation, epoch=3)

    assert found.state == State.NEEDS_PERSON
    assert found.reason == "refused when sent again: amount_over_captured"
    assert len(writes(buyer, operation)) == 2


def test_a_token_refused_at_the_second_send_never_means_that_nothing_happened(buyer, provider):
    operation = lost(buyer, "error_before")
    buyer.shop.fault("revoke_customer", scope={"path": "/refunds"}, times=1)

    assert find_out(operation).state == State.UNKNOWN
    found = find_out(operation, epoch=3)

    assert found.state == State.NEEDS_PERSON
    assert found.reason == "refused when sent again: access_revoked"


# --- Somebody else came first -------------------------------------------------------------------


def cancelled_elsewhere(buyer, fault="error_before"):
    """A cancellation that met a fault, of an order that the shop itself has cancelled since."""
    operation = lost(buyer, fault, tool="cancel_order", status="pending", path="/cancel")
    buyer.shop.edit_order(operation.order_id, status="cancelled")
    return operation


def test_an_order_cancelled_elsewhere_is_asked_about_under_our_key_and_not_taken_for_ours(
    buyer, provider
):
    operation = cancelled_elsewhere(buyer)

    assert find_out(operation).state == State.UNKNOWN
    found = find_out(operation, epoch=3)

    assert (found.state, found.reason, found.reference) == (State.FAILED, "already_done", "")
    assert [body["found"] for body in operation.observations.values_list("body", flat=True)] == [
        False,
        False,
    ]
    assert trail(operation) == [(1, "unknown", "error"), (2, "refused", "already_cancelled")]
    assert len(writes(buyer, operation)) == 2
    assert effects(buyer, operation) == []
    event = Event.objects.get(action="cancel.failed")
    assert event.data == {"detail": "already_cancelled", "reason": "already_done"}


def test_our_own_cancellation_that_a_look_up_hides_is_found_by_asking_again(buyer, provider):
    operation = lost(buyer, "error_after", tool="cancel_order", status="pending", path="/cancel")
    buyer.shop.fault("lookup_lag", scope={"path": "/effects"}, seconds=60)

    found = find_out(operation)

    (effect,) = effects(buyer, operation)
    assert (found.state, found.reference) == (State.SUCCEEDED, effect["id"])
    assert effect["idempotency_key"] == operation.idempotency_key


def test_without_look_up_even_the_shop_s_word_of_somebody_else_goes_to_a_person(buyer, provider):
    provider(lookup_by_key=False)
    operation = cancelled_elsewhere(buyer)

    assert find_out(operation).state == State.UNKNOWN
    found = find_out(operation, epoch=3)

    assert found.state == State.NEEDS_PERSON
    assert found.reason == "refused when sent again: already_cancelled"


def test_a_shop_without_a_word_for_it_is_not_asked_by_sending_again(buyer, provider):
    provider(already_done=frozenset())
    operation = cancelled_elsewhere(buyer)

    assert_not_sent_again(buyer, operation, find_out(operation), "order_changed")


def test_a_yes_that_is_none_any_more_stops_even_the_asking(buyer, provider):
    operation = cancelled_elsewhere(buyer)

    found = reconcile.reconcile(
        operation_id=operation.pk, lease=lease(2), still_granted=lambda _: False
    )

    assert_not_sent_again(buyer, operation, found, "approval_no_longer_valid")


# --- Decided again before a second send ---------------------------------------------------------


def assert_not_sent_again(buyer, operation, found, reason):
    assert (found.state, found.reason) == (State.NEEDS_PERSON, f"not sent again: {reason}")
    assert len(writes(buyer, operation)) == 1
    assert effects(buyer, operation) == []
    assert Verdict.objects.filter(finding=Finding.DENY, task_id=operation.task_id).exists()


def test_an_order_that_changed_is_not_sent_again(buyer, provider):
    operation = lost(buyer, "error_before")
    buyer.shop.edit_order(operation.order_id, status="cancelled")

    assert_not_sent_again(buyer, operation, find_out(operation), "order_changed")


def test_a_right_lost_meanwhile_stops_a_second_send(buyer, provider):
    operation = approved(buyer, buyer.order(40_000))
    buyer.shop.fault("error_before", scope={"path": "/refunds"}, times=1)
    send(operation)
    User.objects.update(is_approver=False)

    found = find_out(operation)

    assert_not_sent_again(buyer, operation, found, "approval_no_longer_valid")


def test_a_policy_tightened_meanwhile_stops_a_second_send(buyer, provider, shop_row):
    operation = lost(buyer, "error_before")
    shop_row.staff_limit = 100
    shop_row.save()

    assert_not_sent_again(buyer, operation, find_out(operation), "policy_changed")


def test_a_kill_switch_stops_a_second_send_but_not_the_looking(buyer, provider):
    operation = lost(buyer, "error_before")
    switch = Switch.objects.create(
        reason="An incident.", changed_by="admin:root", changed_at=timezone.now()
    )

    assert find_out(operation).state == State.UNKNOWN
    assert len(writes(buyer, operation)) == 1
    assert operation.observations.count() == 1

    switch.is_off = False
    switch.save()
    assert find_out(operation, epoch=3).state == State.SUCCEEDED


def test_a_kill_switch_does_not_hide_what_has_happened(buyer, provider):
    operation = lost(buyer, "error_after")
    Switch.objects.create(reason="x", changed_by="admin:root", changed_at=timezone.now())

    assert find_out(operation).state == State.SUCCEEDED


# --- Lost workers and stale ones ----------------------------------------------------------------


def begun(buyer, epoch=1):
    """A send whose worker died between its intent and its first byte."""
    operation = approved(buyer, buyer.order(4000))
    order = look(buyer, operation.order_id)
    started, attempt = sending._begin(operation.pk, order, lease(epoch), is_still_granted)
    assert started.state == State.SENDING
    return started, attempt, order


def test_a_worker_lost_before_the_first_byte_is_followed_by_another(buyer, provider):
    operation, _, _ = begun(buyer)

    found = find_out(operation)

    assert found.state == State.SUCCEEDED
    assert len(effects(buyer, operation)) == 1
    assert [detail for _, _, detail in trail(operation)] == ["worker_lost", "confirmed"]


def test_a_worker_lost_after_its_bytes_is_found_out(buyer, provider):
    operation, _, _order = begun(buyer)
    carrier = sending.carrier_of(*sending.look_at_subject(operation))
    sending._over_the_wire(operation, carrier, lease())

    found = find_out(operation)

    assert found.state == State.SUCCEEDED
    assert len(writes(buyer, operation)) == 1
    assert trail(operation) == [(1, "unknown", "worker_lost")]
    event = Event.objects.get(action="refund.unknown")
    assert (event.actor, event.data) == ("system", {"detail": "worker_lost", "epoch": 2})


def test_a_worker_that_wakes_up_late_changes_nothing(buyer, provider):
    operation, attempt, _ = begun(buyer)
    assert find_out(operation).state == State.SUCCEEDED
    late = Outcome(AttemptOutcome.UNKNOWN, "timeout")

    after = sending.settle(operation.pk, late, lease(1), attempt_id=attempt.pk)

    assert after.state == State.SUCCEEDED
    assert operation.observations.filter(source="stale_worker").count() == 1
    assert trail(operation)[0] == (1, "unknown", "worker_lost")


def test_a_stale_worker_s_receipt_is_believed_by_whoever_holds_the_operation(buyer, provider):
    provider(lookup_by_key=False, key_window_seconds=None)
    operation, attempt, _order = begun(buyer)
    reconcile._take_over(operation.pk, lease(2))
    carrier = sending.carrier_of(*sending.look_at_subject(operation))
    stale = sending.transmit(operation, attempt, carrier, lease(1))
    assert stale.state == State.UNKNOWN

    found = find_out(operation, epoch=3)

    (effect,) = effects(buyer, operation)
    assert (found.state, found.reference) == (State.SUCCEEDED, effect["id"])
    assert len(writes(buyer, operation)) == 1


def test_an_older_lease_cannot_take_an_operation_back(buyer, provider):
    operation, _, _ = begun(buyer, epoch=5)

    found = find_out(operation, epoch=4)

    assert (found.state, found.epoch) == (State.SENDING, 5)
    assert buyer.shop.calls(idempotency_key=operation.idempotency_key) == []


def test_a_worker_that_overslept_its_lease_sends_nothing(buyer, provider):
    operation, attempt, _order = begun(buyer)
    carrier = sending.carrier_of(*sending.look_at_subject(operation))

    after = sending.transmit(operation, attempt, carrier, lease(1, seconds=0.5))

    assert after.state == State.APPROVED
    assert writes(buyer, operation) == []


@pytest.mark.parametrize("end", ["succeeded", "failed"])
def test_what_is_final_is_not_looked_up(buyer, provider, end):
    operation = approved(buyer, buyer.order(4000))
    if end == "failed":
        buyer.shop.fault("change_order", scope={"path": "/refunds"}, set={"status": "cancelled"})
    send(operation)
    before = len(buyer.shop.calls(idempotency_key=operation.idempotency_key))

    assert find_out(operation).state == end
    assert len(buyer.shop.calls(idempotency_key=operation.idempotency_key)) == before


def test_the_wait_before_the_next_look_grows_and_is_bounded():
    now = timezone.now()

    def delay(seconds):
        sent = Operation(first_sent_at=now - timedelta(seconds=seconds))
        return reconcile.delay_before_next_look(sent, now)

    assert [delay(seconds) for seconds in (0, 10, 100, 100_000)] == [2.0, 5.0, 50.0, 300.0]
