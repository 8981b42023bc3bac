"""A shop that does not answer, or does not know us, is not asked by everybody again and again."""

import threading
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import OperationalError, connection

from accounts.keys import encrypt
from accounts.models import Customer, Delegation, Shop
from accounts.services import ClientRefusedError, DelegationRevokedError, ensure_delegation
from audit.models import Event
from tests.factories import make_shop
from tests.stubs import CLIENT
from tests.tools.desk import approved, call, find_out, look, send, trail, writes
from tools import adapters
from tools.adapters import FAILURES, RestingError
from tools.clients.errors import NotFoundError, UnavailableError
from tools.clock import database_now
from tools.models import Adapter, State
from tools.sending import get
from tools.signals import shop_answers

pytestmark = pytest.mark.django_db


@pytest.fixture
def news():
    """Of which shops it was told that they answer again."""
    heard = []

    def hear(*, shop_id, **_):
        heard.append(shop_id)

    shop_answers.connect(hear)
    yield heard
    shop_answers.disconnect(hear)


@pytest.fixture
def other_buyer(new_buyer):
    """A customer of another shop that lives at the same address."""
    other = new_buyer()
    shop = make_shop(
        base_url=other.shop.url,
        oauth_client_id=CLIENT[0],
        oauth_client_secret_encrypted=encrypt(CLIENT[1]),
    )
    Customer.objects.filter(pk=other.row.pk).update(shop=shop)
    other.row.refresh_from_db()
    return other


def fail(buyer, order_id, times=FAILURES):
    """Let calls for this order fail, and make them."""
    buyer.shop.fault("error_before", scope={"path": "/api/orders"}, status=503)
    for _ in range(times):
        with pytest.raises(UnavailableError):
            look(buyer, order_id)


def let_pause_end():
    Adapter.objects.update(next_try_at=database_now() - timedelta(seconds=1))


def calls(buyer):
    """What was asked of the shop since `forget_calls`."""
    return [(seen["method"], seen["path"]) for seen in buyer.shop.calls()]


def trail_of(buyer):
    events = Event.objects.filter(subject=f"shop:{buyer.row.shop.slug}").order_by("pk")
    return [(event.action, event.data.get("reason", event.data.get("was"))) for event in events]


# --- Away -----------------------------------------------------------------------------------------


def test_after_enough_failures_in_a_row_nobody_calls_the_shop(buyer):
    order_id = buyer.order(4000)
    fail(buyer, order_id)
    buyer.shop.clear_faults()
    buyer.shop.forget_calls()

    with pytest.raises(RestingError) as caught:
        look(buyer, order_id)

    assert calls(buyer) == []
    assert 1 <= caught.value.retry_after <= 5
    assert trail_of(buyer) == [("adapter.paused", "error")]


def test_fewer_failures_or_an_answer_in_between_stop_nothing(buyer):
    order_id = buyer.order(4000)
    fail(buyer, order_id, FAILURES - 1)
    buyer.shop.clear_faults()
    assert look(buyer, order_id).id == order_id
    fail(buyer, order_id, FAILURES - 1)
    buyer.shop.clear_faults()

    assert look(buyer, order_id).id == order_id
    assert trail_of(buyer) == []


def test_failures_that_lie_far_apart_stop_nothing(buyer):
    order_id = buyer.order(4000)
    fail(buyer, order_id, FAILURES - 1)
    Adapter.objects.update(failing_since=database_now() - adapters.WINDOW * 2)
    fail(buyer, order_id, 1)
    buyer.shop.clear_faults()

    assert look(buyer, order_id).id == order_id


def test_no_answer_and_an_unreadable_one_count_and_a_refusal_does_not(buyer):
    order_id = buyer.order(4000)
    for fault in ("timeout_before", "error_after", "unreadable"):
        buyer.shop.clear_faults()
        buyer.shop.fault(fault, scope={"path": "/api/orders"})
        with pytest.raises(UnavailableError):
            look(buyer, order_id)
    assert Adapter.objects.get().failures == 3
    buyer.shop.clear_faults()

    with pytest.raises(NotFoundError):
        look(buyer, "no-such-order")

    assert Adapter.objects.get().failures == 0


def test_one_try_at_a_time_and_the_first_that_succeeds_opens_the_way(buyer, news):
    order_id = buyer.order(4000)
    fail(buyer, order_id)
    let_pause_end()
    buyer.shop.forget_calls()

    with pytest.raises(UnavailableError):
        look(buyer, order_id)
    for _ in range(3):
        with pytest.raises(RestingError) as caught:
            look(buyer, order_id)
    assert len(calls(buyer)) == 1
    assert 5 < caught.value.retry_after <= 10
    assert news == []

    buyer.shop.clear_faults()
    let_pause_end()
    assert look(buyer, order_id).id == order_id
    assert look(buyer, order_id).id == order_id
    assert trail_of(buyer) == [("adapter.paused", "error"), ("adapter.resumed", "away")]


@pytest.mark.django_db(transaction=True)
def test_of_many_who_try_at_once_one_calls_the_shop(buyer, news):
    order_id = buyer.order(4000)
    fail(buyer, order_id)
    buyer.shop.clear_faults()
    buyer.shop.fault("latency", scope={"path": "/api/orders"}, ms=400)
    let_pause_end()
    buyer.shop.forget_calls()
    ends = []

    def work():
        try:
            ends.append(look(buyer, order_id).id)
        except RestingError:
            ends.append("rests")
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(ends) == sorted([order_id, "rests", "rests", "rests"])
    assert len(calls(buyer)) == 1
    assert news == [buyer.row.shop_id]


def test_the_pause_grows_and_is_bounded(buyer):
    order_id = buyer.order(4000)
    fail(buyer, order_id)
    pauses = []
    for _ in range(6):
        let_pause_end()
        with pytest.raises(UnavailableError):
            look(buyer, order_id)
        with pytest.raises(RestingError) as caught:
            look(buyer, order_id)
        pauses.append(round(caught.value.retry_after, -1))

    assert pauses == [10, 20, 40, 60, 60, 60]


def test_another_shop_is_not_held_back(buyer, other_buyer):
    fail(buyer, buyer.order(4000))
    buyer.shop.clear_faults()

    order_id = other_buyer.order(4000)

    assert look(other_buyer, order_id).id == order_id


# --- What it means for what is asked ---------------------------------------------------------------


def test_an_approved_refund_waits_and_goes_out_once_when_the_shop_is_back(buyer):
    operation = approved(buyer, buyer.order(4000))
    fail(buyer, operation.order_id)
    buyer.shop.forget_calls()

    with pytest.raises(RestingError):
        send(operation)

    assert (get(operation.pk).state, trail(operation), calls(buyer)) == (State.APPROVED, [], [])
    buyer.shop.clear_faults()
    let_pause_end()
    assert send(operation, epoch=2).state == State.SUCCEEDED
    assert len(buyer.shop.effects(order_id=operation.order_id)) == 1


def test_sends_that_fail_count_and_leave_their_outcomes_unknown(buyer):
    first = approved(buyer, buyer.order(4000))
    buyer.shop.fault("timeout_after", scope={"path": "/refunds"})

    assert send(first).state == State.UNKNOWN

    assert Adapter.objects.get().failures == 1


def test_an_unknown_outcome_is_looked_up_when_the_shop_is_back_and_not_paid_twice(buyer):
    operation = approved(buyer, buyer.order(4000))
    buyer.shop.fault("timeout_after", scope={"path": "/refunds"}, times=1)
    assert send(operation).state == State.UNKNOWN
    fail(buyer, operation.order_id)
    buyer.shop.clear_faults()

    assert find_out(operation).state == State.UNKNOWN

    let_pause_end()
    assert find_out(operation, epoch=3).state == State.SUCCEEDED
    assert len(writes(buyer, operation)) == 1


# --- Refused: our own name and secret -------------------------------------------------------------


def change_secret(buyer, secret):
    Shop.objects.filter(pk=buyer.row.shop_id).update(oauth_client_secret_encrypted=encrypt(secret))


def outlive_token(buyer):
    """The customer's access token is over: the next call needs a new one."""
    Delegation.objects.filter(customer=buyer.row).update(access_expires_at=database_now())


def test_a_refused_secret_stops_all_calls_of_the_shop_at_the_first(buyer, new_buyer):
    other = new_buyer()
    operation = approved(buyer, buyer.order(4000))
    theirs = other.order(4000)
    change_secret(buyer, "wrong")
    outlive_token(buyer)
    buyer.shop.forget_calls()

    with pytest.raises(RestingError):
        send(operation)
    assert calls(buyer) == [("POST", "/oauth/token")]
    for customer, order_id in ((buyer, operation.order_id), (other, theirs)):
        with pytest.raises(RestingError):
            look(customer, order_id)

    assert calls(buyer) == [("POST", "/oauth/token")]
    assert get(operation.pk).state == State.APPROVED
    assert trail_of(buyer) == [("adapter.paused", "client_refused")]
    assert Delegation.objects.filter(revoked_at__isnull=False).count() == 0


def test_it_goes_on_by_itself_once_the_shop_takes_the_secret(buyer):
    operation = approved(buyer, buyer.order(4000))
    change_secret(buyer, "wrong")
    outlive_token(buyer)
    with pytest.raises(RestingError):
        send(operation)
    buyer.shop.forget_calls()

    let_pause_end()
    with pytest.raises(RestingError):
        send(operation, epoch=2)
    assert calls(buyer) == [("POST", "/oauth/revoke")]

    change_secret(buyer, CLIENT[1])
    let_pause_end()
    assert send(operation, epoch=3).state == State.SUCCEEDED
    assert trail_of(buyer) == [("adapter.paused", "client_refused"), ("adapter.resumed", "refused")]
    assert len(buyer.shop.effects(order_id=operation.order_id)) == 1


def test_an_old_token_that_still_works_is_no_proof_that_we_are_known_again(buyer):
    order_id = buyer.order(4000)
    look(buyer, order_id)
    change_secret(buyer, "wrong")
    adapters.pause(buyer.row.shop)
    let_pause_end()

    with pytest.raises(RestingError):
        look(buyer, order_id)

    assert Adapter.objects.get().state == "refused"


def test_one_customers_revoked_delegation_stops_nobody_else(buyer, new_buyer):
    other = new_buyer()
    order_id, theirs = buyer.order(4000), other.order(4000)
    buyer.shop.block(buyer.row.external_id)
    outlive_token(buyer)

    with pytest.raises(DelegationRevokedError):
        look(buyer, order_id)

    assert look(other, theirs).id == theirs
    assert not Adapter.objects.exclude(state="working").exists()


def test_a_first_sign_in_that_finds_it_out_stops_the_calls_too(buyer, monkeypatch):
    identity = SimpleNamespace(customer_id=buyer.row.pk)
    monkeypatch.setattr("accounts.services.verify_identity", lambda token: identity)
    change_secret(buyer, "wrong")
    Delegation.objects.filter(customer=buyer.row).update(
        revoked_at=database_now(), revoked_reason="test"
    )

    with pytest.raises(ClientRefusedError):
        ensure_delegation(
            customer_id=buyer.row.pk,
            token=buyer.shop.sign(buyer.row.external_id),
            now=database_now(),
        )

    assert Adapter.objects.get().state == "refused"


# --- For the model and for people -----------------------------------------------------------------


def test_a_read_is_told_at_once_and_nothing_is_written(buyer):
    order_id = buyer.order(4000)
    fail(buyer, order_id)
    buyer.shop.forget_calls()

    with pytest.raises(RestingError):
        call(buyer, "find_orders", {"order_id": order_id})

    assert calls(buyer) == []


def test_only_shops_that_are_not_called_are_listed(buyer, other_buyer):
    assert list(adapters.list_stopped()) == []
    fail(buyer, buyer.order(4000))

    (stopped,) = adapters.list_stopped()
    assert (stopped.shop_id, stopped.state, stopped.reason) == (buyer.row.shop_id, "away", "error")
    assert not adapters.list_stopped(shop_id=other_buyer.row.shop_id).exists()


def test_an_answer_is_not_lost_because_the_way_cannot_be_noted(buyer, monkeypatch):
    order_id = buyer.order(4000)
    fail(buyer, order_id, 1)
    buyer.shop.clear_faults()

    def away(*_):
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(adapters, "_locked", away)

    assert look(buyer, order_id).id == order_id
    adapters.note_failure(buyer.row.shop, "timeout")
    assert Adapter.objects.get().failures == 1
