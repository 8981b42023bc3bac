"""What makes an identity token good, and that a bad one changes nothing."""

import base64
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts import keyring
from accounts.identity import IdentityError, recheck_identity, verify_identity
from accounts.models import Customer, CustomerStatus, Delegation
from audit.models import Event
from tests.accounts.factories import Signer, make_customer, make_shop

pytestmark = pytest.mark.django_db
SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def signer() -> Signer:
    return Signer(make_shop(locale="en"))


def refusal(token: str) -> str:
    """The code with which the token is refused, after checking that nothing was written."""
    before = (list(Customer.objects.values()), Event.objects.count(), Delegation.objects.count())
    with (
        CaptureQueriesContext(
            connection,
        ) as queries,
        pytest.raises(IdentityError) as caught,
    ):
        verify_identity(token)
    assert [q["sql"] for q in queries if not q["sql"].startswith("SELECT")] == []
    after = (list(Customer.objects.values()), Event.objects.count(), Delegation.objects.count())
    assert after == before
    assert str(caught.value) == "The identity token is not valid."
    return caught.value.code


def raw(header: Any, claims: Any, signature: bytes = b"") -> str:
    """A token whose parts nobody checked."""
    parts = [json.dumps(part).encode() for part in (header, claims)] + [signature]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def in_an_hour(minutes: int = 60) -> int:
    return int((timezone.now() + timedelta(minutes=minutes)).timestamp())


def test_a_good_token_names_the_customer_and_enrols_them(signer):
    identity = verify_identity(signer.sign())

    customer = Customer.objects.get()
    assert (identity.shop_id, identity.customer_id) == (signer.shop.pk, customer.pk)
    assert (identity.external_id, identity.name, identity.locale) == (
        "ada",
        "Ada Lovelace",
        "en-GB",
    )
    assert identity.expires_at - identity.issued_at == timedelta(minutes=10)
    assert (customer.email, customer.actor) == ("ada@example.com", "customer:ada")
    event = Event.objects.get()
    assert (event.action, event.actor, event.customer) == (
        "customer.enrolled",
        "customer:ada",
        "ada",
    )


def test_the_same_token_again_writes_nothing(signer):
    token = signer.sign()
    first = verify_identity(token)

    with CaptureQueriesContext(connection) as queries:
        again = verify_identity(token)

    assert again == first
    assert {q["sql"].split()[0] for q in queries} == {"SELECT"}


def test_what_the_shop_tells_anew_is_kept_and_only_that_is_written(signer):
    verify_identity(signer.sign())

    verify_identity(signer.sign(email="countess@example.com"))

    customer = Customer.objects.get()
    assert (customer.email, customer.name) == ("countess@example.com", "Ada Lovelace")
    event = Event.objects.get(action="customer.changed")
    assert event.data == {"fields": ["email"]}


Forge = Callable[[Signer], str]


def _alg_none(s: Signer) -> str:
    return jwt.encode(s.claims(), "", algorithm="none", headers={"kid": s.kid})


def _public_key_as_hmac_secret(s: Signer) -> str:
    """The classic swap: the public key, which everybody has, as a shared secret."""
    public = s.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return jwt.encode(s.claims(), public, algorithm="HS256", headers={"kid": s.kid})


def _rsa(s: Signer) -> str:
    key = generate_private_key(public_exponent=65537, key_size=2048)
    return jwt.encode(s.claims(), key, algorithm="RS256", headers={"kid": s.kid})


def _other_key(s: Signer) -> str:
    key = Ed25519PrivateKey.generate()
    return jwt.encode(s.claims(), key, algorithm="EdDSA", headers={"kid": s.kid})


def _with_key_inside(s: Signer) -> str:
    """Brings its own key along and asks to be checked with that."""
    other = Signer(make_shop(), "key-1")
    header = {"kid": s.kid, "jwk": other.row.public_jwk, "jku": "http://127.0.0.1:9/jwks"}
    return jwt.encode(s.claims(), other.private, algorithm="EdDSA", headers=header)


def _changed_claims(s: Signer) -> str:
    head, _, signature = s.sign().split(".")
    forged = raw({}, s.claims(sub="bob")).split(".")[1]
    return f"{head}.{forged}.{signature}"


def _without_signature(s: Signer) -> str:
    return s.sign().rpartition(".")[0] + "."


def _other_shops_key(s: Signer) -> str:
    """Signed by a real shop of ours, in another shop's name."""
    other = Signer(make_shop(), s.kid)
    return other.sign(iss=s.shop.identity_issuer)


def _key_id(kid: object) -> Forge:
    def forge(s: Signer) -> str:
        return raw({"alg": "EdDSA", "typ": "JWT", "kid": kid}, s.claims(), b"x" * 64)

    return forge


def minutes_from_now(minutes: int) -> Callable[[], int]:
    """Counted when the token is made: these tests may run long after they were collected."""
    return lambda: in_an_hour(minutes)


def _claims(**changes: Any) -> Forge:
    return lambda s: s.sign(
        **{name: value() if callable(value) else value for name, value in changes.items()}
    )


def _header(**headers: Any) -> Forge:
    return lambda s: s.sign(headers=headers)


FORGERIES: list[tuple[str, str, Forge]] = [
    ("alg none", "wrong_algorithm", _alg_none),
    ("alg None in capitals", "wrong_algorithm",
     lambda s: raw({"alg": "NONE", "typ": "JWT", "kid": s.kid}, s.claims())),
    ("public key as shared secret", "wrong_algorithm", _public_key_as_hmac_secret),
    ("RSA", "wrong_algorithm", _rsa),
    ("another key", "bad_signature", _other_key),
    ("its own key in the header", "bad_signature", _with_key_inside),
    ("claims changed after signing", "bad_signature", _changed_claims),
    ("signature left out", "bad_signature", _without_signature),
    ("another shop's key", "bad_signature", _other_shops_key),
    ("unknown kid", "unknown_key", _header(kid="key-2")),
    ("no kid", "unknown_key", lambda s: raw({"alg": "EdDSA", "typ": "JWT"}, s.claims(), b"x" * 64)),
    ("kid is a path", "unknown_key", _header(kid="../../../dev/null")),
    ("kid is an address", "unknown_key", _header(kid="http://127.0.0.1:9/key-1")),
    ("kid with SQL", "unknown_key", _header(kid="' OR 1=1 --")),
    ("kid with NUL", "unknown_key", _header(kid="key-1\x00")),
    ("kid with a line end", "unknown_key", _header(kid="key-1\n")),
    ("kid is no text", "malformed", _key_id(1)),
    ("kid is a list", "malformed", _key_id(["key-1"])),
    ("typ is something else", "wrong_type", _header(typ="at+jwt")),
    ("no typ", "wrong_type", _header(typ=None)),
    ("critical header", "malformed", _header(crit=["exp"])),
    ("wrong audience", "wrong_audience", _claims(aud="another-service")),
    ("two audiences", "wrong_audience", _claims(aud=["countersign", "another-service"])),
    ("no audience", "missing_claim", _claims(aud=None)),
    ("wrong issuer", "unknown_key", _claims(iss="shop-of-nobody")),
    ("issuer with NUL", "unknown_key", _claims(iss="issuer\x00")),
    ("issuer with a lone surrogate", "unknown_key", _claims(iss="\ud800")),
    ("no issuer", "unknown_key", _claims(iss=None)),
    ("no exp", "missing_claim", _claims(exp=None)),
    ("no iat", "missing_claim", _claims(iat=None)),
    ("no sub", "missing_claim", _claims(sub=None)),
    ("expired", "expired", _claims(iat=minutes_from_now(-20), exp=minutes_from_now(-10))),
    ("exp in ten years", "lifetime", _claims(exp=minutes_from_now(10 * 365 * 24 * 60))),
    ("a minute over an hour", "lifetime", lambda s: s.sign(exp=s.claims()["iat"] + 3660)),
    ("exp before iat", "lifetime", lambda s: s.sign(exp=s.claims()["iat"] - 1)),
    ("exp is text", "malformed", _claims(exp=lambda: str(in_an_hour(5)))),
    ("exp is true", "expired", _claims(exp=True)),
    ("exp is infinite", "malformed", _claims(exp=float("inf"))),
    ("exp is not a number", "malformed", _claims(exp=float("nan"))),
    ("iat is not a number", "malformed", _claims(iat=float("nan"))),
    ("exp has 400 digits", "malformed", _claims(exp=10**400)),
    ("iat before 1970", "malformed", _claims(iat=-1)),
    ("iat in the future", "not_yet_valid", _claims(iat=minutes_from_now(5), exp=minutes_from_now(15))),
    ("nbf in the future", "not_yet_valid", _claims(nbf=minutes_from_now(5))),
    ("sub is a path", "bad_subject", _claims(sub="../bob")),
    ("sub is empty", "bad_subject", _claims(sub="")),
    ("sub with a space", "bad_subject", _claims(sub="ada bob")),
    ("sub with NUL", "bad_subject", _claims(sub="ada\x00")),
    ("sub with a line end", "bad_subject", _claims(sub="ada\n")),
    ("sub looks like an actor", "bad_subject", _claims(sub="staff:dana")),
    ("sub is too long", "bad_subject", _claims(sub="a" * 121)),
    ("sub is a number", "bad_subject", _claims(sub=7)),
    ("empty", "malformed", lambda s: ""),
    ("not a token", "malformed", lambda s: "let me in"),
    ("one part", "malformed", lambda s: s.sign().split(".")[0]),
    ("four parts", "malformed", lambda s: s.sign() + ".x"),
    ("not ASCII", "malformed", lambda s: s.sign() + "é"),
    ("too long", "malformed", lambda s: s.sign(name="x" * 9000)),
    ("claims are a list", "malformed",
     lambda s: raw({"alg": "EdDSA", "typ": "JWT", "kid": s.kid}, [1], b"x" * 64)),
    ("nested deeply", "malformed",
     lambda s: ".".join([s.sign().split(".")[0], base64.urlsafe_b64encode(b"[" * 5000).decode(), "x"])),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "forge"), [row[1:] for row in FORGERIES], ids=[row[0] for row in FORGERIES]
)
@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
def test_a_bad_token_is_refused_and_nothing_is_written(signer, code, forge):
    make_customer(signer.shop, external_id="ada", name="Ada as before")

    assert refusal(forge(signer)) == code


def test_the_log_tells_the_reason_and_nothing_of_the_token(signer, caplog):
    caplog.set_level(logging.INFO, logger="accounts.identity")
    token = signer.sign(aud="another-service")

    refusal(token)

    assert caplog.messages == ["identity token refused: wrong_audience"]
    assert token not in caplog.text


def test_clocks_may_differ_by_half_a_minute_and_no_more(signer):
    now = int(timezone.now().timestamp())

    verify_identity(signer.sign(iat=now + 20, nbf=now + 20, exp=now + 600))
    verify_identity(signer.sign(iat=now - 600, exp=now - 20))

    assert refusal(signer.sign(iat=now - 600, exp=now - 35)) == "expired"
    assert refusal(signer.sign(nbf=now + 35)) == "not_yet_valid"


def test_a_lifetime_of_exactly_an_hour_is_accepted(signer):
    assert verify_identity(signer.sign(exp=signer.claims()["iat"] + 3600)).external_id == "ada"


def test_a_shared_secret_works_for_its_own_shop_only():
    shop, other = make_shop(), make_shop()
    for number, of in enumerate((shop, other)):
        keyring.add_secret(
            shop_id=of.pk, kid="shared", secret=f"{SECRET}{number}", actor="admin:root", now=timezone.now()
        )  # fmt: skip
    claims = Signer(shop, "unused").claims()

    def token(secret: str) -> str:
        return jwt.encode(claims, secret, algorithm="HS256", headers={"kid": "shared"})

    assert verify_identity(token(f"{SECRET}0")).shop_id == shop.pk
    assert refusal(token(f"{SECRET}1")) == "bad_signature"


def test_a_token_with_eddsa_does_not_pass_for_a_key_with_a_shared_secret(signer):
    keyring.add_secret(
        shop_id=signer.shop.pk, kid="shared", secret=SECRET, actor="admin:root", now=timezone.now()
    )

    assert refusal(signer.sign(headers={"kid": "shared"})) == "wrong_algorithm"


def test_two_keys_overlap_while_the_shop_changes_from_one_to_the_other(signer):
    old, new = signer.sign(), Signer(signer.shop, "key-2").sign()

    assert verify_identity(old) == verify_identity(old)
    assert verify_identity(new).external_id == "ada"

    signer.row.retired_at = timezone.now()
    signer.row.save()
    assert refusal(old) == "unknown_key"
    assert verify_identity(new).external_id == "ada"


def test_a_key_that_is_not_active_yet_proves_nothing():
    early = Signer(make_shop(), active_from=timezone.now() + timedelta(minutes=1))

    assert refusal(early.sign()) == "unknown_key"


def test_a_blocked_customer_is_refused(signer):
    make_customer(signer.shop, external_id="ada", status=CustomerStatus.BLOCKED)

    assert refusal(signer.sign()) == "blocked"


def test_a_token_from_before_the_sign_out_is_refused_and_a_later_one_is_not(signer):
    now = int(timezone.now().timestamp())
    signed_out_at = datetime.fromtimestamp(now - 60, UTC) + timedelta(milliseconds=500)
    make_customer(signer.shop, external_id="ada", tokens_valid_after=signed_out_at)

    assert refusal(signer.sign(iat=now - 61)) == "signed_out"
    assert refusal(signer.sign(iat=now - 60)) == "signed_out"
    assert verify_identity(signer.sign(iat=now - 59)).external_id == "ada"


def test_an_identity_that_was_verified_ends_with_its_time_a_sign_out_or_a_block(signer):
    identity = verify_identity(signer.sign())
    recheck_identity(identity)
    customer = Customer.objects.filter(pk=identity.customer_id)

    customer.update(tokens_valid_after=timezone.now() + timedelta(seconds=1))
    with pytest.raises(IdentityError) as signed_out:
        recheck_identity(identity)
    customer.update(tokens_valid_after=None, status=CustomerStatus.BLOCKED)
    with pytest.raises(IdentityError) as blocked:
        recheck_identity(identity)
    customer.update(status=CustomerStatus.ACTIVE)
    old = verify_identity(
        signer.sign(iat=in_an_hour(-10), exp=int(timezone.now().timestamp()) - 10)
    )
    with pytest.raises(IdentityError) as expired:
        recheck_identity(old)

    codes = [caught.value.code for caught in (signed_out, blocked, expired)]
    assert codes == ["signed_out", "blocked", "expired"]


def test_odd_names_addresses_and_locales_are_made_harmless(signer):
    verify_identity(
        signer.sign(
            name="Ada\r\n\x00\u202eLovelace \ud800" + "x" * 500,
            email="ada@example.com\r\nBcc: all@example.com",
            locale="../../etc",
        )
    )

    customer = Customer.objects.get()
    assert customer.name == ("AdaLovelace " + "x" * 500)[:200]
    assert (customer.email, customer.locale) == ("", "en")


def test_claims_of_the_wrong_kind_count_as_not_told(signer):
    verify_identity(signer.sign(name=["Ada"], email=7, locale={}))

    customer = Customer.objects.get()
    assert (customer.name, customer.email, customer.locale) == ("", "", "en")


def test_claims_about_shop_role_and_limits_mean_nothing(signer):
    identity = verify_identity(
        signer.sign(shop_id=999, customer_id=999, role="admin", staff_limit=10**9, approved=True)
    )

    assert identity.shop_id == signer.shop.pk
    assert identity.customer_id == Customer.objects.get().pk


def test_equal_ids_at_two_shops_are_two_customers(signer):
    other = Signer(make_shop())

    first, second = verify_identity(signer.sign()), verify_identity(other.sign())

    assert first.external_id == second.external_id == "ada"
    assert first.customer_id != second.customer_id
