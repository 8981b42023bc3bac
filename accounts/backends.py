"""Signing in to the console."""

from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from typing_extensions import override

from accounts.models import User

# Printed by the demo's start and known to everybody.
DEMO_PASSWORD = "countersign-demo"  # noqa: S105


class ConsoleBackend(ModelBackend):
    """Django's own backend, which outside the demo refuses the demo's password for everybody.

    Refusing stops the backends after this one as well.
    """

    @override
    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        if password == DEMO_PASSWORD and not settings.DEMO:
            raise PermissionDenied("The demo's password is refused outside the demo")
        user = super().authenticate(request, username=username, password=password, **kwargs)
        return user if isinstance(user, User) else None
