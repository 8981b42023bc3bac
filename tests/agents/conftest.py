from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.agents.desk import Desk
from tests.model_server import ModelServer, run_model
from tests.stubs import run_shop


@pytest.fixture(scope="session")
def model_process() -> Iterator[ModelServer]:
    with run_model() as model:
        yield model


@pytest.fixture
def desk(db, tmp_path: Path, model_process: ModelServer, settings) -> Iterator[Desk]:
    """A seeded demo with a shop of its own, and the pretend model without faults or scripts."""
    settings.OPENAI_BASE_URL = model_process.url
    settings.SHOP_TIMEOUT = 1
    with run_shop(tmp_path / "shop") as shop:
        call_command("seed_demo", shop_url=shop.url, verbosity=0)
        yield Desk(shop, model_process)
    model_process.clear()
