"""Codes of an app: right once, wrong ones slow it down, lost ones have a way back."""

import base64
import re
import threading
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.db import connection

from accounts import second_factor
from accounts.models import RecoveryCode, Role, SecondFactor, User
from accounts.rights import get_countersigner
from accounts.second_factor import LONGEST_BLOCK, RECOVERY_CODES, TRIES, Proof
from audit.models import Event
from tests.accounts.factories import make_customer, make_shop, make_user
from tests.two_people import make_admin

NOW = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)
STEP = timedelta(seconds=30)


def code_of(factor: SecondFactor, at: datetime = NOW) -> str:
    """What an app shows that was given the secret as text."""
    key = base64.b32decode(second_factor.secret_of(factor).replace(" ", ""))
    return TOTP(key, 6, SHA1(), 30).generate(int(at.timestamp())).decode()  # noqa: S303


def wrong_for(factor: SecondFactor) -> str:
    near = {code_of(factor, NOW + n * STEP) for n in range(-3, 40)}
    return next(f"{n:06}" for n in range(1000) if f"{n:06}" not in near)


def prove(user: User, code: str, at: datetime = NOW, **options: bool) -> Proof:
    return second_factor.prove(user_id=user.pk, code=code, now=at, **options)


@pytest.fixture
def user(db) -> User:
    return make_user(make_shop(), is_approver=True)


@pytest.fixture
def codes(user: User) -> list[str]:
    """Set up with the code of two steps ago; the recovery codes."""
    early = NOW - 2 * STEP
    factor = second_factor.begin(user_id=user.pk, now=early)
    return second_factor.confirm(user_id=user.pk, code=code_of(factor, early), now=early)


@pytest.fixture
def factor(user: User, codes: list[str]) -> SecondFactor:
    return SecondFactor.objects.get(user=user)


def test_it_is_on_only_after_the_apps_first_code(user):
    factor = second_factor.begin(user_id=user.pk, now=NOW)
    assert not second_factor.is_enrolled(user.pk)
    assert second_factor.confirm(user_id=user.pk, code=wrong_for(factor), now=NOW) == []
    assert not second_factor.is_enrolled(user.pk)
    assert prove(user, code_of(factor)) == Proof.NO_FACTOR

    codes = second_factor.confirm(user_id=user.pk, code=code_of(factor), now=NOW)

    assert second_factor.is_enrolled(user.pk)
    assert len(set(codes)) == RECOVERY_CODES
    assert [event.action for event in Event.objects.all()] == ["second_factor.added"]


def test_what_an_app_reads_is_an_address_with_the_secret_and_the_name(user):
    factor = second_factor.begin(user_id=user.pk, now=NOW)
    secret = second_factor.secret_of(factor).replace(" ", "")

    address = second_factor.address_of(factor)

    assert re.fullmatch(r"otpauth://totp/Countersign:[\w-]+\?.*issuer=Countersign.*", address)
    assert f"secret={secret}" in address


def test_neither_secret_nor_recovery_code_is_in_the_database(factor, codes):
    assert base64.b32decode(second_factor.secret_of(factor).replace(" ", "")).hex().encode() not in bytes(factor.secret_encrypted)  # fmt: skip
    kept = set(RecoveryCode.objects.values_list("digest", flat=True))
    assert len(kept) == RECOVERY_CODES
    assert not kept & {code.replace("-", "") for code in codes}


@pytest.mark.parametrize("steps", [-1, 0, 1])
def test_a_code_of_a_clock_that_is_a_little_off_is_right(user, factor, steps):
    assert prove(user, code_of(factor, NOW + steps * STEP)) == Proof.RIGHT


@pytest.mark.parametrize("steps", [-3, 2, 10])
def test_an_older_or_a_younger_one_is_not(user, factor, steps):
    assert prove(user, code_of(factor, NOW + steps * STEP)) == Proof.WRONG


def test_no_code_is_taken_twice_nor_one_older_than_the_last(user, factor):
    assert prove(user, code_of(factor, NOW)) == Proof.RIGHT

    assert prove(user, code_of(factor, NOW)) == Proof.WRONG
    assert prove(user, code_of(factor, NOW - STEP)) == Proof.WRONG
    assert prove(user, code_of(factor, NOW + STEP), NOW + STEP) == Proof.RIGHT


def test_the_code_that_turned_it_on_signs_nobody_in(user, factor):
    early = NOW - 2 * STEP

    assert prove(user, code_of(factor, early), early) == Proof.WRONG


@pytest.mark.parametrize(
    "odd",
    [
        "",
        "12345",
        "1234567",
        "abcdef",
        "".join(chr(0xFF11 + n) for n in range(6)),
        "12345\n",
        "٣٤٥٦٧٨",
    ],
)
def test_what_is_no_code_is_wrong_and_nothing_worse(user, factor, odd):
    assert prove(user, odd, with_recovery=True) == Proof.WRONG


def test_blanks_in_a_code_do_not_matter(user, factor):
    code = code_of(factor)

    assert prove(user, f" {code[:3]} {code[3:]} ") == Proof.RIGHT


def test_after_five_wrong_ones_nothing_is_looked_at_for_longer_each_time(user, factor):
    at = NOW
    blocks = []
    for _ in range(8):
        for _ in range(TRIES):
            assert prove(user, wrong_for(factor), at) == Proof.WRONG
        assert prove(user, code_of(factor, at), at) == Proof.WAIT
        blocked_until = SecondFactor.objects.get().blocked_until
        assert blocked_until is not None
        blocks.append(blocked_until - at)
        at = blocked_until

    assert blocks[:3] == [timedelta(seconds=30), timedelta(minutes=1), timedelta(minutes=2)]
    assert blocks[-1] == LONGEST_BLOCK
    assert Event.objects.filter(action="second_factor.blocked").count() == 8
    assert prove(user, code_of(factor, at), at) == Proof.RIGHT
    assert SecondFactor.objects.get().failures == 0


def test_a_recovery_code_is_taken_once_where_it_is_asked_for(user, factor, codes):
    assert prove(user, codes[0]) == Proof.WRONG
    assert prove(user, codes[0].lower(), with_recovery=True) == Proof.RIGHT
    assert prove(user, codes[0], with_recovery=True) == Proof.WRONG

    event = Event.objects.get(action="second_factor.recovery_used")
    assert event.data["left"] == RECOVERY_CODES - 1
    assert codes[0] not in str(event.data)


def test_new_recovery_codes_end_the_old_ones(user, factor, codes):
    fresh = second_factor.renew_codes(user_id=user.pk, now=NOW)

    assert prove(user, codes[0], with_recovery=True) == Proof.WRONG
    assert prove(user, fresh[0], with_recovery=True) == Proof.RIGHT


def test_one_that_is_there_is_not_quietly_replaced(user, factor):
    before = bytes(factor.secret_encrypted)

    with pytest.raises(second_factor.AlreadyThereError):
        second_factor.begin(user_id=user.pk, now=NOW)
    with pytest.raises(second_factor.AlreadyThereError):
        second_factor.confirm(user_id=user.pk, code=code_of(factor), now=NOW)

    assert bytes(SecondFactor.objects.get().secret_encrypted) == before


# --- Taking it away -----------------------------------------------------------------------------


def test_an_admin_of_the_shop_resets_it_and_it_is_on_the_trail(user, factor):
    chief = make_admin(user.shop)

    assert second_factor.remove(user_id=user.pk, by=chief, reason="Lost phone.", now=NOW)

    assert not second_factor.is_enrolled(user.pk)
    event = Event.objects.get(action="second_factor.reset")
    assert (event.actor, event.data) == (
        chief.actor,
        {"user": user.username, "reason": "Lost phone."},
    )
    user.refresh_from_db()
    assert user.session_epoch == 2  # once as it was set up, once now


def test_nobody_else_resets_it(user, factor):
    others = [
        make_user(user.shop, is_approver=True),
        make_user(user.shop, role=Role.AUDITOR),
        make_admin(make_shop()),
        make_admin(user.shop, is_active=False),
    ]
    before = Event.objects.count()

    for other in others:
        with pytest.raises(second_factor.NotAllowedError):
            second_factor.remove(user_id=user.pk, by=other, reason="x", now=NOW)

    assert second_factor.is_enrolled(user.pk)
    assert Event.objects.count() == before


def test_an_admin_of_one_shop_does_not_reset_one_of_all_shops(user):
    chief = make_admin()
    started = second_factor.begin(user_id=chief.pk, now=NOW)
    second_factor.confirm(user_id=chief.pk, code=code_of(started), now=NOW)

    with pytest.raises(second_factor.NotAllowedError):
        second_factor.remove(user_id=chief.pk, by=make_admin(user.shop), reason="x", now=NOW)


def test_where_it_is_required_an_approver_keeps_their_own(user, factor, settings):
    settings.APPROVERS_NEED_CODE = True
    with pytest.raises(second_factor.NotAllowedError):
        second_factor.remove(user_id=user.pk, by=user, now=NOW)

    settings.APPROVERS_NEED_CODE = False
    assert second_factor.remove(user_id=user.pk, by=user, now=NOW)


def test_where_it_is_required_nobody_countersigns_without(user, settings):
    customer = make_customer(user.shop)
    settings.APPROVERS_NEED_CODE = True
    assert get_countersigner(user.pk, customer=customer) is None

    started = second_factor.begin(user_id=user.pk, now=NOW)
    assert get_countersigner(user.pk, customer=customer) is None
    second_factor.confirm(user_id=user.pk, code=code_of(started), now=NOW)

    assert get_countersigner(user.pk, customer=customer) == user


@pytest.mark.django_db(transaction=True)
def test_of_two_with_the_same_code_at_once_one_is_right():
    user = make_user(make_shop())
    started = second_factor.begin(user_id=user.pk, now=NOW - 4 * STEP)
    early = NOW - 3 * STEP
    second_factor.confirm(user_id=user.pk, code=code_of(started, early), now=early)
    code = code_of(started)
    gate, found = threading.Barrier(2), []

    def run() -> None:
        gate.wait(10)
        found.append(prove(user, code))
        connection.close()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(proof.value for proof in found) == ["right", "wrong"]
