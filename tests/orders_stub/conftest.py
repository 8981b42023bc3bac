"""One pretend shop for all these tests; every test brings a customer and orders of its own."""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from orders_stub import catalogue, times
from orders_stub.database import Database
from tests.stubs import CLIENT, RunningShop, run_shop

NUMBERS = itertools.count(50_001)
EXCHANGE = {
    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
    "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
}
ADDRESS = {
    "name": "Gwen Arden",
    "line1": "1 Mill Street",
    "line2": "",
    "city": "Bath",
    "region": "",
    "postal_code": "BA1 1AA",
    "country": "GB",
}


@dataclass
class Buyer:
    """A customer of the running shop with an access token, as the agent would hold it."""

    shop: RunningShop
    id: str
    folder: Path
    tokens: dict[str, Any] = field(default_factory=dict)

    def sign_in(self) -> None:
        """Exchange a fresh identity for a fresh delegation."""
        form = EXCHANGE | {"subject_token": self.shop.sign(self.id)}
        response = self.shop.http.post("/oauth/token", data=form, auth=CLIENT)
        assert response.status_code == 200, response.text
        self.tokens = response.json()

    def order(self, *prices: int, **fields: Any) -> str:
        """A new order with one line for each price; gives its id. Delivered unless told otherwise."""
        lines = [{"title": "Thing", "unit_price": price} for price in prices or (4000,)]
        order: dict[str, Any] = {
            "id": str(next(NUMBERS)),
            "customer": self.id,
            "status": "delivered",
            "placed": "-9d",
            "shipped": "-7d",
            "delivered": "-4d",
            "lines": lines,
        }
        if fields.get("status", "delivered") in {"pending", "processed", "cancelled"}:
            order |= {"shipped": None, "delivered": None}
        load(self.shop, {"orders": [order | {"shipping_address": ADDRESS} | fields]}, self.folder)
        return str(order["id"])

    def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Ask the orders API with this customer's token."""
        headers = {"Authorization": f"Bearer {self.tokens['access_token']}"}
        headers |= options.pop("headers", {})
        return self.shop.http.request(method, f"/api{path}", headers=headers, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        """Read something."""
        return self.call("GET", path, **options)

    def refund(
        self, order_id: str, amount: int = 4000, *, key: str, **fields: Any
    ) -> httpx.Response:
        """Ask for a refund."""
        body = {"amount": amount, "currency": "USD", "lines": [], "reason": "damaged"} | fields
        path = f"/orders/{order_id}/refunds"
        return self.call("POST", path, json=body, headers={"Idempotency-Key": key})

    def cancel(self, order_id: str, *, key: str, version: int = 1) -> httpx.Response:
        """Ask for a cancellation."""
        headers = {"Idempotency-Key": key, "If-Match": f'"{version}"'}
        body = {"reason": "no_longer_needed"}
        return self.call("POST", f"/orders/{order_id}/cancel", json=body, headers=headers)

    def move(self, order_id: str, address: Any, *, key: str, version: int = 1) -> httpx.Response:
        """Ask for another address."""
        headers = {"Idempotency-Key": key, "If-Match": f'"{version}"'}
        return self.call("PUT", f"/orders/{order_id}/address", json=address, headers=headers)


def wait_for_call(buyer: Buyer, order_id: str) -> None:
    """Wait until the shop has received a call about this order."""
    deadline = time.monotonic() + 5
    while not buyer.shop.calls(order_id=order_id):
        assert time.monotonic() < deadline, "the call never arrived"
        time.sleep(0.01)


def run_sql(shop: RunningShop, sql: str, *values: Any) -> int:
    """Change the running shop's data behind its back; gives the number of rows changed."""
    db = Database(shop.data)
    try:
        return db.run(sql, *values)
    finally:
        db.close()


def load(shop: RunningShop, data: dict[str, Any], folder: Path) -> catalogue.Loaded:
    """Load a catalogue beside the running shop, as the command does."""
    path = folder / "catalogue.json"
    path.write_text(json.dumps(data))
    db = Database(shop.data)
    try:
        return catalogue.load_file(db, path, at=times.now())
    finally:
        db.close()


@pytest.fixture(scope="session")
def shop_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningShop]:
    """The pretend shop, started once."""
    with run_shop(tmp_path_factory.mktemp("shop") / "data") as running:
        yield running


@pytest.fixture
def shop(shop_process: RunningShop) -> Iterator[RunningShop]:
    """The pretend shop, healthy at the start of every test, with nobody signed in."""
    shop_process.clear_faults()
    shop_process.http.cookies.clear()
    yield shop_process
    shop_process.clear_faults()


@pytest.fixture
def new_buyer(shop: RunningShop, tmp_path: Path) -> Callable[[], Buyer]:
    """Makes customers with a token each."""

    def make() -> Buyer:
        number = next(NUMBERS)
        customer = {
            "id": f"buyer-{number}",
            "name": f"Buyer {number}",
            "email": f"buyer-{number}@example.com",
        }
        load(shop, {"customers": [customer]}, tmp_path)
        buyer = Buyer(shop=shop, id=f"buyer-{number}", folder=tmp_path)
        buyer.sign_in()
        return buyer

    return make


@pytest.fixture
def buyer(new_buyer: Callable[[], Buyer]) -> Buyer:
    """A customer of this test's own."""
    return new_buyer()


@pytest.fixture
def key() -> str:
    """An idempotency key that no other test uses."""
    return f"task-{next(NUMBERS)}-step-6"
