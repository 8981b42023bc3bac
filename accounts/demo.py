"""The demo's shop and people. Made once; a second time only what has changed is written."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from accounts.backends import DEMO_PASSWORD
from accounts.identity import MAX_LIFETIME
from accounts.keyring import add_public_key, retire_key
from accounts.keys import decrypt, encrypt
from accounts.models import Role, Shop, SigningKey, User, WebhookSecret, WidgetKey
from accounts.signals import demo_seeded
from accounts.webhooks import add_webhook_secret, retire_webhook_secret
from audit import services as audit

SLUG = "demo"
ACTOR = "system"


class NotADemoError(Exception):
    """Demo data has no place outside the demo; nothing was written."""


@dataclass(frozen=True)
class DemoShop:
    """Where the pretend shop is and how it knows us."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    webhook_secret: str = field(default="", repr=False)


def require_demo() -> None:
    """Raises NotADemoError outside the demo."""
    if not settings.DEMO:
        raise NotADemoError("Demo data needs COUNTERSIGN_DEMO=true")


def seed(*, at: DemoShop, jwks: list[dict[str, Any]], now: datetime) -> Shop:
    """The demo shop with its keys, widget and console users, then news of it (demo_seeded).

    What somebody changed by hand since (names, limits, passwords) stays as it is.
    Raises NotADemoError outside the demo.
    """
    require_demo()
    with transaction.atomic(durable=True):
        shop = _seed_shop(at, now)
        _seed_keys(shop, jwks, now)
        if at.webhook_secret:
            _seed_webhook_secret(shop, at.webhook_secret, now)
        WidgetKey.objects.get_or_create(key=SLUG, defaults={"shop": shop})
        _seed_people(shop, now)
    demo_seeded.send(sender=Shop, shop_id=shop.pk)
    return shop


def _seed_shop(at: DemoShop, now: datetime) -> Shop:
    wanted: dict[str, Any] = {
        "base_url": at.url,
        "allowed_origins": _origins(at.url),
        "oauth_client_id": at.client_id,
    }
    shop, created = Shop.objects.select_for_update().get_or_create(
        slug=SLUG,
        defaults={
            **wanted,
            "name": "Juniper & Clay",
            "mail_from": "care@juniper-and-clay.example",
            "time_zone": "America/New_York",
            "identity_issuer": SLUG,
            "oauth_client_secret_encrypted": encrypt(at.client_secret),
        },
    )
    if created:
        _record("shop.created", shop, now)
        return shop
    if decrypt(shop.oauth_client_secret_encrypted) != at.client_secret:
        wanted["oauth_client_secret_encrypted"] = encrypt(at.client_secret)
    changed = [name for name, value in wanted.items() if getattr(shop, name) != value]
    if changed:
        for name in changed:
            setattr(shop, name, wanted[name])
        shop.save(update_fields=changed)
        _record("shop.changed", shop, now, {"fields": changed})
    return shop


def _origins(url: str) -> list[str]:
    """The shop's own origin, and on this machine both of its usual names."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    hosts = [parts.hostname or ""]
    if hosts[0] in {"127.0.0.1", "localhost"}:
        hosts = ["127.0.0.1", "localhost"]
    return [f"{parts.scheme}://{host}{port}" for host in hosts]


def _seed_keys(shop: Shop, jwks: list[dict[str, Any]], now: datetime) -> None:
    """The keys that the shop shows are in use; one it shows no more runs out with its tokens."""
    in_use = SigningKey.objects.filter(shop=shop, retired_at__isnull=True)
    shown = {jwk.get("kid"): jwk for jwk in jwks}
    for key in in_use.exclude(kid__in=shown):
        last_token = now + timedelta(seconds=MAX_LIFETIME)
        retire_key(shop_id=shop.pk, kid=key.kid, at=last_token, actor=ACTOR, now=now)
    known = set(SigningKey.objects.filter(shop=shop).values_list("kid", flat=True))
    for kid, jwk in shown.items():
        if kid not in known:
            add_public_key(shop_id=shop.pk, jwk=jwk, actor=ACTOR, now=now)
    for key in SigningKey.objects.filter(shop=shop, kid__in=shown, retired_at__isnull=False):
        key.retired_at = None
        key.save(update_fields=["retired_at"])
        _record("signing_key.reinstated", shop, now, {"kid": key.kid})


def _seed_webhook_secret(shop: Shop, secret: str, now: datetime) -> None:
    """The one secret that the pretend shop signs with; an earlier one of it counts no more."""
    name = f"{SLUG}-{hashlib.sha256(secret.encode()).hexdigest()[:8]}"
    ours = WebhookSecret.objects.filter(shop=shop, name__startswith=f"{SLUG}-")
    for old in ours.filter(retired_at__isnull=True).exclude(name=name):
        retire_webhook_secret(shop_id=shop.pk, name=old.name, at=now, actor=ACTOR, now=now)
    known = ours.filter(name=name).first()
    if known is None:
        add_webhook_secret(shop_id=shop.pk, name=name, secret=secret, actor=ACTOR, now=now)
    elif known.retired_at is not None:
        known.retired_at = None
        known.save(update_fields=["retired_at"])
        _record("webhook_secret.reinstated", shop, now, {"name": name})


def _seed_people(shop: Shop, now: datetime) -> None:
    everybody: dict[str, dict[str, Any]] = {
        "staff": {"role": Role.STAFF, "is_approver": True, "shop": shop},
        "staff2": {"role": Role.STAFF, "is_approver": True, "shop": shop},
        "auditor": {"role": Role.AUDITOR, "shop": shop},
        "admin": {"role": Role.ADMIN, "is_superuser": True},
        "admin2": {"role": Role.ADMIN, "shop": shop},
    }
    known = set(User.objects.filter(username__in=everybody).values_list("username", flat=True))
    for username, details in everybody.items():
        if username not in known:
            User.objects.create_user(username, password=DEMO_PASSWORD, is_staff=True, **details)
            _record("user.created", shop, now, {"user": username, "role": details["role"].value})


def _record(action: str, shop: Shop, now: datetime, data: dict[str, object] | None = None) -> None:
    audit.record(
        actor=ACTOR,
        action=action,
        subject=f"shop:{shop.pk}",
        at=now,
        shop_id=shop.pk,
        data=data or {},
    )
