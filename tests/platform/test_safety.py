"""Unsafe settings are refused at the start, all at once; a sound deployment starts and hears nothing."""

import os
import secrets
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings as own

from config import safety
from config.safety import findings
from script.lib import environment, keys
from script.lib.bootstrap import ROOT

FERNET_OF_THE_SPECIFICATION = "cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e4="
SEAL_OF_THE_RFC = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
MADE = {name: make() for name, make in keys.MAKERS.items()}
# A whole deployment, as an operator sets it.
SOUND = MADE | {
    "COUNTERSIGN_PUBLIC_URL": "https://support.example.com",
    "COUNTERSIGN_ALLOWED_HOSTS": "support.example.com,web",
    "COUNTERSIGN_MODEL": "gpt-4.1-mini",
    "OPENAI_BASE_URL": "https://api.example.com/v1",
    "REDIS_URL": "redis://:word@redis:6379/0",
    "COUNTERSIGN_APPROVERS_NEED_CODE": "true",
    "COUNTERSIGN_METRICS_TOKEN": secrets.token_urlsafe(24),
    "COUNTERSIGN_SEAL_HEAD_FILE": "/var/lib/countersign/head.json",
}


@pytest.fixture
def deployment(tmp_path) -> SimpleNamespace:
    """The settings of a sound deployment."""
    return SimpleNamespace(
        BASE_DIR=tmp_path,
        DATA=".data",
        DEBUG=False,
        DEMO=False,
        SECRET_KEY=MADE["COUNTERSIGN_SECRET_KEY"],
        ENCRYPTION_KEYS=[MADE["COUNTERSIGN_ENCRYPTION_KEYS"]],
        SEAL_KEY=MADE["COUNTERSIGN_SEAL_KEY"],
        SEAL_HEAD_FILE=SOUND["COUNTERSIGN_SEAL_HEAD_FILE"],
        PUBLIC_URL=SOUND["COUNTERSIGN_PUBLIC_URL"],
        ALLOWED_HOSTS=SOUND["COUNTERSIGN_ALLOWED_HOSTS"].split(","),
        SESSION_COOKIE_SECURE=True,
        CSRF_COOKIE_SECURE=True,
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_SERIALIZER="django.contrib.sessions.serializers.JSONSerializer",
        MODEL=SOUND["COUNTERSIGN_MODEL"],
        MODEL_IS_STAND_IN=False,
        OPENAI_BASE_URL=SOUND["OPENAI_BASE_URL"],
        APPROVERS_NEED_CODE=True,
        REDIS_URL=SOUND["REDIS_URL"],
        METRICS_TOKEN=SOUND["COUNTERSIGN_METRICS_TOKEN"],
    )


def named(settings: Any, *, is_refused: bool = True) -> list[str]:
    found = findings(settings, deployed=False)
    return [finding.setting for finding in found if finding.is_refused is is_refused]


def test_a_sound_deployment_has_nothing_to_hear(deployment):
    assert findings(deployment, deployed=False) == []
    assert findings(deployment, deployed=True) == []


@pytest.mark.parametrize(
    ("change", "setting"),
    [
        ({"DEBUG": True}, "COUNTERSIGN_DEBUG"),
        ({"DEMO": True}, "COUNTERSIGN_DEMO"),
        ({"SECRET_KEY": secrets.token_urlsafe(20)}, "COUNTERSIGN_SECRET_KEY"),
        ({"SECRET_KEY": "ab" * 40}, "COUNTERSIGN_SECRET_KEY"),
        ({"SECRET_KEY": "django-insecure-" + secrets.token_urlsafe(48)}, "COUNTERSIGN_SECRET_KEY"),
        ({"ENCRYPTION_KEYS": []}, "COUNTERSIGN_ENCRYPTION_KEYS"),
        ({"ENCRYPTION_KEYS": ["not a key"]}, "COUNTERSIGN_ENCRYPTION_KEYS"),
        ({"ENCRYPTION_KEYS": [FERNET_OF_THE_SPECIFICATION]}, "COUNTERSIGN_ENCRYPTION_KEYS"),
        ({"ENCRYPTION_KEYS": ["A" * 43 + "="]}, "COUNTERSIGN_ENCRYPTION_KEYS"),
        ({"SEAL_KEY": ""}, "COUNTERSIGN_SEAL_KEY"),
        ({"SEAL_KEY": SEAL_OF_THE_RFC}, "COUNTERSIGN_SEAL_KEY"),
        ({"SEAL_KEY": MADE["COUNTERSIGN_ENCRYPTION_KEYS"]}, "COUNTERSIGN_SEAL_KEY"),
        ({"PUBLIC_URL": "http://support.example.com"}, "COUNTERSIGN_PUBLIC_URL"),
        ({"PUBLIC_URL": "https://localhost", "ALLOWED_HOSTS": ["localhost", "a.example"]}, "COUNTERSIGN_PUBLIC_URL"),
        ({"ALLOWED_HOSTS": ["*"]}, "COUNTERSIGN_ALLOWED_HOSTS"),
        ({"ALLOWED_HOSTS": ["elsewhere.example.com"]}, "COUNTERSIGN_ALLOWED_HOSTS"),
        ({"SESSION_COOKIE_SECURE": False}, "SESSION_COOKIE_SECURE"),
        ({"CSRF_COOKIE_SECURE": False}, "CSRF_COOKIE_SECURE"),
        ({"SESSION_COOKIE_HTTPONLY": False}, "SESSION_COOKIE_HTTPONLY"),
        ({"SESSION_SERIALIZER": "old.PickleSerializer"}, "SESSION_SERIALIZER"),
        ({"MODEL_IS_STAND_IN": True}, "COUNTERSIGN_MODEL_IS_STAND_IN"),
        ({"MODEL": "countersign-rules"}, "COUNTERSIGN_MODEL"),
    ],
)  # fmt: skip
def test_each_unsafe_setting_is_refused_by_name(deployment, change, setting):
    for name, value in change.items():
        assert hasattr(deployment, name)
        setattr(deployment, name, value)

    assert named(deployment) == [setting]


@pytest.mark.parametrize(
    ("change", "setting"),
    [
        ({"REDIS_URL": "redis://redis.example.com:6379/0"}, "REDIS_URL"),
        ({"OPENAI_BASE_URL": "http://api.example.com/v1"}, "OPENAI_BASE_URL"),
        ({"APPROVERS_NEED_CODE": False}, "COUNTERSIGN_APPROVERS_NEED_CODE"),
        ({"METRICS_TOKEN": ""}, "COUNTERSIGN_METRICS_TOKEN"),
        ({"SEAL_HEAD_FILE": ""}, "COUNTERSIGN_SEAL_HEAD_FILE"),
    ],
)
def test_what_is_only_unwise_is_told_and_not_refused(deployment, change, setting):
    vars(deployment).update(change)

    assert named(deployment, is_refused=False) == [setting]
    assert named(deployment) == []


@pytest.mark.parametrize("url", ["unix:///run/redis.sock", "redis://127.0.0.1:6379/0"])
def test_a_redis_on_this_machine_may_do_without_a_password(deployment, url):
    deployment.REDIS_URL = url

    assert findings(deployment, deployed=True) == []


def test_messages_that_unpickle_are_refused(deployment, monkeypatch):
    conf = SimpleNamespace(
        accept_content=["json", "pickle"], task_serializer="json", result_serializer="json"
    )
    monkeypatch.setattr(safety, "current_app", SimpleNamespace(conf=conf))

    assert named(deployment) == ["accept_content of Celery"]


def test_the_keys_of_a_demo_are_not_those_of_a_deployment(deployment, tmp_path):
    folder = tmp_path / ".data"
    (folder / "orders_stub").mkdir(parents=True)
    made = keys.load(folder)
    deployment.SECRET_KEY = made["COUNTERSIGN_SECRET_KEY"]
    deployment.ENCRYPTION_KEYS.append(made["COUNTERSIGN_ENCRYPTION_KEYS"])
    deployment.SEAL_KEY = made["COUNTERSIGN_SEAL_KEY"]

    found = findings(deployment, deployed=False)

    assert [finding.setting for finding in found] == sorted(made, key=list(keys.MAKERS).index)
    assert all("of a demo" in finding.text for finding in found)
    assert "key 2 " in found[1].text
    (folder / "orders_stub").rmdir()  # no demo ever ran here
    assert findings(deployment, deployed=False) == []


def test_no_text_shows_a_secret(deployment):
    vars(deployment).update(
        SECRET_KEY="short-word", ENCRYPTION_KEYS=["odd-key"], SEAL_KEY="odd-seal"
    )

    text = " ".join(map(str, findings(deployment, deployed=True)))

    assert "COUNTERSIGN_SEAL_KEY" in text
    assert not [word for word in ("short-word", "odd-key", "odd-seal") if word in text]


def test_a_demo_on_this_machine_alone_starts_with_everything_that_helps(deployment):
    vars(deployment).update(
        DEMO=True,
        DEBUG=True,
        PUBLIC_URL="http://127.0.0.1:8000",
        ALLOWED_HOSTS=["127.0.0.1", "localhost", "[::1]"],
        MODEL_IS_STAND_IN=True,
        SESSION_COOKIE_SECURE=False,
    )

    assert findings(deployment, deployed=False) == []
    assert {"COUNTERSIGN_DEBUG", "COUNTERSIGN_DEMO"} <= {
        finding.setting for finding in findings(deployment, deployed=True)
    }
    deployment.DEMO = False
    assert named(deployment) == ["COUNTERSIGN_DEBUG"]


# --- The real processes ---------------------------------------------------------------------------


def run(words: list[str], **env: str) -> "subprocess.CompletedProcess[str]":
    """One of our commands in an environment of its own."""
    bare = {k: v for k, v in os.environ.items() if not environment.OURS.fullmatch(k)}
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**bare, "DATABASE_URL": "postgresql:///nothing?host=/nowhere", **env},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_the_check_of_a_sound_deployment_is_clean():
    done = run(["manage.py", "check", "--deploy", "--fail-level", "INFO"], **SOUND)

    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout
    assert "WARNING" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["-c", "import config.asgi"],
        ["-m", "celery", "-A", "config", "worker", "-P", "solo"],
        ["-m", "celery", "-A", "config", "beat", "--schedule", "{folder}/beat"],
        ["manage.py", "audit_sealer", "--once"],
    ],
    ids=["web", "worker", "beat", "sealer"],
)
def test_no_process_starts_with_unsafe_settings_and_all_are_named_at_once(words, tmp_path):
    wrong = {
        "COUNTERSIGN_DEBUG": "true",
        "COUNTERSIGN_DEMO": "true",
        "COUNTERSIGN_SECRET_KEY": "changeme",
        "COUNTERSIGN_SEAL_KEY": SEAL_OF_THE_RFC,
        "COUNTERSIGN_PUBLIC_URL": "http://support.example.com",
        "COUNTERSIGN_ALLOWED_HOSTS": "*",
        "COUNTERSIGN_MODEL_IS_STAND_IN": "true",
    }

    done = run([word.format(folder=tmp_path) for word in words], **SOUND | wrong)

    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert [name for name in wrong if f"{name}: " not in said] == []
    assert "COUNTERSIGN_ENCRYPTION_KEYS: " not in said
    assert SEAL_OF_THE_RFC not in said


def test_an_https_address_makes_browsers_stay_with_https():
    code = (
        "from config import settings as s;"
        "print(s.SECURE_SSL_REDIRECT, s.SECURE_HSTS_SECONDS, s.SESSION_COOKIE_SECURE)"
    )

    assert run(["-c", code], **SOUND).stdout == "True 31536000 True\n"
    plain = SOUND | {"COUNTERSIGN_PUBLIC_URL": "http://127.0.0.1:8000"}
    assert run(["-c", code], **plain).stdout == "False 0 False\n"


def test_every_refused_setting_is_on_the_page_for_operators(deployment):
    vars(deployment).update(
        DEBUG=True, DEMO=True, SECRET_KEY="", ENCRYPTION_KEYS=[], SEAL_KEY="", PUBLIC_URL="http://a.b",
        ALLOWED_HOSTS=["*"], MODEL_IS_STAND_IN=True, METRICS_TOKEN="", SEAL_HEAD_FILE="", APPROVERS_NEED_CODE=False,
    )  # fmt: skip
    page = (ROOT / "docs" / "deploy.md").read_text()
    part = page.split("\n## What does not start\n")[1].split("\n## ")[0]

    names = {finding.setting for finding in findings(deployment, deployed=True)}

    assert len(names) == 11
    assert [name for name in names if f"`{name}`" not in part] == []


def test_our_own_base_folder_is_where_the_demo_keeps_its_keys():
    assert Path(own.BASE_DIR) == ROOT
