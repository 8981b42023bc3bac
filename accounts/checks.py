"""What `manage.py check` finds wrong about people and secrets."""

from typing import Any

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

CONSOLE_BACKEND = "accounts.backends.ConsoleBackend"
PLAIN_BACKEND = "django.contrib.auth.backends.ModelBackend"


@register()
def check_backends(**_: Any) -> list[CheckMessage]:
    """The demo's password must meet the backend that refuses it outside the demo."""
    backends = settings.AUTHENTICATION_BACKENDS
    if CONSOLE_BACKEND in backends and PLAIN_BACKEND not in backends:
        return []
    return [
        Error(
            f"AUTHENTICATION_BACKENDS must hold {CONSOLE_BACKEND} instead of {PLAIN_BACKEND}: "
            "it refuses the demo's password outside the demo.",
            id="accounts.E001",
        )
    ]


@register()
def check_encryption_keys(**_: Any) -> list[CheckMessage]:
    """Every encryption key must be usable before the first secret meets it."""
    bad = [n for n, key in enumerate(settings.ENCRYPTION_KEYS, 1) if not _is_fernet_key(key)]
    return [
        Error(
            f"Key {n} of COUNTERSIGN_ENCRYPTION_KEYS is not 32 bytes of url-safe base64.",
            id="accounts.E002",
        )
        for n in bad
    ]


def _is_fernet_key(key: str) -> bool:
    try:
        Fernet(key)
    except ValueError:
        return False
    return True
