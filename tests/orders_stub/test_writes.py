"""Refunds, cancellations and changes of address: what is done, and what is refused."""

import pytest

from tests.orders_stub.conftest import ADDRESS

ELSEWHERE = ADDRESS | {"line1": "9 Canal Walk", "city": "Leeds", "postal_code": "LS1 4AP"}


def test_a_refund_gives_money_back_and_stands_in_the_ledger(buyer, key):
    order_id = buyer.order(4000)
    lines = [{"line_id": f"{order_id}-1", "quantity": 1}]

    response = buyer.refund(order_id, 4000, key=key, lines=lines)

    done = response.json()
    assert response.status_code == 201
    assert done == {
        "id": done["id"],
        "kind": "refund",
        "order_id": order_id,
        "amount": 4000,
        "currency": "USD",
        "lines": lines,
        "reason": "damaged",
        "status": "succeeded",
        "created_at": done["created_at"],
        "idempotency_key": key,
    }
    assert done["id"].startswith("re_")
    order = buyer.get(f"/orders/{order_id}").json()
    assert (order["version"], order["refunded"], order["captured"]) == (2, 4000, 4000)
    assert order["lines"][0]["refunded_quantity"] == 1
    assert [refund["id"] for refund in order["refunds"]] == [done["id"]]
    [effect] = buyer.shop.effects(order_id=order_id)
    assert (effect["kind"], effect["amount"], effect["currency"]) == ("refund", 4000, "USD")
    assert (effect["idempotency_key"], effect["customer"]) == (key, buyer.id)
    assert effect["detail"] == {"lines": lines, "reason": "damaged", "version": 2}


def test_refunds_of_an_order_never_pass_what_was_captured(buyer, key):
    order_id = buyer.order(4000)
    assert buyer.refund(order_id, 2500, key=f"{key}-a").status_code == 201

    refused = buyer.refund(order_id, 1501, key=f"{key}-b")
    rest = buyer.refund(order_id, 1500, key=f"{key}-c")

    assert (refused.status_code, refused.json()["error"]) == (422, "amount_over_captured")
    assert rest.status_code == 201
    assert buyer.get(f"/orders/{order_id}").json()["refunded"] == 4000
    assert [effect["amount"] for effect in buyer.shop.effects(order_id=order_id)] == [2500, 1500]


def test_no_more_of_a_line_is_refunded_than_was_bought(buyer, key):
    order_id = buyer.order(lines=[{"title": "Mug", "unit_price": 1000, "quantity": 3}])
    line = {"line_id": f"{order_id}-1"}
    assert buyer.refund(order_id, 100, key=f"{key}-a", lines=[line | {"quantity": 2}]).is_success

    refused = buyer.refund(order_id, 100, key=f"{key}-b", lines=[line | {"quantity": 2}])

    assert (refused.status_code, refused.json()["error"]) == (422, "amount_over_captured")
    assert len(buyer.shop.effects(order_id=order_id)) == 1


LINE = {"line_id": "{}-1", "quantity": 1}


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"amount": 0}, 422, "bad_amount"),
        ({"amount": -5}, 422, "bad_amount"),
        ({"amount": 40.0}, 422, "bad_amount"),
        ({"amount": "4000"}, 422, "bad_amount"),
        ({"amount": True}, 422, "bad_amount"),
        ({"amount": None}, 422, "bad_amount"),
        ({"amount": 4001}, 422, "amount_over_captured"),
        ({"amount": 10**30}, 422, "bad_amount"),
        ({"currency": "EUR"}, 422, "currency_mismatch"),
        ({"currency": None}, 422, "currency_mismatch"),
        ({"lines": [LINE | {"line_id": "1042-1"}]}, 422, "bad_line"),
        ({"lines": [LINE | {"quantity": 0}]}, 422, "bad_line"),
        ({"lines": [LINE | {"quantity": True}]}, 422, "bad_line"),
        ({"lines": [LINE, LINE]}, 422, "bad_line"),
        ({"lines": [LINE | {"quantity": 2}]}, 422, "amount_over_captured"),
        ({"lines": "all"}, 422, "bad_line"),
        ({"lines": [{"line_id": "{}-1"}]}, 422, "bad_line"),
        ({"reason": 7}, 400, "invalid_request"),
        ({"approved": True}, 400, "invalid_request"),
    ],
)
def test_a_refund_that_does_not_fit_is_refused_and_nothing_moves(buyer, key, change, status, code):
    order_id = buyer.order(4000)
    if isinstance(change.get("lines"), list):
        lines = [line | {"line_id": line["line_id"].format(order_id)} for line in change["lines"]]
        change = {"lines": lines}

    response = buyer.refund(order_id, key=key, **change)

    assert (response.status_code, response.json()["error"]) == (status, code)
    assert buyer.shop.effects(order_id=order_id) == []
    assert buyer.get(f"/orders/{order_id}").json()["version"] == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"amount": NaN}',
        b'{"amount": 1, "amount": 2}',
        b"[" * 60_000,
        b'{"reason": "\xff"}',
        b'{"reason": "\\ud800", "amount": 1, "currency": "USD"}',
    ],
)
def test_a_body_that_is_no_strict_json_object_is_refused(buyer, key, body):
    order_id = buyer.order()
    headers = {"Idempotency-Key": key}

    response = buyer.call("POST", f"/orders/{order_id}/refunds", content=body, headers=headers)

    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
    assert buyer.shop.effects(order_id=order_id) == []


def test_a_body_too_large_is_refused_and_booked(buyer, key):
    order_id = buyer.order()
    headers = {"Idempotency-Key": key}

    response = buyer.call(
        "POST", f"/orders/{order_id}/refunds", content=b" " * 70_000, headers=headers
    )

    assert (response.status_code, response.json()["error"]) == (413, "too_large")
    assert [call["status"] for call in buyer.shop.calls(order_id=order_id)] == [413]
    assert buyer.shop.effects(order_id=order_id) == []


def test_a_cancelled_order_has_nothing_to_refund(buyer, key):
    order_id = buyer.order(status="cancelled")

    response = buyer.refund(order_id, key=key)

    assert (response.status_code, response.json()["error"]) == (409, "already_cancelled")
    assert buyer.shop.effects(order_id=order_id) == []


def test_an_order_refunded_in_full_says_so(buyer, key):
    order_id = buyer.order(4000)
    buyer.refund(order_id, 4000, key=f"{key}-a")

    response = buyer.refund(order_id, 1, key=f"{key}-b")

    assert (response.status_code, response.json()["error"]) == (409, "already_refunded")
    assert [effect["amount"] for effect in buyer.shop.effects(order_id=order_id)] == [4000]


@pytest.mark.parametrize("version", [1, 2])
def test_a_cancelled_order_says_so_whatever_version_is_meant(buyer, key, version):
    order_id = buyer.order(status="pending")
    buyer.shop.edit_order(order_id, status="cancelled")

    response = buyer.cancel(order_id, key=key, version=version)

    assert (response.status_code, response.json()["error"]) == (409, "already_cancelled")
    assert buyer.shop.effects(order_id=order_id) == []
    assert buyer.get(f"/orders/{order_id}").json()["version"] == 2


@pytest.mark.parametrize("status", ["pending", "processed"])
def test_cancelling_voids_the_payment_and_refunds_nothing(buyer, key, status):
    order_id = buyer.order(2500, status=status)

    response = buyer.cancel(order_id, key=key)

    done = response.json()
    assert response.status_code == 200
    assert done["id"].startswith("ch_")
    assert (done["kind"], done["idempotency_key"]) == ("cancel", key)
    assert done["order"] == buyer.get(f"/orders/{order_id}").json()
    assert (done["order"]["status"], done["order"]["version"]) == ("cancelled", 2)
    assert [payment["status"] for payment in done["order"]["payments"]] == ["voided"]
    assert (done["order"]["captured"], done["order"]["refunded"]) == (0, 0)
    [effect] = buyer.shop.effects(order_id=order_id)
    assert (effect["kind"], effect["amount"], effect["currency"]) == ("cancel", None, None)
    assert effect["detail"] == {"reason": "no_longer_needed", "voided": 2500, "version": 2}


@pytest.mark.parametrize("status", ["shipped", "delivered", "cancelled"])
def test_what_has_left_the_house_is_neither_cancelled_nor_sent_elsewhere(buyer, key, status):
    order_id = buyer.order(status=status)

    cancelled = buyer.cancel(order_id, key=f"{key}-a")
    moved = buyer.move(order_id, ELSEWHERE, key=f"{key}-b")

    why = "already_cancelled" if status == "cancelled" else "order_state"
    assert (cancelled.status_code, cancelled.json()["error"]) == (409, why)
    assert (moved.status_code, moved.json()["error"]) == (409, "order_state")
    assert buyer.shop.effects(order_id=order_id) == []
    assert buyer.get(f"/orders/{order_id}").json()["version"] == 1


def test_an_order_refunded_in_part_cannot_be_cancelled(buyer, key):
    order_id = buyer.order(4000, status="pending")
    buyer.refund(order_id, 100, key=f"{key}-a")

    response = buyer.cancel(order_id, key=f"{key}-b", version=2)

    assert (response.status_code, response.json()["error"]) == (409, "order_state")
    assert [effect["kind"] for effect in buyer.shop.effects(order_id=order_id)] == ["refund"]


def test_an_address_is_changed_and_the_ledger_holds_old_and_new(buyer, key):
    order_id = buyer.order(status="processed")

    response = buyer.move(order_id, ELSEWHERE, key=key)

    done = response.json()
    assert response.status_code == 200
    assert (done["kind"], done["idempotency_key"]) == ("change_address", key)
    assert done["order"]["shipping_address"] == ELSEWHERE
    assert done["order"]["version"] == 2
    [effect] = buyer.shop.effects(order_id=order_id)
    assert effect["detail"] == {"from": ADDRESS, "to": ELSEWHERE, "version": 2}


def test_line2_and_region_may_be_left_out(buyer, key):
    order_id = buyer.order(status="pending")
    short = {name: text for name, text in ELSEWHERE.items() if name not in {"line2", "region"}}

    response = buyer.move(order_id, short, key=key)

    assert response.json()["order"]["shipping_address"] == ELSEWHERE


@pytest.mark.parametrize(
    "change",
    [
        {"country": "XX"},
        {"country": "gb"},
        {"city": ""},
        {"city": "   "},
        {"line1": "a" * 10_000},
        {"line1": "1 Mill\nStreet"},
        {"name": "G\u0000wen"},
        {"postal_code": 12345},
        {"planet": "Earth"},
    ],
)
def test_an_address_nobody_could_deliver_to_is_refused(buyer, key, change):
    order_id = buyer.order(status="pending")

    response = buyer.move(order_id, ELSEWHERE | change, key=key)

    assert (response.status_code, response.json()["error"]) == (422, "bad_address")
    assert buyer.shop.effects(order_id=order_id) == []
    assert buyer.get(f"/orders/{order_id}").json()["shipping_address"] == ADDRESS


def test_a_write_without_the_version_it_means_is_refused(buyer, key):
    order_id = buyer.order(status="pending")
    headers = {"Idempotency-Key": key}

    cancelled = buyer.call("POST", f"/orders/{order_id}/cancel", json={}, headers=headers)
    moved = buyer.call("PUT", f"/orders/{order_id}/address", json=ELSEWHERE, headers=headers)

    for response in (cancelled, moved):
        assert (response.status_code, response.json()["error"]) == (428, "precondition_required")
    assert buyer.shop.effects(order_id=order_id) == []


@pytest.mark.parametrize("tag", ['"1"', '"3"', 'W/"2"', "2", ""])
def test_a_write_to_another_version_of_the_order_is_refused(buyer, key, tag):
    order_id = buyer.order(status="pending")
    buyer.shop.edit_order(order_id, notes=[{"author": "merchant", "text": "Gift"}])
    headers = {"Idempotency-Key": key, "If-Match": tag}

    response = buyer.call("POST", f"/orders/{order_id}/cancel", json={}, headers=headers)

    assert (response.status_code, response.json()["error"]) == (412, "version_mismatch")
    assert buyer.shop.effects(order_id=order_id) == []
    assert buyer.get(f"/orders/{order_id}").json()["status"] == "pending"


def test_the_present_version_among_others_is_enough(buyer, key):
    order_id = buyer.order(status="pending")
    headers = {"Idempotency-Key": key, "If-Match": '"7", "1"'}

    assert buyer.call("POST", f"/orders/{order_id}/cancel", json={}, headers=headers).is_success
