"""The shop client against answers that a well-behaved shop never gives."""

import gzip
import json
import multiprocessing
import socket

import pytest

from accounts import wire
from tests.clients.canned import HANG_UP, answer, canned_server
from tools.clients import errors
from tools.clients.shop import ShopClient

KEY = "task-1-step-2"
BODY = b'{"amount":4000,"currency":"USD","lines":[{"line_id":"1042-1","quantity":1}],"reason":"damaged"}'
REFUND = {
    "id": "re_1",
    "kind": "refund",
    "order_id": "1042",
    "amount": 4000,
    "currency": "USD",
    "lines": [{"line_id": "1042-1", "quantity": 1}],
    "status": "succeeded",
    "idempotency_key": KEY,
}
ORDER = {
    "id": "1042",
    "version": 3,
    "status": "delivered",
    "placed_at": "2026-03-01T10:00:00Z",
    "shipped_at": None,
    "delivered_at": None,
    "currency": "USD",
    "total": 4000,
    "captured": 4000,
    "refunded": 0,
    "lines": [{"id": "1042-1", "sku": "M", "title": "Mug", "quantity": 1, "unit_price": 4000}],
    "shipping_address": {
        "name": "Ada",
        "line1": "1 Quay",
        "city": "Portland",
        "postal_code": "04101",
        "country": "US",
    },
}


def client(url: str, timeout: float = 2.0) -> ShopClient:
    return ShopClient(url, token="secret-token", timeout=timeout)


def refund(url: str, timeout: float = 2.0):
    return client(url, timeout).refund("1042", BODY, KEY)


def test_a_refund_sends_the_sealed_bytes_unchanged_and_returns_the_receipt():
    with canned_server(answer(REFUND, 201)) as server:
        receipt = refund(server.url)

    head, _, body = server.heard[0].partition(b"\r\n\r\n")
    assert body == BODY
    assert head.startswith(b"POST /api/orders/1042/refunds HTTP/1.1")
    assert b"Idempotency-Key: task-1-step-2" in head
    assert b"Authorization: Bearer secret-token" in head
    assert (receipt.id, receipt.amount, receipt.currency, receipt.raw) == (
        "re_1",
        4000,
        "USD",
        REFUND,
    )


@pytest.mark.parametrize(("status", "is_pending"), [("succeeded", False), ("pending", True)])
def test_a_refund_that_the_shop_calls_pending_is_taken(status, is_pending):
    with canned_server(answer(REFUND | {"status": status}, 201)) as server:
        receipt = refund(server.url)

    assert (receipt.id, receipt.is_pending) == ("re_1", is_pending)
    assert len(server.heard) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"amount": 4001},
        {"amount": True},
        {"amount": 4000.0},
        {"currency": "EUR"},
        {"order_id": "1046"},
        {"kind": "cancel"},
        {"idempotency_key": "task-9-step-9"},
        {"status": "requires_action"},
        {"status": "Pending"},
        {"status": None},
        {"status": "pending", "amount": 4001},
        {"status": "pending", "currency": "EUR"},
        {"status": "pending", "order_id": "1046"},
        {"status": "pending", "idempotency_key": "task-9-step-9"},
        {"id": ""},
    ],
)
def test_a_receipt_of_something_else_is_an_unknown_outcome(change):
    with (
        canned_server(answer(REFUND | change, 201)) as server,
        pytest.raises(errors.UnknownOutcomeError) as caught,
    ):
        refund(server.url)

    assert caught.value.kind in {"mismatch", "unreadable"}
    assert len(server.heard) == 1


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (answer(b"<html>thank you</html>", 200), "unreadable"),
        (answer(b"[1,2]", 201), "unreadable"),
        (answer(b'{"amount": NaN}', 201), "unreadable"),
        (answer(b"[" * 100_000, 201), "unreadable"),
        (answer(b'{"amount": ' + b"9" * 5000 + b"}", 201), "unreadable"),
        (answer(b"", 204), "unreadable"),
        (answer(b" " * (wire.MAX_RESPONSE + 1), 201), "unreadable"),
        (answer(gzip.compress(json.dumps(REFUND).encode()), 201, Content_Encoding="gzip"), "unreadable"),
        (answer(b"", 302, Location="/api/elsewhere"), "redirect"),
        (answer({"error": "slow", "message": "Too slow"}, 408), "timeout"),
        (answer(b"<html>not acceptable</html>", 406), "unreadable"),
        (answer({"error": "internal", "message": "Oops"}, 500), "error"),
        (answer(b"bad gateway", 502), "error"),
        (answer(b"later", 503, Retry_After="1"), "error"),
        (HANG_UP, "reset"),
        (answer(REFUND, 201)[:-10], "reset"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "reset"),
    ],
)  # fmt: skip
def test_a_write_without_a_usable_answer_is_unknown_and_is_sent_once(given, kind):
    with canned_server(given) as server, pytest.raises(errors.UnknownOutcomeError) as caught:
        refund(server.url)

    assert caught.value.kind == kind
    assert len(server.heard) == 1


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (answer({"error": "not_found", "message": ""}, 404), errors.NotFoundError),
        (answer({"error": "invalid_token", "message": ""}, 401), errors.UnauthorizedError),
        (answer(b"<html>blocked</html>", 403), errors.UnauthorizedError),
        (answer(b"slow down", 429, Retry_After="7"), errors.ThrottledError),
        (answer({"error": "idempotency_in_progress"}, 409), errors.InProgressError),
        (answer({"error": "idempotency_key_reused"}, 422), errors.KeyReusedError),
        (answer({"error": "order_state", "message": "No"}, 409), errors.RefusedError),
        (answer({"error": "amount_over_captured"}, 422), errors.RefusedError),
    ],
)
def test_each_refusal_has_its_own_error(given, error):
    with canned_server(given) as server, pytest.raises(error) as caught:
        refund(server.url)

    assert type(caught.value) is error


def test_a_refusal_carries_code_status_and_a_text_cut_short():
    with (
        canned_server(answer({"error": "order_state", "message": "x" * 5000}, 409)) as server,
        pytest.raises(errors.RefusedError) as caught,
    ):
        refund(server.url)

    assert (caught.value.code, caught.value.status) == ("order_state", 409)
    assert caught.value.message == "x" * 300
    assert "x" * 300 not in str(caught.value)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("999999999999", 3600.0), ("-1", None), ("soon", None), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0)],
)  # fmt: skip
def test_retry_after_is_read_within_bounds(header, seconds):
    with (
        canned_server(answer(b"", 429, Retry_After=header)) as server,
        pytest.raises(errors.ThrottledError) as caught,
    ):
        client(server.url).get_order("1042")

    assert caught.value.retry_after == seconds


def test_a_write_to_a_closed_port_is_known_not_to_be_sent():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"

    with pytest.raises(errors.UnavailableError) as caught:
        refund(url)

    assert caught.value.kind == "connect"


def test_a_write_to_an_unknown_host_is_known_not_to_be_sent():
    with pytest.raises(errors.UnavailableError) as caught:
        refund("http://shop.invalid")

    assert caught.value.kind == "connect"


def test_a_silent_shop_is_a_timeout():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(errors.UnknownOutcomeError) as written:
            refund(url, timeout=0.2)
        with pytest.raises(errors.UnavailableError) as read:
            client(url, timeout=0.2).get_order("1042")

    assert (written.value.kind, read.value.kind) == ("timeout", "timeout")


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (HANG_UP, "reset"),
        (answer(b"<html>", 200), "unreadable"),
        (answer(ORDER | {"total": -1}), "unreadable"),
        (answer(ORDER | {"total": "4000"}), "unreadable"),
        (answer(ORDER | {"currency": "usd"}), "unreadable"),
        (answer(ORDER | {"placed_at": "2026-03-01T10:00:00"}), "unreadable"),
        (answer(ORDER | {"id": "1046"}), "mismatch"),
        (answer({"error": "internal"}, 500), "error"),
        (answer(b"", 302, Location="/elsewhere"), "error"),
        (answer(b"<html>no such page</html>", 404), "error"),
    ],
)
def test_a_failed_read_is_unavailable_and_is_asked_once(given, kind):
    with canned_server(given) as server, pytest.raises(errors.UnavailableError) as caught:
        client(server.url).get_order("1042")

    assert caught.value.kind == kind
    assert len(server.heard) == 1


def test_another_customers_tracking_under_a_right_id_is_not_taken():
    tracking = {"order_id": "1046", "carrier": "C", "tracking_number": "1", "status": "delivered"}
    with (
        canned_server(answer(tracking)) as server,
        pytest.raises(errors.UnavailableError) as caught,
    ):
        client(server.url).get_tracking("1045")

    assert caught.value.kind == "mismatch"


@pytest.mark.parametrize(
    "order_id",
    ["", ".", "..", "../customer", "..%2fcustomer", "1042/refunds", "1042?x=1", "1042#", "10 42",
     "1042\r\nX: y", "1042\x00", "é", "x" * 65, "%2e%2e"],
)  # fmt: skip
def test_what_cannot_be_an_order_id_is_not_found_and_nothing_is_sent(order_id):
    with canned_server(answer(ORDER)) as server:
        shop = client(server.url)
        for call in (
            lambda: shop.get_order(order_id),
            lambda: shop.get_tracking(order_id),
            lambda: shop.refund(order_id, BODY, KEY),
            lambda: shop.cancel(order_id, 1, b"{}", KEY),
            lambda: shop.change_address(order_id, 1, b"{}", KEY),
        ):
            with pytest.raises(errors.NotFoundError):
                call()

    assert server.heard == []


@pytest.mark.parametrize("key", ["", "a b", "a\r\nX: y", "../effects", "k" * 201, "ключ"])
def test_a_malformed_key_is_a_fault_of_ours_and_nothing_is_sent(key):
    with canned_server(answer(REFUND, 201)) as server:
        with pytest.raises(ValueError, match="idempotency key"):
            client(server.url).refund("1042", BODY, key)
        with pytest.raises(ValueError, match="idempotency key"):
            client(server.url).find_effect(key)

    assert server.heard == []


def test_free_text_is_cut_and_made_fit_for_storage():
    notes = [
        {"author": "customer", "text": "a\x00b\ud800" + "x" * 2000, "at": "2026-03-01T10:00:00Z"}
    ]
    with canned_server(answer(ORDER | {"notes": notes * 60})) as server:
        order = client(server.url).get_order("1042")

    assert len(order.notes) == 50
    assert order.notes[0].text == ("a\ufffdb?" + "x" * 2000)[:1000]


def test_list_orders_never_returns_more_than_was_asked_for():
    page = {"orders": [ORDER, ORDER, ORDER], "next_cursor": None}
    with canned_server(answer(page)) as server:
        orders = client(server.url).list_orders(status="delivered", limit=2)

    assert len(orders) == 2
    assert b"GET /api/orders?limit=2&status=delivered " in server.heard[0]


def test_a_cookie_of_one_answer_is_not_sent_for_the_next_customer():
    with canned_server(answer(ORDER, Set_Cookie="session=ada; Path=/")) as server:
        client(server.url).get_order("1042")
        ShopClient(server.url, token="bobs-token", timeout=2).get_order("1042")

    assert all(b"cookie:" not in request.lower() for request in server.heard)
    assert len(server.heard) == 2


def test_a_proxy_in_the_environment_is_ignored(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setattr(wire, "_pools", wire._Pools())
    with canned_server(answer(ORDER)) as server:
        assert client(server.url).get_order("1042").id == "1042"


def test_a_found_effect_of_another_key_is_not_taken_for_ours():
    with canned_server(answer(REFUND)) as server:
        found = client(server.url).find_effect(KEY)
        assert found is not None
        assert found.id == "re_1"
        with pytest.raises(errors.UnavailableError) as caught:
            client(server.url).find_effect("task-9-step-9")

    assert caught.value.kind == "mismatch"


def test_the_token_is_not_in_the_clients_repr():
    assert "secret-token" not in repr(client("http://127.0.0.1:1"))


def _pools_after_fork(queue):
    queue.put((wire._pools._reader, wire._pools._writer))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_worker_starts_with_connections_of_its_own():
    wire._pools.reader()
    wire._pools.writer()
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_pools_after_fork, args=(queue,))
    child.start()
    inherited = queue.get()
    child.join()

    assert inherited == (None, None)
