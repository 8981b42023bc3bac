"""Whatever is sent: never a 5xx, and a refusal changes nothing."""

import json
import string
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.models import Task
from tests.api.clients import Api, everything, wait_for_yes

pytestmark = pytest.mark.django_db

QUICK = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
FIELDS = [
    *("message", "goal", "ticket", "agent", "decision", "digest", "reason", "decision_id"),
    *("role", "approved", "customer_id", "tool", "arguments", "locale"),
]
WORDS = [
    "refund_order",
    "yes",
    "no",
    "approve",
    "reject",
    "new",
    "support",
    "0" * 64,
    "x" * 4001,
    "",
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.sampled_from(WORDS),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
BODIES = st.one_of(
    st.dictionaries(st.sampled_from(FIELDS) | st.text(), VALUES, max_size=4).map(json.dumps),
    VALUES.map(json.dumps),
    st.text(),
    st.binary(),
)
SEGMENTS = st.one_of(
    st.sampled_from(["{task}", "2", "1", "0", "-1", "..", "%00", "9" * 19]),
    st.text(alphabet=string.printable, max_size=8).map(lambda text: quote(text, safe="%")),
)
PATHS = st.one_of(
    st.sampled_from(["tasks", "runs", "tickets", "forms"]),
    st.tuples(st.sampled_from(["tasks", "runs", "tickets"]), SEGMENTS).map("/".join),
    st.tuples(
        st.sampled_from(["tasks", "runs"]),
        st.just("{task}"),
        st.sampled_from(["messages", "cancel", "approvals/2", "approvals/1"]) | SEGMENTS,
    ).map("/".join),
)
QUERIES = st.dictionaries(
    st.sampled_from(["limit", "cursor", "ticket", "after", "format", "page"]) | st.text(max_size=5),
    st.text(max_size=12) | st.integers().map(str),
    max_size=2,
)
# What no HTTP server lets through is left out.
HEADER = st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=255), max_size=30)


@pytest.fixture
def task(ada: Api) -> Task:
    """A task that waits for Ada's yes."""
    task = ada.ask()
    wait_for_yes(task)
    return task


@QUICK
@given(path=PATHS, body=BODIES, key=st.none() | HEADER, kind=st.none() | HEADER)
def test_whatever_is_posted(
    ada: Api, task: Task, path: str, body: str | bytes, key: str | None, kind: str | None
):
    before = everything()
    headers = dict(ada.headers)
    if key is not None:
        headers["Idempotency-Key"] = key

    answer = ada.client.generic(
        "POST",
        f"/v1/{path.replace('{task}', str(task.pk))}",
        body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body,
        "application/json" if kind is None else kind,
        headers=headers,
    )

    _judge(answer, before)


@QUICK
@given(path=PATHS, query=QUERIES, last=st.none() | HEADER)
def test_whatever_is_asked(
    ada: Api, task: Task, path: str, query: dict[str, str], last: str | None
):
    before = everything()
    headers = ada.headers | ({} if last is None else {"Last-Event-ID": last})
    asked = "&".join(f"{quote(name, safe='')}={quote(value)}" for name, value in query.items())

    answer = ada.client.generic(
        "GET", f"/v1/{path.replace('{task}', str(task.pk))}?{asked}", headers=headers
    )

    _judge(answer, before)
    assert everything() == before


@QUICK
@given(header=HEADER)
def test_whatever_claims_to_be_an_identity(nobody: Api, header: str):
    answer = nobody.get("/v1/tasks", Authorization=header)

    assert answer.status_code == 401


def _judge(answer: Any, before: dict[str, Any]) -> None:
    assert answer.status_code < 500, answer.content
    if answer.status_code >= 400:
        assert answer["Content-Type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code
        assert everything() == before
