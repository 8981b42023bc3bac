"""The pretend shop, and our own records of it and of Ada."""

import pytest
from django.utils import timezone

from accounts import demo, oauth
from accounts.identity import verify_identity
from accounts.models import Customer, Shop
from tests.stubs import CLIENT, RunningShop, run_shop


@pytest.fixture(scope="session")
def running_shop(tmp_path_factory):
    with run_shop(tmp_path_factory.mktemp("accounts") / "shop") as shop:
        yield shop


@pytest.fixture
def pretend_shop(running_shop: RunningShop):
    """The pretend shop without faults, without blocked customers, with an empty list of calls."""
    running_shop.forget_calls()
    yield running_shop
    running_shop.clear_faults()
    running_shop.block("ada", blocked=False)


@pytest.fixture(autouse=True)
def _quick_passwords(settings):
    """Hashing is slow on purpose; here it would only be slow."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def shop(db, pretend_shop: RunningShop) -> Shop:
    """Our record of the pretend shop."""
    at = demo.DemoShop(pretend_shop.url, *CLIENT)
    shop = demo.seed(at=at, jwks=oauth.fetch_jwks(pretend_shop.url), now=timezone.now())
    pretend_shop.forget_calls()
    return shop


@pytest.fixture
def ada_token(pretend_shop: RunningShop) -> str:
    return pretend_shop.sign("ada")


@pytest.fixture
def ada(shop: Shop, ada_token: str) -> Customer:
    return Customer.objects.get(pk=verify_identity(ada_token).customer_id)
