"""What an access token shows, and to whom."""

from typing import Any

import pytest

from tests.stubs import CLIENT


def test_an_order_is_shown_with_prices_in_minor_units_and_its_version_as_etag(buyer):
    order_id = buyer.order(
        4000,
        lines=[
            {"title": "Mug", "variant": "blue", "sku": "MUG-B", "quantity": 2, "unit_price": 1500},
            {"title": "Tray", "unit_price": 1000},
        ],
        notes=[{"author": "customer", "text": "Ring twice.", "at": "2026-03-01T09:30:00Z"}],
    )

    response = buyer.get(f"/orders/{order_id}")

    body = response.json()
    assert response.status_code == 200
    assert response.headers["etag"] == '"1"'
    assert [line["id"] for line in body["lines"]] == [f"{order_id}-1", f"{order_id}-2"]
    assert body["lines"][0] == {
        "id": f"{order_id}-1",
        "sku": "MUG-B",
        "title": "Mug",
        "variant": "blue",
        "quantity": 2,
        "unit_price": 1500,
        "refunded_quantity": 0,
    }
    assert (body["total"], body["captured"], body["refunded"]) == (4000, 4000, 0)
    assert (body["id"], body["version"], body["status"]) == (order_id, 1, "delivered")
    assert body["currency"] == "USD"
    assert body["payments"] == [
        {"id": f"pay_{order_id}", "amount": 4000, "currency": "USD", "status": "captured"}
    ]
    assert body["notes"] == [
        {"author": "customer", "text": "Ring twice.", "at": "2026-03-01T09:30:00.000000Z"}
    ]
    assert body["shipping_address"]["postal_code"] == "BA1 1AA"
    assert body["placed_at"] < body["shipped_at"] < body["delivered_at"]


def test_another_customers_order_is_answered_like_one_that_does_not_exist(new_buyer, key):
    owner, stranger = new_buyer(), new_buyer()
    order_id = owner.order(status="pending")

    for path in ("/orders/{}", "/orders/{}/tracking"):
        foreign = stranger.get(path.format(order_id))
        unknown = stranger.get(path.format("99999999"))
        assert foreign.status_code == unknown.status_code == 404
        assert foreign.content == unknown.content
        assert foreign.json()["error"] == "not_found"

    for n, write in enumerate((stranger.refund, stranger.cancel)):
        assert write(order_id, key=f"{key}-{n}").status_code == 404
    assert stranger.shop.effects(order_id=order_id) == []
    assert owner.get(f"/orders/{order_id}").json()["version"] == 1


def test_orders_come_newest_first_and_in_pages_without_gap_or_double(buyer):
    ids = [buyer.order(placed=f"-{days}d") for days in (30, 10, 20, 10, 40)]
    newest_first = [ids[3], ids[1], ids[2], ids[0], ids[4]]

    seen, cursor, pages = [], None, 0
    while cursor is not None or pages == 0:
        page = buyer.get("/orders", params={"limit": "2", "cursor": cursor or ""})
        seen += [order["id"] for order in page.json()["orders"]]
        cursor, pages = page.json()["next_cursor"], pages + 1

    assert seen == newest_first
    assert pages == 3


def test_orders_can_be_asked_by_status(buyer):
    buyer.order()
    pending = buyer.order(status="pending")

    found = buyer.get("/orders", params={"status": "pending"}).json()

    assert [order["id"] for order in found["orders"]] == [pending]
    assert found["next_cursor"] is None


@pytest.mark.parametrize(
    "query", ["status=lost", "limit=0", "limit=101", "limit=x", "cursor=%%%", "cursor=YWJj"]
)
def test_an_odd_question_for_orders_is_refused(buyer, query):
    response = buyer.get(f"/orders?{query}")

    assert response.status_code == 400
    assert response.json()["error"] == "invalid_request"


def test_the_customer_sees_who_they_are(buyer):
    assert buyer.get("/customer").json() == {
        "id": buyer.id,
        "name": buyer.id.replace("buyer-", "Buyer "),
        "email": f"{buyer.id}@example.com",
        "locale": "en-US",
    }


def test_tracking_tells_where_the_parcel_is(buyer):
    parcel: dict[str, Any] = {
        "carrier": "Northway Parcel",
        "tracking_number": "NP1",
        "status": "out_for_delivery",
        "expected_on": "2026-03-04",
        "events": [{"at": "2026-03-03T08:00:00Z", "place": "Bath", "text": "Out for delivery"}],
    }
    order_id = buyer.order(status="shipped", delivered=None, tracking=parcel)

    tracked = buyer.get(f"/orders/{order_id}/tracking").json()

    events = [{"at": "2026-03-03T08:00:00.000000Z", "place": "Bath", "text": "Out for delivery"}]
    assert tracked == parcel | {"order_id": order_id, "events": events}


def test_an_order_that_was_not_shipped_has_no_tracking(buyer):
    response = buyer.get(f"/orders/{buyer.order(status='pending')}/tracking")

    assert (response.status_code, response.json()["error"]) == (404, "no_tracking")


@pytest.mark.parametrize("authorization", [None, "Bearer nonsense", "Basic abc", "Bearer"])
def test_without_a_good_token_nothing_is_shown(buyer, authorization):
    order_id = buyer.order()
    headers = {"Authorization": authorization} if authorization else {}

    response = buyer.shop.http.get(f"/api/orders/{order_id}", headers=headers)

    assert (response.status_code, response.json()["error"]) == (401, "invalid_token")
    assert response.headers["www-authenticate"] == 'Bearer error="invalid_token"'


def test_client_credentials_alone_open_nothing(buyer):
    response = buyer.shop.http.get("/api/orders", auth=CLIENT)

    assert (response.status_code, response.json()["error"]) == (401, "invalid_token")


def test_an_unknown_address_is_answered_in_json(shop):
    response = shop.http.get("/api/nothing")

    assert (response.status_code, response.json()["error"]) == (404, "not_found")
    assert shop.http.delete("/api/orders").json()["error"] == "method_not_allowed"
