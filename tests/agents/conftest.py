from collections.abc import Iterator

import pytest
from django.core.management import call_command

from tests.agents.desk import Desk
from tests.model_server import ModelServer, run_model
from tests.shared_shop import SharedShop


@pytest.fixture(scope="session")
def model_process() -> Iterator[ModelServer]:
    with run_model() as model:
        yield model


@pytest.fixture
def desk(db, shared_shop: SharedShop, model_process: ModelServer, settings) -> Iterator[Desk]:
    """A seeded demo with a shop of its own, and the pretend model without faults or scripts."""
    settings.OPENAI_BASE_URL = model_process.url
    settings.SHOP_TIMEOUT = 1
    with shared_shop.lend() as shop:
        call_command("seed_demo", shop_url=shop.url, verbosity=0)
        yield Desk(shop, model_process)
    model_process.clear()
