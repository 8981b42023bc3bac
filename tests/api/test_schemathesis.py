"""Nothing is answered but what the OpenAPI document says, whoever asks and whatever is asked.

A longer run: COUNTERSIGN_EXAMPLES=500 script/test tests/api/test_schemathesis.py
"""

import os

import pytest

from tests.accounts.factories import Signer
from tests.api.believer import believe
from tests.api.clients import Api, end, wait_for_yes
from tests.desk.telling import Teller

pytestmark = [pytest.mark.django_db(transaction=True, reset_sequences=True), pytest.mark.timeout(0)]

EXAMPLES = int(os.environ.get("COUNTERSIGN_EXAMPLES", "5"))


@pytest.fixture
def ended_task(ada: Api) -> int:
    """A task that has ended, beside one that waits for Ada's yes."""
    wait_for_yes(ada.ask())
    return end(ada.ask()).pk


def test_a_customer_is_answered_as_it_is_written(ada: Api, ended_task: int):
    """And a shop: its events are signed."""
    teller = Teller.of(ada.row.shop)

    report = believe(
        ada.headers,
        examples=EXAMPLES,
        ended_task=ended_task,
        shop=teller.shop.slug,
        secret=teller.secret,
    )

    assert report.faults == {}
    # It got everywhere: past the door, and to what is behind it.
    assert {200, 400, 401, 405, 415, 422} <= report.seen("POST /v1/tasks")
    assert {200, 400, 401, 404, 405, 415, 422} <= report.seen("POST /v1/runs/{task_id}/messages")
    assert {200, 401, 404, 405} <= report.seen("POST /v1/tasks/{task_id}/cancel")
    assert {404, 405, 415, 422} <= report.seen("POST /v1/tasks/{task_id}/approvals/{step}")
    assert {200, 204, 400, 401, 405} <= report.seen("GET /v1/tasks/{task_id}/events")
    assert {200, 401, 405, 415, 422} <= report.seen("POST /v1/webhooks/{shop}")
    assert 200 in report.seen("Stateful tests")


def test_staff_are_answered_as_it_is_written(staff: Api, signer: Signer, ended_task: int):
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in staff.client.cookies.items())

    report = believe(
        staff.headers | {"Cookie": cookies},
        examples=EXAMPLES,
        phases=("coverage", "fuzzing"),
        ended_task=ended_task,
        shop=signer.shop.slug,
        # A made-up token would be judged instead of the session.
        tries_other_credentials=False,
    )

    assert report.faults == {}
    assert {200, 400, 404, 422} <= report.seen("GET /v1/tasks")
    assert {403, 404, 415, 422} <= report.seen("POST /v1/tasks/{task_id}/approvals/{step}")
    assert 200 not in report.seen("GET /v1/tickets")


def test_nobody_is_answered_as_it_is_written(signer: Signer, ended_task: int):
    report = believe(
        {},
        examples=EXAMPLES,
        phases=("coverage",),
        ended_task=ended_task,
        shop=signer.shop.slug,
    )

    assert report.faults == {}
    assert {status for _, status in report.statuses} == {401, 404, 405}


def test_an_answer_that_is_not_as_written_is_found(ada: Api, monkeypatch):
    """Else the tests above would say nothing."""
    ada.ask()
    monkeypatch.setattr("agents.api.representations.ticket_brief", lambda ticket: {"id": "one"})

    report = believe(ada.headers, examples=3, phases=("fuzzing",), only="^/v1/tickets$")

    assert any("violates schema" in fault for fault in report.faults), report.faults
