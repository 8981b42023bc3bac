"""The OpenAPI document: valid, complete, and true of what the API really answers."""

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from django.core.management import call_command
from django.urls import URLPattern, get_resolver

from agents.api import docs
from agents.api import urls as api_urls
from tests.api.clients import Api, end, wait_for_yes

METHODS = {"get", "post"}
OWN_PAGES = {"openapi.json"}
# The shop's own door: nobody signs in there, and there is nothing to find or to be forbidden.
WEBHOOKS = "/v1/webhooks/{shop}"
FORM = {"tool": "find_orders", "arguments": {"order_id": "1045"}}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return docs.document()


def test_the_document_is_valid_and_made_without_a_warning(tmp_path):
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "openapi"))


def test_it_is_served_to_everybody(client):
    answer = client.get("/v1/openapi.json")

    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/json"
    assert answer.json()["openapi"].startswith("3.1")


def test_it_has_every_address_and_every_method(document):
    routes: dict[str, set[str]] = {}
    for route in api_urls.urlpatterns:
        assert isinstance(route, URLPattern)
        if (path := str(route.pattern)) not in OWN_PAGES:
            view: Any = route.callback.view_class  # type: ignore[attr-defined]
            methods = {m for m in METHODS if hasattr(view, m) and m in view.http_method_names}
            routes[
                "/v1/"
                + path.replace("<id:", "{")
                .replace("<step:", "{")
                .replace("<slug:", "{")
                .replace(">", "}")
            ] = methods

    described = {path: set(item) & METHODS for path, item in document["paths"].items()}

    assert described == routes
    assert len(get_resolver("agents.api.urls").url_patterns) == len(routes) + len(OWN_PAGES)


def test_every_operation_tells_its_errors_as_problems(document):
    for path, item in document["paths"].items():
        for method in METHODS & set(item):
            answers = item[method]["responses"]
            errors = {status: answer for status, answer in answers.items() if status >= "400"}
            wanted = {"401", "422", "500", "503"}
            wanted |= {"403", "429"} if path != WEBHOOKS else set()
            wanted |= {"404"} if "{" in path and path != WEBHOOKS else set()
            wanted |= {"400", "413", "415"} if method == "post" else set()
            assert wanted <= set(errors), (path, method)
            for answer in errors.values():
                assert list(answer["content"]) == ["application/problem+json"]
                assert answer["description"]
            assert set(answers) - set(errors), (path, method)


def test_what_comes_in_is_closed(document):
    bodies = {
        item["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"].split("/")[-1]
        for path, item in document["paths"].items()
        if "requestBody" in item.get("post", {}) and path != WEBHOOKS
    }

    assert bodies == {"TaskIn", "FormIn", "RunIn", "MessageIn", "DecisionIn", "RunDecisionIn"}
    for name in bodies:
        assert document["components"]["schemas"][name]["additionalProperties"] is False


@pytest.mark.django_db
def test_answers_are_as_described(document, ada: Api, staff: Api):
    approval = wait_for_yes(task := ada.ask(), price=40_000)
    seen: list[tuple[str, str, Any]] = [
        ("get", "/v1/tasks/{task_id}", ada.get(f"/v1/tasks/{task.pk}")),
        ("get", "/v1/runs/{task_id}", ada.get(f"/v1/runs/{task.pk}")),
    ]
    path = f"/v1/tasks/{task.pk}/approvals/2"
    bad = {"decision": "yes", "digest": "0" * 64}
    good = {"decision": "yes", "digest": approval.digest}
    decide = "/v1/tasks/{task_id}/approvals/{step}"
    seen += [("post", decide, ada.post(path, bad)), ("post", decide, ada.post(path, good))]
    seen += [("post", decide, staff.post(path, good))]
    end(task)
    seen += [
        ("get", "/v1/tasks", ada.get("/v1/tasks")),
        ("get", "/v1/runs", staff.get("/v1/runs")),
        ("get", "/v1/tickets", ada.get("/v1/tickets")),
        ("get", "/v1/tickets/{ticket_id}", ada.get(f"/v1/tickets/{task.ticket_id}")),
        ("post", "/v1/tasks", ada.post("/v1/tasks", {"message": "More"})),
        ("post", "/v1/tasks", ada.post("/v1/tasks", {})),
        ("post", "/v1/runs", ada.post("/v1/runs", {"goal": "Less", "ticket": "new"})),
        ("post", "/v1/forms", ada.post("/v1/forms", FORM)),
        ("post", "/v1/tasks/{task_id}/cancel", ada.post(f"/v1/tasks/{task.pk}/cancel")),
        ("get", "/v1/tasks/{task_id}", Api().get("/v1/tasks/1")),
    ]

    assert [answer.status_code for _, _, answer in seen] == [
        *(200, 200, 409, 200, 200, 200, 200, 200, 200, 201, 422, 201, 201, 200, 401)
    ]
    for method, template, answer in seen:
        described = document["paths"][template][method]["responses"][str(answer.status_code)]
        schema = described["content"][answer["Content-Type"]]["schema"]
        closed = {**schema, "components": _closed(document["components"])}
        jsonschema.validate(answer.json(), closed)


def _closed(components: dict[str, Any]) -> dict[str, Any]:
    """The same shapes, so that a member nobody described is an error."""
    schemas = {
        name: {**schema, "additionalProperties": False}
        for name, schema in components["schemas"].items()
    }
    return {"schemas": schemas}
