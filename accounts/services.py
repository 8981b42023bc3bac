"""What we may do for a customer at their shop, and taking that back."""

import logging
from datetime import datetime, timedelta

from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from accounts import oauth
from accounts.identity import Identity, IdentityError, refuse_unwelcome, verify_identity
from accounts.keys import decrypt, encrypt
from accounts.models import Customer, CustomerStatus, Delegation, Shop
from accounts.oauth import ClientRefusedError, GrantRefusedError, ShopUnavailableError
from accounts.signals import access_revoked, client_refused
from audit import services as audit

# A token with less than this left is not used any more: a call must not outlive it.
REFRESH_MARGIN = timedelta(seconds=60)
REFUSED_BY_SHOP = "refused_by_shop"

logger = logging.getLogger(__name__)

__all__ = [
    "ClientRefusedError",
    "CustomerStatusError",
    "DelegationRevokedError",
    "ShopUnavailableError",
    "access_token",
    "block_customer",
    "check_client",
    "ensure_delegation",
    "revoke_delegation",
    "tell_shops_of_revocations",
    "unblock_customer",
]


class DelegationRevokedError(Exception):
    """We may not act for this customer: nobody let us, or it was taken back."""


class CustomerStatusError(Exception):
    """The customer is not in the state that this change starts from."""


def ensure_delegation(*, customer_id: int, token: str, now: datetime) -> Delegation:
    """The customer's active delegation; made by exchanging their identity token when there is none.

    Never inside a transaction: it may call the shop. Of two at once one delegation remains.
    Raises IdentityError when the token is not this customer's, DelegationRevokedError when the
    shop refuses the exchange, ShopUnavailableError; after each of them nothing was written.
    """
    with transaction.atomic(durable=True):
        delegation = _active(customer_id)
    if delegation is not None:
        return delegation
    identity = verify_identity(token)
    if identity.customer_id != customer_id:
        raise IdentityError("other_customer")
    customer = Customer.objects.select_related("shop").get(pk=customer_id)
    _let_go_of_connection()
    try:
        tokens = oauth.exchange(_endpoint(customer.shop), token)
    except GrantRefusedError as exc:
        raise DelegationRevokedError("The shop refuses to delegate") from exc
    except ClientRefusedError:
        client_refused.send(sender=Shop, shop_id=customer.shop_id)
        raise
    return _keep_delegation(customer, identity, tokens, now)


def access_token(*, customer_id: int, refused: str = "") -> str:
    """A token for acting at the shop as this customer, good for another minute at least.

    Never inside a transaction: it may call the shop. `refused` is a token that the shop has just
    refused; it is not given again. Two callers at once may both fetch a token; both are good.
    Raises DelegationRevokedError (recorded when the shop is the one who says so) or
    ShopUnavailableError.
    """
    with transaction.atomic(durable=True):
        delegation = _active(customer_id)
    if delegation is None or delegation.customer.status != CustomerStatus.ACTIVE:
        raise DelegationRevokedError("There is no delegation")
    if delegation.access_expires_at - timezone.now() >= REFRESH_MARGIN:
        token = decrypt(delegation.access_token_encrypted)
        if token != refused:
            return token
    return _refresh(delegation)


def check_client(shop: Shop) -> None:
    """Ask the shop whether it takes our own name and secret.

    Never inside a transaction. Raises ClientRefusedError or ShopUnavailableError.
    """
    endpoint = _endpoint(shop)
    _let_go_of_connection()
    oauth.check_client(endpoint)


def revoke_delegation(*, customer_id: int, reason: str, actor: str, now: datetime) -> bool:
    """Take back our leave to act for the customer, and end their chat sessions.

    Counts from its commit, whether or not the shop can be told right away: what it was not told
    `tell_shops_of_revocations` brings. Never inside a transaction. False when there was no active
    delegation; sessions end all the same.
    """
    with transaction.atomic(durable=True):
        customer = Customer.objects.select_for_update().get(pk=customer_id)
        revoked = _end_access(customer, reason=reason, actor=actor, now=now)
    tell_shops_of_revocations(customer_id=customer_id)
    return revoked


def block_customer(*, customer_id: int, reason: str, actor: str, now: datetime) -> None:
    """Serve this customer no more: sessions end, the delegation is revoked.

    Never inside a transaction. Raises CustomerStatusError when they are blocked already.
    """
    with transaction.atomic(durable=True):
        customer = _locked(customer_id, CustomerStatus.ACTIVE)
        customer.status = CustomerStatus.BLOCKED
        customer.save(update_fields=["status"])
        _record(customer, "customer.blocked", actor=actor, now=now, reason=reason)
        _end_access(customer, reason="blocked", actor=actor, now=now)
    tell_shops_of_revocations(customer_id=customer_id)


@transaction.atomic
def unblock_customer(*, customer_id: int, reason: str, actor: str, now: datetime) -> None:
    """Let the customer come back, with a token issued after they were blocked.

    Raises CustomerStatusError when they are not blocked.
    """
    customer = _locked(customer_id, CustomerStatus.BLOCKED)
    customer.status = CustomerStatus.ACTIVE
    customer.save(update_fields=["status"])
    _record(customer, "customer.unblocked", actor=actor, now=now, reason=reason)


def tell_shops_of_revocations(*, customer_id: int | None = None, limit: int = 100) -> int:
    """Tell the shops of delegations that were revoked here; how many were told.

    Stored tokens are emptied as each shop confirms. One that cannot be reached is left for the
    next time. Never inside a transaction.
    """
    with transaction.atomic(durable=True):
        untold = Delegation.objects.select_related("customer__shop").filter(
            revoked_at__isnull=False
        )
        if customer_id is not None:
            untold = untold.filter(customer_id=customer_id)
        delegations = list(untold.exclude(refresh_token_encrypted=b"").order_by("pk")[:limit])
    return sum(_tell_shop(delegation) for delegation in delegations)


def has_leave(customer_id: int) -> bool:
    """May we act for this customer, as far as our own record goes? For the transaction that sends."""
    return Delegation.objects.filter(customer_id=customer_id, revoked_at__isnull=True).exists()


def _active(customer_id: int) -> Delegation | None:
    return (
        Delegation.objects.select_related("customer__shop")
        .filter(customer_id=customer_id, revoked_at__isnull=True)
        .first()
    )


def _locked(customer_id: int, status: CustomerStatus) -> Customer:
    customer = Customer.objects.select_for_update().get(pk=customer_id)
    if customer.status != status:
        raise CustomerStatusError(f"{customer.actor} is {customer.status}")
    return customer


def _endpoint(shop: Shop) -> oauth.Endpoint:
    return oauth.Endpoint(
        base_url=shop.base_url,
        client_id=shop.oauth_client_id,
        client_secret=decrypt(shop.oauth_client_secret_encrypted),
    )


def _keep_delegation(
    customer: Customer, identity: Identity, tokens: oauth.Tokens, now: datetime
) -> Delegation:
    """Store the new delegation, unless another got in before or access ended meanwhile."""
    fresh = Delegation(
        customer=customer,
        refresh_token_encrypted=encrypt(tokens.refresh_token),
        access_token_encrypted=encrypt(tokens.access_token),
        access_expires_at=timezone.now() + timedelta(seconds=tokens.expires_in),
        created_at=now,
    )
    try:
        with transaction.atomic(durable=True):
            current = Customer.objects.select_for_update().get(pk=customer.pk)
            refuse_unwelcome(current, identity.issued_at)
            fresh.save()
            _record(customer, "delegation.created", actor=customer.actor, now=now)
    except IntegrityError as exc:
        _give_back(customer.shop, tokens)
        first = _active(customer.pk)
        if first is None:
            raise DelegationRevokedError("Access ended meanwhile") from exc
        return first
    except IdentityError:
        _give_back(customer.shop, tokens)
        raise
    return fresh


def _give_back(shop: Shop, tokens: oauth.Tokens) -> None:
    """A delegation that we did not keep must not live on at the shop."""
    try:
        oauth.revoke(_endpoint(shop), tokens.refresh_token)
    except ShopUnavailableError:
        logger.warning("shop %s was not told of a delegation that is not used", shop.slug)


def _refresh(delegation: Delegation) -> str:
    endpoint = _endpoint(delegation.customer.shop)
    refresh_token = decrypt(delegation.refresh_token_encrypted)
    _let_go_of_connection()
    try:
        tokens = oauth.refresh(endpoint, refresh_token)
    except GrantRefusedError as exc:
        _note_refusal(delegation)
        raise DelegationRevokedError("The shop has revoked the delegation") from exc
    changes = {
        "access_token_encrypted": encrypt(tokens.access_token),
        "access_expires_at": timezone.now() + timedelta(seconds=tokens.expires_in),
    }
    if tokens.refresh_token:
        changes["refresh_token_encrypted"] = encrypt(tokens.refresh_token)
    active = Delegation.objects.filter(pk=delegation.pk, revoked_at__isnull=True)
    if active.update(**changes) != 1:
        raise DelegationRevokedError("The delegation was revoked meanwhile")
    return tokens.access_token


def _note_refusal(delegation: Delegation) -> None:
    """The shop says that the delegation is over. It knows, so the tokens can go."""
    now = timezone.now()
    with transaction.atomic(durable=True):
        customer = Customer.objects.select_for_update().get(pk=delegation.customer_id)
        revoked = Delegation.objects.filter(pk=delegation.pk, revoked_at__isnull=True).update(
            revoked_at=now,
            revoked_reason=REFUSED_BY_SHOP,
            refresh_token_encrypted=b"",
            access_token_encrypted=b"",
        )
        if revoked:
            _record(customer, "delegation.revoked", actor="system", now=now, reason=REFUSED_BY_SHOP)
            access_revoked.send(sender=Delegation, customer_id=customer.pk)


def _end_access(customer: Customer, *, reason: str, actor: str, now: datetime) -> bool:
    """In the caller's transaction, with the customer locked."""
    customer.tokens_valid_after = now
    customer.save(update_fields=["tokens_valid_after"])
    revoked = Delegation.objects.filter(customer=customer, revoked_at__isnull=True).update(
        revoked_at=now, revoked_reason=reason
    )
    if revoked:
        _record(customer, "delegation.revoked", actor=actor, now=now, reason=reason)
    access_revoked.send(sender=Delegation, customer_id=customer.pk)
    return bool(revoked)


def _tell_shop(delegation: Delegation) -> bool:
    try:
        oauth.revoke(
            _endpoint(delegation.customer.shop), decrypt(delegation.refresh_token_encrypted)
        )
    except ShopUnavailableError:
        logger.warning("delegation %s is revoked; its shop could not be told yet", delegation.pk)
        return False
    Delegation.objects.filter(pk=delegation.pk).update(
        refresh_token_encrypted=b"", access_token_encrypted=b""
    )
    return True


def _let_go_of_connection() -> None:
    """Hold no database connection while the shop takes its time.

    Under an open transaction (only a test's own can be open here) it has to stay.
    """
    if not connection.in_atomic_block:
        connection.close()


def _record(
    customer: Customer, action: str, *, actor: str, now: datetime, reason: str = ""
) -> None:
    audit.record(
        actor=actor,
        action=action,
        subject=f"customer:{customer.pk}",
        at=now,
        shop_id=customer.shop_id,
        customer=customer.external_id,
        data={"reason": reason} if reason else {},
    )
