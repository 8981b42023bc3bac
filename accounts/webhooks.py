"""Is it really the shop that tells us something? Standard Webhooks: signed, and at most 5 minutes old.

Every secret of a shop that is not retired counts, so that it can be replaced without a gap.
"""

import base64
import binascii
import secrets
from collections.abc import Mapping
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Q
from standardwebhooks import Webhook, WebhookVerificationError

from accounts.keys import decrypt, encrypt
from accounts.models import Shop, WebhookSecret
from accounts.validators import is_key_id
from audit import services as audit

PREFIX = "whsec_"
MIN_BYTES, MAX_BYTES = 24, 64
HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")
# Of no shop: what claims to come from one that is not there is checked all the same.
_NOBODYS = f"{PREFIX}{base64.b64encode(secrets.token_bytes(32)).decode()}"


class NotSignedError(Exception):
    """No secret of such a shop has signed this, or it is too old. One answer for every cause."""


class BadSecretError(Exception):
    """This cannot be a shop's webhook secret; nothing was written."""


def authenticate(*, slug: str, headers: Mapping[str, str], body: bytes, now: datetime) -> Shop:
    """The shop that has signed exactly these bytes. Raises NotSignedError, and has written nothing.

    `headers` are looked up in lower case; the three of Standard Webhooks are needed.
    """
    shop = Shop.objects.filter(slug=slug).first()
    known = list_webhook_secrets(shop_id=shop.pk, now=now) if shop else []
    given = {name: headers.get(name, "") for name in HEADERS}
    signed = [_has_signed(secret, body, given) for secret in known or [_NOBODYS]]
    if shop is None or not any(signed):
        raise NotSignedError
    return shop


def list_webhook_secrets(*, shop_id: int, now: datetime) -> list[str]:
    """The shop's secrets that count now."""
    in_use = WebhookSecret.objects.filter(
        Q(retired_at__isnull=True) | Q(retired_at__gt=now), shop_id=shop_id, active_from__lte=now
    )
    return [decrypt(row.secret_encrypted) for row in in_use.order_by("pk")]


def new_webhook_secret() -> str:
    """A fresh secret in the form that Standard Webhooks gives them."""
    return f"{PREFIX}{base64.b64encode(secrets.token_bytes(32)).decode()}"


@transaction.atomic
def add_webhook_secret(
    *, shop_id: int, name: str, secret: str, actor: str, now: datetime
) -> WebhookSecret:
    """Believe what is signed with this secret from now on; stored encrypted.

    Raises BadSecretError: not `whsec_` and 24 to 64 bytes of base64, or a name that the shop has used.
    """
    if not is_key_id(name):
        raise BadSecretError("A secret needs a name of letters, digits and . _ : = + -")
    if not MIN_BYTES <= _length(secret) <= MAX_BYTES:
        raise BadSecretError(
            f"A webhook secret is {PREFIX} and {MIN_BYTES} to {MAX_BYTES} bytes of base64"
        )
    row = WebhookSecret(
        shop_id=shop_id, name=name, secret_encrypted=encrypt(secret), active_from=now
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as exc:
        raise BadSecretError("The shop has a secret with this name already") from exc
    _record(shop_id, name, "webhook_secret.added", actor, now)
    return row


@transaction.atomic
def retire_webhook_secret(
    *, shop_id: int, name: str, at: datetime, actor: str, now: datetime
) -> None:
    """Believe nothing signed with this secret after `at`. Raises BadSecretError if none is in use."""
    in_use = WebhookSecret.objects.filter(shop_id=shop_id, name=name, retired_at__isnull=True)
    if in_use.update(retired_at=at) != 1:
        raise BadSecretError("There is no such secret in use")
    _record(shop_id, name, "webhook_secret.retired", actor, now)


def _has_signed(secret: str, body: bytes, headers: dict[str, str]) -> bool:
    try:
        Webhook(secret).verify(body, headers, json_parse=False)
    except (WebhookVerificationError, ValueError):
        # ValueError: a signature or a body that cannot even be decoded.
        return False
    return True


def _length(secret: str) -> int:
    """How many bytes the secret has; 0 when it is none."""
    if not secret.startswith(PREFIX):
        return 0
    try:
        return len(base64.b64decode(secret.removeprefix(PREFIX), validate=True))
    except (binascii.Error, ValueError):
        return 0


def _record(shop_id: int, name: str, action: str, actor: str, now: datetime) -> None:
    audit.record(
        actor=actor,
        action=action,
        subject=f"shop:{shop_id}",
        at=now,
        shop_id=shop_id,
        data={"name": name},
    )
