"""The shop asks for fewer calls: it says when to come again, and is taken at its word."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.tools.desk import approved, find_out, send, trail, writes
from tools import sending
from tools.clients import capabilities
from tools.clock import database_now
from tools.models import Operation, State
from tools.reconcile import MAX_SENDS, delay_asked_for, delay_before_next_look

pytestmark = pytest.mark.django_db


def throttle(buyer, *, path="/refunds", retry_after=120, **options):
    buyer.shop.fault(
        "error_before", scope={"path": path}, status=429, retry_after=retry_after, **options
    )


def let_time_pass(operation):
    """Until the moment that the shop has named."""
    Operation.objects.filter(pk=operation.pk).update(not_before=timezone.now())


def wait_of(operation):
    return delay_asked_for(Operation.objects.get(pk=operation.pk), database_now())


def test_a_throttled_refund_stays_approved_and_is_not_tried_before_the_time_named(buyer):
    operation = approved(buyer, buyer.order(4000))
    throttle(buyer, times=1)

    held = send(operation)

    assert held.state == State.APPROVED
    assert 110 < wait_of(operation) <= 120
    buyer.shop.forget_calls()
    assert send(operation, epoch=2).state == State.APPROVED
    assert buyer.shop.calls() == []

    let_time_pass(operation)
    assert send(operation, epoch=3).state == State.SUCCEEDED
    (effect,) = buyer.shop.effects(order_id=operation.order_id)
    assert effect["idempotency_key"] == operation.idempotency_key
    assert wait_of(operation) == 0


def test_a_throttled_send_is_no_try_however_often_it_is_throttled(buyer):
    operation = approved(buyer, buyer.order(4000))
    throttle(buyer, times=MAX_SENDS + 2)

    for epoch in range(1, MAX_SENDS + 3):
        assert send(operation, epoch=epoch).state == State.APPROVED
        let_time_pass(operation)

    assert send(operation, epoch=20).state == State.SUCCEEDED
    assert trail(operation)[-1] == (MAX_SENDS + 3, "succeeded", "confirmed")
    assert {call["idempotency_key"] for call in writes(buyer, operation)} == {
        operation.idempotency_key
    }
    assert len(buyer.shop.effects(order_id=operation.order_id)) == 1


def test_throttling_uses_up_the_time_in_which_the_yes_is_good(buyer, monkeypatch):
    operation = approved(buyer, buyer.order(4000))
    throttle(buyer, retry_after=3600, times=1)
    assert send(operation).state == State.APPROVED

    monkeypatch.setattr(sending, "database_now", lambda: operation.expires_at)

    assert operation.expires_at - operation.created_at == timedelta(minutes=30)
    Operation.objects.filter(pk=operation.pk).update(not_before=operation.expires_at)
    assert send(operation, epoch=2).state == State.EXPIRED
    assert buyer.shop.effects(order_id=operation.order_id) == []


def test_a_shop_that_may_have_acted_before_it_throttled_is_asked_what_it_did(buyer, monkeypatch):
    record = replace(
        capabilities.for_provider("orders_stub"),
        throttles_before_execution=False,
        lookup_lag_seconds=0,
    )
    monkeypatch.setitem(capabilities._PROVIDERS, "orders_stub", record)
    operation = approved(buyer, buyer.order(4000))
    throttle(buyer, times=1)

    assert send(operation).state == State.UNKNOWN

    unknown = Operation.objects.get(pk=operation.pk)
    assert delay_before_next_look(unknown, database_now()) > 110
    buyer.shop.forget_calls()
    assert find_out(operation).state == State.UNKNOWN
    assert buyer.shop.calls() == []
    let_time_pass(operation)
    assert find_out(operation, epoch=3).state == State.SUCCEEDED
    assert len(buyer.shop.effects(order_id=operation.order_id)) == 1


def test_a_throttled_look_up_waits_as_long_as_the_shop_says(buyer):
    operation = approved(buyer, buyer.order(4000))
    buyer.shop.fault("timeout_after", scope={"path": "/refunds"}, times=1)
    assert send(operation).state == State.UNKNOWN
    throttle(buyer, path="/api/effects", retry_after=200, times=1)

    assert find_out(operation).state == State.UNKNOWN

    assert 190 < wait_of(operation) <= 200
    let_time_pass(operation)
    assert find_out(operation, epoch=3).state == State.SUCCEEDED
    assert len(buyer.shop.effects(order_id=operation.order_id)) == 1
