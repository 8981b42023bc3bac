"""Secrets at rest: encrypted with the deployment's keys, newest first."""

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class SecretUnreadableError(Exception):
    """A stored secret cannot be read with any key that this deployment has."""


def encrypt(secret: str) -> bytes:
    """The secret, encrypted with the first of ENCRYPTION_KEYS."""
    return _fernet().encrypt(secret.encode())


def decrypt(stored: bytes | memoryview) -> str:
    """The secret, whichever of ENCRYPTION_KEYS it was written with.

    Raises SecretUnreadableError; its text holds nothing of the secret.
    """
    try:
        return _fernet().decrypt(bytes(stored)).decode()
    except InvalidToken as exc:
        raise SecretUnreadableError("A stored secret fits none of the encryption keys") from exc


def _fernet() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.ENCRYPTION_KEYS])
