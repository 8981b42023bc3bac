"""`manage.py doctor` tells a well system from one that lacks something, and says what."""

import time

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from agents import doctor
from tests.live import Product

CLOSED = "http://127.0.0.1:9"  # nobody listens there


def states(what: str) -> list[str]:
    return [finding.state for finding in doctor.examine() if finding.what == what]


@pytest.fixture
def only(monkeypatch):
    """Let the doctor look at one thing alone."""

    def choose(name: str) -> None:
        monkeypatch.setattr(doctor, "_LOOKS", {name: doctor._LOOKS[name]})

    return choose


@pytest.mark.timeout(180)
def test_of_a_well_product_nothing_is_wrong_and_everything_is_looked_at(product: Product):
    done = product.manage("doctor")

    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert list(dict.fromkeys(words[0] for words in lines)) == list(doctor._LOOKS)
    assert {words[1] for words in lines} <= {doctor.OK, doctor.WARN}
    assert ["clock", "ok"] in [words[:2] for words in lines]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("what", "setting", "value"),
    [
        ("model", "OPENAI_BASE_URL", f"{CLOSED}/v1"),
        ("redis", "REDIS_URL", "redis://127.0.0.1:9/0"),
        ("mail", "SMTP_URL", "smtp://127.0.0.1:9"),
    ],
)
def test_what_cannot_be_reached_is_wrong(settings, only, what, setting, value):
    setattr(settings, setting, value)
    only(what)

    assert states(what) == [doctor.BAD]


@pytest.mark.django_db
def test_a_guard_that_is_switched_off_is_found(only):
    only("guards")
    # Some guards against emptying a table are off in tests, which empty their tables.
    told = "a trigger of tools_operation is switched off"
    before = [finding.text for finding in doctor.examine()]

    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tools_operation DISABLE TRIGGER USER")
    wrong = [finding.text for finding in doctor.examine() if finding.state == doctor.BAD]

    assert told not in before
    assert told in wrong


@pytest.mark.django_db
def test_a_superuser_is_warned_about_and_a_role_without_rights_is_wrong(only):
    only("role")
    assert states("role") == [doctor.WARN]

    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE doctor_test NOLOGIN")
        cursor.execute("SET LOCAL ROLE doctor_test")

    assert states("role") == [doctor.OK, doctor.BAD, doctor.BAD, doctor.BAD]


@pytest.mark.django_db
def test_after_a_restore_it_says_that_shops_are_asked_first(only):
    only("history")
    assert states("history") == [doctor.OK]

    call_command("after_restore", since="2026-01-31T14:05:00Z", by="dana", verbosity=0)

    (finding,) = doctor.examine()
    assert finding.state == doctor.WARN
    assert "since 2026-01-31 14:05 UTC" in finding.text


@pytest.mark.django_db
def test_clocks_that_differ_and_a_redis_that_forgets_are_wrong(only, monkeypatch):
    only("clock")
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 5)
    assert states("clock") == [doctor.BAD]

    def forgetful(self: object, name: str) -> dict[str, str]:
        return {name: "allkeys-lru"}

    monkeypatch.setattr(doctor, "_LOOKS", {"redis": doctor._redis})
    monkeypatch.setattr("redis.Redis.config_get", forgetful)
    assert states("redis") == [doctor.OK, doctor.BAD]


@pytest.mark.django_db
def test_the_command_ends_with_how_many_things_are_wrong(settings, only, capsys):
    settings.OPENAI_BASE_URL = f"{CLOSED}/v1"
    only("model")

    with pytest.raises(CommandError, match="1 thing is wrong"):
        call_command("doctor")

    assert capsys.readouterr().out.startswith("model       wrong")
