"""Requests that nobody honest sends: each gets a 4xx, and nothing has changed after it."""

import json
from typing import Any

import pytest

from agents.api import throttle
from tests.api.clients import Api, everything, problem, wait_for_yes

pytestmark = pytest.mark.django_db

DEEP = '{"message": ' + "[" * 30_000 + "]" * 30_000 + "}"
MALFORMED = {
    "cut short": '{"message": "Hi"',
    "not JSON": "message=Hi",
    "single quotes": "{'message': 'Hi'}",
    "trailing comma": '{"message": "Hi",}',
    "NaN": '{"message": NaN}',
    "Infinity": '{"message": -Infinity}',
    "1e999": '{"message": 1e999}',
    "key twice": '{"message": "Hi", "message": "Ho"}',
    "key twice, once escaped": '{"message": "Hi", "mess\\u0061ge": "Ho"}',
    "deep": DEEP,
    "number of 5,000 digits": '{"message": ' + "9" * 5000 + "}",
    "byte order mark": "\ufeff{}",
    "not UTF-8": b'{"message": "\xff\xfe"}',
    "UTF-16": '{"message": "Hi"}'.encode("utf-16"),
}
INVALID = {
    "empty": {},
    "no text": {"message": ""},
    "blanks": {"message": " \n\t "},
    "null": {"message": None},
    "number": {"message": 5},
    "true": {"message": True},
    "list": {"message": ["Hi"]},
    "object": {"message": {"text": "Hi"}},
    "too long": {"message": "x" * 4001},
    "NUL": {"message": "Hi\u0000"},
    "half a character": '{"message": "Hi \\ud800"}',
    "NUL in a name": '{"message": "Hi", "\\u0000": 1}',
    "a list": [],
    "a text": '"message"',
    "null itself": "null",
    "ticket 0": {"message": "Hi", "ticket": 0},
    "ticket true": {"message": "Hi", "ticket": True},
    "ticket as text": {"message": "Hi", "ticket": "1"},
    "ticket as fraction": {"message": "Hi", "ticket": 1.5},
    "ticket beyond any": {"message": "Hi", "ticket": 10**17},
    "ticket null": {"message": "Hi", "ticket": None},
    "ticket list": {"message": "Hi", "ticket": ["new"]},
}
FORBIDDEN_FIELDS = (
    "customer",
    "customer_id",
    "role",
    "approved",
    "limit",
    "shop",
    "status",
    "agent",
    "task",
)


def test_no_identity_is_a_401_that_says_how_to_sign_in(nobody: Api):
    before = everything()

    answer = nobody.post("/v1/tasks", {"message": "Hi"})

    problem(answer, 401, "unauthenticated")
    assert answer["WWW-Authenticate"] == 'Bearer realm="countersign"'
    assert everything() == before


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_what_is_not_strict_json_is_a_400(ada: Api, body: str | bytes):
    before = everything()

    answer = ada.post("/v1/tasks", body)

    problem(answer, 400, "malformed-json")
    assert everything() == before


@pytest.mark.parametrize("body", INVALID.values(), ids=INVALID)
def test_values_out_of_shape_are_a_422_that_names_them(ada: Api, body: Any):
    before = everything()

    answer = ada.post("/v1/tasks", body)

    (error, *_) = problem(answer, 422, "invalid")["errors"]
    assert error["pointer"] in {"#", "#/message", "#/ticket"}
    assert error["detail"]
    assert everything() == before


@pytest.mark.parametrize("field", FORBIDDEN_FIELDS)
def test_a_field_too_many_is_refused_everywhere(ada: Api, field: str):
    approval = wait_for_yes(task := ada.ask())
    before = everything()
    decision = {"decision": "yes", "digest": approval.digest}
    posts: dict[str, dict[str, Any]] = {
        "/v1/tasks": {"message": "Hi"},
        "/v1/runs": {"goal": "Hi"},
        "/v1/forms": {"tool": "find_orders", "arguments": {}},
        f"/v1/tasks/{task.pk}/messages": {"message": "Hi"},
        f"/v1/tasks/{task.pk}/cancel": {},
        f"/v1/tasks/{task.pk}/approvals/2": decision,
        f"/v1/runs/{task.pk}/approvals/2": decision | {"decision": "approve"},
    }

    for path, body in posts.items():
        if (path, field) == ("/v1/runs", "agent"):
            continue  # a run may name its agent
        document = problem(ada.post(path, body | {field: "x"}), 422, "invalid")
        assert [error["pointer"] for error in document["errors"]] == [f"#/{field}"]

    assert everything() == before


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_read(ada: Api):
    before = everything()

    answer = ada.post("/v1/tasks", json.dumps({"message": "x" * 70_000}))

    problem(answer, 413, "body-too-large")
    assert everything() == before


@pytest.mark.parametrize("length", ["-1", "1e3", "²", "9" * 400])
def test_an_odd_content_length_is_no_fault_of_ours(ada: Api, length: str):
    before = everything()

    answer = ada.client.generic(
        "POST", "/v1/tasks", "{}", "application/json", headers=ada.headers, CONTENT_LENGTH=length
    )

    assert answer.status_code in {400, 413}
    assert everything() == before


@pytest.mark.parametrize(
    ("content_type", "encoding"),
    [
        ("text/plain", "identity"),
        ("application/x-www-form-urlencoded", "identity"),
        ("multipart/form-data; boundary=x", "identity"),
        ("application/json; charset=utf-16", "identity"),
        ("application/json; charset=latin-1", "identity"),
        ("application/json; profile=x", "identity"),
        ("application/vnd.api+json", "identity"),
        ("", "identity"),
        ("application/json", "gzip"),
        ("application/json", "br"),
    ],
)
def test_only_plain_json_is_read(ada: Api, content_type: str, encoding: str):
    before = everything()

    answer = ada.client.generic(
        "POST",
        "/v1/tasks",
        '{"message": "Hi"}',
        content_type,
        headers=ada.headers | {"Idempotency-Key": '"1"', "Content-Encoding": encoding},
    )

    problem(answer, 415, "unsupported-media-type")
    assert everything() == before


@pytest.mark.parametrize(
    "query",
    [
        "limit=1000000000",
        "limit=0",
        "limit=-1",
        "limit=ten",
        "limit=²",
        "limit=1_0",
        "limit=",
        "limit=101",
        "cursor=x",
        "cursor=",
        "cursor=%00",
        "cursor=é",
        "cursor=before-",
        "cursor=before-0",
        "cursor=before-1 OR 1=1",
    ],
)
@pytest.mark.parametrize("path", ["tasks", "runs", "tickets"])
def test_a_page_that_does_not_exist_is_a_400(ada: Api, path: str, query: str):
    document = problem(ada.get(f"/v1/{path}?{query}"), 400, "bad-page")

    assert document["errors"][0]["parameter"] == query.partition("=")[0]


@pytest.mark.parametrize(
    "query", ["sort=id;DROP TABLE", "offset=-1", "format=xml", "_method=DELETE"]
)
def test_a_parameter_that_nobody_reads_is_a_422(ada: Api, query: str):
    document = problem(ada.get(f"/v1/tasks?{query}"), 422, "invalid")

    assert document["errors"][0]["parameter"] == query.partition("=")[0]


@pytest.mark.parametrize("given", ["x", "1", "1.", ".1", "1.1.1", "-1.1", "1.1x", "9" * 20 + ".1"])
def test_an_event_id_that_is_none_is_a_400(ada: Api, given: str):
    path = f"/v1/tasks/{ada.ask().pk}/events"

    problem(ada.get(path, **{"Last-Event-ID": given}), 400, "bad-event-id")
    problem(ada.get(f"{path}?after={given}"), 400, "bad-event-id")


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_an_event_id_that_is_none_is_refused_before_anything_is_made(ada: Api, accept: str):
    before = everything()

    answer = ada.post(
        "/v1/tasks", {"message": "Hi"}, Accept=accept, **{"Last-Event-ID": "after that"}
    )

    problem(answer, 400, "bad-event-id")
    assert everything() == before


@pytest.mark.parametrize("ticket", ["0", "-1", "x", "", "1%00", "9" * 30, "²"])
def test_a_conversation_is_named_by_its_id(ada: Api, ticket: str):
    problem(ada.get(f"/v1/tasks?ticket={ticket}"), 422, "invalid")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/tasks/..%2f1",
        "/v1/tasks/%00",
        "/v1/tasks/1%00",
        "/v1/tasks/0",
        "/v1/tasks/-1",
        "/v1/tasks/01",
        "/v1/tasks/1%0A",
        "/v1/tasks/1.0",
        "/v1/tasks/²",
        "/v1/tasks/1e3",
        "/v1/tasks/999999999999999999",
        "/v1/tasks/9999999999999999999999999",
        "/v1/tasks/1/approvals/0",
        "/v1/tasks/1/approvals/99999999999",
        "/v1/tasks/",
        "/v1/tasks/1/",
        "/v1/tasks/1/steps",
        "/v1/tickets/1' OR '1'='1",
        "/v1/",
        "/v1/nothing",
        "/v1/%FF%FE",
    ],
)
def test_an_address_that_is_none_is_a_404(ada: Api, path: str):
    problem(ada.get(path), 404, "not-found")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "OPTIONS", "BREW"])
def test_other_verbs_are_refused(ada: Api, method: str):
    task = ada.ask()
    before = everything()

    for path in ("/v1/tasks", f"/v1/tasks/{task.pk}", f"/v1/tasks/{task.pk}/events"):
        answer = ada.client.generic(method, path, headers=ada.headers)
        problem(answer, 405, "method-not-allowed")
        assert "GET" in answer["Allow"]

    assert everything() == before


@pytest.mark.parametrize(
    "path", ["approvals/2", "cancel", "messages"], ids=["decide", "cancel", "say"]
)
def test_reading_never_does_anything(ada: Api, path: str):
    wait_for_yes(task := ada.ask())
    before = everything()

    for method in ("GET", "HEAD"):
        answer = ada.client.generic(
            method,
            f"/v1/tasks/{task.pk}/{path}",
            headers=ada.headers | {"X-HTTP-Method-Override": "POST", "X-Method-Override": "POST"},
        )
        assert answer.status_code == 405
        assert answer["Allow"] == "POST"

    assert everything() == before


def test_a_strange_host_is_a_400_and_no_forwarded_one_enters_a_link(ada: Api):
    before = everything()

    strange = ada.get("/v1/tasks", Host="evil.example")
    forwarded = ada.post("/v1/tasks", {}, **{"X-Forwarded-Host": "evil.example"})

    problem(strange, 400, "bad-request")
    assert b"evil.example" not in forwarded.content
    assert everything() == before

    made = ada.post(
        "/v1/tasks",
        {"message": "Hi"},
        Forwarded="host=evil.example",
        **{"X-Forwarded-Host": "evil.example"},
    )
    assert made.status_code == 201
    assert made["Location"] == f"/v1/tasks/{made.json()['id']}"
    assert "evil.example" not in made.content.decode() + str(made.headers)


def test_more_requests_a_minute_than_allowed_are_refused_for_that_customer_alone(
    ada: Api, bob: Api, settings
):
    settings.API_READS_PER_MINUTE = 3

    codes = [ada.get("/v1/tasks").status_code for _ in range(4)]
    refused = ada.get("/v1/tasks")

    assert codes[-1] == 429
    problem(refused, 429, "too-many-requests")
    assert 1 <= int(refused["Retry-After"]) <= 61
    assert bob.get("/v1/tasks").status_code == 200


def test_without_redis_requests_are_not_counted_and_not_refused(ada: Api, settings):
    settings.API_READS_PER_MINUTE = 1
    settings.REDIS_URL = "redis://127.0.0.1:9/0"

    for _ in range(3):
        throttle.count_request(f"customer:{ada.row.pk}", is_write=False)

    # Each web process still keeps its own pace, at its door.
    assert ada.get("/v1/tasks").status_code == 200


def test_a_name_for_the_request_is_never_taken_from_outside(ada: Api):
    one = ada.get("/v1/tasks", **{"X-Request-ID": "mine"})
    two = ada.get("/v1/tasks", **{"X-Request-ID": "mine"})

    assert len(one["X-Request-ID"]) == 32
    assert "mine" not in {one["X-Request-ID"], two["X-Request-ID"]}
    assert one["X-Request-ID"] != two["X-Request-ID"]


def test_a_fault_of_our_own_is_a_problem_that_tells_nothing_of_it(ada: Api, monkeypatch, caplog):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("agents.api.representations.task_full", fail)
    before = everything()

    answer = ada.post("/v1/tasks", {"message": "Hi"})

    problem(answer, 500, "internal")
    assert b"secret detail" not in answer.content
    assert "secret detail" in caplog.text
    assert everything() == before
