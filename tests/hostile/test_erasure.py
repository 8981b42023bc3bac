"""An erased customer's words are nowhere, and everything that was counted still counts.

The conversations of the canaries are held once more, for everybody in them, and then everybody is
erased: whatever word is still somewhere afterwards was missed.
"""

import json
from typing import Any

import pytest
import redis
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db.models import Sum
from django.utils import timezone

from accounts.models import Customer, Erasure, ErasureCause
from agents.console import step_log
from agents.events import list_events
from agents.models import Task
from agents.services.erasure import erase_customer
from approvals.models import Approval
from audit import services as audit
from audit.models import Event
from tests.crash import oracle
from tests.hostile.test_canaries import PERSONAL, Told, found_in, tables, told
from tools.models import Operation

pytestmark = pytest.mark.django_db(transaction=True)

__all__ = ["told"]


def money() -> dict[str, Any]:
    """What limits and books count: refunds by order, by customer, and by state."""
    refunds = Operation.objects.filter(kind="refund")
    return {
        name: list(refunds.values(name).annotate(total=Sum("amount")).order_by(name))
        for name in ("order_id", "customer__external_id", "state")
    }


def facts() -> list[Any]:
    """Of every operation all that is not words."""
    return list(
        Operation.objects.order_by("pk").values(
            "pk", "kind", "order_id", "state", "idempotency_key", "digest", "amount", "currency",
            "required_roles", "granted_roles", "created_at", "first_sent_at", "finished_at",
            "reference", "customer_id",
        )
    )  # fmt: skip


@pytest.fixture(scope="module")
def before(told: Told) -> dict[str, Any]:
    """What stood before everybody was erased."""
    dump = tables()
    return {
        "places": {
            word: [n for n, t in dump.items() if word in found_in(t, PERSONAL)] for word in PERSONAL
        },
        "money": money(),
        "facts": facts(),
        "digests": list(Approval.objects.order_by("pk").values_list("digest", "decided_by")),
        "events": Event.objects.count(),
    }


@pytest.fixture(scope="module")
def erased(told: Told, before: dict[str, Any]) -> list[Erasure]:
    """Everybody in the conversations, erased."""
    now = timezone.now()
    return [
        erase_customer(customer_id=pk, cause=ErasureCause.ASKED, by="admin:root", now=now)
        for pk in Customer.objects.order_by("pk").values_list("pk", flat=True)
    ]


def test_the_words_were_there_before(before: dict[str, Any], erased: list[Erasure]):
    assert all(before["places"][word] for word in PERSONAL if word != "card number")
    assert erased
    assert all(erasure.done_at for erasure in erased)


def test_no_word_is_left_in_any_table(erased: list[Erasure]):
    dump = tables()

    assert {name: found_in(text, PERSONAL) for name, text in dump.items()} == {
        name: [] for name in dump
    }


def test_the_trail_still_verifies_and_says_who_was_erased(
    erased: list[Erasure], before: dict[str, Any]
):
    call_command("audit_sealer", "--once")
    call_command("audit_verify")  # exits when it does not hold

    assert oracle.trail_faults() == []
    done = Event.objects.filter(action="erasure.done").order_by("pk")
    assert [event.subject for event in done] == [f"erasure:{one.pk}" for one in erased]
    assert {event.actor for event in done} == {"admin:root"}
    assert Event.objects.count() > before["events"]


def test_no_text_beside_the_chain_can_be_read(erased: list[Erasure]):
    spoken = Event.objects.filter(personal_digest__isnull=False)

    assert spoken.count() > 0
    assert {audit.read_personal(event) for event in spoken} == {None}


def test_money_still_counts_by_order_and_customer(erased: list[Erasure], before: dict[str, Any]):
    assert before["money"]["order_id"]
    assert money() == before["money"]
    assert facts() == before["facts"]
    assert before["digests"] == list(
        Approval.objects.order_by("pk").values_list("digest", "decided_by")
    )


def test_redis_and_the_queue_hold_no_word(erased: list[Erasure], told: Told):
    with redis.Redis.from_url(django_settings.REDIS_URL) as broker:
        held = repr([broker.dump(key) for key in broker.scan_iter()])

    assert found_in(held + told.queued, PERSONAL) == []


def test_the_log_of_the_erasure_holds_no_word(erased: list[Erasure], told: Told):
    assert found_in(told.logs, PERSONAL) == []


def test_what_is_left_can_still_be_looked_at(erased: list[Erasure]):
    tasks = list(Task.objects.select_related("customer", "ticket").order_by("pk"))

    shown = json.dumps(
        [[event.data for event in list_events(task)] for task in tasks]
        + [step_log.as_json(task) for task in tasks]
    )

    assert tasks
    assert "[erased]" in shown
    assert found_in(shown, PERSONAL) == []
