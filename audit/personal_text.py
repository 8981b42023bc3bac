"""Personal text beside the chain: one key a customer, a commitment in the event, erasure by key.

The text is encrypted together with a random nonce; the event holds HMAC-SHA-256(nonce, text). While
the key lives, the commitment proves the text. When the key is destroyed the nonce is gone with the
text, and the commitment left in the chain cannot be tested against guesses.
"""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db.models import Q

from audit.canonical import commitment
from audit.models import CustomerKey, Event, PersonalText

NONCE_BYTES = 32
_Owner = tuple[int, str]


class PersonalTextError(ValueError):
    """The stored text cannot be read with its key, or is not the one that the event commits to."""


@dataclass(frozen=True)
class Sealed:
    """One text, encrypted, and what the event says of it."""

    key_id: int
    ciphertext: bytes
    commitment: bytes


def encrypt(texts: Sequence[tuple[int | None, str, str | None]]) -> list[Sealed | None]:
    """Encrypt each (shop, customer, text) under that customer's key, made when it has none.

    None for those without a text. Call it inside a transaction.
    """
    owners = {
        (shop_id, customer)
        for shop_id, customer, text in texts
        if text is not None and shop_id is not None
    }
    keys = _live_keys(owners) if owners else {}
    return [
        None if text is None or shop_id is None else _seal(keys[shop_id, customer], text)
        for shop_id, customer, text in texts
    ]


def store(sealed: Iterable[tuple[int, Sealed]]) -> None:
    """Write the encrypted texts of these events."""
    PersonalText.objects.bulk_create(
        PersonalText(event_id=event_id, key_id=one.key_id, ciphertext=one.ciphertext)
        for event_id, one in sealed
    )


def read(event: Event) -> str | None:
    """The event's text; None when it has none or it is erased. Raises PersonalTextError."""
    row = PersonalText.objects.select_related("key").filter(event_id=event.pk).first()
    if row is None:
        if event.personal_digest is not None:
            raise PersonalTextError(f"the personal text of event {event.pk} is missing")
        return None
    return open_text(row, event.personal_digest)


def open_text(row: PersonalText, expected: bytes | memoryview | None) -> str | None:
    """Decrypt and check against the commitment; None when it is erased. Raises PersonalTextError."""
    found = open_with_nonce(row, expected)
    return None if found is None else found[1]


def open_with_nonce(
    row: PersonalText, expected: bytes | memoryview | None
) -> tuple[bytes, str] | None:
    """As open_text, with the nonce that proves the text to whoever holds the event."""
    if row.key.destroyed_at is not None or not row.ciphertext:
        return None
    try:
        plain = _unwrap(row.key).decrypt(bytes(row.ciphertext))
    except (InvalidToken, ValueError) as exc:
        raise PersonalTextError(
            f"the personal text of event {row.event_id} cannot be decrypted"
        ) from exc
    nonce, text = plain[:NONCE_BYTES], plain[NONCE_BYTES:]
    if expected is None or commitment(nonce, text) != bytes(expected):
        raise PersonalTextError(
            f"the personal text of event {row.event_id} is not the one that was recorded"
        )
    return nonce, text.decode("utf-8", "surrogatepass")


def _live_keys(owners: set[_Owner]) -> dict[_Owner, CustomerKey]:
    found = _find_keys(owners)
    missing = sorted(owners - found.keys())
    if missing:
        # In sorted order, so that two writers meeting the same new customers cannot deadlock.
        CustomerKey.objects.bulk_create(
            [_new_key(shop_id, customer) for shop_id, customer in missing], ignore_conflicts=True
        )
        found = _find_keys(owners)
    return found


def _find_keys(owners: set[_Owner]) -> dict[_Owner, CustomerKey]:
    wanted = Q()
    for shop_id, customer in owners:
        wanted |= Q(shop_id=shop_id, customer=customer)
    rows = CustomerKey.objects.filter(wanted, destroyed_at=None)
    return {(row.shop_id, row.customer): row for row in rows}


def _new_key(shop_id: int, customer: str) -> CustomerKey:
    return CustomerKey(
        shop_id=shop_id,
        customer=customer,
        wrapped_key=_wrapping().encrypt(Fernet.generate_key()),
    )


def _seal(key: CustomerKey, text: str) -> Sealed:
    nonce = secrets.token_bytes(NONCE_BYTES)
    # A person can type half a surrogate pair; it is kept as it came.
    encoded = text.encode("utf-8", "surrogatepass")
    return Sealed(
        key_id=key.pk,
        ciphertext=_unwrap(key).encrypt(nonce + encoded),
        commitment=commitment(nonce, encoded),
    )


def _unwrap(key: CustomerKey) -> Fernet:
    return Fernet(_wrapping().decrypt(bytes(key.wrapped_key)))


def _wrapping() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.ENCRYPTION_KEYS])
