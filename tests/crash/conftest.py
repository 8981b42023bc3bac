from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connections

from tests.agents.conftest import model_process
from tests.crash.world import World, make_world
from tests.model_server import ModelServer
from tests.postbox import run_postbox
from tests.stubs import run_shop
from tools import history

__all__ = ["model_process"]


@pytest.fixture(scope="module")
def _committed_rows(django_db_setup, django_db_blocker) -> Iterator[None]:
    """Rows that are really committed, for as long as the module lasts; nothing is left of them."""
    with django_db_blocker.unblock():
        yield
        connections.close_all()
        call_command("flush", interactive=False, verbosity=0)


@pytest.fixture
def _django_db_helper(_committed_rows: None) -> None:
    """What `pytest.mark.django_db` asks for: here no test empties the tables, the module does."""


@pytest.fixture(scope="module")
def shared_world(
    _committed_rows: None, tmp_path_factory: pytest.TempPathFactory, model_process: ModelServer
) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("crash")
    with (
        run_shop(folder / "shop") as shop,
        run_postbox() as postbox,
        pytest.MonkeyPatch.context() as patch,
        make_world(shop, model_process, postbox, patch) as world,
    ):
        history.watch()  # as beat does: the first look of all is remembered, which is a commit more
        yield world


@pytest.fixture
def world(shared_world: World) -> Iterator[World]:
    """The module's world with healthy stand-ins and an empty queue."""
    shared_world.shop.clear_faults()
    shared_world.model.clear()
    shared_world.queue.messages.clear()
    shared_world.postbox.reset()
    yield shared_world
    shared_world.shop.clear_faults()
    shared_world.model.clear()
