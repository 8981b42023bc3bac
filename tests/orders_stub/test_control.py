"""The shop's own door: who may knock, the ledger, the back office."""

import pytest


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "shop.example.com"},
        {"Host": "127.0.0.1.example.com"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
)
def test_the_door_answers_no_foreign_page(shop, buyer, headers):
    order_id = buyer.order(4000)
    path = f"/control/orders/{order_id}/refunds"

    response = shop.http.post(path, json={"amount": 100}, headers=headers)

    assert (response.status_code, response.json()["error"]) == (403, "forbidden")
    assert shop.effects(order_id=order_id) == []


def test_a_refund_by_hand_is_an_effect_without_key_under_the_same_cap(shop, buyer):
    order_id = buyer.order(4000)

    done = shop.refund_by_hand(order_id, 3000)

    assert (done["idempotency_key"], done["currency"]) == (None, "USD")
    [effect] = shop.effects(order_id=order_id)
    assert (effect["amount"], effect["idempotency_key"]) == (3000, None)
    over = shop.http.post(f"/control/orders/{order_id}/refunds", json={"amount": 1001})
    assert (over.status_code, over.json()["error"]) == (422, "amount_over_captured")
    order = buyer.get(f"/orders/{order_id}").json()
    assert (order["refunded"], order["version"]) == (3000, 2)


def test_staff_edit_an_order_and_its_version_rises(shop, buyer):
    order_id = buyer.order(4000, 1000, status="pending")
    changes = {
        "status": "delivered",
        "shipping_address": {"city": "York"},
        "lines": [{"id": f"{order_id}-1", "unit_price": 3500}],
        "notes": [{"author": "merchant", "text": "Fragile", "at": "-1h"}],
    }

    edited = shop.edit_order(order_id, **changes)

    assert (edited["version"], edited["status"], edited["total"]) == (2, "delivered", 3500)
    assert edited["customer"] == buyer.id
    assert edited["shipping_address"]["city"] == "York"
    assert edited["shipping_address"]["line1"] == "1 Mill Street"
    assert [line["title"] for line in edited["lines"]] == ["Thing"]
    assert edited["notes"][0]["text"] == "Fragile"
    assert edited["delivered_at"] is not None
    seen = buyer.get(f"/orders/{order_id}").json()
    assert seen == {name: edited[name] for name in seen}
    assert shop.effects(order_id=order_id) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "lost"},
        {"version": 7},
        {"lines": []},
        {"lines": "none"},
        {"shipping_address": {"country": "XX"}},
        {"delivered_at": "yesterday"},
        {"payments": [{"amount": 10, "currency": "EUR"}]},
        {"refunds": [{"amount": 4001}]},
        ["status"],
    ],
)
def test_an_edit_that_no_order_could_have_is_refused(shop, buyer, changes):
    order_id = buyer.order(4000)
    before = shop.order(order_id)

    response = shop.http.patch(f"/control/orders/{order_id}", json=changes)

    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
    assert shop.order(order_id) == before


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "orders/none", {"status": "pending"}),
        ("GET", "orders/none", None),
        ("POST", "orders/none/refunds", {"amount": 1}),
        ("POST", "customers/none", {"blocked": True}),
        ("POST", "sign", {"customer": "none"}),
    ],
)
def test_what_is_not_there_cannot_be_changed(shop, method, path, body):
    response = shop.http.request(method, f"/control/{path}", json=body)

    assert (response.status_code, response.json()["error"]) == (404, "not_found")


def test_odd_bodies_are_refused(shop, buyer):
    answers = [
        shop.http.post(f"/control/customers/{buyer.id}", json={"blocked": "yes"}),
        shop.http.post(f"/control/customers/{buyer.id}", content=b"{"),
        shop.http.post("/control/sign", json={"customer": buyer.id, "claims": []}),
        shop.http.post("/control/sign"),
    ]

    assert [answer.status_code for answer in answers] == [400] * 4
    assert buyer.get("/customer").status_code == 200


def test_the_ledger_is_filtered_by_order_and_by_key(shop, buyer, key):
    first, second = buyer.order(4000), buyer.order(4000)
    buyer.refund(first, 100, key=f"{key}-a")
    buyer.refund(first, 200, key=f"{key}-b")
    buyer.refund(second, 300, key=f"{key}-c")

    assert [effect["amount"] for effect in shop.effects(order_id=first)] == [100, 200]
    assert [effect["amount"] for effect in shop.effects(idempotency_key=f"{key}-c")] == [300]
    assert shop.effects(order_id=second, idempotency_key=f"{key}-a") == []
    assert [call["idempotency_key"] for call in shop.calls(order_id=first)] == [
        f"{key}-a",
        f"{key}-b",
    ]
    [call] = shop.calls(idempotency_key=f"{key}-c")
    assert call == {
        "at": call["at"],
        "method": "POST",
        "path": f"/api/orders/{second}/refunds",
        "customer": buyer.id,
        "order_id": second,
        "idempotency_key": f"{key}-c",
        "status": 201,
        "error": None,
        "fault": None,
    }


def test_refused_and_nameless_calls_are_booked_too(shop, buyer):
    order_id = buyer.order()
    shop.http.get(f"/api/orders/{order_id}")

    [call] = shop.calls(order_id=order_id)

    assert (call["customer"], call["status"], call["error"]) == (None, 401, "invalid_token")


def test_clearing_the_ledger_forgets_calls_and_keeps_effects(shop, buyer, key):
    order_id = buyer.order(4000)
    buyer.refund(order_id, 100, key=key)

    shop.forget_calls()

    assert shop.calls() == []
    assert len(shop.effects(order_id=order_id)) == 1
