"""What the shop tells by itself: signed, of what really happened, until it is taken."""

import base64
import json
import queue
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from orders_stub.__main__ import WEBHOOK_SECRET
from tests.letterbox import Letter, Letterbox, open_letterbox
from tests.orders_stub.conftest import Buyer
from tests.stubs import RunningShop, run_shop

SECOND_SECRET = f"whsec_{base64.b64encode(b'x' * 32).decode()}"


@pytest.fixture(scope="module")
def letterbox():
    with open_letterbox() as box:
        yield box


@pytest.fixture(scope="module")
def shop_process(tmp_path_factory, letterbox):
    """A shop that tells, signing with two secrets as if one were being exchanged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORDERS_STUB_WEBHOOK_SECRET", f"{WEBHOOK_SECRET} {SECOND_SECRET}")
        folder = tmp_path_factory.mktemp("telling") / "data"
        with run_shop(folder, arguments=("--webhook-url", letterbox.url)) as running:
            yield running


@pytest.fixture(autouse=True)
def _empty(letterbox: Letterbox, shop_process: RunningShop):
    yield
    letterbox.answers.clear()
    wait_until_told(shop_process)
    while not letterbox.letters.empty():
        letterbox.letters.get()


def read(letter: Letter, secret: str = WEBHOOK_SECRET) -> dict[str, Any]:
    """The event, its signature checked by the package that the standard's authors publish."""
    found: dict[str, Any] = Webhook(secret).verify(letter.body, letter.headers)
    return found


def wait_until_told(shop: RunningShop, order_id: str | None = None) -> list[dict[str, Any]]:
    """Wait until every event, or every one of an order, is taken."""
    ends_at = time.monotonic() + 10
    while True:
        events = shop.events(order_id)
        if all(event["delivered_at"] for event in events):
            return events
        assert time.monotonic() < ends_at, events
        time.sleep(0.02)


def test_a_refund_is_told_signed_with_every_secret(buyer: Buyer, letterbox, key):
    order_id = buyer.order()
    done = buyer.refund(order_id, key=key).json()

    letter = letterbox.next()

    event = read(letter)
    assert read(letter, SECOND_SECRET) == event
    assert event["type"] == "refund.succeeded"
    assert event["data"] == done
    assert datetime.fromisoformat(event["timestamp"]).tzinfo == UTC
    (row,) = wait_until_told(buyer.shop, order_id)
    assert (row["type"], row["attempts"], row["answer"]) == ("refund.succeeded", 1, 200)
    assert row["id"] == letter.id


def test_a_cancellation_and_an_address_are_told_as_changes_of_their_order(
    buyer: Buyer, letterbox, key
):
    order_id = buyer.order(status="pending")
    done = buyer.cancel(order_id, key=key).json()

    event = read(letterbox.next())

    change = {"id": done["id"], "kind": "cancel", "idempotency_key": key}
    assert (event["type"], event["data"]) == (
        "order.changed",
        {"id": order_id, "version": 2, "change": change},
    )


def test_what_the_shops_staff_do_is_told_without_a_key(buyer: Buyer, letterbox):
    order_id = buyer.order()
    buyer.shop.edit_order(order_id, status="shipped")
    changed = read(letterbox.next())
    refund = buyer.shop.refund_by_hand(order_id, 100)
    told = read(letterbox.next())

    assert changed["data"] == {"id": order_id, "version": 2, "status": "shipped", "change": None}
    assert told["type"] == "refund.succeeded"
    assert (told["data"]["id"], told["data"]["idempotency_key"]) == (refund["id"], None)


def test_what_was_refused_is_not_told(buyer: Buyer, letterbox, key):
    order_id = buyer.order()
    assert buyer.refund(order_id, 4001, key=key).status_code == 422

    assert buyer.shop.events(order_id) == []
    with pytest.raises(queue.Empty):
        letterbox.next(0.4)


def test_an_event_is_sent_again_until_it_is_taken(buyer: Buyer, letterbox, key):
    letterbox.answers += [503]
    order_id = buyer.order()
    buyer.refund(order_id, key=key)

    first, second = letterbox.next(), letterbox.next()

    assert first.id == second.id
    assert read(first) == read(second)
    (row,) = wait_until_told(buyer.shop, order_id)
    assert (row["attempts"], row["answer"]) == (2, 200)


def test_twice(buyer: Buyer, letterbox, key):
    order_id = buyer.order()
    buyer.shop.fault("webhook_twice", scope={"order": order_id})
    buyer.refund(order_id, key=key)

    first, second = letterbox.next(), letterbox.next()

    assert (first.id, first.body) == (second.id, second.body)
    assert read(second)["data"]["idempotency_key"] == key


def test_late_and_so_out_of_order(buyer: Buyer, letterbox, key):
    order_id = buyer.order()
    buyer.shop.fault("webhook_late", scope={"path": "/refund.succeeded"}, times=1, seconds=0.5)
    buyer.refund(order_id, key=key)
    buyer.shop.edit_order(order_id, notes=[])

    types = [read(letterbox.next())["type"] for _ in range(2)]

    assert types == ["order.changed", "refund.succeeded"]
    assert [row["fault"] for row in wait_until_told(buyer.shop, order_id)] == ["webhook_late", ""]


def test_forged_by_somebody_without_the_secret(buyer: Buyer, letterbox, key):
    order_id = buyer.order()
    buyer.shop.fault("webhook_forged", scope={"order": order_id}, times=1)
    buyer.refund(order_id, key=key)

    forged, real = letterbox.next(), letterbox.next()

    assert json.loads(forged.body)["type"] == "refund.reversed"
    for secret in (WEBHOOK_SECRET, SECOND_SECRET):
        with pytest.raises(WebhookVerificationError):
            read(forged, secret)
    assert read(real)["type"] == "refund.succeeded"


def test_faults_of_calls_and_of_events_are_told_apart(buyer: Buyer, letterbox, key):
    order_id = buyer.order()
    buyer.shop.fault("webhook_twice", times=1)
    buyer.shop.fault("error_after", scope={"path": "/refund"}, times=1)

    assert buyer.refund(order_id, key=key).status_code == 500

    assert letterbox.next().id == letterbox.next().id
    assert buyer.refund(order_id, key=key).status_code == 201


# --- Money that comes back -------------------------------------------------------------------------


def test_a_reversed_refund_is_owed_again_told_and_found_as_such(buyer: Buyer, letterbox, key):
    order_id = buyer.order(4000)
    lines = [{"line_id": f"{order_id}-1", "quantity": 1}]
    done = buyer.refund(order_id, key=key, lines=lines).json()
    read(letterbox.next())

    buyer.shop.reverse(done["id"], reason="account_closed")

    event = read(letterbox.next())
    assert event["type"] == "refund.reversed"
    assert event["data"] == done | {"status": "reversed", "reason": "account_closed"}
    order = buyer.get(f"/orders/{order_id}").json()
    assert (order["refunded"], order["lines"][0]["refunded_quantity"]) == (0, 0)
    assert buyer.get(f"/effects/{key}").json() == done | {"status": "reversed"}
    (effect,) = buyer.shop.effects(order_id=order_id)
    assert effect["reversed_at"] is not None


def test_a_refund_is_reversed_once_and_only_if_it_is_one(buyer: Buyer, key):
    done = buyer.refund(buyer.order(), key=key).json()
    buyer.shop.reverse(done["id"])

    for refund_id, status in ((done["id"], 409), ("re_none", 404)):
        answer = buyer.shop.http.post(f"/control/refunds/{refund_id}/reverse")
        assert answer.status_code == status


def pending(buyer: Buyer, order_id: str, key: str):
    buyer.shop.fault("pending", times=1)
    return buyer.refund(order_id, key=key).json()


def test_a_pending_refund_is_told_of_once_it_was_paid_out(buyer: Buyer, letterbox, key):
    order_id = buyer.order(4000)
    done = pending(buyer, order_id, key)
    assert done["status"] == buyer.get(f"/effects/{key}").json()["status"] == "pending"
    assert buyer.get(f"/orders/{order_id}").json()["refunded"] == 4000
    assert buyer.shop.events(order_id) == []

    buyer.shop.arrive(done["id"])

    event = read(letterbox.next())
    assert (event["type"], event["data"]) == ("refund.succeeded", done | {"status": "succeeded"})
    assert buyer.get(f"/effects/{key}").json() == done | {"status": "succeeded"}
    assert buyer.refund(order_id, key=key).json() == done
    again = buyer.shop.http.post(f"/control/refunds/{done['id']}/arrive")
    assert (again.status_code, again.json()["error"]) == (409, "not_pending")


def test_a_pending_refund_that_comes_back_has_failed(buyer: Buyer, letterbox, key):
    order_id = buyer.order(4000)
    done = pending(buyer, order_id, key)

    buyer.shop.reverse(done["id"], reason="account_closed")

    event = read(letterbox.next())
    assert event["type"] == "refund.failed"
    assert event["data"] == done | {"status": "failed", "reason": "account_closed"}
    assert buyer.get(f"/effects/{key}").json() == done | {"status": "failed"}
    assert buyer.get(f"/orders/{order_id}").json()["refunded"] == 0
    for what in ("arrive", "reverse"):
        answer = buyer.shop.http.post(f"/control/refunds/{done['id']}/{what}")
        assert answer.status_code == 409


def test_without_an_address_nothing_is_written_down(tmp_path):
    with run_shop(tmp_path / "mute") as shop:
        shop.edit_order("1042", notes=[])
        assert shop.events() == []
