"""The systemd units run what the Procfile runs, and may do no more than it takes."""

import re
from collections import defaultdict
from pathlib import Path

import yaml
from django.conf import settings

from script.lib.bootstrap import ROOT
from tests.test_docs import DEPLOY, PROCESSES, procfile

FOLDER = ROOT / "docs" / "deploy"
SHARED = FOLDER / "countersign-.service.d" / "shared.conf"
HOME = "/srv/countersign/.venv/bin/"
Unit = dict[str, list[str]]


def read(path: Path) -> Unit:
    """Each key with its values, as `Section.Key`."""
    found: Unit = defaultdict(list)
    section = ""
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found[f"{section}.{key}"].append(value)
    return found


UNITS = {name: read(FOLDER / f"countersign-{name}.service") for name in PROCESSES}
COMMON = read(SHARED)


def command(unit: Unit) -> list[str]:
    """What it runs, with the values that its variables have where the settings name none."""
    (words,) = unit["Service.ExecStart"]
    defaults = dict(
        pair.split("=") for line in unit["Service.Environment"] for pair in line.split()
    )
    return [re.sub(r"\$\{(\w+)\}", lambda m: defaults[m[1]], word) for word in words.split()]


def test_the_units_run_what_the_procfile_runs_behind_a_proxy_of_this_machine():
    wanted = {name: " ".join(words).replace("0.0.0.0", "127.0.0.1") for name, words in procfile().items()}  # noqa: S104 # fmt: skip

    assert {
        name: " ".join(command(unit)).removeprefix(HOME) for name, unit in UNITS.items()
    } == wanted
    assert {path.name for path in FOLDER.glob("*.service")} == {f"countersign-{name}.service" for name in PROCESSES}  # fmt: skip


def test_migrations_are_a_step_of_their_own_and_the_rest_starts_and_stops_together():
    for name, unit in UNITS.items():
        if name == "release":
            assert unit["Service.Type"] == ["oneshot"]
            assert not unit["Service.Restart"]
            assert not unit["Install.WantedBy"]
        else:
            assert unit["Unit.After"] == ["countersign-release.service"]
            assert unit["Unit.PartOf"] == unit["Install.WantedBy"] == ["countersign.target"]
            assert unit["Service.Restart"] == ["always"]
        # A restart of what is required takes along whoever requires it: migrating would stop the rest.
        assert not unit["Unit.Requires"]


def test_a_worker_has_time_for_the_longest_step():
    (seconds,) = UNITS["worker"]["Service.TimeoutStopSec"]
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())

    assert int(seconds) > 2 * settings.MODEL_TIMEOUT
    assert f"{seconds}s" == compose["services"]["worker"]["stop_grace_period"]


def test_they_run_without_rights_and_write_to_one_folder_alone():
    wanted = {
        "User": "countersign",
        "NoNewPrivileges": "yes",
        "CapabilityBoundingSet": "",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "PrivateTmp": "yes",
        "PrivateDevices": "yes",
        "StateDirectory": "countersign",
        "StateDirectoryMode": "0700",
        "UMask": "0077",
    }

    assert {key: COMMON[f"Service.{key}"] for key in wanted} == {key: [value] for key, value in wanted.items()}  # fmt: skip
    for unit in UNITS.values():
        assert not unit.keys() & {
            "Service.User",
            "Service.ReadWritePaths",
            "Service.EnvironmentFile",
        }


def test_what_is_secret_is_in_a_file_of_its_own():
    assert COMMON["Service.EnvironmentFile"] == ["/etc/countersign/env", "-/etc/countersign/%N.env"]
    for unit in (COMMON, *UNITS.values()):
        names = {
            pair.split("=")[0] for line in unit["Service.Environment"] for pair in line.split()
        }
        assert names <= {"PORT", "COUNTERSIGN_WORKER_THREADS", "COUNTERSIGN_EXPORT_FOLDER", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}  # fmt: skip


def test_the_guide_starts_every_unit():
    started = set(re.findall(r"countersign-[a-z]+", DEPLOY.replace("countersign-{web,worker,beat,sealer}", " ".join(f"countersign-{name}" for name in PROCESSES[1:]))))  # fmt: skip

    assert {f"countersign-{name}" for name in PROCESSES} <= started
