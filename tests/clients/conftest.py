"""One pretend shop for all tests of the clients; each test uses an order of its own."""

import pytest

from accounts import oauth
from tests.stubs import CLIENT, RunningShop, run_shop
from tools.clients.shop import ShopClient


@pytest.fixture(scope="session")
def running_shop(tmp_path_factory):
    with run_shop(tmp_path_factory.mktemp("clients") / "shop") as shop:
        yield shop


@pytest.fixture
def shop(running_shop: RunningShop):
    """The pretend shop without faults and with an empty list of calls."""
    running_shop.forget_calls()
    yield running_shop
    running_shop.clear_faults()


@pytest.fixture
def ada(shop: RunningShop) -> ShopClient:
    return client_of(shop, "ada")


@pytest.fixture
def bob(shop: RunningShop) -> ShopClient:
    return client_of(shop, "bob")


def client_of(shop: RunningShop, customer: str) -> ShopClient:
    """A client with a token that the shop gave for this customer."""
    tokens = oauth.exchange(oauth.Endpoint(shop.url, *CLIENT), shop.sign(customer))
    shop.forget_calls()
    return ShopClient(shop.url, tokens.access_token, timeout=3)
