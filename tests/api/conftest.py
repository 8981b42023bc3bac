"""Two customers of one shop, one of another, and their staff."""

from collections.abc import Callable

import pytest
from django.utils import timezone

from accounts import oauth
from accounts.keyring import add_public_key
from accounts.models import Role, Shop, User
from tests.accounts.factories import Signer, make_user
from tests.api.clients import Api, delegate
from tests.factories import make_approver, make_customer, make_shop
from tests.shop_floor import pretend_shop, shop_process, shop_row
from tests.stubs import RunningShop

__all__ = ["pretend_shop", "shop_process", "shop_row"]


@pytest.fixture(autouse=True)
def _usual_limits(settings):
    """Counters in Redis outlive a test; only the tests of the limits lower them."""
    settings.API_READS_PER_MINUTE = settings.API_WRITES_PER_MINUTE = 100_000


@pytest.fixture
def signer(db) -> Signer:
    return Signer(make_shop(locale="en", tasks_per_minute_per_customer=1000))


@pytest.fixture
def other_signer(db) -> Signer:
    return Signer(make_shop(locale="en", tasks_per_minute_per_customer=1000))


def _customer(signer: Signer, external_id: str) -> Api:
    row = make_customer(signer.shop, external_id=external_id, name=external_id.title())
    delegate(row)
    return Api.customer(row, signer)


@pytest.fixture
def ada(signer: Signer) -> Api:
    return _customer(signer, "ada")


@pytest.fixture
def bob(signer: Signer) -> Api:
    return _customer(signer, "bob")


@pytest.fixture
def eve(other_signer: Signer) -> Api:
    """A customer of another shop, known there by Ada's name."""
    return _customer(other_signer, "ada")


@pytest.fixture
def dana(signer: Signer) -> User:
    return make_approver(signer.shop)


@pytest.fixture
def staff(dana: User) -> Api:
    return Api.staff(dana)


@pytest.fixture
def other_staff(other_signer: Signer) -> Api:
    return Api.staff(make_approver(other_signer.shop))


@pytest.fixture
def auditor(signer: Signer) -> Api:
    return Api.staff(make_user(signer.shop, role=Role.AUDITOR))


@pytest.fixture
def nobody(db) -> Api:
    return Api()


@pytest.fixture
def admin_api(db) -> Api:
    """An admin of the whole deployment."""
    return Api.staff(make_approver(None))


@pytest.fixture
def sign_for_shop(shop_row: Shop, pretend_shop: RunningShop) -> Callable[[str], Api]:
    """Customers of the pretend shop, with the identity that it signs itself."""
    Shop.objects.filter(pk=shop_row.pk).update(identity_issuer="demo")
    for jwk in oauth.fetch_jwks(pretend_shop.url):
        add_public_key(shop_id=shop_row.pk, jwk=jwk, actor="system", now=timezone.now())
    return lambda name: Api(headers={"Authorization": f"Bearer {pretend_shop.sign(name)}"})
