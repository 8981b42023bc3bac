"""Every fault, where it strikes, and what it leaves behind."""

import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.orders_stub.conftest import wait_for_call
from tests.stubs import CLIENT


def impatient(buyer, order_id: str, key: str, *, seconds: float = 0.3) -> None:
    """Ask for a refund and hang up before the answer."""
    with pytest.raises(httpx.ReadTimeout):
        buyer.call(
            "POST",
            f"/orders/{order_id}/refunds",
            json={"amount": 4000, "currency": "USD", "lines": [], "reason": "damaged"},
            headers={"Idempotency-Key": key},
            timeout=seconds,
        )


def test_latency_delays_the_answer_and_no_other_call(buyer, key):
    slow, quick = buyer.order(4000), buyer.order(4000)
    buyer.shop.fault("latency", scope={"order": slow}, ms=1000)
    start = time.monotonic()

    with ThreadPoolExecutor(1) as pool:
        delayed = pool.submit(buyer.refund, slow, key=key)
        wait_for_call(buyer, slow)
        for _ in range(5):
            assert buyer.get(f"/orders/{quick}").status_code == 200
        assert not delayed.done()
        assert delayed.result().status_code == 201

    assert time.monotonic() - start >= 1
    assert [call["fault"] for call in buyer.shop.calls(order_id=slow)] == ["latency"]


def test_a_call_that_timed_out_before_the_effect_never_has_one(buyer, key):
    order_id = buyer.order(4000)
    buyer.shop.fault("timeout_before", scope={"order": order_id}, times=1)

    impatient(buyer, order_id, key)

    assert buyer.get(f"/effects/{key}").status_code == 404
    assert buyer.shop.effects(order_id=order_id) == []
    assert buyer.refund(order_id, 4000, key=key).status_code == 201
    assert len(buyer.shop.effects(order_id=order_id)) == 1
    calls = buyer.shop.calls(order_id=order_id)
    assert [(call["status"], call["fault"]) for call in calls] == [
        (None, "timeout_before"),
        (201, None),
    ]


def test_a_call_that_timed_out_after_the_effect_is_found_and_replayed(buyer, key):
    order_id = buyer.order(4000)
    buyer.shop.fault("timeout_after", scope={"order": order_id}, times=1)

    impatient(buyer, order_id, key)

    [effect] = buyer.shop.effects(order_id=order_id)
    assert effect["idempotency_key"] == key
    assert buyer.get(f"/effects/{key}").json()["id"] == effect["id"]
    again = buyer.refund(order_id, 4000, key=key)
    assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")
    assert len(buyer.shop.effects(order_id=order_id)) == 1


@pytest.mark.parametrize("fault", ["timeout_before", "timeout_after"])
def test_a_patient_caller_gets_the_answer_after_the_hold(buyer, key, fault):
    order_id = buyer.order(4000)
    buyer.shop.fault(fault, scope={"order": order_id}, ms=150)
    start = time.monotonic()

    response = buyer.refund(order_id, 4000, key=key)

    assert response.status_code == 201
    assert time.monotonic() - start >= 0.15


def test_a_hold_that_ignores_the_hang_up_has_its_effect_late(buyer, key):
    order_id = buyer.order(4000)
    scope = {"order": order_id}
    buyer.shop.fault("timeout_before", scope=scope, times=1, ms=1000, ignore_hangup=True)

    impatient(buyer, order_id, key, seconds=0.1)
    in_flight = buyer.refund(order_id, 4000, key=key)
    assert buyer.shop.effects(order_id=order_id) == []
    deadline = time.monotonic() + 5
    while not buyer.shop.effects(order_id=order_id):
        assert time.monotonic() < deadline, "the late effect never came"
        time.sleep(0.05)

    assert in_flight.json()["error"] == "idempotency_in_progress"
    assert buyer.refund(order_id, 4000, key=key).headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize(("status", "code"), [(None, "server_error"), (503, "unavailable")])
def test_an_error_before_the_effect_leaves_nothing_behind(buyer, key, status, code):
    order_id = buyer.order(4000)
    params = {} if status is None else {"status": status}
    buyer.shop.fault("error_before", scope={"order": order_id}, times=1, **params)

    response = buyer.refund(order_id, 4000, key=key)

    assert (response.status_code, response.json()["error"]) == (status or 500, code)
    assert buyer.shop.effects(order_id=order_id) == []
    again = buyer.refund(order_id, 4000, key=key)
    assert again.status_code == 201
    assert "idempotency-replayed" not in again.headers


def test_an_error_after_the_effect_hides_an_answer_that_a_replay_shows(buyer, key):
    order_id = buyer.order(4000)
    buyer.shop.fault("error_after", scope={"order": order_id}, times=1)

    response = buyer.refund(order_id, 4000, key=key)

    assert (response.status_code, response.json()["error"]) == (500, "server_error")
    assert len(buyer.shop.effects(order_id=order_id)) == 1
    again = buyer.refund(order_id, 4000, key=key)
    assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")
    assert len(buyer.shop.effects(order_id=order_id)) == 1


def test_throttling_says_when_to_come_back(buyer):
    order_id = buyer.order()
    buyer.shop.fault("error_before", scope={"order": order_id}, status=429, retry_after=2)

    response = buyer.get(f"/orders/{order_id}")

    assert (response.status_code, response.headers["retry-after"]) == (429, "2")
    assert response.json()["error"] == "too_many_requests"


def test_an_unreadable_answer_comes_after_the_effect(buyer, key):
    order_id = buyer.order(4000)
    buyer.shop.fault("unreadable", scope={"order": order_id}, times=1)

    response = buyer.refund(order_id, 4000, key=key)

    assert response.status_code == 201
    assert response.headers["content-type"].startswith("text/html")
    with pytest.raises(ValueError, match="Expecting value"):
        response.json()
    assert len(buyer.shop.effects(order_id=order_id)) == 1


def test_a_look_up_can_lag_behind_the_effect(buyer, key):
    buyer.shop.fault("lookup_lag", scope={"customer": buyer.id}, seconds=1)
    order_id = buyer.order(4000)
    done = buyer.refund(order_id, 4000, key=key)

    early = buyer.get(f"/effects/{key}")
    order = buyer.get(f"/orders/{order_id}").json()
    time.sleep(1.1)
    late = buyer.get(f"/effects/{key}")

    assert (early.status_code, early.json()["error"]) == (404, "not_found")
    assert order["refunded"] == 4000
    assert (late.status_code, late.json()) == (200, done.json())


def test_a_revoked_customer_gets_neither_answers_nor_tokens(new_buyer, key):
    revoked, other = new_buyer(), new_buyer()
    shop, order_id = revoked.shop, revoked.order(4000)
    shop.fault("revoke_customer", scope={"customer": revoked.id})

    read = revoked.get(f"/orders/{order_id}")
    write = revoked.refund(order_id, 4000, key=key)
    form = {"grant_type": "refresh_token", "refresh_token": revoked.tokens["refresh_token"]}
    refreshed = shop.http.post("/oauth/token", data=form, auth=CLIENT)

    assert (read.status_code, read.json()["error"]) == (401, "invalid_token")
    assert (write.status_code, write.json()["error"]) == (401, "invalid_token")
    assert (refreshed.status_code, refreshed.json()["error"]) == (400, "invalid_grant")
    assert shop.effects(order_id=order_id) == []
    assert other.get("/customer").status_code == 200
    shop.clear_faults()
    assert revoked.refund(order_id, 4000, key=key).status_code == 201


def test_an_order_can_change_just_before_a_call_is_handled(buyer, key):
    order_id = buyer.order(status="pending")
    scope = {"order": order_id, "method": "post"}
    buyer.shop.fault("change_order", scope=scope, times=1, set={"status": "shipped"})
    assert buyer.get(f"/orders/{order_id}").json()["version"] == 1

    response = buyer.cancel(order_id, key=key, version=1)

    assert (response.status_code, response.json()["error"]) == (412, "version_mismatch")
    order = buyer.get(f"/orders/{order_id}").json()
    assert (order["version"], order["status"]) == (2, "shipped")
    assert order["shipped_at"] is not None
    assert buyer.shop.effects(order_id=order_id) == []


def test_a_change_that_no_order_could_have_is_told_and_changes_nothing(buyer):
    order_id = buyer.order(status="pending")
    buyer.shop.fault("change_order", scope={"order": order_id}, set={"status": "lost"}, times=1)

    response = buyer.get(f"/orders/{order_id}")

    assert (response.status_code, response.json()["error"]) == (500, "bad_fault")
    assert buyer.shop.order(order_id)["version"] == 1


def test_a_rule_strikes_only_in_its_scope_and_only_so_often(new_buyer):
    buyer, other = new_buyer(), new_buyer()
    first, second = buyer.order(status="pending"), buyer.order(status="pending")
    shop = buyer.shop
    shop.fault("error_before", scope={"customer": buyer.id, "path": "/tracking"}, times=2)

    assert buyer.get(f"/orders/{first}").status_code == 200
    assert other.get(f"/orders/{first}/tracking").status_code == 404
    assert buyer.get(f"/orders/{first}/tracking").status_code == 500
    assert buyer.get(f"/orders/{second}/tracking").status_code == 500
    assert buyer.get(f"/orders/{second}/tracking").status_code == 404
    [rule] = shop.http.get("/control/faults").json()["faults"]
    assert (rule["fault"], rule["times"], rule["hits"]) == ("error_before", 2, 2)


def test_several_faults_strike_one_call_together(buyer, key):
    order_id = buyer.order(4000)
    for fault, params in (("latency", {"ms": 100}), ("error_after", {}), ("unreadable", {})):
        buyer.shop.fault(fault, scope={"order": order_id}, times=1, **params)
    start = time.monotonic()

    response = buyer.refund(order_id, 4000, key=key)

    assert time.monotonic() - start >= 0.1
    assert response.status_code == 500
    [call] = buyer.shop.calls(order_id=order_id)
    assert call["fault"] == "latency, error_after, unreadable"
    assert len(buyer.shop.effects(order_id=order_id)) == 1


def test_rules_are_listed_replaced_by_id_and_taken_away(shop):
    rule = {"id": "slow", "fault": "latency", "params": {"ms": 5}, "scope": {"path": "/nowhere"}}
    assert shop.http.post("/control/faults", json=rule).status_code == 201
    replaced = shop.http.post("/control/faults", json=rule | {"params": {"ms": 7}})

    listed = shop.http.get("/control/faults").json()["faults"]

    assert listed == [replaced.json()]
    assert listed[0]["params"] == {"ms": 7}
    assert shop.http.delete("/control/faults/slow").status_code == 204
    assert shop.http.delete("/control/faults/slow").status_code == 404
    assert shop.http.get("/control/faults").json() == {"faults": []}


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"fault": "earthquake"},
        {"fault": "latency"},
        {"fault": "latency", "params": {"ms": -1}},
        {"fault": "latency", "params": {"ms": "10"}},
        {"fault": "latency", "params": {"ms": 10}, "scope": {"colour": "red"}},
        {"fault": "latency", "params": {"ms": 10}, "times": 0},
        {"fault": "error_after", "params": {"status": 200}},
        {"fault": "unreadable", "params": {"ms": 1}},
        {"fault": "lookup_lag", "params": {"seconds": True}},
        {"fault": "change_order", "params": {"set": {}}},
        {"fault": "timeout_after", "params": {"ignore_hangup": 1}},
        [],
    ],
)
def test_a_rule_that_means_nothing_is_refused(shop, rule):
    response = shop.http.post("/control/faults", json=rule)

    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
    assert shop.http.get("/control/faults").json() == {"faults": []}
