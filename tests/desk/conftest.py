import pytest

from tests.desk.telling import Teller
from tests.shop_floor import buyer, new_buyer, pretend_shop, shop_process, shop_row

__all__ = ["buyer", "new_buyer", "pretend_shop", "shop_process", "shop_row"]


@pytest.fixture
def teller(shop_row) -> Teller:
    """The shop, with a secret that we know of, and our door."""
    return Teller.of(shop_row)
