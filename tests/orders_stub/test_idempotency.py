"""One key, one effect: replay, reuse, calls side by side, the key window, the look-up."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.orders_stub.conftest import ADDRESS, Buyer, wait_for_call
from tests.stubs import run_shop


def test_the_first_answer_is_given_again_for_the_same_call(buyer, key):
    order_id = buyer.order(4000)

    first = buyer.refund(order_id, 1000, key=key)
    second = buyer.refund(order_id, 1000, key=key)

    assert (first.status_code, second.status_code) == (201, 201)
    assert second.content == first.content
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    assert len(buyer.shop.effects(order_id=order_id)) == 1


def test_a_definite_refusal_is_an_answer_too(buyer, key):
    order_id = buyer.order(4000)
    first = buyer.refund(order_id, 4001, key=key)

    second = buyer.refund(order_id, 4001, key=key)

    assert (first.status_code, first.json()["error"]) == (422, "amount_over_captured")
    assert second.content == first.content
    assert second.headers["idempotency-replayed"] == "true"


def test_a_refusal_stays_the_answer_although_the_order_changed_meanwhile(buyer, key):
    order_id = buyer.order(status="shipped")
    assert buyer.cancel(order_id, key=key).json()["error"] == "order_state"
    buyer.shop.edit_order(order_id, status="pending")

    again = buyer.cancel(order_id, key=key)

    assert (again.status_code, again.json()["error"]) == (409, "order_state")
    assert buyer.shop.effects(order_id=order_id) == []


def test_a_request_that_could_not_be_read_does_not_use_the_key_up(buyer, key):
    order_id = buyer.order(4000)
    path, headers = f"/orders/{order_id}/refunds", {"Idempotency-Key": key}
    assert buyer.call("POST", path, content=b"{", headers=headers).status_code == 400

    assert buyer.refund(order_id, 4000, key=key).status_code == 201


@pytest.mark.parametrize("other", ["body", "order", "method"])
def test_a_key_used_for_another_request_is_refused(buyer, key, other):
    order_id, second = buyer.order(4000, status="pending"), buyer.order(4000)
    buyer.refund(order_id, 1000, key=key)

    response = {
        "body": lambda: buyer.refund(order_id, 1001, key=key),
        "order": lambda: buyer.refund(second, 1000, key=key),
        "method": lambda: buyer.move(order_id, ADDRESS, key=key, version=2),
    }[other]()

    assert (response.status_code, response.json()["error"]) == (422, "idempotency_key_reused")
    assert [e["amount"] for e in buyer.shop.effects(idempotency_key=key)] == [1000]


def test_another_customers_key_neither_replays_nor_shows_anything(new_buyer, key):
    first, second = new_buyer(), new_buyer()
    order_id = first.order(4000)
    done = first.refund(order_id, 1000, key=key)

    replayed = second.refund(order_id, 1000, key=key)
    looked_up = second.get(f"/effects/{key}")

    assert (replayed.status_code, replayed.json()["error"]) == (422, "idempotency_key_reused")
    assert (looked_up.status_code, looked_up.json()["error"]) == (404, "not_found")
    assert done.json()["id"] not in replayed.text + looked_up.text


@pytest.mark.parametrize("bad_key", [None, "", "with space", "x" * 256, '""'])
def test_a_write_without_a_usable_key_is_refused(buyer, bad_key):
    order_id = buyer.order(4000)
    headers = {} if bad_key is None else {"Idempotency-Key": bad_key}
    body = {"amount": 4000, "currency": "USD", "lines": []}

    response = buyer.call("POST", f"/orders/{order_id}/refunds", json=body, headers=headers)

    assert (response.status_code, response.json()["error"]) == (400, "idempotency_key_required")
    assert buyer.shop.effects(order_id=order_id) == []


def test_the_quotes_of_a_structured_string_are_not_part_of_the_key(buyer, key):
    order_id = buyer.order(4000)

    done = buyer.refund(order_id, 4000, key=f'"{key}"')

    assert done.json()["idempotency_key"] == key
    assert buyer.refund(order_id, 4000, key=key).headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize("fault", ["latency", "timeout_before", "timeout_after"])
def test_the_same_call_is_turned_away_while_the_first_is_in_flight(buyer, key, fault):
    order_id = buyer.order(4000)
    buyer.shop.fault(fault, scope={"order": order_id}, times=1, ms=1000)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(buyer.refund, order_id, 4000, key=key)
        wait_for_call(buyer, order_id)
        second = buyer.refund(order_id, 4000, key=key)
        other_body = buyer.refund(order_id, 3999, key=key)

    assert (second.status_code, second.json()["error"]) == (409, "idempotency_in_progress")
    assert (other_body.status_code, other_body.json()["error"]) == (422, "idempotency_key_reused")
    assert first.result().status_code == 201
    assert buyer.refund(order_id, 4000, key=key).headers["idempotency-replayed"] == "true"
    assert len(buyer.shop.effects(order_id=order_id)) == 1


def test_many_refunds_at_once_never_pass_the_captured_amount(buyer, key):
    order_id = buyer.order(4000)
    start = threading.Barrier(8)

    def refund(n: int) -> int:
        start.wait()
        response: httpx.Response = buyer.refund(order_id, 1500, key=f"{key}-{n}")
        return response.status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(refund, range(8)))

    assert statuses == [201, 201] + [422] * 6
    assert buyer.get(f"/orders/{order_id}").json()["refunded"] == 3000
    assert [e["amount"] for e in buyer.shop.effects(order_id=order_id)] == [1500, 1500]


def test_a_key_is_forgotten_after_the_window(buyer, key):
    order_id = buyer.order(4000)
    buyer.shop.fault("key_window", scope={"order": order_id}, seconds=0.05)
    first = buyer.refund(order_id, 1000, key=key)
    time.sleep(0.1)

    second = buyer.refund(order_id, 1000, key=key)

    assert (first.status_code, second.status_code) == (201, 201)
    assert "idempotency-replayed" not in second.headers
    assert second.json()["id"] != first.json()["id"]
    assert len(buyer.shop.effects(idempotency_key=key)) == 2
    assert buyer.get(f"/effects/{key}").json() == first.json()


def test_the_key_window_can_be_set_at_the_start(tmp_path):
    with run_shop(tmp_path / "data", arguments=("--key-window", "0")) as shop:
        ada = Buyer(shop=shop, id="ada", folder=tmp_path)
        ada.sign_in()
        answers = [ada.refund("1042", 1000, key="task-1-step-2") for _ in range(2)]

        assert [answer.status_code for answer in answers] == [201, 201]
        assert len(shop.effects(order_id="1042")) == 2


def test_an_effect_is_found_by_its_key_in_the_words_of_the_first_answer(buyer, key):
    refunded, cancelled = buyer.order(4000), buyer.order(status="pending")
    moved = buyer.order(status="pending")
    answers = {
        f"{key}-a": buyer.refund(refunded, 100, key=f"{key}-a"),
        f"{key}-b": buyer.cancel(cancelled, key=f"{key}-b"),
        f"{key}-c": buyer.move(moved, ADDRESS, key=f"{key}-c"),
    }
    buyer.shop.edit_order(moved, notes=[{"author": "merchant", "text": "Later"}])

    for its_key, answer in answers.items():
        found = buyer.get(f"/effects/{its_key}")
        assert (found.status_code, found.json()) == (200, answer.json())


def test_no_effect_is_found_where_there_was_only_a_refusal(buyer, key):
    buyer.refund(buyer.order(4000), 4001, key=key)

    response = buyer.get(f"/effects/{key}")

    assert (response.status_code, response.json()["error"]) == (404, "not_found")
