"""Who a shop says its customer is: the one place where an identity token is believed."""

import logging
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import jwt
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from jwt.exceptions import InvalidSubjectError

from accounts.keeping import is_leaving
from accounts.keys import decrypt
from accounts.models import Customer, CustomerStatus, KeyAlgorithm, Shop, SigningKey
from accounts.validators import is_key_id, is_locale, is_plain_id
from audit import services as audit

MAX_TOKEN = 8192  # characters
MAX_LIFETIME = 3600  # seconds
LEEWAY = 30  # seconds
MAX_TIME = 2**40  # seconds since 1970; far beyond any real time, far below what overflows
REQUIRED_CLAIMS = ["iss", "aud", "sub", "iat", "exp"]

_CODES: tuple[tuple[type[jwt.PyJWTError], str], ...] = (
    (jwt.ExpiredSignatureError, "expired"),
    (jwt.ImmatureSignatureError, "not_yet_valid"),
    (jwt.InvalidAudienceError, "wrong_audience"),
    (jwt.InvalidIssuerError, "wrong_issuer"),
    (jwt.MissingRequiredClaimError, "missing_claim"),
    (InvalidSubjectError, "bad_subject"),
    (jwt.InvalidAlgorithmError, "wrong_algorithm"),
    (jwt.InvalidSignatureError, "bad_signature"),
)
_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNPRINTABLE = frozenset({"Cc", "Cs", "Cn", "Co", "Zl", "Zp"})

logger = logging.getLogger(__name__)


class IdentityError(Exception):
    """The token proves nothing. Outside it always reads the same; `code` is for our log."""

    def __init__(self, code: str) -> None:
        super().__init__("The identity token is not valid.")
        self.code = code


@dataclass(frozen=True)
class Identity:
    """A customer whom their shop has vouched for, until `expires_at`."""

    shop_id: int
    customer_id: int
    external_id: str
    name: str
    locale: str
    issued_at: datetime
    expires_at: datetime


def verify_identity(token: str) -> Identity:
    """The customer whom this token names; their name, e-mail and locale are kept up to date.

    Raises IdentityError, and then nothing was written. Writes nothing either when the shop says
    nothing new.
    """
    try:
        shop, claims = _verified(token)
        return _welcome(shop, claims)
    except IdentityError as exc:
        logger.info("identity token refused: %s", exc.code)
        raise


def recheck_identity(identity: Identity) -> None:
    """Does an identity that was verified earlier still hold? One read.

    For connections that outlive a request. Raises IdentityError: expired, blocked, signed out.
    """
    if identity.expires_at <= timezone.now():
        raise IdentityError("expired")
    customer = Customer.objects.get(pk=identity.customer_id)
    refuse_unwelcome(customer, identity.issued_at)


def _verified(token: str) -> tuple[Shop, dict[str, Any]]:
    """The shop that signed the token and its claims, every one of them checked."""
    key = _signing_key(token)
    shop = key.shop
    try:
        claims = jwt.decode(
            token,
            key=_material(key),
            algorithms=[key.algorithm],
            audience=shop.identity_audience,
            issuer=shop.identity_issuer,
            leeway=LEEWAY,
            options={"require": REQUIRED_CLAIMS, "strict_aud": True},
        )
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as exc:
        code = next((code for kind, code in _CODES if isinstance(exc, kind)), "malformed")
        raise IdentityError(code) from exc
    _check_times(claims)
    if not is_plain_id(claims["sub"]):
        raise IdentityError("bad_subject")
    return shop, claims


def _signing_key(token: str) -> SigningKey:
    """The key that the token claims to be signed with.

    Nothing of the token is believed yet: issuer and key id only choose the key whose algorithm
    and material then decide.
    """
    if len(token) > MAX_TOKEN or not token.isascii():
        raise IdentityError("malformed")
    try:
        header = jwt.get_unverified_header(token)
        issuer = jwt.decode(token, options={"verify_signature": False}).get("iss")
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as exc:
        raise IdentityError("malformed") from exc
    kid = header.get("kid")
    if header.get("typ") != "JWT" or "crit" in header:
        raise IdentityError("wrong_type")
    if not is_key_id(kid) or not isinstance(issuer, str) or "\x00" in issuer:
        raise IdentityError("unknown_key")
    now = timezone.now()
    key = (
        SigningKey.objects.select_related("shop")
        .filter(shop__identity_issuer=_storable(issuer), kid=kid, active_from__lte=now)
        .filter(Q(retired_at__isnull=True) | Q(retired_at__gt=now))
        .first()
    )
    if key is None:
        raise IdentityError("unknown_key")
    return key


def _material(key: SigningKey) -> Any:
    if key.algorithm == KeyAlgorithm.HS256:
        return decrypt(key.secret_encrypted or b"").encode()
    return jwt.PyJWK(key.public_jwk or {}, algorithm=KeyAlgorithm.EDDSA.value).key


def _check_times(claims: dict[str, Any]) -> None:
    for name in ("exp", "iat", "nbf"):
        value = claims.get(name, 0)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        # Not a number fails every comparison, so it fails this one too.
        if not is_number or not 0 <= value < MAX_TIME:
            raise IdentityError("malformed")
    if not 0 < claims["exp"] - claims["iat"] <= MAX_LIFETIME:
        raise IdentityError("lifetime")


def _welcome(shop: Shop, claims: dict[str, Any]) -> Identity:
    issued_at = datetime.fromtimestamp(claims["iat"], UTC)
    told = {
        "name": _printable(claims.get("name"))[:200],
        "email": _email(claims.get("email")),
        "locale": claims["locale"] if is_locale(claims.get("locale")) else shop.locale,
    }
    customer = Customer.objects.filter(shop=shop, external_id=claims["sub"]).first()
    if customer is None:
        customer = _enrol(shop, claims["sub"], told)
    refuse_unwelcome(customer, issued_at)
    _keep_up_to_date(customer, told)
    return Identity(
        shop_id=shop.pk,
        customer_id=customer.pk,
        external_id=customer.external_id,
        name=customer.name,
        locale=customer.locale,
        issued_at=issued_at,
        expires_at=datetime.fromtimestamp(claims["exp"], UTC),
    )


def refuse_unwelcome(customer: Customer, issued_at: datetime) -> None:
    """Raises IdentityError when the customer is blocked, being erased, or signed out since `issued_at`."""
    if customer.status == CustomerStatus.BLOCKED:
        raise IdentityError("blocked")
    if is_leaving(customer.pk):
        raise IdentityError("erasing")
    # Tokens tell whole seconds: one issued in the second of the revocation does not count.
    if customer.tokens_valid_after is not None and issued_at < customer.tokens_valid_after:
        raise IdentityError("signed_out")


@transaction.atomic
def _enrol(shop: Shop, external_id: str, told: dict[str, str]) -> Customer:
    customer, created = Customer.objects.get_or_create(
        shop=shop, external_id=external_id, defaults=told
    )
    if created:
        _record(customer, "customer.enrolled", {})
    return customer


def _keep_up_to_date(customer: Customer, told: dict[str, str]) -> None:
    changed = [name for name, value in told.items() if getattr(customer, name) != value]
    if not changed:
        return
    for name in changed:
        setattr(customer, name, told[name])
    with transaction.atomic():
        customer.save(update_fields=changed)
        _record(customer, "customer.changed", {"fields": changed})


def _record(customer: Customer, action: str, data: dict[str, object]) -> None:
    """Names of fields only: what they held is personal."""
    audit.record(
        actor=customer.actor,
        action=action,
        subject=f"customer:{customer.pk}",
        at=timezone.now(),
        shop_id=customer.shop_id,
        customer=customer.external_id,
        data=data,
    )


def _printable(value: object) -> str:
    """The text without control characters, nor those that turn the writing direction."""
    if not isinstance(value, str):
        return ""
    kept = (
        c for c in value if unicodedata.category(c) not in _UNPRINTABLE and c not in _BIDI_CONTROLS
    )
    return "".join(kept).strip()


def _email(value: object) -> str:
    """The address when it is one, else "": mail is sent to nothing in between."""
    if not isinstance(value, str) or len(value) > 254:
        return ""
    try:
        validate_email(value)
    except ValidationError:
        return ""
    return value


def _storable(text: str) -> str:
    """The text without what PostgreSQL cannot be asked about."""
    return text.encode("utf-8", "replace").decode()
