"""Probes, version and metrics."""

from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor
from django.test import Client, RequestFactory
from django.utils import timezone

from agents.lag import ready_lag
from agents.models import Step, Task
from config import health, metrics
from tests.api.clients import Api, end, wait_for_yes
from tests.factories import say_yes
from tools.models import Operation

pytestmark = pytest.mark.django_db

NOWHERE = "redis://127.0.0.1:9/0"


def test_a_living_process_says_so_to_whoever_asks(client: Client):
    answer = client.get("/healthz/live", headers={"Host": "10.0.0.7:8000"})

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert answer["Cache-Control"] == "no-store"


def test_ready_when_everything_is_there(client: Client):
    answer = client.get("/healthz/ready", headers={"Host": "10.0.0.7:8000"})

    assert answer.status_code == 200
    body = answer.json()
    assert (body["status"], body["missing"]) == ("ok", [])
    assert body["checks"] == {
        "database": "ok",
        "redis": "ok",
        "migrations": "ok",
        "queue_lag_seconds": 0.0,
        "shops_not_called": 0,
    }


def test_not_ready_without_redis(client: Client, settings):
    settings.REDIS_URL = NOWHERE

    answer = client.get("/healthz/ready")

    assert (answer.status_code, answer.json()["missing"]) == (503, ["redis"])


def test_not_ready_before_the_migrations(client: Client, monkeypatch):
    monkeypatch.setattr(health._Migrations, "applied_to", "")
    monkeypatch.setattr(MigrationExecutor, "migration_plan", lambda *_: ["one"])

    answer = client.get("/healthz/ready")

    assert (answer.status_code, answer.json()["missing"]) == (503, ["migrations"])


def test_not_ready_without_a_database(client: Client, monkeypatch):
    def refuse() -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(connection, "cursor", refuse)

    answer = client.get("/healthz/ready")

    assert (answer.status_code, answer.json()["missing"]) == (503, ["database"])


def test_slow_workers_are_told_and_count_when_the_operator_says_so(
    client: Client, ada: Api, settings
):
    ada.ask()
    long_ago = timezone.now() - timedelta(seconds=90)
    Task.objects.update(wake_at=long_ago)
    Task.objects.get().steps.update(planned_at=long_ago)

    told = client.get("/healthz/ready")
    settings.READY_MAX_LAG = 60
    late = client.get("/healthz/ready")

    assert told.status_code == 200
    assert 90 <= told.json()["checks"]["queue_lag_seconds"] < 120
    assert (late.status_code, late.json()["missing"]) == (503, ["workers"])


def test_a_task_that_waits_for_a_person_is_no_lag(ada: Api):
    wait_for_yes(task := ada.ask())
    long_ago = timezone.now() - timedelta(hours=1)
    task.steps.exclude(status="finished").update(planned_at=long_ago)

    assert ready_lag() == 0


@pytest.mark.parametrize("path", ["/healthz/live", "/healthz/ready", "/version"])
def test_probes_are_only_read(client: Client, path: str):
    assert client.head(path).status_code == 200
    assert client.post(path).status_code == 405


def test_the_version_is_the_projects(client: Client):
    assert client.get("/version").json() == {"name": "countersign", "version": "0.1.0"}


def test_metrics_tell_how_long_the_trail_has_no_published_head(
    client: Client, ada: Api, settings, tmp_path
):
    name = "countersign_trail_uncovered_seconds"
    ada.ask()
    assert name not in client.get("/metrics").content.decode()

    settings.SEAL_HEAD_FILE = str(tmp_path / "head")
    told = client.get("/metrics").content.decode().splitlines()

    (line,) = [each for each in told if each.startswith(f"{name} ")]
    assert 0 < float(line.split()[1]) < 600


def test_metrics_tell_what_the_rows_say(client: Client, ada: Api):
    say_yes(wait_for_yes(ada.ask()).operation)
    wait_for_yes(ada.ask())
    answered = ada.ask()
    answered.steps.update(attempts=2, tokens_in=120, tokens_cached=100, tokens_out=30, cost=7)
    end(answered)
    ada.post("/v1/tasks", {"message": "Hi", "ticket": "new"}, key='"one"')
    ada.post("/v1/tasks", {"message": "Hi", "ticket": "new"}, key='"one"')

    answer = client.get("/metrics")

    assert answer.status_code == 200
    lines = answer.content.decode().splitlines()
    for line in (
        'countersign_tasks{status="waiting_approval"} 2.0',
        'countersign_tasks{status="succeeded"} 1.0',
        'countersign_tasks{status="failed"} 0.0',
        "countersign_tasks_live 3.0",
        'countersign_task_outcomes{outcome="answered"} 1.0',
        'countersign_operations{kind="refund",state="approved"} 1.0',
        'countersign_operations{kind="refund",state="awaiting_approval"} 1.0',
        'countersign_approvals_open{role="customer"} 1.0',
        'countersign_approvals_open{role="staff"} 0.0',
        "countersign_duplicate_proposals_prevented_total 0.0",
        "countersign_model_calls_total 2.0",
        'countersign_model_tokens_total{kind="prompt"} 120.0',
        'countersign_model_tokens_total{kind="cached"} 100.0',
        'countersign_model_tokens_total{kind="completion"} 30.0',
        "countersign_model_cost_microdollars_total 7.0",
    ):
        assert line in lines
    replays = next(line for line in lines if line.startswith("countersign_request_replays_total"))
    assert float(replays.split()[1]) >= 1
    lag = next(line for line in lines if line.startswith("countersign_oldest_ready_task_seconds"))
    assert 0 < float(lag.split()[1]) < 60


def test_a_proposal_made_again_counts_as_a_duplicate_prevented(client: Client, ada: Api):
    approval = wait_for_yes(ada.ask())
    Step.objects.create(
        task=end(ada.ask()),
        n=2,
        kind="tool",
        tool="refund_order",
        status="finished",
        result={"operation": approval.operation.idempotency_key},
        planned_at=timezone.now(),
        finished_at=timezone.now(),
    )

    text = client.get("/metrics").content.decode()

    assert "countersign_duplicate_proposals_prevented_total 1.0" in text
    assert Operation.objects.count() == 1


@pytest.mark.parametrize("address", ["10.0.0.7", "203.0.113.9", "", "not an address"])
def test_metrics_are_for_this_machine_alone(address: str):
    request = RequestFactory().get("/metrics", REMOTE_ADDR=address)

    assert metrics.metrics(request).status_code == 403


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP"])
def test_what_comes_through_a_proxy_is_not_from_this_machine(client: Client, header: str):
    answer = client.get("/metrics", headers={header: "203.0.113.9"})

    assert answer.status_code == 403
    assert b"countersign_" not in answer.content


def test_with_a_token_metrics_need_it_from_everywhere(settings):
    settings.METRICS_TOKEN = "a-token"
    given = {"": 403, "Bearer wrong": 403, "Bearer a-token": 200, "a-token": 403, "Bearer é": 403}

    answered = {
        header: metrics.metrics(
            RequestFactory().get(
                "/metrics", headers={"Authorization": header}, REMOTE_ADDR="127.0.0.1"
            )
        ).status_code
        for header in given
    }

    assert answered == given
