"""The shop client against the pretend shop, with each of its faults."""

import json
import time
from dataclasses import replace

import pytest

from tests.clients.conftest import client_of
from tools.clients import errors

ADDRESS = {
    "name": "Ada Moreno",
    "line1": "9 New Street",
    "line2": "",
    "city": "Portland",
    "region": "ME",
    "postal_code": "04101",
    "country": "US",
}


def refund_body(order_id: str, amount: int, /, **changes: object) -> bytes:
    body = {
        "amount": amount,
        "currency": "USD",
        "lines": [{"line_id": f"{order_id}-1", "quantity": 1}],
        "reason": "damaged",
    }
    return json.dumps(body | changes, separators=(",", ":")).encode()


def effects(shop, order_id: str) -> list[tuple[str, str]]:
    return [(e["kind"], e["idempotency_key"]) for e in shop.effects(order_id=order_id)]


# --- Everyday ------------------------------------------------------------------------------------


def test_an_order_is_read_with_its_money_in_minor_units(ada):
    order = ada.get_order("1042")

    assert (order.id, order.status, order.currency, order.total) == (
        "1042",
        "delivered",
        "USD",
        4000,
    )
    assert (order.lines[0].id, order.lines[0].unit_price) == ("1042-1", 4000)
    assert order.shipping_address.country == "US"


def test_only_the_customers_own_orders_are_listed(ada, bob):
    hers = {order.id for order in ada.list_orders(limit=50)}
    his = {order.id for order in bob.list_orders(limit=50)}

    assert {"1042", "1045"} <= hers
    assert {"1046", "1048"} <= his
    assert not hers & his


def test_orders_are_listed_by_status_and_up_to_a_limit(ada):
    assert {order.status for order in ada.list_orders(status="shipped")} == {"shipped"}
    assert len(ada.list_orders(limit=2)) == 2


def test_a_parcel_is_tracked(ada):
    tracking = ada.get_tracking("1045")

    assert tracking.order_id == "1045"
    assert tracking.events


def test_an_order_that_is_not_shipped_has_no_tracking(ada):
    with pytest.raises(errors.NotFoundError):
        ada.get_tracking("1044")


def test_a_foreign_order_and_no_order_are_the_same_error(ada):
    texts = set()
    for order_id in ("1046", "9999"):
        with pytest.raises(errors.NotFoundError) as read:
            ada.get_order(order_id)
        with pytest.raises(errors.NotFoundError) as written:
            ada.refund(order_id, refund_body(order_id, 100), f"task-1-{order_id}")
        texts |= {str(read.value), str(written.value)}

    assert len(texts) == 1


def test_a_foreign_order_is_not_changed(ada, shop):
    with pytest.raises(errors.NotFoundError):
        ada.cancel("1048", 1, b'{"reason":"other"}', "task-1-step-2")

    assert effects(shop, "1048") == []
    assert shop.order("1048")["status"] == "pending"


def test_a_refund_happens_once_under_its_key_and_is_found_by_it(ada, shop):
    body = refund_body("1042", 4000)

    receipt = ada.refund("1042", body, "task-2-step-1")
    again = ada.refund("1042", body, "task-2-step-1")
    found = ada.find_effect("task-2-step-1")

    assert receipt.fits(kind="refund", order_id="1042", amount=4000, currency="USD")
    assert (receipt.replayed, again.replayed) == (False, True)
    assert receipt.id == again.id == found.id
    assert found.fits(kind="refund", order_id="1042", amount=4000, currency="USD")
    assert effects(shop, "1042") == [("refund", "task-2-step-1")]


def test_an_effect_is_found_by_its_own_customer_only(ada, bob):
    ada.refund("1037", refund_body("1037", 7400), "task-2-step-2")

    assert ada.find_effect("task-2-step-2") is not None
    assert bob.find_effect("task-2-step-2") is None
    assert ada.find_effect("task-2-step-99") is None


def test_an_order_is_cancelled_as_it_stands(ada, shop):
    version = ada.get_order("1059").version

    receipt = ada.cancel("1059", version, b'{"reason":"other"}', "task-2-step-3")

    assert receipt.fits(kind="cancel", order_id="1059")
    assert ada.find_effect("task-2-step-3").fits(kind="cancel", order_id="1059")
    assert effects(shop, "1059") == [("cancel", "task-2-step-3")]


def test_an_address_is_changed_as_it_stands(ada, shop):
    version = ada.get_order("1050").version
    body = json.dumps(ADDRESS).encode()

    receipt = ada.change_address("1050", version, body, "task-2-step-4")

    assert receipt.fits(kind="change_address", order_id="1050")
    assert shop.order("1050")["shipping_address"] == ADDRESS
    assert effects(shop, "1050") == [("change_address", "task-2-step-4")]


# --- Definite refusals -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"amount": 999_999_999}, "amount_over_captured"),
        ({"currency": "EUR"}, "currency_mismatch"),
        ({"lines": [{"line_id": "1046-1", "quantity": 1}]}, "bad_line"),
        ({"amount": 0}, "bad_amount"),
    ],
)
def test_a_refund_that_the_shop_refuses_is_refused_and_nothing_happens(ada, shop, change, code):
    with pytest.raises(errors.RefusedError) as caught:
        ada.refund("1047", refund_body("1047", 6000, **change), f"task-3-{code}")

    assert (caught.value.code, caught.value.status) == (code, 422)
    assert caught.value.message
    assert effects(shop, "1047") == []


def test_a_stale_version_is_refused_and_nothing_happens(ada, shop):
    version = ada.get_order("1044").version
    shop.edit_order("1044", notes=[])

    with pytest.raises(errors.RefusedError) as caught:
        ada.cancel("1044", version, b'{"reason":"other"}', "task-3-step-1")

    assert (caught.value.code, caught.value.status) == ("version_mismatch", 412)
    assert effects(shop, "1044") == []


def test_a_delivered_order_is_not_cancelled(ada, shop):
    version = ada.get_order("1049").version

    with pytest.raises(errors.RefusedError) as caught:
        ada.cancel("1049", version, b'{"reason":"other"}', "task-3-step-2")

    assert (caught.value.code, caught.value.status) == ("order_state", 409)
    assert effects(shop, "1049") == []


def test_a_key_with_another_body_is_a_fault_of_ours(ada, shop):
    ada.refund("1025", refund_body("1025", 8000), "task-3-step-3")

    with pytest.raises(errors.KeyReusedError):
        ada.refund("1025", refund_body("1025", 7000), "task-3-step-3")

    assert effects(shop, "1025") == [("refund", "task-3-step-3")]


def test_a_token_that_is_no_good_is_unauthorized(ada, shop):
    stranger = replace(ada, token="not-a-token")
    with pytest.raises(errors.UnauthorizedError):
        stranger.get_order("1049")
    with pytest.raises(errors.UnauthorizedError):
        stranger.refund("1049", refund_body("1049", 6000), "task-3-step-4")

    assert effects(shop, "1049") == []


def test_a_customer_who_is_blocked_meanwhile_is_unauthorized(shop):
    cleo = client_of(shop, "cleo")
    shop.fault("revoke_customer", scope={"customer": "cleo"})

    with pytest.raises(errors.UnauthorizedError):
        cleo.refund("1028", refund_body("1028", 1900), "task-3-step-5")

    assert effects(shop, "1028") == []


# --- Faults ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order_id", "fault", "params", "kind", "happened"),
    [
        ("1006", "timeout_before", {"ms": 2000}, "timeout", False),
        ("1019", "timeout_after", {"ms": 2000}, "timeout", True),
        ("1023", "error_before", {}, "error", False),
        ("1027", "error_after", {}, "error", True),
        ("1035", "error_after", {"status": 502}, "error", True),
        ("1039", "unreadable", {}, "unreadable", True),
    ],
)
def test_a_fault_leaves_the_outcome_unknown_and_the_look_up_settles_it(
    bob, shop, order_id, fault, params, kind, happened
):
    key = f"task-4-{order_id}"
    shop.fault(fault, scope={"path": "/refunds"}, times=1, **params)

    with pytest.raises(errors.UnknownOutcomeError) as caught:
        replace(bob, timeout=0.5).refund(order_id, refund_body(order_id, 100), key)

    found = bob.find_effect(key)
    assert caught.value.kind == kind
    assert (found is not None) == happened
    assert effects(shop, order_id) == ([("refund", key)] if happened else [])
    assert len([c for c in shop.calls(idempotency_key=key) if c["method"] == "POST"]) == 1


def test_the_same_key_while_the_first_is_in_flight_is_in_progress_and_then_replayed(shop):
    esther = client_of(shop, "esther")
    body, key = refund_body("1026", 6000), "task-4-step-1"
    shop.fault("timeout_after", scope={"order": "1026"}, times=1, ms=1200, ignore_hangup=True)
    with pytest.raises(errors.UnknownOutcomeError):
        replace(esther, timeout=0.4).refund("1026", body, key)

    with pytest.raises(errors.InProgressError):
        esther.refund("1026", body, key)

    receipt = _until_it_is_through(esther, "1026", body, key)
    assert receipt.replayed
    assert effects(shop, "1026") == [("refund", key)]


def _until_it_is_through(client, order_id, body, key):
    for _ in range(200):
        try:
            return client.refund(order_id, body, key)
        except errors.InProgressError:
            time.sleep(0.05)
    raise AssertionError("the first send never ended")


def test_a_look_up_that_lags_shows_nothing_yet(shop):
    esther = client_of(shop, "esther")
    shop.fault("lookup_lag", seconds=3600)
    esther.refund("1038", refund_body("1038", 15000), "task-4-step-2")

    assert esther.find_effect("task-4-step-2") is None

    shop.clear_faults()
    assert esther.find_effect("task-4-step-2") is not None


def test_throttling_tells_how_long_to_wait_and_nothing_happens(ada, shop):
    shop.fault("error_before", status=429, retry_after=7)

    with pytest.raises(errors.ThrottledError) as read:
        ada.get_order("1049")
    with pytest.raises(errors.ThrottledError) as written:
        ada.refund("1049", refund_body("1049", 6000), "task-4-step-3")

    assert (read.value.retry_after, written.value.retry_after) == (7.0, 7.0)
    assert effects(shop, "1049") == []


@pytest.mark.parametrize(
    ("fault", "params", "kind"),
    [
        ("timeout_before", {"ms": 1500}, "timeout"),
        ("error_before", {"status": 503}, "error"),
        ("unreadable", {}, "unreadable"),
    ],
)
def test_a_failed_read_says_that_the_shop_is_unavailable(ada, shop, fault, params, kind):
    shop.fault(fault, **params)
    hasty = replace(ada, timeout=0.3)

    for read in (
        lambda: hasty.get_order("1042"),
        hasty.list_orders,
        lambda: hasty.get_tracking("1045"),
    ):
        with pytest.raises(errors.UnavailableError) as caught:
            read()
        assert caught.value.kind == kind


def test_a_look_up_that_fails_is_not_taken_for_a_miss(ada, shop):
    shop.fault("error_before", scope={"path": "/effects/"})

    with pytest.raises(errors.UnavailableError) as caught:
        ada.find_effect("task-4-step-4")

    assert caught.value.status == 500


def test_an_order_changed_just_before_the_call_is_a_stale_version(ada, shop):
    version = ada.get_order("1044").version
    shop.fault("change_order", scope={"order": "1044"}, times=1, set={"notes": []})

    with pytest.raises(errors.RefusedError) as caught:
        ada.change_address("1044", version, json.dumps(ADDRESS).encode(), "task-4-step-5")

    assert caught.value.code == "version_mismatch"
    assert effects(shop, "1044") == []
