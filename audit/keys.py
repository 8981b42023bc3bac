"""The Ed25519 key that signs seals, and the public keys that are believed when seals are checked."""

import base64
import binascii
import hashlib
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


def key_id(public: Ed25519PublicKey) -> str:
    """Sixteen hex digits: the first 8 bytes of SHA-256 of the raw public key."""
    return hashlib.sha256(public.public_bytes_raw()).hexdigest()[:16]


@dataclass(frozen=True)
class Signer:
    """The key in use."""

    private: Ed25519PrivateKey
    key_id: str

    def sign(self, digest: bytes) -> bytes:
        return self.private.sign(digest)


def get_signer() -> Signer:
    """The key of SEAL_KEY. Raises ImproperlyConfigured when it is not 32 bytes in base64."""
    private = Ed25519PrivateKey.from_private_bytes(_key_bytes("SEAL_KEY", settings.SEAL_KEY))
    return Signer(private, key_id(private.public_key()))


class Keyring:
    """The public keys whose signatures count: that of SEAL_KEY, and the retired SEAL_PUBLIC_KEYS."""

    def __init__(self) -> None:
        current = get_signer().private.public_key()
        retired = [
            Ed25519PublicKey.from_public_bytes(_key_bytes("SEAL_PUBLIC_KEYS", text))
            for text in getattr(settings, "SEAL_PUBLIC_KEYS", [])
        ]
        self._keys = {key_id(public): public for public in [current, *retired]}

    def fault(self, signer_id: str, signature: bytes, digest: bytes) -> str | None:
        """What is wrong with this signature over this digest; None when it is good."""
        public = self._keys.get(signer_id)
        if public is None:
            return f"it is signed with the unknown key {signer_id}"
        try:
            public.verify(signature, digest)
        except InvalidSignature:
            return "its signature is false"
        return None


def _key_bytes(setting: str, text: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise ImproperlyConfigured(f"{setting} is not base64") from exc
    if len(raw) != 32:
        raise ImproperlyConfigured(f"{setting} is not 32 bytes in base64")
    return raw
