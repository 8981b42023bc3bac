"""Who the customer is, signed by the shop: short JWTs under an Ed25519 key of its own."""

import base64
import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from orders_stub import times
from orders_stub.database import Database

AUDIENCE = "countersign"
LIFETIME = timedelta(minutes=10)
LEEWAY = timedelta(seconds=5)
SETTING = "identity_key"


class Signer:
    """The shop's key pair, made at the first start and kept in the shop's own database."""

    def __init__(self, db: Database, *, issuer: str) -> None:
        self._db = db
        self._issuer = issuer
        self._private = _load_key(db)
        public = self._private.public_key()
        raw = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
        self._public = public
        self._jwk = {"crv": "Ed25519", "kty": "OKP", "x": _base64url(raw)}
        self.kid = _thumbprint(self._jwk)

    def jwks(self) -> dict[str, Any]:
        """The public keys, as `/.well-known/jwks.json` gives them."""
        return {"keys": [self._jwk | {"kid": self.kid, "use": "sig", "alg": "EdDSA"}]}

    def sign(
        self,
        customer_id: str,
        *,
        at: datetime,
        lifetime: timedelta = LIFETIME,
        claims: dict[str, Any] | None = None,
    ) -> tuple[str, datetime]:
        """A signed identity of a customer and the moment it runs out.

        `claims` replace or (with null) remove claims, for tests of those who verify.
        Raises LookupError when there is no such customer.
        """
        customer = self._db.row("SELECT * FROM customers WHERE id = ?", customer_id)
        if customer is None:
            raise LookupError(customer_id)
        expires_at = at + lifetime
        all_claims: dict[str, Any] = {
            "iss": self._issuer,
            "aud": AUDIENCE,
            "sub": customer_id,
            "iat": int(at.timestamp()),
            "exp": int(expires_at.timestamp()),
            "jti": secrets.token_urlsafe(16),
            "name": customer["name"],
            "email": customer["email"],
            "locale": customer["locale"],
        }
        all_claims |= claims or {}
        kept = {name: value for name, value in all_claims.items() if value is not None}
        token = jwt.encode(kept, self._private, algorithm="EdDSA", headers={"kid": self.kid})
        return token, expires_at

    def verify(self, token: str) -> str | None:
        """The customer whom a token of ours names, or None when it is not good (any more)."""
        try:
            if jwt.get_unverified_header(token).get("kid") != self.kid:
                return None
            claims = jwt.decode(
                token,
                self._public,
                algorithms=["EdDSA"],
                audience=AUDIENCE,
                issuer=self._issuer,
                leeway=LEEWAY,
                options={"require": ["iss", "aud", "sub", "iat", "exp", "jti"]},
            )
        except jwt.InvalidTokenError:
            return None
        return str(claims["sub"])


def _load_key(db: Database) -> Ed25519PrivateKey:
    fresh = Ed25519PrivateKey.generate().private_bytes_raw().hex()
    with db.transaction():
        db.run("INSERT OR IGNORE INTO settings (name, value) VALUES (?, ?)", SETTING, fresh)
        row = db.row("SELECT value FROM settings WHERE name = ?", SETTING)
    seed = row["value"] if row is not None else fresh
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(seed))


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _thumbprint(jwk: dict[str, str]) -> str:
    """RFC 7638: the same key has the same name everywhere."""
    canonical = "{" + ",".join(f'"{name}":"{jwk[name]}"' for name in sorted(jwk)) + "}"
    return _base64url(hashlib.sha256(canonical.encode()).digest())


def get_customer(db: Database, customer_id: str) -> dict[str, str] | None:
    """A customer as the API shows them."""
    row = db.row("SELECT id, name, email, locale FROM customers WHERE id = ?", customer_id)
    return None if row is None else dict(row)


def is_blocked(db: Database, customer_id: str) -> bool:
    """Whether the shop has closed this customer's account for now."""
    row = db.row("SELECT blocked FROM customers WHERE id = ?", customer_id)
    return row is None or bool(row["blocked"])


class Sessions:
    """Who is signed in at the storefront. Only digests of the cookies are kept."""

    LIFETIME = timedelta(hours=12)

    def __init__(self, db: Database) -> None:
        self._db = db

    def start(self, customer_id: str, *, at: datetime) -> str:
        """Sign a customer in and give the cookie's value."""
        token = secrets.token_urlsafe(32)
        self._db.run("DELETE FROM sessions WHERE expires_at <= ?", times.to_text(at))
        self._db.run(
            "INSERT INTO sessions (digest, customer_id, expires_at) VALUES (?, ?, ?)",
            digest(token),
            customer_id,
            times.to_text(at + self.LIFETIME),
        )
        return token

    def customer(self, token: str | None, *, at: datetime) -> dict[str, str] | None:
        """The customer signed in by this cookie; None also for blocked customers."""
        row = self._db.row(
            "SELECT customer_id FROM sessions WHERE digest = ? AND expires_at > ?",
            digest(token or ""),
            times.to_text(at),
        )
        if row is None or is_blocked(self._db, row["customer_id"]):
            return None
        return get_customer(self._db, row["customer_id"])

    def end(self, token: str | None) -> None:
        """Sign out: the cookie is worth nothing afterwards, wherever it was copied to."""
        self._db.run("DELETE FROM sessions WHERE digest = ?", digest(token or ""))


def digest(secret: str) -> str:
    """How a random secret is kept."""
    return hashlib.sha256(secret.encode()).hexdigest()
