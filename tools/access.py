"""The customer's own way into the shop. There is no other."""

from django.conf import settings

from accounts import services as accounts
from accounts.models import Customer
from tools.clients.shop import ShopClient


def client_for(customer: Customer) -> ShopClient:
    """A shop client that can see and change what this customer can, and nothing else.

    May call the shop for a fresh token, so never inside a transaction. Raises
    DelegationRevokedError or ShopUnavailableError (accounts.services).
    """
    token = accounts.access_token(customer_id=customer.pk)
    return ShopClient(customer.shop.base_url, token, timeout=settings.SHOP_TIMEOUT)
