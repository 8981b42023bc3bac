"""What a person sets wins; what is left open is made up once and kept."""

import re
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.env import Environment
from script.lib import environment, keys
from script.lib.bootstrap import ROOT, SetupError
from script.lib.ports import Ports

STORES = {"database_url": "postgresql:///own", "redis_url": "redis://own"}


def complete(folder: Path, env: dict[str, str]) -> dict[str, str]:
    return environment.complete(env, folder=folder, ports=Ports(8100), **STORES)


def test_every_setting_is_in_the_example_and_the_example_names_no_other():
    example = set(re.findall(r"^#?([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    read = set(
        re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', (ROOT / "config" / "settings.py").read_text())
    )

    assert read
    assert example - read == {"PORT"}
    assert read - example == set()


def test_the_examples_defaults_are_those_of_the_settings():
    example = dict(
        re.findall(r"^#([A-Z_]+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE)
    )
    source = (ROOT / "config" / "settings.py").read_text()
    texts = dict(re.findall(r'env\.\w+\("([A-Z_]+)", "([^"]*)"', source))
    numbers = dict(re.findall(r'env\.integer\("([A-Z_]+)", (\d+)', source))
    flags = dict(re.findall(r'env\.flag\("([A-Z_]+)", default=(\w+)\)', source))
    defaults = {**texts, **numbers, **{name: value.lower() for name, value in flags.items()}}

    wrong = {name for name in example.keys() & defaults.keys() if example[name] != defaults[name]}
    assert len(defaults) > 10
    assert wrong - {"OPENAI_API_KEY"} == set()


def test_without_a_model_of_the_persons_own_the_stand_in_is_named_as_such(tmp_path):
    env = complete(tmp_path, {})

    assert env["OPENAI_BASE_URL"] == "http://127.0.0.1:8102/v1"
    assert env["COUNTERSIGN_MODEL_IS_STAND_IN"] == "true"


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "OPENAI_BASE_URL"])
def test_a_model_of_the_persons_own_is_left_alone(tmp_path, name):
    env = complete(tmp_path, {name: "given"})

    assert env[name] == "given"
    assert "COUNTERSIGN_MODEL_IS_STAND_IN" not in env


@pytest.mark.parametrize(
    ("said", "mail"),
    [("", "smtp://127.0.0.1:8103"), ("TRUE", "smtp://127.0.0.1:8103"), ("0", None), ("no", None)],
)
def test_closure_emails_go_to_the_pretend_shop_only_where_there_is_one(tmp_path, said, mail):
    assert complete(tmp_path, {"COUNTERSIGN_DEMO": said}).get("COUNTERSIGN_SMTP_URL") == mail


def test_what_a_person_sets_wins_and_what_is_set_to_nothing_is_made_up(tmp_path):
    env = complete(
        tmp_path,
        {
            "COUNTERSIGN_DEMO": "false",
            "COUNTERSIGN_SECRET_KEY": "",
            "OPENAI_API_KEY": "",
            "EMPTY": "",
        },
    )

    assert env["COUNTERSIGN_DEMO"] == "false"
    assert len(env["COUNTERSIGN_SECRET_KEY"]) > 50
    assert "OPENAI_API_KEY" not in env
    assert env["EMPTY"] == ""


def test_secrets_are_made_once_and_only_their_owner_can_read_them(tmp_path):
    first, second = keys.load(tmp_path), keys.load(tmp_path)

    assert first == second
    assert len(set(first.values())) == 3
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "secrets").iterdir()}
    assert modes == {0o600}


def test_the_kept_environment_reads_back_as_written_and_is_private(tmp_path):
    env = complete(tmp_path, {"HOME": "/somewhere", "COUNTERSIGN_MODEL": "a = 'b' # c"})
    environment.write(tmp_path / "env", env)

    kept = environment.read(tmp_path / "env")

    assert kept == {name: value for name, value in env.items() if environment.OURS.fullmatch(name)}
    assert kept["COUNTERSIGN_MODEL"] == "a = 'b' # c"
    assert (tmp_path / "env").stat().st_mode & 0o777 == 0o600


def test_the_persons_file_is_read_and_the_environment_wins_over_it(tmp_path, monkeypatch):
    (tmp_path / ".env").write_text("# a word\nexport PORT=8100\nCOUNTERSIGN_MODEL='a b'\n\n")
    monkeypatch.setenv("PORT", "8200")

    env = environment.of_person(tmp_path)

    assert (env["PORT"], env["COUNTERSIGN_MODEL"]) == ("8200", "a b")


def test_a_line_of_the_file_that_makes_no_sense_is_named(tmp_path):
    (tmp_path / ".env").write_text("PORT=8100\nnonsense\n")

    with pytest.raises(SetupError, match="line 2 is not NAME=value: nonsense"):
        environment.of_person(tmp_path)


@pytest.mark.parametrize("value", [None, "", "  "])
def test_what_is_needed_and_that_nobody_filled_in_is_missed(monkeypatch, value):
    monkeypatch.delenv("COUNTERSIGN_SEAL_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("COUNTERSIGN_SEAL_KEY", value)
    env = Environment()

    env.text("COUNTERSIGN_SEAL_KEY")

    with pytest.raises(ImproperlyConfigured, match="COUNTERSIGN_SEAL_KEY is not set"):
        env.check()


def test_what_a_database_address_says_of_tls_is_kept(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:p@h:6432/db?sslmode=verify-full")
    env = Environment()

    assert env.database("DATABASE_URL")["HOST"] == "h"
    assert env.database_options("DATABASE_URL") == {"sslmode": "verify-full"}
    env.check()


def test_an_odd_database_address_is_told_once(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "nonsense")
    env = Environment()
    env.database("DATABASE_URL")

    assert env.database_options("DATABASE_URL") == {}
    assert len(env.faults) == 1
