"""One customer's crowd takes nothing from the others: neither connections nor the queue."""

import time
from collections import Counter

import pytest
from django.http import HttpRequest, HttpResponse

from agents import dispatch, services
from agents.api import door, throttle
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

    assert throttle._at_work == door._at_work == Counter()


def test_a_place_is_given_back_after_a_fault_of_our_own(ada: Api, settings, monkeypatch):
    settings.API_REQUESTS_AT_ONCE = 1

    def broken(**_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(services, "submit", broken)

    assert ada.post("/v1/tasks", ASK).status_code == 500
    assert throttle._at_work == door._at_work == Counter()


def test_whoever_comes_too_fast_is_refused_without_a_look_at_the_database(
    ada: Api, bob: Api, settings, django_assert_num_queries
):
    settings.API_WRITES_PER_MINUTE = 8  # two at once, then one in seven and a half seconds
    for _ in range(2):
        assert ada.post("/v1/tasks", {"message": 7}).status_code == 422
    before = everything()

    with django_assert_num_queries(0):
        refused = [ada.post("/v1/tasks", ASK) for _ in range(5)]

    for answer in refused:
        problem(answer, 429, "too-many-requests")
        assert 6 <= int(answer["Retry-After"]) <= 8
    assert everything() == before
    assert ada.get("/v1/tasks").status_code == 200  # reading is counted apart
    assert bob.post("/v1/tasks", ASK).status_code == 201


def test_whoever_has_waited_is_let_in_again(ada: Api, settings, monkeypatch):
    settings.API_WRITES_PER_MINUTE = 8
    codes = [ada.post("/v1/tasks", {"message": 7}).status_code for _ in range(3)]
    wait = int(ada.post("/v1/tasks", ASK)["Retry-After"])
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + wait + 1)

    assert codes == [422, 422, 429]
    assert ada.post("/v1/tasks", ASK).status_code == 201


def test_a_crowd_with_one_credential_has_a_few_places_at_the_door(rf, settings):
    settings.API_REQUESTS_AT_ONCE = 3
    entered: list[int] = []

    def visit(request: HttpRequest) -> HttpResponse:
        entered.append(1)
        inner = door.door(visit)(request) if len(entered) < 10 else HttpResponse()
        return HttpResponse(status=inner.status_code)

    crowd = rf.get("/v1/tasks", headers={"Authorization": "Bearer one"})
    assert door.door(visit)(crowd).status_code == 429
    assert len(entered) == 3
    assert door._at_work == Counter()


@pytest.mark.asyncio
async def test_the_door_is_the_same_on_the_event_loop(rf, settings):
    settings.API_REQUESTS_AT_ONCE = 1

    async def inner(request: HttpRequest) -> HttpResponse:
        return HttpResponse()

    async def outer(request: HttpRequest) -> HttpResponse:
        answer: HttpResponse = await door.door(inner)(request)
        return answer

    request = rf.get("/v1/tasks", headers={"Authorization": "Bearer one"})
    assert (await door.door(inner)(request)).status_code == 200
    assert (await door.door(outer)(request)).status_code == 429
    assert door._at_work == Counter()


def test_only_so_many_credentials_are_remembered(rf, monkeypatch):
    monkeypatch.setattr(door, "REMEMBERED", 3)
    enter = door.door(lambda request: HttpResponse())
    for n in range(10):
        enter(rf.get("/v1/tasks", headers={"Authorization": f"Bearer {n}"}))

    assert len(door._pace) == 3


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
