"""One customer's crowd takes nothing from the others: neither connections nor the queue."""

from collections import Counter

import pytest

from agents import dispatch, services
from agents.api import throttle
from agents.models import Message, Task
from tests.api.clients import Api, everything, problem

pytestmark = pytest.mark.django_db

ASK = {"message": "Please refund order 1042", "ticket": "new"}


@pytest.fixture
def queue(monkeypatch) -> list[int]:
    """Every message that the product puts on the queue, by the task's id, in its order."""
    sent: list[int] = []
    monkeypatch.setattr(dispatch, "_send", lambda task_id, countdown: sent.append(task_id))
    return sent


def test_a_crowd_of_ones_requests_is_refused_before_it_holds_the_others_connections(
    ada: Api, bob: Api, settings
):
    settings.API_REQUESTS_AT_ONCE = 2
    key = f"customer:{ada.row.pk}"
    with throttle.one_of_few(key), throttle.one_of_few(key):
        before = everything()

        refused = ada.post("/v1/tasks", ASK)
        reading = ada.get("/v1/tasks")

        problem(refused, 429, "too-many-requests")
        problem(reading, 429, "too-many-requests")
        assert (refused["Retry-After"], everything()) == ("1", before)
        assert bob.post("/v1/tasks", ASK).status_code == 201
    assert ada.post("/v1/tasks", ASK).status_code == 201


@pytest.mark.parametrize("body", [ASK, {"message": 7}, {"message": "x", "ticket": 10**12}])
def test_a_place_is_given_back_however_the_request_ends(ada: Api, body, settings):
    settings.API_REQUESTS_AT_ONCE = 1

    for _ in range(3):
        assert ada.post("/v1/tasks", body).status_code != 429

    assert throttle._at_work == Counter()


def test_a_place_is_given_back_after_a_fault_of_our_own(ada: Api, settings, monkeypatch):
    settings.API_REQUESTS_AT_ONCE = 1

    def broken(**_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(services, "submit", broken)

    assert ada.post("/v1/tasks", ASK).status_code == 500
    assert throttle._at_work == Counter()


def test_a_flood_puts_no_more_on_the_queue_than_its_customers_open_tasks(
    ada: Api, bob: Api, queue: list[int], django_capture_on_commit_callbacks
):
    limit = ada.row.shop.max_open_tasks_per_customer
    with django_capture_on_commit_callbacks(execute=True):
        statuses = Counter(ada.post("/v1/tasks", ASK).status_code for _ in range(40))
        # What joins a task is heard at its next step and puts nothing on the queue.
        joined = [ada.post("/v1/tasks", {"message": f"and {n}"}).status_code for n in range(40)]
        asked = bob.post("/v1/tasks", ASK)

    assert statuses == {201: limit, 409: 40 - limit}
    assert set(joined) == {200}
    assert Message.objects.filter(ticket__customer=ada.row).count() == limit + 40
    assert len(queue) == len(set(queue)) == limit + 1
    assert queue.index(asked.json()["id"]) == limit
    assert Task.objects.count() == limit + 1
