"""Making sure that it is really them, before money moves: a code of their app, or the password.

Whoever has a second factor gives a code; a password alone would prove what a thief of it proves.
"""

from enum import Enum

from django.contrib.auth import authenticate
from django.http import HttpRequest
from django.utils import timezone

from accounts import second_factor
from accounts.console import user_of
from accounts.second_factor import Proof


class Doubt(Enum):
    """Why we are not sure. The value is said to the person, before what did not happen."""

    WRONG_PASSWORD = "That is not your password."  # noqa: S105
    WRONG_CODE = "That is not a fresh code of your app."
    WAIT = "Too many wrong codes. Wait a few minutes."

    @property
    def field(self) -> str:
        """The name of the field that it is about."""
        return "password" if self is Doubt.WRONG_PASSWORD else "code"

    @property
    def status(self) -> int:
        return 429 if self is Doubt.WAIT else 403


def doubt_about(request: HttpRequest, *, password: str, code: str) -> Doubt | None:
    """None when it is them. Wrong passwords are counted by axes, wrong codes by the factor."""
    user = user_of(request)
    proof = second_factor.prove(user_id=user.pk, code=code, now=timezone.now())
    match proof:
        case Proof.RIGHT:
            return None
        case Proof.WRONG:
            return Doubt.WRONG_CODE
        case Proof.WAIT:
            return Doubt.WAIT
    is_them = bool(password) and (
        authenticate(request, username=user.username, password=password) is not None
    )
    return None if is_them else Doubt.WRONG_PASSWORD
