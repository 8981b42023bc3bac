"""Signing in to the console, and what `check` says about it."""

import pytest
from django.conf import settings as django_settings
from django.contrib.auth import authenticate
from django.test import RequestFactory

from accounts import checks
from accounts.backends import DEMO_PASSWORD
from tests.accounts.factories import make_shop, make_user

pytestmark = pytest.mark.django_db


def sign_in(username: str, password: str):
    return authenticate(RequestFactory().post("/"), username=username, password=password)


def test_the_demos_password_works_in_the_demo_only(settings):
    user = make_user(make_shop(), password=DEMO_PASSWORD)

    settings.DEMO = True
    assert sign_in(user.username, DEMO_PASSWORD) == user
    settings.DEMO = False
    assert sign_in(user.username, DEMO_PASSWORD) is None


def test_outside_the_demo_no_other_backend_lets_it_in(settings):
    user = make_user(make_shop(), password=DEMO_PASSWORD)
    settings.DEMO = False
    settings.AUTHENTICATION_BACKENDS = [
        "accounts.backends.ConsoleBackend",
        "django.contrib.auth.backends.ModelBackend",
    ]

    assert sign_in(user.username, DEMO_PASSWORD) is None


def test_an_ordinary_password_works_in_and_outside_the_demo(settings):
    user = make_user(make_shop(), password="correct horse")

    for demo in (True, False):
        settings.DEMO = demo
        assert sign_in(user.username, "correct horse") == user
        assert sign_in(user.username, "wrong horse") is None


def test_somebody_who_left_cannot_sign_in():
    user = make_user(make_shop(), password="correct horse", is_active=False)

    assert sign_in(user.username, "correct horse") is None


def test_the_settings_of_this_deployment_pass_the_checks():
    assert checks.check_backends() == []
    assert checks.check_encryption_keys() == []


@pytest.mark.parametrize(
    "backends",
    [
        ["django.contrib.auth.backends.ModelBackend"],
        ["accounts.backends.ConsoleBackend", "django.contrib.auth.backends.ModelBackend"],
        [],
    ],
)
def test_backends_that_would_let_the_demos_password_in_are_an_error(settings, backends):
    settings.AUTHENTICATION_BACKENDS = backends

    assert [error.id for error in checks.check_backends()] == ["accounts.E001"]


def test_an_unusable_encryption_key_is_named_by_its_place_and_not_shown(settings):
    settings.ENCRYPTION_KEYS = [*django_settings.ENCRYPTION_KEYS, "not-a-key"]

    errors = checks.check_encryption_keys()

    assert [error.id for error in errors] == ["accounts.E002"]
    assert "Key 2 " in str(errors[0].msg)
    assert "not-a-key" not in str(errors[0].msg)
