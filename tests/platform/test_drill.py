"""The drill: backed up, gone on, restored, and nothing is paid a second time."""

from dataclasses import replace
from pathlib import Path

import pytest
from django.contrib.sessions.models import Session

from agents import services
from agents.services.restored import SKIPPED
from audit.sealer import seal_once
from audit.verify import verify
from script.lib.backup import archive, take
from script.lib.bootstrap import SetupError
from tests.agents.conftest import desk, model_process
from tests.agents.desk import Desk, operation
from tests.databases import ME, ask, made_beside, other, place, put_back, working_on
from tools.models import LookFirst, Operation

__all__ = ["desk", "model_process", "other"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


def payments(desk: Desk) -> list[str]:
    """The keys of every refund that the shop was asked for."""
    calls = [call for call in desk.shop.calls() if call["path"].endswith("/refunds")]
    return [call["idempotency_key"] for call in calls]


def test_after_a_restore_nothing_is_paid_a_second_time(desk: Desk, other: str, tmp_path: Path):
    desk.done("Please refund order 1042")
    approved = desk.decide(desk.work(desk.ask("Please refund order 1047")), is_yes=True)
    asked = desk.work(desk.ask("Please refund order 1046", customer="bob"))
    assert (operation(approved).state, operation(asked).state) == ("approved", "awaiting_approval")
    Session.objects.create(session_key="left", session_data="", expire_date="2100-01-01T00:00Z")
    seal_once()
    path = take.take(place(), tmp_path)
    last = Operation.objects.latest("pk").pk
    for task in (desk.work(approved), desk.say_yes(asked), desk.done("Please refund order 1049")):
        assert operation(task).state == "succeeded"
    assert len(payments(desk)) == len(desk.shop.effects()) == 4

    ask(other, "CREATE TABLE before AS SELECT 42 AS answer")
    put_back(path, place(other), replace(ME, replaces=True, is_confirmed=True))
    desk.shop.forget_calls()
    with working_on(other):
        assert verify().holds
        assert not Session.objects.exists()
        period = LookFirst.objects.get(is_on=True)
        assert period.started_by == "operator:dana"
        LookFirst.objects.update(started_at=period.since)  # its look-ups lag no more
        assert operation(approved).state == "unknown"
        services.sweep()
        for task in (desk.wake(approved), desk.say_yes(asked)):
            assert operation(task).state == "succeeded"
        desk.done("Please refund order 1049")
        assert payments(desk) == []

        fresh = desk.done("Please refund order 1023", customer="bob")

        assert operation(fresh).pk > last + SKIPPED
        assert payments(desk) == [operation(fresh).idempotency_key]
    (kept,) = set(made_beside(other)) - {other}
    assert ask(kept, "SELECT answer FROM before") == [(42,)]


def test_a_backup_whose_trail_does_not_hold_is_not_put_in_place(
    desk: Desk, other: str, tmp_path: Path
):
    seal_once()
    ask("", "SET session_replication_role = replica; UPDATE audit_event SET actor = 'nobody'")
    path = take.take(place(), tmp_path)
    with archive.reading(path) as backup:
        assert backup.manifest.head is not None

    with pytest.raises(SetupError, match=r"audit_verify: The chain is broken\."):
        put_back(path, place(other))

    assert made_beside(other) == [other]
    assert ask(other, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]
