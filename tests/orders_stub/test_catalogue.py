"""Loading a catalogue: whole or not at all, and twice is once."""

import json
import sqlite3
import time

import pytest

from orders_stub import catalogue, orders, times
from orders_stub.database import Database
from orders_stub.errors import RefusalError
from tests.orders_stub.conftest import ADDRESS
from tests.stubs import ROOT, shop_command

LINE = {"title": "Mug", "unit_price": 4000}
CUSTOMER = {"id": "gwen", "name": "Gwen", "email": "gwen@example.com", "address": ADDRESS}
ORDER = {"id": "7001", "customer": "gwen", "status": "pending", "placed": "-1d", "lines": [LINE]}


def run_load(folder, data):
    """Run the command on a file with this content."""
    path = folder / "shop.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return shop_command("load_shop", str(path), "--data", str(folder / "data"))


def counts(folder) -> tuple[int, int]:
    """How many customers and orders there are."""
    db = Database(folder / "data")
    try:
        rows = db.rows("SELECT (SELECT count(*) FROM customers), (SELECT count(*) FROM orders)")
        return tuple(rows[0])
    finally:
        db.close()


def test_a_thousand_orders_are_loaded_in_seconds_and_twice_is_once(tmp_path):
    customers = [CUSTOMER | {"id": f"c{n}", "email": f"c{n}@example.com"} for n in range(200)]
    many = [ORDER | {"id": str(7000 + n), "customer": f"c{n % 200}"} for n in range(1000)]
    start = time.monotonic()

    first = run_load(tmp_path, {"customers": customers, "orders": many})
    took = time.monotonic() - start
    second = run_load(tmp_path, {"customers": customers, "orders": many})

    assert first.returncode == second.returncode == 0
    assert took < 10
    assert first.stdout == (
        "customers: 200 added, 0 already there; orders: 1000 added, 0 already there\n"
    )
    assert second.stdout == (
        "customers: 0 added, 200 already there; orders: 0 added, 1000 already there\n"
    )
    assert counts(tmp_path) == (200, 1000)


def test_a_catalogue_is_loaded_into_the_running_shop(shop, buyer, tmp_path):
    order = ORDER | {"id": "7000001", "customer": buyer.id, "shipping_address": ADDRESS}
    path = tmp_path / "more.json"
    path.write_text(json.dumps({"orders": [order]}))

    shop.load(path)

    assert buyer.get("/orders/7000001").json()["status"] == "pending"


def test_loading_again_leaves_what_happened_since(shop, buyer, key, tmp_path):
    order = ORDER | {"id": "7000002", "customer": buyer.id, "shipping_address": ADDRESS}
    path = tmp_path / "more.json"
    path.write_text(json.dumps({"orders": [order]}))
    shop.load(path)
    buyer.refund("7000002", 4000, key=key)

    shop.load(path)

    assert buyer.get("/orders/7000002").json()["refunded"] == 4000


def test_times_relative_to_the_loading_become_moments(shop, buyer):
    order_id = buyer.order(placed="-10d", shipped="-3h", delivered="now")

    order = buyer.get(f"/orders/{order_id}").json()

    placed, shipped, delivered = (
        times.from_text(order[name]) for name in ("placed_at", "shipped_at", "delivered_at")
    )
    assert (delivered - shipped).total_seconds() == 3 * 60 * 60
    assert (delivered - placed).days == 10
    assert abs((times.now() - delivered).total_seconds()) < 60


def test_refunds_of_a_catalogue_count_but_are_no_effects_of_ours(shop, buyer):
    refund = {"amount": 1000, "created_at": "-3d", "reason": "damaged"}
    order_id = buyer.order(
        lines=[LINE | {"quantity": 2}],
        refunds=[refund],
    )

    order = buyer.get(f"/orders/{order_id}").json()

    assert (order["captured"], order["refunded"]) == (8000, 1000)
    assert shop.effects(order_id=order_id) == []


def bad(**changes):
    """The good order with something wrong."""
    return {"customers": [CUSTOMER], "orders": [ORDER, ORDER | {"id": "7002"} | changes]}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("{", "not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2"),
        ('{"orders": [NaN]}', "not valid JSON: NaN is not a JSON number"),
        ('{"orders": [], "orders": []}', "the same name stands twice"),
        ([], "catalogue: must be an object"),
        ({"order": []}, 'catalogue: has the unknown field "order"'),
        ({"orders": {}}, "orders: must be a list"),
        (bad(customer="nobody"), 'orders[1].customer: there is no customer "nobody"'),
        (bad(id="7001"), 'orders[1].id: "7001" stands here twice'),
        (bad(status="lost"), "orders[1].status: must be one of pending, processed"),
        (bad(status="delivered"), 'orders[1]: is delivered, so it needs "delivered": a time'),
        (bad(placed="yesterday"), "orders[1].placed: must be a time"),
        (bad(placed="2026-03-01T09:30:00"), "orders[1].placed: must be a time"),
        (bad(lines=[]), "orders[1].lines: must have at least one line"),
        (bad(lines=[LINE, {"title": "x"}]), 'orders[1].lines[1]: lacks "unit_price"'),
        (
            bad(lines=[LINE | {"unit_price": "40.00"}]),
            'orders[1].lines[0].unit_price: must be a positive whole number of minor units; got "40.00"',
        ),
        (bad(lines=[LINE | {"quantity": 0}]), "orders[1].lines[0].quantity: must be a whole"),
        (bad(lines=[LINE | {"id": "a"}] * 2), "orders[1].lines: has two lines with the same id"),
        (bad(currency="usd"), 'orders[1].currency: must be a currency code such as "USD"'),
        (bad(refunds=[{"amount": 4001}]), "orders[1].refunds: come to 4001, more than the 4000"),
        (
            bad(refunds=[{"amount": 1, "lines": [{"line_id": "7002-1", "quantity": 2}]}]),
            'orders[1].refunds: more of "7002-1" than was bought',
        ),
        (bad(notes=[{"author": "me", "text": "x"}]), "orders[1].notes[0].author: must be one of"),
        (bad(tracking={"carrier": "x"}), 'orders[1].tracking: lacks "tracking_number"'),
        (bad(shipping_address={"name": "x"}), 'orders[1].shipping_address: lacks "line1"'),
        (
            {"customers": [CUSTOMER | {"email": "gwen"}]},
            'customers[0].email: must be an e-mail address; got "gwen"',
        ),
        ({"customers": [CUSTOMER | {"id": "a b"}]}, "customers[0].id: must be letters"),
        ({"customers": [CUSTOMER | {"locale": "English"}]}, "customers[0].locale: must be like"),
    ],
)
def test_a_bad_file_is_refused_by_its_place_and_changes_nothing(tmp_path, data, told):
    path = tmp_path / "shop.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    db = Database(tmp_path / "data")

    with pytest.raises(catalogue.CatalogueError) as refused:
        catalogue.load_file(db, path, at=times.now())

    db.close()
    [problem] = refused.value.problems
    assert told in problem
    assert counts(tmp_path) == (0, 0)


def test_the_command_tells_a_bad_place_and_fails(tmp_path):
    done = run_load(tmp_path, bad(status="lost"))

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        f"orders_stub: {tmp_path}/shop.json was refused, nothing was changed:\n"
        "  orders[1].status: must be one of pending, processed, shipped, delivered, cancelled; "
        'got "lost"\n'
    )
    assert counts(tmp_path) == (0, 0)


def test_a_loading_that_breaks_half_way_leaves_nothing(tmp_path):
    path = tmp_path / "shop.json"
    path.write_text(json.dumps(bad()))
    db = Database(tmp_path / "data")
    db.run(
        "CREATE TRIGGER broken BEFORE INSERT ON orders WHEN NEW.id = '7002'"
        " BEGIN SELECT raise(ABORT, 'the disk is full'); END"
    )

    with pytest.raises(sqlite3.IntegrityError, match="the disk is full"):
        catalogue.load_file(db, path, at=times.now())

    db.close()
    assert counts(tmp_path) == (0, 0)


def test_of_two_writers_who_read_the_same_version_only_one_is_kept(tmp_path):
    run_load(tmp_path, {"customers": [CUSTOMER], "orders": [ORDER]})
    db = Database(tmp_path / "data")
    first, second = orders.get_any_order(db, "7001"), orders.get_any_order(db, "7001")
    first.status, second.status = "processed", "cancelled"
    orders.save(db, first)

    with pytest.raises(RefusalError) as refused:
        orders.save(db, second)

    assert refused.value.code == "version_mismatch"
    kept = orders.get_any_order(db, "7001")
    assert (kept.status, kept.version) == ("processed", 2)
    db.close()


def test_all_bad_places_are_told_at_once(tmp_path):
    many = [ORDER | {"id": str(n), "status": "lost"} for n in range(25)]

    done = run_load(tmp_path, {"customers": [CUSTOMER], "orders": many})

    assert done.stderr.count("status: must be one of") == 20
    assert "and 5 more" in done.stderr


def test_an_order_of_another_customer_is_never_taken_over(tmp_path):
    run_load(tmp_path, {"customers": [CUSTOMER], "orders": [ORDER]})
    other = CUSTOMER | {"id": "hugh", "email": "hugh@example.com"}

    done = run_load(tmp_path, {"customers": [other], "orders": [ORDER | {"customer": "hugh"}]})

    assert done.returncode == 1
    assert "order 7001: exists already, and belongs to another customer" in done.stderr
    assert counts(tmp_path) == (1, 1)


def test_a_missing_file_is_told(tmp_path):
    done = shop_command("load_shop", str(tmp_path / "none.json"), "--data", str(tmp_path / "data"))

    assert done.returncode == 1
    assert "none.json: No such file or directory" in done.stderr


def test_the_example_of_the_readme_loads(tmp_path):
    readme = (ROOT / "orders_stub" / "README.md").read_text()
    example = readme.split("```json catalogue\n")[1].split("```")[0]

    done = run_load(tmp_path, example)

    assert (done.returncode, done.stderr) == (0, "")
    assert counts(tmp_path) == (1, 2)
