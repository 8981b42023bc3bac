"""The customer's own way into the shop. There is no other."""

from collections.abc import Callable
from typing import TypeVar

from django.conf import settings

from accounts import services as accounts
from accounts.models import Customer
from tools import adapters
from tools.clients.errors import UnauthorizedError
from tools.clients.shop import ShopClient
from tools.outside import leave_database

T = TypeVar("T")


def client_for(customer: Customer, *, refused: str = "") -> ShopClient:
    """A shop client that can see and change what this customer can, and nothing else.

    May call the shop for a fresh token, so never inside a transaction; returns with no database
    connection held. `refused` is a token that the shop does not take any more. Raises
    DelegationRevokedError or ShopUnavailableError (accounts.services); `ask` says when to call.
    """
    leave_database()
    token = accounts.access_token(customer_id=customer.pk, refused=refused)
    leave_database()
    return ShopClient(customer.shop.base_url, token, timeout=settings.SHOP_TIMEOUT)


def ask(customer: Customer, read: Callable[[ShopClient], T]) -> T:
    """Read at the shop as this customer, holding no database connection.

    While the shop is known not to answer, nobody calls it: RestingError. A token that the shop no longer takes is replaced once: it may have forgotten its tokens, and
    only its refusal of a fresh one says that our leave to act is over. Raises what `client_for`
    and the client raise.
    """
    with adapters.through(customer.shop):
        client = client_for(customer)
        try:
            return read(client)
        except UnauthorizedError as exc:
            if exc.status != 401:
                raise
        return read(client_for(customer, refused=client.token))
