"""One running pretend shop for a test session, and a fresh customer with orders for each test.

A `conftest.py` takes the fixtures by importing them:
`from tests.shop_floor import buyer, new_buyer, pretend_shop, shop_process, shop_row`.
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from accounts import oauth
from accounts.keys import encrypt
from accounts.models import Customer, Delegation, Shop
from orders_stub import catalogue, times
from orders_stub.database import Database
from tests.factories import ADDRESS, make_customer, make_shop
from tests.stubs import CLIENT, RunningShop, run_shop

_numbers = itertools.count(1)


@dataclass
class Buyer:
    """A customer whom both the pretend shop and our database know, with a delegation."""

    row: Customer
    shop: RunningShop
    folder: Path

    def order(self, *prices: int, **fields: Any) -> str:
        """A new order at the shop with a line for each price; gives its id.

        Delivered four days ago unless told otherwise.
        """
        order_id = f"{self.row.external_id}-{next(_numbers)}"
        order = {
            "id": order_id,
            "customer": self.row.external_id,
            "status": "delivered",
            "placed": "-9d",
            "lines": [{"title": "Thing", "unit_price": price} for price in prices or (4000,)],
            "shipping_address": ADDRESS,
        }
        status = fields.get("status", "delivered")
        if status in {"shipped", "delivered"}:
            order["shipped"] = "-7d"
        if status == "delivered":
            order["delivered"] = "-4d"
        load(self.shop, {"orders": [order | fields]}, self.folder)
        return order_id


def load(shop: RunningShop, data: dict[str, Any], folder: Path) -> None:
    """Load a catalogue beside the running shop, as its command does."""
    path = folder / "catalogue.json"
    path.write_text(json.dumps(data))
    db = Database(shop.data)
    try:
        catalogue.load_file(db, path, at=times.now())
    finally:
        db.close()


@pytest.fixture(scope="session")
def shop_process(tmp_path_factory):
    """The pretend shop, started once."""
    with run_shop(tmp_path_factory.mktemp("shop") / "data") as running:
        yield running


@pytest.fixture
def pretend_shop(shop_process: RunningShop):
    """The pretend shop, healthy at the start of every test."""
    shop_process.clear_faults()
    yield shop_process
    shop_process.clear_faults()


@pytest.fixture
def shop_row(db, pretend_shop: RunningShop, settings) -> Shop:
    """Our record of the pretend shop. Calls to it wait a second, no more."""
    settings.SHOP_TIMEOUT = 1
    client_id, secret = CLIENT
    return make_shop(
        base_url=pretend_shop.url,
        oauth_client_id=client_id,
        oauth_client_secret_encrypted=encrypt(secret),
    )


@pytest.fixture
def new_buyer(shop_row: Shop, pretend_shop: RunningShop, tmp_path: Path) -> Callable[..., Buyer]:
    """Makes customers with a delegation each."""

    def make() -> Buyer:
        name = f"buyer{next(_numbers)}"
        customer = {"id": name, "name": f"Buyer {name}", "email": f"{name}@example.com"}
        load(pretend_shop, {"customers": [customer]}, tmp_path)
        row = make_customer(shop_row, external_id=name, name=customer["name"])
        delegate(row, pretend_shop)
        return Buyer(row=row, shop=pretend_shop, folder=tmp_path)

    return make


@pytest.fixture
def buyer(new_buyer: Callable[..., Buyer]) -> Buyer:
    return new_buyer()


def delegate(customer: Customer, shop: RunningShop) -> Delegation:
    """The customer's leave to act for them, exchanged at the shop as the widget's sign-in does."""
    tokens = oauth.exchange(oauth.Endpoint(shop.url, *CLIENT), shop.sign(customer.external_id))
    return Delegation.objects.create(
        customer=customer,
        refresh_token_encrypted=encrypt(tokens.refresh_token),
        access_token_encrypted=encrypt(tokens.access_token),
        access_expires_at=timezone.now() + timedelta(seconds=tokens.expires_in),
    )
