"""Codes of an authenticator app (TOTP, RFC 6238): setting it up, proving with it, losing it.

Six digits, thirty seconds, SHA-1: what every app speaks. Secrets are kept encrypted, recovery codes
as digests. A code is taken once, also when it comes twice at the same moment.
"""

import base64
import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from enum import Enum

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.conf import settings
from django.db import transaction

from accounts.keys import decrypt, encrypt
from accounts.models import RecoveryCode, SecondFactor, User
from audit import services as audit

ISSUER = "Countersign"
STEP = 30  # seconds
DIGITS = 6
DRIFT = 1  # steps that a clock may be off
SECRET_BYTES = 20
RECOVERY_CODES = 10
# After every so many wrong codes in a row nothing is looked at for a while, each time for longer.
TRIES = 5
FIRST_BLOCK = timedelta(seconds=30)
LONGEST_BLOCK = timedelta(minutes=15)


class Proof(Enum):
    """What a code has shown."""

    RIGHT = "right"
    WRONG = "wrong"
    WAIT = "wait"
    NO_FACTOR = "no_factor"


class FactorError(Exception):
    """Nothing was changed."""


class AlreadyThereError(FactorError):
    """This person has a second factor; it is removed before another is set up."""


class NotAllowedError(FactorError):
    """This person may not reset that one's second factor."""


def is_enrolled(user_id: int) -> bool:
    """Does this person sign in with a code?"""
    return SecondFactor.objects.filter(user_id=user_id, confirmed_at__isnull=False).exists()


def is_missing(user: User) -> bool:
    """Must this person have a second factor, and has none?"""
    return bool(settings.APPROVERS_NEED_CODE) and not is_enrolled(user.pk)


def get_pending(user_id: int) -> SecondFactor | None:
    """What is being set up and not confirmed yet."""
    return SecondFactor.objects.filter(user_id=user_id, confirmed_at__isnull=True).first()


def count_recovery_codes(user_id: int) -> int:
    """How many are left."""
    return RecoveryCode.objects.filter(factor__user_id=user_id, used_at__isnull=True).count()


def secret_of(factor: SecondFactor) -> str:
    """The secret as people type it: base32, in groups of four."""
    text = base64.b32encode(_key(factor)).decode()
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))


def address_of(factor: SecondFactor) -> str:
    """The otpauth:// address that an app reads from a picture."""
    return _totp(_key(factor)).get_provisioning_uri(factor.user.username, ISSUER)


@transaction.atomic
def begin(*, user_id: int, now: datetime) -> SecondFactor:
    """Make a secret for this person's app, in place of one that was never confirmed.

    Raises AlreadyThereError.
    """
    user = _lock_user(user_id)
    if is_enrolled(user.pk):
        raise AlreadyThereError
    secret = encrypt(secrets.token_hex(SECRET_BYTES))
    factor, _ = SecondFactor.objects.update_or_create(
        user=user,
        defaults={
            "secret_encrypted": secret,
            "created_at": now,
            "last_counter": 0,
            "failures": 0,
            "blocked_until": None,
        },
    )
    return factor


@transaction.atomic
def confirm(*, user_id: int, code: str, now: datetime) -> list[str]:
    """Turn it on with the app's first code. Returns the recovery codes, shown this once.

    Every other session of this person ends. An empty list when the code was wrong or too many were
    tried. Raises AlreadyThereError.
    """
    user = _lock_user(user_id)
    factor = SecondFactor.objects.select_for_update().filter(user=user).first()
    if factor is not None and factor.confirmed_at is not None:
        raise AlreadyThereError
    if factor is None or _try(factor, code, now, with_recovery=False) != Proof.RIGHT:
        return []
    factor.confirmed_at = now
    factor.save(update_fields=["confirmed_at"])
    _record(user, "second_factor.added", actor=user.actor, now=now)
    end_sessions(user)
    return _write_codes(factor)


@transaction.atomic
def prove(*, user_id: int, code: str, now: datetime, with_recovery: bool = False) -> Proof:
    """Is this a code of this person's app that was not used before?

    A right one counts once; `with_recovery` takes an unused recovery code as well. After wrong ones
    in a row it is WAIT for a while, whatever the code.
    """
    factor = (
        SecondFactor.objects.select_for_update(of=("self",))
        .select_related("user")
        .filter(user_id=user_id, confirmed_at__isnull=False)
        .first()
    )
    if factor is None:
        return Proof.NO_FACTOR
    return _try(factor, code, now, with_recovery=with_recovery)


@transaction.atomic
def renew_codes(*, user_id: int, now: datetime) -> list[str]:
    """Ten fresh recovery codes in place of all earlier ones; empty without a second factor."""
    user = _lock_user(user_id)
    factor = SecondFactor.objects.filter(user=user, confirmed_at__isnull=False).first()
    if factor is None:
        return []
    _record(user, "second_factor.codes_renewed", actor=user.actor, now=now)
    return _write_codes(factor)


@transaction.atomic
def remove(*, user_id: int, by: User, reason: str = "", now: datetime) -> bool:
    """Sign-in asks for no code any more, until a factor is set up anew; all sessions end.

    One's own where it is not required, or as an admin of that person's shop (one without a shop:
    of anybody). Raises NotAllowedError. False when there was none.
    """
    user = _lock_user(user_id)
    is_own = by.pk == user.pk
    if is_own and settings.APPROVERS_NEED_CODE and user.can_approve:
        raise NotAllowedError
    if not is_own and not (by.is_admin and by.shop_id in {None, user.shop_id}):
        raise NotAllowedError
    if not is_own and user.shop_id is None and by.shop_id is not None:
        raise NotAllowedError
    gone, _ = SecondFactor.objects.filter(user=user).delete()
    if not gone:
        return False
    what = "removed" if is_own else "reset"
    _record(user, f"second_factor.{what}", actor=by.actor, now=now, reason=reason[:500])
    end_sessions(user)
    return True


def end_sessions(user: User) -> None:
    """Sign this person out everywhere: at once for pages, at their next request for everything."""
    user.session_epoch += 1
    user.save(update_fields=["session_epoch"])


def _try(factor: SecondFactor, code: str, now: datetime, *, with_recovery: bool) -> Proof:
    """With the factor locked."""
    if factor.blocked_until is not None and factor.blocked_until > now:
        return Proof.WAIT
    typed = code.replace(" ", "").replace("-", "").strip()
    counter = _counter_of(factor, typed, now)
    if counter is not None:
        factor.last_counter = counter
    elif not (with_recovery and _use_recovery_code(factor, typed, now)):
        return _note_failure(factor, now)
    factor.failures = 0
    factor.blocked_until = None
    factor.save(update_fields=["last_counter", "failures", "blocked_until"])
    return Proof.RIGHT


def _counter_of(factor: SecondFactor, typed: str, now: datetime) -> int | None:
    """The time step whose code this is, if none as young was taken before."""
    if not (len(typed) == DIGITS and typed.isascii() and typed.isdigit()):
        return None
    totp = _totp(_key(factor))
    here = int(now.timestamp()) // STEP
    found = None
    for counter in range(here - DRIFT, here + DRIFT + 1):
        is_it = hmac.compare_digest(totp.generate(counter * STEP), typed.encode())
        if is_it and counter > factor.last_counter and found is None:
            found = counter
    return found


def _use_recovery_code(factor: SecondFactor, typed: str, now: datetime) -> bool:
    unused = RecoveryCode.objects.filter(
        factor=factor, digest=_digest(typed.upper()), used_at__isnull=True
    )
    if unused.update(used_at=now) != 1:
        return False
    left = count_recovery_codes(factor.user_id)
    _record(factor.user, "second_factor.recovery_used", actor=factor.user.actor, now=now, left=left)
    return True


def _note_failure(factor: SecondFactor, now: datetime) -> Proof:
    factor.failures += 1
    if factor.failures % TRIES == 0:
        longer = FIRST_BLOCK * 2 ** min(factor.failures // TRIES - 1, 10)
        factor.blocked_until = now + min(longer, LONGEST_BLOCK)
        _record(factor.user, "second_factor.blocked", actor="system", now=now)
    factor.save(update_fields=["failures", "blocked_until"])
    return Proof.WRONG


def _write_codes(factor: SecondFactor) -> list[str]:
    """Replace all recovery codes; 80 random bits each, so that a plain digest hides them."""
    RecoveryCode.objects.filter(factor=factor).delete()
    codes = [base64.b32encode(secrets.token_bytes(10)).decode() for _ in range(RECOVERY_CODES)]
    RecoveryCode.objects.bulk_create(
        RecoveryCode(factor=factor, digest=_digest(code)) for code in codes
    )
    return ["-".join(code[at : at + 4] for at in range(0, 16, 4)) for code in codes]


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


def _key(factor: SecondFactor) -> bytes:
    return bytes.fromhex(decrypt(factor.secret_encrypted))


def _totp(key: bytes) -> TOTP:
    return TOTP(key, DIGITS, SHA1(), STEP)  # noqa: S303 - what the apps speak; HMAC needs no more


def _lock_user(user_id: int) -> User:
    return User.objects.select_for_update().get(pk=user_id)


def _record(user: User, action: str, *, actor: str, now: datetime, **data: object) -> None:
    audit.record(
        actor=actor,
        action=action,
        subject=f"user:{user.pk}",
        at=now,
        shop_id=user.shop_id,
        data={
            "user": user.username,
            **{name: value for name, value in data.items() if value != ""},
        },
    )
