"""POST /v1/forms: a customer's own call of a tool."""

from typing import Any

import pytest

from agents.models import Message, Step, Task, Ticket
from tests.api.clients import Api, everything, problem

pytestmark = pytest.mark.django_db

REFUND: dict[str, Any] = {
    "tool": "refund_order",
    "arguments": {"order_id": "#1042", "amount": "12", "reason": "damaged"},
    "locale": "de",
}


def test_a_form_starts_a_task_whose_first_step_is_its_call(ada: Api):
    answer = ada.post("/v1/forms", REFUND)

    assert answer.status_code == 201
    task = Task.objects.get()
    assert answer["Location"] == f"/v1/tasks/{task.pk}"
    assert (answer.json()["id"], task.workflow) == (task.pk, "form")
    step = Step.objects.get()
    assert (step.n, step.kind, step.tool, step.call_id) == (1, "tool", "refund_order", "form_1")
    assert step.arguments == '{"amount": "12.00", "order_id": "1042", "reason": "damaged"}'
    assert Message.objects.get().text == (
        "Bitte erstatten Sie Bestellung 1042\nBetrag: 12.00\nGrund: beschädigt angekommen"
    )
    assert (Ticket.objects.get().locale, Ticket.objects.get().subject) == (
        *("de", "Bitte erstatten Sie Bestellung 1042"),
    )


def test_the_same_key_gives_the_first_answer_and_makes_nothing_more(ada: Api):
    first = ada.post("/v1/forms", REFUND, key="k-1")
    before = everything()

    again = ada.post("/v1/forms", REFUND, key="k-1")

    assert again.json() == first.json()
    assert again["Idempotency-Replayed"] == "true"
    assert everything() == before


@pytest.mark.parametrize(
    ("change", "pointers"),
    [
        ({"tool": "close_ticket"}, ["#/tool"]),
        ({"arguments": {"order_id": "1042"}}, ["#/arguments/reason"]),
        ({"arguments": {**REFUND["arguments"], "customer": "bob"}}, ["#/arguments/customer"]),
        ({"arguments": []}, ["#/arguments"]),
        ({"locale": "de<b>"}, ["#/locale"]),
        ({"shop": "other"}, ["#/shop"]),
    ],
)
def test_a_bad_form_is_told_by_its_fields_and_changes_nothing(ada: Api, change, pointers):
    before = everything()

    answer = ada.post("/v1/forms", REFUND | change)

    told = problem(answer, 422, "invalid")
    assert [error["pointer"] for error in told["errors"]] == pointers
    assert everything() == before


def test_staff_fill_in_no_forms(staff: Api):
    before = everything()

    answer = staff.post("/v1/forms", REFUND)

    assert answer.status_code == 403
    assert everything() == before
