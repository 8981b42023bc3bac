"""Secrets at rest and the shops' signing keys."""

import pytest
from cryptography.fernet import Fernet
from django.utils import timezone

from accounts import keyring
from accounts.keys import SecretUnreadableError, decrypt, encrypt
from accounts.models import SigningKey
from audit.models import Event
from tests.accounts.factories import Signer, make_shop

NOW = timezone.now()
POINT = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
JWK = {"kty": "OKP", "crv": "Ed25519", "x": POINT, "kid": "key-1", "use": "sig"}


def test_a_secret_comes_back_and_is_not_readable_as_stored():
    stored = encrypt("pass the salt, Zoë")

    assert decrypt(stored) == decrypt(memoryview(stored)) == "pass the salt, Zoë"
    assert b"salt" not in stored


def test_secrets_survive_a_change_of_keys_and_are_written_with_the_newest(settings):
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [old]
    stored = encrypt("secret")

    settings.ENCRYPTION_KEYS = [new, old]
    assert decrypt(stored) == "secret"
    written_now = encrypt("secret")

    settings.ENCRYPTION_KEYS = [new]
    assert decrypt(written_now) == "secret"
    with pytest.raises(SecretUnreadableError):
        decrypt(stored)


def test_a_changed_secret_is_unreadable_and_the_error_shows_nothing_of_it():
    stored = bytearray(encrypt("secret"))
    stored[20] ^= 1

    with pytest.raises(SecretUnreadableError) as caught:
        decrypt(bytes(stored))

    assert bytes(stored).decode() not in str(caught.value)


@pytest.mark.django_db
def test_a_public_key_is_kept_without_anything_private():
    shop = make_shop()

    keyring.add_public_key(shop_id=shop.pk, jwk=JWK | {"d": POINT}, actor="admin:root", now=NOW)

    assert SigningKey.objects.get().public_jwk == {"kty": "OKP", "crv": "Ed25519", "x": POINT}
    event = Event.objects.get()
    assert (event.action, event.actor, event.data) == (
        "signing_key.added",
        "admin:root",
        {"kid": "key-1"},
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change",
    [
        {"kty": "RSA"},
        {"crv": "Ed448"},
        {"crv": "X25519"},
        {"x": None},
        {"x": POINT[:-1]},
        {"x": POINT + "A"},
        {"x": "!" * 43},
        {"kid": ""},
        {"kid": "../key"},
        {"kid": "k" * 121},
        {"kid": "key\x00"},
    ],
)
def test_what_is_no_ed25519_key_with_a_name_is_refused_and_nothing_is_written(change):
    shop = make_shop()

    with pytest.raises(keyring.BadKeyError):
        keyring.add_public_key(shop_id=shop.pk, jwk=JWK | change, actor="admin:root", now=NOW)

    assert not SigningKey.objects.exists()
    assert not Event.objects.exists()


@pytest.mark.django_db
def test_a_short_shared_secret_is_refused_and_nothing_is_written():
    shop = make_shop()

    with pytest.raises(keyring.BadKeyError, match="32 bytes"):
        keyring.add_secret(shop_id=shop.pk, kid="k", secret="x" * 31, actor="admin:root", now=NOW)

    assert not SigningKey.objects.exists()
    assert not Event.objects.exists()


@pytest.mark.django_db
def test_a_key_id_is_used_once_per_shop():
    first, second = make_shop(), make_shop()
    for shop in (first, second):
        keyring.add_public_key(shop_id=shop.pk, jwk=JWK, actor="admin:root", now=NOW)

    with pytest.raises(keyring.BadKeyError, match="already"):
        keyring.add_secret(
            shop_id=first.pk, kid="key-1", secret="x" * 32, actor="admin:root", now=NOW
        )

    assert SigningKey.objects.count() == Event.objects.count() == 2


@pytest.mark.django_db
def test_a_key_is_retired_once_and_by_its_own_shop_only():
    signer, other = Signer(make_shop()), make_shop()
    later = timezone.now()

    with pytest.raises(keyring.BadKeyError):
        keyring.retire_key(shop_id=other.pk, kid="key-1", at=later, actor="admin:root", now=NOW)
    keyring.retire_key(shop_id=signer.shop.pk, kid="key-1", at=later, actor="admin:root", now=NOW)
    with pytest.raises(keyring.BadKeyError):
        keyring.retire_key(
            shop_id=signer.shop.pk, kid="key-1", at=later, actor="admin:root", now=NOW
        )

    signer.row.refresh_from_db()
    assert signer.row.retired_at == later
    assert [event.action for event in Event.objects.all()] == ["signing_key.retired"]
