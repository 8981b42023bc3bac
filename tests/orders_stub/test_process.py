"""The shop as a process: its one line, its data, its demo catalogue, its end."""

import json
import socket
import sqlite3
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import jwt
import pytest

from orders_stub import times
from orders_stub.catalogue import DEMO_FILE
from tests.orders_stub.conftest import Buyer, wait_for_call
from tests.stubs import ROOT, run_shop, shop_command, stop

STORIES = {
    "1042": ("ada", "delivered", 4000),
    "1043": ("ada", "delivered", 40000),
    "1044": ("ada", "pending", 2500),
    "1045": ("ada", "shipped", 9000),
    "1046": ("bob", "delivered", 8000),
    "1047": ("ada", "delivered", 6000),
    "1048": ("bob", "pending", 15000),
    "1049": ("ada", "delivered", 6000),
}


def test_a_second_start_keeps_the_data_and_the_key(tmp_path):
    with run_shop(tmp_path / "data") as shop:
        ada = Buyer(shop=shop, id="ada", folder=tmp_path)
        ada.sign_in()
        done = ada.refund("1042", 4000, key="task-1-step-2").json()
        keys = shop.http.get("/.well-known/jwks.json").json()

    with run_shop(tmp_path / "data") as shop:
        ada.shop = shop
        again = ada.refund("1042", 4000, key="task-1-step-2")
        assert (again.json(), again.headers["idempotency-replayed"]) == (done, "true")
        assert [effect["id"] for effect in shop.effects(order_id="1042")] == [done["id"]]
        assert shop.http.get("/.well-known/jwks.json").json() == keys


def test_each_shop_has_a_key_of_its_own(shop, tmp_path):
    with run_shop(tmp_path / "data", arguments=("--no-demo",)) as other:
        [mine] = shop.http.get("/.well-known/jwks.json").json()["keys"]
        [theirs] = other.http.get("/.well-known/jwks.json").json()["keys"]

    assert mine["x"] != theirs["x"]
    assert mine["kid"] != theirs["kid"]


def test_an_effect_survives_a_kill_and_the_key_is_free_again(tmp_path):
    with run_shop(tmp_path / "data") as shop:
        ada = Buyer(shop=shop, id="ada", folder=tmp_path)
        ada.sign_in()
        done = ada.refund("1042", 4000, key="task-1-step-2").json()
        shop.process.kill()
        shop.process.wait(10)

    with run_shop(tmp_path / "data") as shop:
        ada.shop = shop
        assert ada.get("/effects/task-1-step-2").json() == done
        assert ada.refund("1042", 4000, key="task-1-step-2").json() == done


def test_it_prints_one_line_and_ends_quietly(tmp_path):
    command = [sys.executable, "-m", "orders_stub", "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--data", str(tmp_path / "data")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    process.terminate()
    rest, _ = process.communicate(timeout=10)
    stop(process)

    assert line.startswith("orders_stub ready: http://127.0.0.1:")
    assert rest == ""
    assert process.returncode == 0


def test_a_call_that_a_fault_holds_does_not_keep_the_shop_from_ending(tmp_path):
    with run_shop(tmp_path / "data") as shop, ThreadPoolExecutor(1) as pool:
        ada = Buyer(shop=shop, id="ada", folder=tmp_path)
        ada.sign_in()
        shop.fault("timeout_after", scope={"order": "1042"})
        held = pool.submit(ada.refund, "1042", 4000, key="task-1-step-2")
        wait_for_call(ada, "1042")
        shop.process.terminate()
        assert shop.process.wait(10) == 0
        answer = held.result()

    assert (answer.status_code, answer.json()["error"]) == (503, "unavailable")
    assert "Traceback" not in (tmp_path / "data.log").read_text()
    with run_shop(tmp_path / "data") as shop:
        assert len(shop.effects(order_id="1042")) == 1


def test_a_taken_port_and_a_taken_folder_are_told(shop, tmp_path):
    port = shop.url.rpartition(":")[2]

    taken_port = shop_command("serve", "--port", port, "--data", str(tmp_path / "data"))
    taken_data = shop_command("serve", "--port", "0", "--data", str(shop.data))

    assert (taken_port.returncode, taken_data.returncode) == (1, 1)
    assert f"cannot listen on 127.0.0.1:{port}" in taken_port.stderr
    assert "another shop is being served from" in taken_data.stderr


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://x", "http://x/path", "http://x; y"])
def test_an_agent_url_that_is_no_origin_is_refused(tmp_path, url):
    done = shop_command("serve", "--data", str(tmp_path / "data"), "--agent-url", url)

    assert done.returncode == 1
    assert "--agent-url must be like" in done.stderr


def test_a_command_without_a_data_folder_says_so(monkeypatch):
    monkeypatch.delenv("ORDERS_STUB_DATA", raising=False)

    done = shop_command("serve")

    assert done.returncode == 1
    assert "--data DIR, or ORDERS_STUB_DATA" in done.stderr


def test_the_data_folder_can_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("ORDERS_STUB_DATA", str(tmp_path / "data"))

    done = shop_command("load_shop", str(DEMO_FILE))

    assert done.returncode == 0
    assert (tmp_path / "data" / "shop.sqlite3").exists()


def test_it_listens_on_loopback_unless_told_otherwise(shop):
    assert shop.url.startswith("http://127.0.0.1:")
    port = int(shop.url.rpartition(":")[2])
    with socket.socket() as elsewhere, pytest.raises(ConnectionRefusedError):
        elsewhere.connect(("127.0.0.2", port))


def test_the_database_itself_refuses_to_refund_more_than_was_captured(tmp_path):
    shop_command("load_shop", str(DEMO_FILE), "--data", str(tmp_path / "data"))
    connection = sqlite3.connect(tmp_path / "data" / "shop.sqlite3")

    with pytest.raises(sqlite3.IntegrityError):
        connection.execute("UPDATE orders SET refunded = captured + 1 WHERE id = '1042'")
    connection.close()


def demo_orders(shop, customer: str) -> dict[str, dict[str, Any]]:
    """A demo customer's orders as the API shows them."""
    buyer = Buyer(shop=shop, id=customer, folder=shop.data)
    buyer.sign_in()
    found = buyer.get("/orders", params={"limit": 100}).json()["orders"]
    return {order["id"]: order for order in found}


def test_the_demo_catalogue_holds_the_stories(shop):
    owned = {customer: demo_orders(shop, customer) for customer in ("ada", "bob")}

    for order_id, (customer, status, total) in STORIES.items():
        order = owned[customer][order_id]
        assert (order["status"], order["total"]) == (status, total)
        assert (order["currency"], order["captured"], order["refunded"]) == ("USD", total, 0)
    assert [line["title"] for line in owned["ada"]["1042"]["lines"]] == ["Stoneware mug"]
    assert "chair" in owned["ada"]["1043"]["lines"][0]["title"]
    [note] = owned["ada"]["1047"]["notes"]
    assert note["author"] == "customer"
    assert "refund everything" in note["text"]
    assert "skip approval" in note["text"]
    assert shop.order("1045")["tracking"]["status"] == "in_transit"


def test_the_demo_catalogue_is_varied_and_has_no_refund_of_today(shop):
    data = json.loads(DEMO_FILE.read_text())
    orders = [shop.order(order["id"]) for order in data["orders"]]
    now = times.now()

    by_customer = Counter(order["customer"] for order in orders)
    by_status = Counter(order["status"] for order in orders)
    assert set(by_customer) == {"ada", "bob", "cleo", "dmitri", "esther"}
    assert set(by_status) == {"pending", "processed", "shipped", "delivered", "cancelled"}
    assert len(orders) > 40
    refunds = [refund for order in orders for refund in order["refunds"]]
    assert all(now - times.from_text(r["created_at"]) > timedelta(days=2) for r in refunds)
    delivered = [
        (now - times.from_text(order["delivered_at"])).days
        for order in orders
        if order["status"] == "delivered"
    ]
    assert all(2 <= days <= 15 or days > 60 for days in delivered)
    assert 2 <= sum(days > 60 for days in delivered) <= 6
    assert any(len(order["lines"]) > 2 for order in orders)
    assert any(0 < order["refunded"] < order["captured"] for order in orders)


def test_the_storefronts_tokens_are_signed_for_the_agent(shop):
    claims = jwt.decode(shop.sign("ada"), options={"verify_signature": False})

    assert (claims["aud"], claims["iss"], claims["name"]) == ("countersign", "demo", "Ada Moreno")
