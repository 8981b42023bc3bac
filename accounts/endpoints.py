"""The addresses at which a shop is told of events, and the secrets that sign what they get."""

from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from accounts import validators
from accounts.keys import encrypt
from accounts.models import Endpoint, Notice
from accounts.webhooks import new_webhook_secret
from audit import services as audit


class BadEndpointError(Exception):
    """This cannot be an endpoint of the shop, or there is none of that name. Nothing was written."""


@transaction.atomic
def add_endpoint(
    *, shop_id: int, name: str, url: str, actor: str, now: datetime
) -> tuple[Endpoint, str]:
    """Tell this address of the shop's events from now on; gives the secret, to be shown once.

    Raises BadEndpointError.
    """
    if not validators.is_key_id(name):
        raise BadEndpointError("An endpoint needs a name of letters, digits and . _ : = + -")
    try:
        validators.validate_base_url(url)
    except ValidationError as exc:
        raise BadEndpointError("; ".join(exc.messages)) from exc
    secret = new_webhook_secret()
    endpoint = Endpoint(
        shop_id=shop_id, name=name, url=url, secret_encrypted=encrypt(secret), created_at=now
    )
    try:
        with transaction.atomic():
            endpoint.save(force_insert=True)
    except IntegrityError as exc:
        raise BadEndpointError("The shop has an endpoint with this name already") from exc
    record(endpoint, "added", actor, now)
    return endpoint, secret


@transaction.atomic
def replace_secret(
    *, shop_id: int, name: str, overlap: timedelta, actor: str, now: datetime
) -> str:
    """Sign with a new secret, and for `overlap` with the former one as well; gives the new one.

    Raises BadEndpointError.
    """
    endpoint = locked(shop_id, name)
    secret = new_webhook_secret()
    endpoint.former_secret_encrypted = endpoint.secret_encrypted
    endpoint.former_until = now + overlap
    endpoint.secret_encrypted = encrypt(secret)
    endpoint.save(update_fields=["former_secret_encrypted", "former_until", "secret_encrypted"])
    record(endpoint, "secret_replaced", actor, now)
    return secret


@transaction.atomic
def disable_endpoint(*, shop_id: int, name: str, actor: str, now: datetime) -> None:
    """Tell it nothing more, neither what waits nor what comes. Raises BadEndpointError."""
    disable(locked(shop_id, name), actor, now)


def locked(shop_id: int, name: str) -> Endpoint:
    """The endpoint, locked until the transaction ends. Raises BadEndpointError."""
    endpoint = (
        Endpoint.objects.select_for_update()
        .filter(shop_id=shop_id, name=name, disabled_at__isnull=True)
        .first()
    )
    if endpoint is None:
        raise BadEndpointError("There is no such endpoint in use")
    return endpoint


def disable(endpoint: Endpoint, actor: str, now: datetime) -> None:
    """Forget its secrets and what it was still to be told."""
    Endpoint.objects.filter(pk=endpoint.pk).update(
        disabled_at=now, secret_encrypted=b"", former_secret_encrypted=b""
    )
    endpoint.notices.filter(delivered_at__isnull=True, given_up_at__isnull=True).update(
        given_up_at=now
    )
    record(endpoint, "disabled", actor, now)


def record(
    endpoint: Endpoint, what: str, actor: str, now: datetime, *, notice: Notice | None = None
) -> None:
    """Put what happened to an endpoint on the trail."""
    audit.record(
        actor=actor,
        action=f"webhook_endpoint.{what}",
        subject=f"webhook_endpoint:{endpoint.pk}",
        at=now,
        shop_id=endpoint.shop_id,
        data={"name": endpoint.name} | ({"notice": notice.public_id} if notice else {}),
    )
