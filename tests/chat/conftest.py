from collections.abc import Iterator

import pytest
from django.core.management import call_command

from agents.consumers import sockets
from tests.agents.conftest import model_process
from tests.agents.desk import Desk
from tests.model_server import ModelServer
from tests.shared_shop import SharedShop

__all__ = ["model_process"]


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    """Nobody has to wait three seconds to see that a ring was lost."""
    monkeypatch.setattr(sockets, "LOOK_SECONDS", 0.5)


@pytest.fixture
def desk(
    transactional_db, shared_shop: SharedShop, model_process: ModelServer, settings
) -> Iterator[Desk]:
    """A seeded demo beside a pretend shop and a pretend model, each as good as new."""
    settings.OPENAI_BASE_URL = model_process.url
    settings.SHOP_TIMEOUT = 1
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    with shared_shop.lend() as shop:
        call_command("seed_demo", shop_url=shop.url, verbosity=0)
        yield Desk(shop, model_process)
    model_process.clear()


@pytest.fixture
def ada(desk: Desk) -> str:
    """Ada's token."""
    return desk.shop.sign("ada")


@pytest.fixture
def bob(desk: Desk) -> str:
    return desk.shop.sign("bob")
