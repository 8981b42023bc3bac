"""Shops, customers and signed identities for tests, written straight to the database."""

import base64
import itertools
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from accounts.keys import encrypt
from accounts.models import Customer, KeyAlgorithm, Role, Shop, SigningKey, User

_numbers = itertools.count(1)


def make_shop(**fields: Any) -> Shop:
    """A shop with a name of its own and nobody listening at its address."""
    n = next(_numbers)
    details = {
        "slug": f"shop-{n}",
        "name": f"Shop {n}",
        "base_url": "http://127.0.0.1:9",
        "oauth_client_id": "countersign",
        "oauth_client_secret_encrypted": encrypt("a secret"),
        "identity_issuer": f"issuer-{n}",
    }
    return Shop.objects.create(**details | fields)


def make_customer(shop: Shop | None = None, **fields: Any) -> Customer:
    details = {"external_id": f"customer-{next(_numbers)}", "name": "Ada Lovelace"}
    return Customer.objects.create(shop=shop or make_shop(), **details | fields)


def make_user(shop: Shop | None = None, **fields: Any) -> User:
    n = next(_numbers)
    return User.objects.create_user(f"user-{n}", **{"role": Role.STAFF, "shop": shop} | fields)


class Signer:
    """A shop's signing key, both halves of it; signs whatever it is told to."""

    def __init__(self, shop: Shop, kid: str = "key-1", **fields: Any) -> None:
        self.shop = shop
        self.kid = kid
        self.private = Ed25519PrivateKey.generate()
        point = self.private.public_key().public_bytes_raw()
        x = base64.urlsafe_b64encode(point).rstrip(b"=").decode()
        self.row = SigningKey.objects.create(
            shop=shop,
            kid=kid,
            algorithm=KeyAlgorithm.EDDSA,
            public_jwk={"kty": "OKP", "crv": "Ed25519", "x": x},
            **fields,
        )

    def claims(self, **changes: Any) -> dict[str, Any]:
        """An everyday identity; a change to None leaves the claim out."""
        now = int(time.time())
        everyday = {
            "iss": self.shop.identity_issuer,
            "aud": self.shop.identity_audience,
            "sub": "ada",
            "iat": now,
            "exp": now + 600,
            "jti": "one",
            "name": "Ada Lovelace",
            "email": "ada@example.com",
            "locale": "en-GB",
        }
        return {name: value for name, value in (everyday | changes).items() if value is not None}

    def sign(self, headers: dict[str, Any] | None = None, **changes: Any) -> str:
        return jwt.encode(
            self.claims(**changes),
            self.private,
            algorithm="EdDSA",
            headers={"kid": self.kid} | (headers or {}),
        )
