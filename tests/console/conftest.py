from collections.abc import Callable

import pytest
from django.test import Client

from accounts.models import Role, Shop, User
from tests.audit.conftest import folder, sent
from tests.console.desk import make_person
from tests.factories import make_shop
from tests.shop_floor import buyer, new_buyer, pretend_shop, shop_process, shop_row

__all__ = ["buyer", "folder", "new_buyer", "pretend_shop", "sent", "shop_process", "shop_row"]


@pytest.fixture
def shop(db) -> Shop:
    return make_shop(name="Juniper & Clay")


@pytest.fixture
def approver(shop: Shop) -> User:
    return make_person(shop, username="dana", is_approver=True)


@pytest.fixture
def sign_in() -> Callable[[User], Client]:
    """A browser of its own for each person, with CSRF checks on as in life."""

    def sign(user: User) -> Client:
        client = Client(enforce_csrf_checks=True)
        client.force_login(user, backend="accounts.backends.ConsoleBackend")
        return client

    return sign


@pytest.fixture
def auditor(shop: Shop) -> User:
    return make_person(shop, username="audrey", role=Role.AUDITOR)
