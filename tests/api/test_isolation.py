"""Not yours is not there: every address, every stranger, the same answer as for what never was.

A new address fails here until it has a row of its own in ADDRESSES.
"""

import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.api import urls as api_urls
from agents.models import Message, Task
from approvals.models import Approval
from tests.api.clients import Api, everything, problem, wait_for_yes

pytestmark = pytest.mark.django_db

UNKNOWN = 987_654_321_012_345
SECRET = "Ada's own words about order 1042"
STRANGERS = ("bob", "eve", "other_staff")

# Each address with what to send there; {task}, {ticket}, {step} and {digest} are Ada's.
ADDRESSES: dict[str, dict[str, Any]] = {
    "openapi.json": {},
    "tasks": {"get": "?ticket={ticket}", "post": {"message": "Hi", "ticket": "{ticket}"}},
    "runs": {"get": "?ticket={ticket}", "post": {"goal": "Hi", "ticket": "{ticket}"}},
    "forms": {"post": {"tool": "find_orders", "arguments": {}, "ticket": "{ticket}"}},
    "tickets": {"get": ""},
    "webhooks/<slug:shop>": {"post": {}},
    "tickets/<id:ticket_id>": {"get": ""},
}
for noun, yes in (("tasks", "yes"), ("runs", "approve")):
    ADDRESSES |= {
        f"{noun}/<id:task_id>": {"get": ""},
        f"{noun}/<id:task_id>/events": {"get": ""},
        f"{noun}/<id:task_id>/messages": {"post": {"message": "Hi"}},
        f"{noun}/<id:task_id>/cancel": {"post": {}},
        f"{noun}/<id:task_id>/approvals/<step:step>": {
            "post": {"decision": yes, "digest": "{digest}"}
        },
    }
REQUESTS = [
    (address, method)
    for address, methods in ADDRESSES.items()
    for method in methods
    # A shop's webhook names nobody's things, and proves itself otherwise: tests/desk.
    if address not in {"openapi.json", "tickets", "webhooks/<slug:shop>"}
]


@pytest.fixture
def adas(ada: Api) -> dict[str, Any]:
    """What is Ada's: a task that waits for her yes."""
    approval = wait_for_yes(task := ada.ask(SECRET))
    return {"task": task.pk, "ticket": task.ticket_id, "step": 2, "digest": approval.digest}


def send(api: Api, address: str, method: str, names: dict[str, Any]) -> Any:
    filled = {"<id:task_id>": "task", "<id:ticket_id>": "ticket", "<step:step>": "step"}
    path = f"/v1/{address}"
    for hole, name in filled.items():
        path = path.replace(hole, str(names[name]))
    what = ADDRESSES[address][method]
    if method == "get":
        return api.get(path + what.format(**names))
    body = {
        name: names[value.strip("{}")]
        if isinstance(value, str) and value.startswith("{")
        else value
        for name, value in what.items()
    }
    return api.post(path, body)


def test_every_address_is_in_the_matrix():
    routes = {str(route.pattern): route for route in api_urls.urlpatterns}
    methods: dict[str, set[str]] = {}
    for address, route in routes.items():
        view: Any = getattr(route.callback, "view_class", None)
        if address != "openapi.json":
            methods[address] = {m for m in view.http_method_names if hasattr(view, m)} - {"head"}

    assert len(routes) == len(api_urls.urlpatterns)
    assert {a: set(m) for a, m in ADDRESSES.items() if a != "openapi.json"} == methods


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize(("address", "method"), REQUESTS)
def test_a_stranger_learns_and_changes_nothing(
    request, adas: dict[str, Any], address: str, method: str, stranger: str
):
    api: Api = request.getfixturevalue(stranger)
    nowhere = adas | {"task": UNKNOWN, "ticket": UNKNOWN}
    before = everything()

    foreign = send(api, address, method, adas)
    unknown = send(api, address, method, nowhere)

    assert foreign.status_code == unknown.status_code
    assert _nameless(foreign.json()) == _nameless(unknown.json())
    if (stranger == "other_staff" and method == "post" and "approvals" not in address) or (
        stranger == "other_staff" and address.startswith("tickets")
    ):
        problem(foreign, 403, "forbidden")
    else:
        problem(foreign, 404, "not-found")
    told = json.dumps(_nameless(foreign.json()))  # a request's random name may hold any digits
    for secret in (SECRET, "1042", adas["digest"], "Stoneware"):
        assert secret not in told
    assert everything() == before


@pytest.mark.parametrize(("address", "method"), REQUESTS)
def test_a_foreign_and_an_unknown_id_take_the_same_path(
    adas: dict[str, Any], bob: Api, address: str, method: str
):
    nowhere = adas | {"task": UNKNOWN, "ticket": UNKNOWN}

    asked = []
    for names in (adas, nowhere):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            send(bob, address, method, names)
        asked.append([re.sub(r"'[^']*'|\d+", "?", query["sql"]) for query in queries])

    assert asked[0] == asked[1]


@pytest.mark.parametrize("path", ["tasks", "runs", "tickets"])
@pytest.mark.parametrize("stranger", ["bob", "eve"])
def test_lists_hold_the_askers_own_and_nothing_else(
    request, adas: dict[str, Any], path: str, stranger: str
):
    api: Api = request.getfixturevalue(stranger)
    own = api.ask("My own question")

    answer = api.get(f"/v1/{path}")

    wanted = own.ticket_id if path == "tickets" else own.pk
    assert [each["id"] for each in answer.json()[path]] == [wanted]
    assert SECRET.encode() not in answer.content


@pytest.mark.parametrize(("address", "method"), [*REQUESTS, ("tickets", "get")])
def test_nobody_gets_nowhere(adas: dict[str, Any], nobody: Api, address: str, method: str):
    before = everything()

    problem(send(nobody, address, method, adas), 401, "unauthenticated")

    assert everything() == before


def test_the_owner_gets_everywhere(adas: dict[str, Any], ada: Api):
    """So that the refusals above are about whose it is, not about a wrong request."""
    for address, method in REQUESTS:
        if "cancel" in address or "approvals" in address or address.endswith("/events"):
            continue
        assert send(ada, address, method, adas).status_code in {200, 201}, address

    assert send(ada, "tasks/<id:task_id>/approvals/<step:step>", "post", adas).status_code == 200
    assert send(ada, "tasks/<id:task_id>/cancel", "post", adas).status_code == 200
    assert Approval.objects.get().decided_by == "customer:ada"
    assert Message.objects.filter(task=Task.objects.get(pk=adas["task"])).count() >= 2


def _nameless(document: dict[str, Any]) -> dict[str, Any]:
    """Without what names the request itself."""
    return {**document, "request_id": "", "instance": ""}
