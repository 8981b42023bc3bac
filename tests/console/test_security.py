"""One's own sign-in: the second step at the door and before money, sessions that end, resets."""

import base64
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.conf import settings as django_settings
from django.test import Client
from django.urls import reverse

from accounts import second_factor
from accounts.models import Role, SecondFactor, User
from accounts.views import sign_in as door
from audit.models import Event
from tests.api.clients import Api
from tests.console.desk import PASSWORD, decide, make_person, make_question, operation_of, text_of

SECURITY = "console:security"


class App:
    """An authenticator app whose every code is as fresh as if half a minute had passed."""

    def __init__(self, user: User) -> None:
        self.user = user

    def code(self) -> str:
        """The code of now; that one like it was taken before is forgotten."""
        factor = SecondFactor.objects.get(user=self.user)
        SecondFactor.objects.filter(pk=factor.pk).update(last_counter=0)
        key = base64.b32decode(second_factor.secret_of(factor).replace(" ", ""))
        now = int(datetime.now(UTC).timestamp())
        return TOTP(key, 6, SHA1(), 30).generate(now).decode()  # noqa: S303

    def set_up(self) -> list[str]:
        second_factor.begin(user_id=self.user.pk, now=datetime.now(UTC))
        code = self.code()
        return second_factor.confirm(user_id=self.user.pk, code=code, now=datetime.now(UTC))


@pytest.fixture
def app(approver) -> App:
    return App(approver)


def post(client: Client, name: str, *args: Any, **fields: Any) -> Any:
    """Send a form with the token of a page that this person can open."""
    token = client.get(reverse("console:login"), follow=True).context["csrf_token"]
    return client.post(
        reverse(f"console:{name}", args=args), {"csrfmiddlewaretoken": token} | fields
    )


def give_password(client: Client, user: User, **fields: Any) -> Any:
    return post(client, "login", username=user.username, password=PASSWORD, **fields)


def is_in(client: Client) -> bool:
    return client.get(reverse("console:queue")).status_code == 200


@pytest.fixture
def browser() -> Client:
    return Client(enforce_csrf_checks=True)


# --- At the door --------------------------------------------------------------------------------


def test_without_a_second_factor_the_password_is_enough(approver, browser):
    give_password(browser, approver)

    assert is_in(browser)


def test_with_one_the_password_alone_signs_nobody_in(app, approver, browser):
    app.set_up()

    answer = give_password(browser, approver)

    assert answer.headers["Location"] == reverse("console:login-code")
    assert not is_in(browser)
    assert "_auth_user_id" not in browser.session


def test_the_code_opens_the_door_and_leads_where_they_wanted(app, approver, browser):
    app.set_up()
    give_password(browser, approver, next=reverse("console:audit"))

    answer = post(browser, "login-code", code=app.code())

    assert answer.headers["Location"] == reverse("console:audit")
    assert is_in(browser)


def test_a_foreign_address_is_not_led_to(app, approver, browser):
    app.set_up()
    give_password(browser, approver, next="https://evil.example/")

    answer = post(browser, "login-code", code=app.code())

    assert answer.headers["Location"] == reverse("console:queue")


@pytest.mark.parametrize("code", ["", "000000x", "12345678901234567890"])
def test_a_wrong_code_opens_nothing(app, approver, browser, code):
    app.set_up()
    give_password(browser, approver)

    answer = post(browser, "login-code", code=code)

    assert answer.status_code == 403
    assert not is_in(browser)


def test_the_same_code_does_not_open_it_twice(app, approver, browser):
    app.set_up()
    code = app.code()
    give_password(browser, approver)
    assert post(browser, "login-code", code=code).status_code == 302
    other = Client(enforce_csrf_checks=True)
    give_password(other, approver)

    assert post(other, "login-code", code=code).status_code == 403
    assert not is_in(other)


def test_too_many_wrong_codes_shut_it_for_the_right_one_too(app, approver, browser):
    app.set_up()
    give_password(browser, approver)
    for _ in range(second_factor.TRIES):
        post(browser, "login-code", code="wrong")

    SecondFactor.objects.update(blocked_until=datetime.now(UTC) + timedelta(minutes=10))
    answer = post(browser, "login-code", code=app.code())

    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "60"
    assert not is_in(browser)


def test_a_recovery_code_opens_it_once(app, approver, browser):
    codes = app.set_up()
    give_password(browser, approver)
    assert post(browser, "login-code", code=codes[3]).status_code == 302
    assert is_in(browser)
    other = Client(enforce_csrf_checks=True)
    give_password(other, approver)

    assert post(other, "login-code", code=codes[3]).status_code == 403


def test_the_code_page_is_nobodys_without_the_password_first(app, approver, browser):
    app.set_up()

    assert browser.get(reverse("console:login-code")).headers["Location"] == reverse(
        "console:login"
    )
    assert post(browser, "login-code", code=app.code()).headers["Location"] == reverse(
        "console:login"
    )
    assert not is_in(browser)


def test_a_password_given_too_long_ago_is_given_again(app, approver, browser, monkeypatch):
    app.set_up()
    give_password(browser, approver)
    monkeypatch.setattr(door, "HALF_LIVES", 0)

    assert post(browser, "login-code", code=app.code()).headers["Location"] == reverse(
        "console:login"
    )
    assert not is_in(browser)


def test_a_password_changed_between_the_steps_is_given_again(app, approver, browser):
    app.set_up()
    give_password(browser, approver)
    approver.refresh_from_db()
    approver.set_password("another long password")
    approver.save()

    assert post(browser, "login-code", code=app.code()).headers["Location"] == reverse(
        "console:login"
    )


def test_somebody_switched_off_between_the_steps_stays_out(app, approver, browser):
    app.set_up()
    give_password(browser, approver)
    User.objects.filter(pk=approver.pk).update(is_active=False)

    assert post(browser, "login-code", code=app.code()).headers["Location"] == reverse(
        "console:login"
    )


def test_each_step_gives_the_session_a_new_key(app, approver, browser):
    app.set_up()
    browser.get(reverse("console:login"))
    keys = [browser.session.session_key]
    give_password(browser, approver)
    keys.append(browser.session.session_key)
    post(browser, "login-code", code=app.code())
    keys.append(browser.session.session_key)

    assert len(set(keys)) == 3


# --- Setting it up ------------------------------------------------------------------------------


def test_it_is_set_up_with_the_password_a_picture_and_a_first_code(app, approver, sign_in):
    client = sign_in(approver)
    assert post(client, "factor-begin", password="wrong").status_code == 403
    assert not SecondFactor.objects.exists()

    post(client, "factor-begin", password=PASSWORD)
    text = text_of(client.get(reverse(SECURITY)))
    assert 'src="data:image/svg+xml' in text
    assert second_factor.secret_of(SecondFactor.objects.get()) in text
    assert post(client, "factor-confirm", code="wrong").status_code == 422
    answer = post(client, "factor-confirm", code=app.code())

    codes = re.findall(r"\b(?:[A-Z2-7]{4}-){3}[A-Z2-7]{4}\b", text_of(answer))
    assert len(set(codes)) == 10
    assert is_in(client)
    later = text_of(client.get(reverse(SECURITY)))
    assert codes[0] not in later
    assert "data:image" not in later


def test_setting_it_up_signs_other_browsers_out(app, approver, sign_in):
    here, elsewhere = sign_in(approver), sign_in(approver)
    post(here, "factor-begin", password=PASSWORD)
    post(here, "factor-confirm", code=app.code())

    assert is_in(here)
    assert not is_in(elsewhere)


def test_nothing_on_the_page_is_done_by_looking_at_it(approver, sign_in):
    client = sign_in(approver)

    client.get(reverse(SECURITY))

    assert not SecondFactor.objects.exists()
    assert not Event.objects.exists()


def test_it_is_turned_off_with_a_code_and_not_where_it_is_required(
    app, approver, sign_in, settings
):
    app.set_up()
    approver.refresh_from_db()
    client = sign_in(approver)
    settings.APPROVERS_NEED_CODE = True
    assert post(client, "factor-remove", code=app.code()).status_code == 403
    settings.APPROVERS_NEED_CODE = False
    assert post(client, "factor-remove", password=PASSWORD).status_code == 403
    assert second_factor.is_enrolled(approver.pk)

    post(client, "factor-remove", code=app.code())

    assert not second_factor.is_enrolled(approver.pk)
    assert is_in(client)


def test_new_recovery_codes_take_a_code_of_the_app(app, approver, sign_in):
    codes = app.set_up()
    approver.refresh_from_db()
    client = sign_in(approver)
    assert post(client, "factor-codes", password=PASSWORD).status_code == 403

    answer = post(client, "factor-codes", code=app.code())

    assert answer.status_code == 200
    assert codes[0] not in text_of(answer)
    event = Event.objects.get(action="second_factor.codes_renewed")
    assert event.actor == approver.actor
    assert not [code for code in codes if code in str(event.data)]


# --- Before money -------------------------------------------------------------------------------


def test_money_asks_whoever_has_an_app_for_a_code_and_not_for_the_password(
    app, approver, shop, sign_in
):
    app.set_up()
    approver.refresh_from_db()
    client, approval = sign_in(approver), make_question(shop)
    assert "Fresh code from your app" in text_of(
        client.get(reverse("console:approval", args=[approval.public_id]))
    )

    refused = decide(client, approval, "approve")
    assert refused.status_code == 403
    assert "That is not a fresh code of your app. Nothing was decided." in text_of(refused)
    assert operation_of(approval).granted_roles == ["customer"]

    assert decide(client, approval, "approve", password="", code=app.code()).status_code == 302
    assert operation_of(approval).granted_roles == ["customer", "staff"]


def test_one_code_approves_one_thing(app, approver, shop, sign_in):
    app.set_up()
    approver.refresh_from_db()
    client = sign_in(approver)
    first, second = make_question(shop), make_question(shop)
    code = app.code()
    decide(client, first, "approve", code=code)

    assert decide(client, second, "approve", code=code).status_code == 403
    assert operation_of(second).granted_roles == ["customer"]


def test_the_api_asks_for_the_code_as_well(app, approver, shop):
    app.set_up()
    approver.refresh_from_db()
    api, approval = Api.staff(approver), make_question(shop)
    operation = approval.operation
    address = f"/v1/tasks/{operation.task_id}/approvals/{operation.step_n}"
    said = {"decision": "yes", "digest": approval.digest}

    for body in (said, said | {"code": "000 000"}):
        answer = api.post(address, body)
        assert (answer.status_code, answer.json()["type"][-12:]) == (403, "#code-needed")
    assert operation_of(approval).granted_roles == ["customer"]

    assert api.post(address, said | {"code": app.code()}).status_code == 200
    assert operation_of(approval).granted_roles == ["customer", "staff"]
    assert api.post(address, said).status_code == 200  # sent again, answered again


def test_a_recovery_code_approves_nothing(app, approver, shop, sign_in):
    codes = app.set_up()
    approver.refresh_from_db()
    client, approval = sign_in(approver), make_question(shop)

    assert decide(client, approval, "approve", code=codes[0]).status_code == 403
    assert second_factor.count_recovery_codes(approver.pk) == 10


def test_after_too_many_wrong_codes_money_waits(app, approver, shop, sign_in):
    app.set_up()
    approver.refresh_from_db()
    client, approval = sign_in(approver), make_question(shop)
    for _ in range(second_factor.TRIES):
        decide(client, approval, "approve", code="000")
    SecondFactor.objects.update(blocked_until=datetime.now(UTC) + timedelta(minutes=10))

    assert decide(client, approval, "approve", code=app.code()).status_code == 429
    assert operation_of(approval).granted_roles == ["customer"]


def test_where_it_is_required_an_approver_without_one_reads_and_decides_nothing(
    app, approver, shop, sign_in, settings
):
    settings.APPROVERS_NEED_CODE = True
    client, approval = sign_in(approver), make_question(shop)

    refused = decide(client, approval, "approve")

    assert refused.status_code == 403
    assert "Set yours up" in text_of(refused)
    assert operation_of(approval).granted_roles == ["customer"]
    panel = decide(client, approval, "approve", headers={"HX-Request": "true"})
    assert panel.status_code == 403
    assert "<html" not in text_of(panel)
    app.set_up()
    approver.refresh_from_db()
    client = sign_in(approver)
    assert decide(client, approval, "approve", code=app.code()).status_code == 302


def test_a_kill_switch_asks_for_no_second_factor(approver, sign_in, settings):
    settings.APPROVERS_NEED_CODE = True

    assert sign_in(approver).get(reverse("console:switches")).status_code == 200


# --- Sessions -----------------------------------------------------------------------------------


def test_a_changed_password_ends_every_other_session(approver, sign_in):
    here, elsewhere = sign_in(approver), sign_in(approver)
    fresh = "another long password"
    wrong = {"old_password": "wrong", "new_password1": fresh, "new_password2": fresh}
    assert post(here, "password", **wrong).status_code == 422
    assert is_in(elsewhere)

    post(here, "password", **wrong | {"old_password": PASSWORD})

    assert is_in(here)
    assert not is_in(elsewhere)
    assert Event.objects.get().action == "user.password_changed"


@pytest.mark.parametrize("weak", ["short", "password123"])
def test_a_weak_password_is_refused(approver, sign_in, weak):
    given = {"old_password": PASSWORD, "new_password1": weak, "new_password2": weak}

    assert post(sign_in(approver), "password", **given).status_code == 422
    approver.refresh_from_db()
    assert approver.check_password(PASSWORD)


@pytest.mark.parametrize(
    "change", [{"role": Role.AUDITOR, "is_approver": False}, {"is_active": False}]
)
def test_a_role_taken_away_ends_every_session(approver, sign_in, change):
    first, second = sign_in(approver), sign_in(approver)
    assert is_in(first)

    User.objects.filter(pk=approver.pk).update(**change)

    assert not is_in(first)
    assert not is_in(second)


def test_one_who_moves_to_another_shop_signs_in_again(approver, sign_in):
    client = sign_in(approver)
    User.objects.filter(pk=approver.pk).update(shop=None, role=Role.ADMIN)

    assert not is_in(client)


def test_signing_out_elsewhere_keeps_this_browser(approver, sign_in):
    here, elsewhere = sign_in(approver), sign_in(approver)

    post(here, "sessions")

    assert is_in(here)
    assert not is_in(elsewhere)
    assert Event.objects.get().action == "user.signed_out_elsewhere"


def test_the_sessions_cookie_is_kept_from_scripts_and_other_sites_and_ends_in_a_shift(
    approver, browser
):
    give_password(browser, approver)

    cookie = browser.cookies[django_settings.SESSION_COOKIE_NAME]
    assert cookie["httponly"] is True
    assert cookie["samesite"] == "Lax"
    assert cookie["max-age"] == 8 * 3600
    assert cookie["secure"] == ""  # this deployment is on plain http


# --- Colleagues ---------------------------------------------------------------------------------


@pytest.fixture
def chief(shop) -> User:
    return make_person(shop, "ann", role=Role.ADMIN)


def test_an_admin_resets_a_lost_factor_and_its_owner_signs_in_with_the_password(
    app, approver, chief, sign_in, browser
):
    app.set_up()
    give_password(browser, approver)
    post(browser, "login-code", code=app.code())
    client = sign_in(chief)
    assert "Reset" in text_of(client.get(reverse("console:people")))

    answer = post(client, "factor-reset", approver.pk, reason="Lost phone.", password=PASSWORD)

    assert answer.status_code == 302
    assert not is_in(browser)
    event = Event.objects.get(action="second_factor.reset")
    assert (event.actor, event.data["reason"]) == (chief.actor, "Lost phone.")
    give_password(browser, approver)
    assert is_in(browser)


@pytest.mark.parametrize(
    ("fields", "status"),
    [({"reason": ""}, 422), ({"password": "wrong"}, 403), ({"password": ""}, 403)],
)
def test_a_reset_takes_a_reason_and_the_admins_own_password(
    app, approver, chief, sign_in, fields, status
):
    app.set_up()
    details = {"reason": "Lost phone.", "password": PASSWORD} | fields

    assert post(sign_in(chief), "factor-reset", approver.pk, **details).status_code == status

    assert second_factor.is_enrolled(approver.pk)


def test_nobody_resets_their_own_here_nor_one_of_another_shop(app, approver, chief, sign_in, shop):
    app.set_up()
    stranger = make_person(None, "stranger", role=Role.ADMIN)
    given = {"reason": "x", "password": PASSWORD}

    assert post(sign_in(chief), "factor-reset", chief.pk, **given).status_code == 404
    assert post(sign_in(chief), "factor-reset", stranger.pk, **given).status_code == 404
    assert post(sign_in(chief), "factor-reset", 999_999, **given).status_code == 404
