"""Who answers for staff in a terminal: above a second limit two different people."""

from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from script.lib.chat import Conversation, Options


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, str]]]:
    """Everything that is posted in somebody's session of the console: who, and what."""
    posted: list[tuple[str, dict[str, str]]] = []

    def as_staff(self: Any, name: str, path: str, body: dict[str, str]) -> httpx.Response:
        assert path == "/v1/tasks/7/approvals/4"
        posted.append((name, body))
        return httpx.Response(200)

    monkeypatch.setattr(Conversation, "_as_staff", as_staff)
    return posted


def answer(staff_says: str, roles: list[str]) -> None:
    """Let a conversation answer one question after the other."""
    options = Options("x", "ada", {"customer": "yes", "staff": staff_says}, is_json=False)
    conversation = Conversation(SimpleNamespace(urls={}), options)  # type: ignore[arg-type]
    for n, role in enumerate(roles):
        action = {"step": 4, "approval": f"a-{n}", "role": role, "digest": "0", "title": "Refund"}
        shown = {"lines": [], "from": [], "to": [], "reason": "", "expires_at": "2026-01-01T00:00"}
        conversation._countersign(httpx.Client(), {"id": 7, "action": action | shown})


def test_two_questions_to_staff_are_answered_by_two_people(asked, capsys):
    answer("yes", ["staff", "second_staff"])

    assert [name for name, _ in asked] == ["staff", "staff2"]
    assert {body["decision"] for _, body in asked} == {"yes"}
    assert "another member of staff says yes" in capsys.readouterr().out


def test_a_no_for_staff_holds_for_the_second_too_with_a_reason(asked):
    answer("no", ["second_staff"])

    ((name, body),) = asked
    assert (name, body["decision"]) == ("staff2", "no")
    assert body["reason"]
