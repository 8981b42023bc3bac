"""The keys with which shops sign: adding and retiring them, with an overlap in between."""

import base64
import re
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from accounts.keys import encrypt
from accounts.models import KeyAlgorithm, SigningKey
from accounts.validators import is_key_id
from audit import services as audit

MIN_SECRET = 32  # bytes, as RFC 7518, 3.2 asks for HS256


class BadKeyError(Exception):
    """This cannot be a shop's signing key; nothing was written."""


def add_public_key(*, shop_id: int, jwk: dict[str, Any], actor: str, now: datetime) -> SigningKey:
    """Accept identities signed with this Ed25519 key (a JWK with its `kid`) from now on.

    Keeps the public members only. Raises BadKeyError, also for a key id that the shop has used.
    """
    return _add(
        SigningKey(
            shop_id=shop_id,
            kid=str(jwk.get("kid", "")),
            algorithm=KeyAlgorithm.EDDSA,
            public_jwk=_public_members(jwk),
            active_from=now,
        ),
        actor,
        now,
    )


def add_secret(*, shop_id: int, kid: str, secret: str, actor: str, now: datetime) -> SigningKey:
    """Accept identities signed with this shared secret (HS256) from now on; stored encrypted.

    Raises BadKeyError: a secret under 32 bytes, or a key id that the shop has used.
    """
    if len(secret.encode()) < MIN_SECRET:
        raise BadKeyError(f"A shared secret needs at least {MIN_SECRET} bytes")
    return _add(
        SigningKey(
            shop_id=shop_id,
            kid=kid,
            algorithm=KeyAlgorithm.HS256,
            secret_encrypted=encrypt(secret),
            active_from=now,
        ),
        actor,
        now,
    )


@transaction.atomic
def retire_key(*, shop_id: int, kid: str, at: datetime, actor: str, now: datetime) -> None:
    """Accept no identity signed with this key after `at`: leave time for tokens on their way.

    Raises BadKeyError when the shop has no such key in use.
    """
    retired = SigningKey.objects.filter(shop_id=shop_id, kid=kid, retired_at__isnull=True)
    if retired.update(retired_at=at) != 1:
        raise BadKeyError("There is no such key in use")
    _record(shop_id, kid, "signing_key.retired", actor, now)


def _add(key: SigningKey, actor: str, now: datetime) -> SigningKey:
    if not is_key_id(key.kid):
        raise BadKeyError("A key needs an id of letters, digits and . _ : = + -")
    try:
        with transaction.atomic():
            key.save(force_insert=True)
            _record(key.shop_id, key.kid, "signing_key.added", actor, now)
    except IntegrityError as exc:
        raise BadKeyError("The shop has a key with this id already") from exc
    return key


def _public_members(jwk: dict[str, Any]) -> dict[str, str]:
    """Type, curve and point: a private part that was sent by mistake is not kept."""
    point = jwk.get("x")
    if jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519" or not isinstance(point, str):
        raise BadKeyError("An Ed25519 key is needed")
    if re.fullmatch(r"[A-Za-z0-9_-]{43}", point) is None:
        raise BadKeyError("The key's point is not 32 bytes of base64url")
    if len(base64.urlsafe_b64decode(point + "=")) != 32:
        raise BadKeyError("The key's point is not 32 bytes")
    return {"kty": "OKP", "crv": "Ed25519", "x": point}


def _record(shop_id: int, kid: str, action: str, actor: str, now: datetime) -> None:
    audit.record(
        actor=actor,
        action=action,
        subject=f"shop:{shop_id}",
        at=now,
        shop_id=shop_id,
        data={"kid": kid},
    )
