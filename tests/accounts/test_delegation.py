"""Acting for a customer at the shop: exchange, refresh, revocation, block."""

import socket
import threading
from datetime import timedelta

import httpx
import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from accounts import oauth, services
from accounts.identity import IdentityError, verify_identity
from accounts.keys import decrypt, encrypt
from accounts.models import Customer, Delegation, Shop
from accounts.signals import access_revoked
from audit.models import Event
from tests.accounts.factories import make_customer

pytestmark = pytest.mark.django_db


@pytest.fixture
def delegation(ada, ada_token, pretend_shop) -> Delegation:
    made = services.ensure_delegation(customer_id=ada.pk, token=ada_token, now=timezone.now())
    pretend_shop.forget_calls()
    return made


@pytest.fixture
def news():
    """The customers of whom it was said that their access ended."""
    heard: list[int] = []

    def hear(*, customer_id: int, **_: object) -> None:
        heard.append(customer_id)

    access_revoked.connect(hear)
    yield heard
    access_revoked.disconnect(hear)


def actions() -> list[str]:
    about = ("delegation.created", "delegation.revoked", "customer.blocked", "customer.unblocked")
    return list(
        Event.objects.filter(action__in=about).order_by("id").values_list("action", flat=True)
    )


def let_it_run_out(delegation: Delegation) -> None:
    soon = timezone.now() + timedelta(seconds=59)
    Delegation.objects.filter(pk=delegation.pk).update(access_expires_at=soon)


def oauth_calls(pretend_shop) -> list[str]:
    return [call["path"] for call in pretend_shop.calls() if call["path"].startswith("/oauth")]


def works_at(url: str, token: str) -> bool:
    answer = httpx.get(f"{url}/api/customer", headers={"Authorization": f"Bearer {token}"})
    return answer.status_code == 200


def point_at_nobody(shop: Shop) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    Shop.objects.filter(pk=shop.pk).update(base_url=url)


def test_an_exchange_gives_a_delegation_that_is_stored_encrypted_and_recorded(
    ada, ada_token, pretend_shop
):
    delegation = services.ensure_delegation(customer_id=ada.pk, token=ada_token, now=timezone.now())

    stored = Delegation.objects.get()
    token = decrypt(stored.access_token_encrypted)
    assert stored.pk == delegation.pk
    assert works_at(pretend_shop.url, token)
    assert token.encode() not in bytes(stored.access_token_encrypted)
    event = Event.objects.get(action="delegation.created")
    assert (event.actor, event.customer, event.shop_id) == ("customer:ada", "ada", ada.shop_id)
    assert token not in str(event.data)


def test_a_second_message_makes_no_second_delegation(ada, ada_token, delegation, pretend_shop):
    again = services.ensure_delegation(customer_id=ada.pk, token=ada_token, now=timezone.now())

    assert again.pk == delegation.pk
    assert oauth_calls(pretend_shop) == []
    assert actions() == ["delegation.created"]


def test_another_customers_token_makes_no_delegation(ada, pretend_shop):
    with pytest.raises(IdentityError):
        services.ensure_delegation(
            customer_id=ada.pk, token=pretend_shop.sign("bob"), now=timezone.now()
        )

    assert not Delegation.objects.exists()
    assert oauth_calls(pretend_shop) == []


def test_a_shop_that_refuses_the_exchange_leaves_no_delegation(ada, ada_token, pretend_shop):
    pretend_shop.block("ada")

    with pytest.raises(services.DelegationRevokedError):
        services.ensure_delegation(customer_id=ada.pk, token=ada_token, now=timezone.now())

    assert not Delegation.objects.exists()
    assert actions() == []


def test_wrong_client_credentials_are_no_word_about_the_customer(shop, ada, ada_token):
    Shop.objects.filter(pk=shop.pk).update(oauth_client_secret_encrypted=encrypt("wrong"))

    with pytest.raises(services.ShopUnavailableError):
        services.ensure_delegation(customer_id=ada.pk, token=ada_token, now=timezone.now())

    assert not Delegation.objects.exists()


@pytest.mark.parametrize("fault", ["error_before", "error_after", "unreadable"])
def test_a_shop_that_answers_nonsense_is_unavailable(ada, ada_token, pretend_shop, fault):
    pretend_shop.fault(fault, scope={"path": "/oauth/token"})

    with pytest.raises(services.ShopUnavailableError):
        services.ensure_delegation(customer_id=ada.pk, token=ada_token, now=timezone.now())

    assert not Delegation.objects.exists()


def test_a_shop_that_cannot_be_reached_is_unavailable(shop, ada, ada_token):
    point_at_nobody(shop)

    with pytest.raises(services.ShopUnavailableError):
        services.ensure_delegation(customer_id=ada.pk, token=ada_token, now=timezone.now())

    assert not Delegation.objects.exists()


def test_the_shop_is_never_called_inside_a_transaction(ada, ada_token, pretend_shop):
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        services.ensure_delegation(customer_id=ada.pk, token=ada_token, now=timezone.now())
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        services.access_token(customer_id=ada.pk)

    assert oauth_calls(pretend_shop) == []


def test_a_fresh_access_token_is_used_again_without_a_call(ada, delegation, pretend_shop):
    first = services.access_token(customer_id=ada.pk)

    assert services.access_token(customer_id=ada.pk) == first
    assert oauth_calls(pretend_shop) == []
    assert works_at(pretend_shop.url, first)


def test_an_access_token_about_to_run_out_is_refreshed(ada, delegation, pretend_shop):
    old = services.access_token(customer_id=ada.pk)
    let_it_run_out(delegation)

    fresh = services.access_token(customer_id=ada.pk)

    assert fresh != old
    assert works_at(pretend_shop.url, fresh)
    assert services.access_token(customer_id=ada.pk) == fresh
    assert oauth_calls(pretend_shop) == ["/oauth/token"]


def test_a_token_that_the_shop_refused_is_not_given_again(ada, delegation, pretend_shop):
    refused = services.access_token(customer_id=ada.pk)

    fresh = services.access_token(customer_id=ada.pk, refused=refused)

    assert fresh != refused
    assert services.access_token(customer_id=ada.pk, refused=refused) == fresh
    assert oauth_calls(pretend_shop) == ["/oauth/token"]


def test_a_delegation_revoked_at_the_shop_ends_here_too_and_is_recorded_once(
    ada, delegation, pretend_shop, news
):
    let_it_run_out(delegation)
    pretend_shop.block("ada")

    for _ in range(2):
        with pytest.raises(services.DelegationRevokedError):
            services.access_token(customer_id=ada.pk)

    delegation.refresh_from_db()
    assert delegation.revoked_at is not None
    assert delegation.revoked_reason == "refused_by_shop"
    assert bytes(delegation.refresh_token_encrypted) == b""
    assert oauth_calls(pretend_shop) == ["/oauth/token"]
    assert actions() == ["delegation.created", "delegation.revoked"]
    assert news == [ada.pk]


def test_a_failed_refresh_revokes_nothing(ada, delegation, pretend_shop):
    let_it_run_out(delegation)
    pretend_shop.fault("error_before", times=1)

    with pytest.raises(services.ShopUnavailableError):
        services.access_token(customer_id=ada.pk)

    delegation.refresh_from_db()
    assert delegation.revoked_at is None
    assert works_at(pretend_shop.url, services.access_token(customer_id=ada.pk))


def test_without_a_delegation_there_is_no_token_and_no_call(ada, pretend_shop):
    with pytest.raises(services.DelegationRevokedError):
        services.access_token(customer_id=ada.pk)

    assert oauth_calls(pretend_shop) == []


def test_a_revocation_ends_tokens_and_sessions_here_and_at_the_shop(
    ada, ada_token, delegation, pretend_shop, news
):
    token = services.access_token(customer_id=ada.pk)

    revoked = services.revoke_delegation(
        customer_id=ada.pk, reason="signed_out", actor=ada.actor, now=timezone.now()
    )

    assert revoked
    assert not works_at(pretend_shop.url, token)
    with pytest.raises(services.DelegationRevokedError):
        services.access_token(customer_id=ada.pk)
    with pytest.raises(IdentityError):
        services.ensure_delegation(customer_id=ada.pk, token=ada_token, now=timezone.now())
    delegation.refresh_from_db()
    assert delegation.revoked_reason == "signed_out"
    assert bytes(delegation.refresh_token_encrypted) == b""
    assert actions() == ["delegation.created", "delegation.revoked"]
    assert news == [ada.pk]


def test_a_customer_who_signs_in_again_gets_a_new_delegation(ada, delegation, pretend_shop):
    a_while_ago = timezone.now() - timedelta(seconds=5)
    services.revoke_delegation(
        customer_id=ada.pk, reason="signed_out", actor=ada.actor, now=a_while_ago
    )

    again = services.ensure_delegation(
        customer_id=ada.pk, token=pretend_shop.sign("ada"), now=timezone.now()
    )

    assert again.pk != delegation.pk
    assert works_at(pretend_shop.url, services.access_token(customer_id=ada.pk))


def test_revoking_nothing_still_ends_the_sessions(ada, ada_token, news):
    revoked = services.revoke_delegation(
        customer_id=ada.pk, reason="signed_out", actor=ada.actor, now=timezone.now()
    )

    assert not revoked
    assert actions() == []
    assert news == [ada.pk]
    with pytest.raises(IdentityError):
        verify_identity(ada_token)


def test_a_shop_that_is_away_is_told_of_the_revocation_later(shop, ada, delegation, pretend_shop):
    token = services.access_token(customer_id=ada.pk)
    point_at_nobody(shop)
    services.revoke_delegation(
        customer_id=ada.pk, reason="signed_out", actor=ada.actor, now=timezone.now()
    )
    assert works_at(pretend_shop.url, token)
    with pytest.raises(services.DelegationRevokedError):
        services.access_token(customer_id=ada.pk)
    assert services.tell_shops_of_revocations() == 0

    Shop.objects.filter(pk=shop.pk).update(base_url=pretend_shop.url)

    assert services.tell_shops_of_revocations() == 1
    assert services.tell_shops_of_revocations() == 0
    assert not works_at(pretend_shop.url, token)


def test_a_blocked_customer_loses_everything_until_unblocked_and_signed_in_anew(
    ada, ada_token, delegation, pretend_shop, news
):
    services.block_customer(
        customer_id=ada.pk, reason="abuse", actor="staff:dana", now=timezone.now()
    )

    with pytest.raises(services.DelegationRevokedError):
        services.access_token(customer_id=ada.pk)
    with pytest.raises(IdentityError):
        verify_identity(pretend_shop.sign("ada"))
    services.unblock_customer(
        customer_id=ada.pk, reason="settled", actor="staff:dana", now=timezone.now()
    )
    with pytest.raises(IdentityError) as old:
        verify_identity(ada_token)
    assert old.value.code == "signed_out"
    assert news == [ada.pk]
    assert actions() == [
        "delegation.created",
        "customer.blocked",
        "delegation.revoked",
        "customer.unblocked",
    ]


def test_a_customer_blocked_behind_our_back_gets_no_token(ada, delegation, pretend_shop):
    Customer.objects.filter(pk=ada.pk).update(status="blocked")

    with pytest.raises(services.DelegationRevokedError):
        services.access_token(customer_id=ada.pk)

    assert oauth_calls(pretend_shop) == []


@pytest.mark.parametrize("change", [services.block_customer, services.unblock_customer])
def test_a_block_or_unblock_that_changes_nothing_is_refused(change):
    status = "blocked" if change is services.block_customer else "active"
    customer = make_customer(status=status)

    with pytest.raises(services.CustomerStatusError):
        change(customer_id=customer.pk, reason="x", actor="staff:dana", now=timezone.now())

    customer.refresh_from_db()
    assert (customer.status, customer.tokens_valid_after) == (status, None)
    assert actions() == []


def test_a_sign_out_during_the_exchange_wins(ada, ada_token, pretend_shop, monkeypatch):
    """The delegation that comes back too late is given back to the shop."""
    given = []
    exchange = oauth.exchange

    def sign_out_meanwhile(endpoint, token):
        tokens = exchange(endpoint, token)
        given.append(tokens.access_token)
        services.revoke_delegation(
            customer_id=ada.pk, reason="signed_out", actor=ada.actor, now=timezone.now()
        )
        return tokens

    monkeypatch.setattr(oauth, "exchange", sign_out_meanwhile)

    with pytest.raises(IdentityError):
        services.ensure_delegation(customer_id=ada.pk, token=ada_token, now=timezone.now())

    assert not Delegation.objects.exists()
    assert not works_at(pretend_shop.url, given[0])


def test_the_database_refuses_a_second_active_delegation(delegation):
    with pytest.raises(IntegrityError), transaction.atomic():
        Delegation.objects.create(
            customer_id=delegation.customer_id,
            refresh_token_encrypted=b"x",
            access_token_encrypted=b"x",
            access_expires_at=timezone.now(),
        )


@pytest.mark.django_db(transaction=True)
def test_two_exchanges_at_once_leave_one_delegation(ada, ada_token, pretend_shop):
    pretend_shop.fault("latency", scope={"path": "/oauth/token"}, ms=300)
    made: list[int] = []

    def ensure() -> None:
        try:
            made.append(
                services.ensure_delegation(
                    customer_id=ada.pk, token=ada_token, now=timezone.now()
                ).pk
            )
        finally:
            connection.close()

    threads = [threading.Thread(target=ensure) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    delegation = Delegation.objects.get()
    assert made == [delegation.pk, delegation.pk]
    assert sorted(oauth_calls(pretend_shop)) == ["/oauth/revoke", "/oauth/token", "/oauth/token"]
    assert works_at(pretend_shop.url, services.access_token(customer_id=ada.pk))


@pytest.mark.django_db(transaction=True)
def test_no_connection_is_held_while_the_shop_is_asked(ada, ada_token, monkeypatch):
    held = []
    exchange = oauth.exchange

    def look(endpoint, token):
        held.append(connection.connection)
        return exchange(endpoint, token)

    monkeypatch.setattr(oauth, "exchange", look)

    services.ensure_delegation(customer_id=ada.pk, token=ada_token, now=timezone.now())

    assert held == [None]
