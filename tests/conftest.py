"""What every test stands on: its own Redis database, no network beyond this machine, a browser."""

import ipaddress
import os
import shutil
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from whitenoise.middleware import WhiteNoiseMiddleware

from config.celery import app
from script.lib.checks import CHROMIUM
from tests.browser import pictures
from tests.deliveries import deliveries
from tests.flush import django_db_setup
from tests.live import Product, running_product
from tests.shared_shop import SharedShop

__all__ = ["django_db_setup"]


def pytest_addoption(parser: pytest.Parser) -> None:
    told = "deliver every message to a worker twice, in an order that this number draws"
    parser.addoption("--deliveries", type=int, metavar="SEED", help=told)
    told = "keep a picture of each page that a browser test looks at, in that test's folder"
    parser.addoption("--pictures", action="store_true", help=told)


def pytest_configure(config: pytest.Config) -> None:
    """Give each parallel worker a Redis database of its own, as pytest-django does for PostgreSQL.

    Their rows have equal ids, and so would their channel groups and queues.
    """
    # Real password hashing costs a second for each seeded test and proves nothing here.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # One approver of the tests decides more in a minute than a person should; see tests of the pace.
    settings.APPROVALS_IN_A_ROW = 1_000_000
    seed = config.getoption("--deliveries")
    if seed is not None:
        deliveries.shuffle(seed)
    if config.getoption("--pictures"):
        pictures.want()
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if not worker:
        return
    base, _, first = settings.REDIS_URL.rpartition("/")
    url = f"{base}/{(int(first) + int(worker.removeprefix('gw'))) % 16}"
    os.environ["REDIS_URL"] = url  # for the programs that tests start
    settings.REDIS_URL = settings.CELERY_BROKER_URL = app.conf.broker_url = url
    layer: dict[str, Any] = settings.CHANNEL_LAYERS["default"]
    layer["CONFIG"]["hosts"] = [url]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Last what leaves something behind that lasts until the end of this process.

    A product, once it runs, goes round every second, which costs a twelfth of a core. And once a
    browser runs, its event loop never leaves this process's thread: those tests come after all.
    """
    items.sort(key=_leaves_behind)


def _leaves_behind(item: pytest.Item) -> tuple[bool, bool]:
    has_product = "product" in getattr(item, "fixturenames", ())
    return "tests/browser/" in item.nodeid, has_product


@pytest.fixture(autouse=True, scope="session")
def _only_this_machine():
    """Fail whatever test opens a connection to another machine."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def require_loopback(address: object) -> None:
        if not isinstance(address, tuple):
            return  # a Unix socket
        host = address[0]
        try:
            near = ipaddress.ip_address(host).is_loopback
        except ValueError:
            near = host == "localhost"
        if not near:
            raise AssertionError(
                f"a test tried to reach {host}: only this machine is there in tests"
            )

    def checked_connect(self: socket.socket, address: Any) -> None:
        require_loopback(address)
        return connect(self, address)

    def checked_connect_ex(self: socket.socket, address: Any) -> int:
        require_loopback(address)
        return connect_ex(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", checked_connect)
        patch.setattr(socket.socket, "connect_ex", checked_connect_ex)
        yield


@pytest.fixture(autouse=True, scope="session")
def _static_files_found_once():
    """Look the static files up once, as a web process does, and not for every test client."""
    look_up = WhiteNoiseMiddleware.add_files_from_finders
    found: dict[tuple[str, int | None], dict[str, Any]] = {}

    def add(self: WhiteNoiseMiddleware) -> None:
        assert not self.files, "this process has more static files than those of the apps"
        kind = (self.static_prefix, self.max_age)
        if kind not in found:
            look_up(self)
            found[kind] = self.files
        self.files = dict(found[kind])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", add)
        yield


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The whole product, started once for the live and browser tests of this process."""
    with running_product(tmp_path_factory.mktemp("product") / "data") as running:
        yield running


@pytest.fixture(scope="session")
def shared_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedShop]:
    """One pretend shop after another, each as good as new when it is lent."""
    shop = SharedShop(tmp_path_factory.mktemp("shops"))
    yield shop
    shop.close()


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The installed Chromium, for playwright's `executable_path`."""
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    assert found, "script/test installs Chromium, or says how to"
    return found
