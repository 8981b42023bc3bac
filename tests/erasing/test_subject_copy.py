"""A customer's own copy: all that is theirs, and nothing that is not."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts import keeping
from accounts.models import ErasureCause
from agents.casework import Note
from agents.models import Author, Message, Step, StepKind, StepStatus
from agents.services.erasure import erase_customer
from agents.subject_copy import make_copy
from approvals.models import Approval
from audit.models import Event
from tests.desk.telling import everything
from tests.desk.world import approver, stuck
from tests.factories import make_ticket, make_user
from tests.shop_floor import Buyer
from tools import settlement
from tools.models import Operation, State, Verdict

pytestmark = pytest.mark.django_db

# What staff and code keep among themselves.
PRIVATE = {
    "evidence": "evidencecanary",
    "note": "notecanary",
    "hold": "holdcanary",
    "verdict": "verdictcanary",
    "step": "stepcanary",
    "staff": "staffcanary",
}


def copy(buyer: Buyer) -> dict[str, Any]:
    made = make_copy(customer_id=buyer.row.pk, by="admin:root", now=timezone.now())
    return dict(json.loads(made.model_dump_json()))


def say(operation: Operation, seq: int, author: str, text: str, name: str = "") -> None:
    Message.objects.create(
        ticket_id=operation.ticket_id,
        seq=100 + seq,
        author=author,
        author_name=name,
        text=text,
        at=timezone.now(),
    )


@pytest.fixture
def operation(buyer: Buyer) -> Operation:
    """A refund of a customer, with everything that staff and code wrote about it."""
    operation = stuck(buyer)
    now = timezone.now()
    say(operation, 1, Author.CUSTOMER, "Mine is broken")
    say(operation, 2, Author.STAFF, "We look into it", PRIVATE["staff"])
    settlement.propose(
        operation_id=operation.pk,
        user_id=approver(operation).pk,
        outcome=State.SUCCEEDED,
        reference="re_books",
        evidence=PRIVATE["evidence"],
    )
    Note.objects.create(
        ticket_id=operation.ticket_id,
        author=make_user(operation.shop),
        text=PRIVATE["note"],
        at=now,
    )
    keeping.place_hold(customer_id=buyer.row.pk, reason=PRIVATE["hold"], by="admin:root", now=now)
    Verdict.objects.create(
        shop=operation.shop, customer=buyer.row, task_id=operation.task_id, step_n=1, tool="t",
        gate="shape", rule="r", finding="allow", inputs={"x": PRIVATE["verdict"]}, policy_version=1,
        at=now,
    )  # fmt: skip
    Step.objects.create(
        task_id=operation.task_id, n=1, kind=StepKind.TOOL, status=StepStatus.FINISHED,
        arguments="{}", result={"x": PRIVATE["step"]}, planned_at=now, finished_at=now,
    )  # fmt: skip
    return operation


def test_the_copy_holds_what_is_the_customer_s(buyer: Buyer, operation: Operation):
    made = copy(buyer)

    assert made["format"] == "countersign.subject-copy/1"
    assert made["customer"]["id"] == buyer.row.external_id
    assert made["customer"]["name"] == buyer.row.name
    (case,) = made["conversations"]
    said = [(one["who"], one["text"]) for one in case["messages"]]
    assert ("you", "Mine is broken") in said
    assert ("staff", "We look into it") in said
    (change,) = case["changes"]
    assert (change["kind"], change["order"], change["amount"], change["currency"]) == (
        "refund",
        operation.order_id,
        "40.00",
        "USD",
    )
    assert (change["state"], change["reference"]) == ("succeeded", "re_books")
    (decision,) = change["decisions"]
    assert (decision["who"], decision["answer"]) == ("you", "approved")
    assert decision["at"] is not None
    assert len(made["leave_to_act"]) == 1


def test_no_note_of_staff_no_verdict_and_nobody_else_is_in_it(
    new_buyer, buyer: Buyer, operation: Operation
):
    other = new_buyer()
    make_ticket(other.row, subject="othercanary")

    text = json.dumps(copy(buyer)).lower()

    assert [name for name, word in PRIVATE.items() if word in text] == []
    assert "othercanary" not in text
    assert other.row.external_id not in text
    assert "approver" not in text
    assert operation.idempotency_key not in text


def test_every_field_of_the_copy_is_named_in_the_manual(buyer: Buyer, operation: Operation):
    manual = Path("docs/privacy.md").read_text()
    section = manual[manual.index("## A customer's own copy") :]

    def names(value) -> set[str]:
        if isinstance(value, dict):
            return set(value) | {name for one in value.values() for name in names(one)}
        return {name for one in value for name in names(one)} if isinstance(value, list) else set()

    assert {name for name in names(copy(buyer)) if f"`{name}`" not in section} == set()


def test_the_copy_of_an_erased_customer_says_that_and_no_more(buyer: Buyer):
    operation = stuck(buyer)
    settlement.propose(
        operation_id=operation.pk,
        user_id=approver(operation).pk,
        outcome=State.SUCCEEDED,
        reference="re_books",
        evidence="x",
    )
    erase_customer(
        customer_id=buyer.row.pk, cause=ErasureCause.ASKED, by="admin:root", now=timezone.now()
    )

    made = copy(buyer)

    assert (made["customer"]["name"], made["customer"]["email"]) == ("", "")
    (case,) = made["conversations"]
    assert {one["text"] for one in case["messages"]} == {"[erased]"}
    assert [one["amount"] for one in case["changes"]] == ["40.00"]
    assert made["erasures"][0]["done_at"] is not None


def test_that_a_copy_was_made_is_on_the_trail(buyer: Buyer):
    copy(buyer)

    event = Event.objects.get(action="customer.copied")
    assert (event.actor, event.customer) == ("admin:root", buyer.row.external_id)
    assert event.shop_id == buyer.row.shop_id


def test_the_command_prints_the_same(buyer: Buyer, operation: Operation):
    out = StringIO()

    call_command(
        "subject_copy", buyer.row.shop.slug, buyer.row.external_id, "--by", "admin:root", stdout=out
    )

    made = json.loads(out.getvalue())
    assert made["conversations"] == copy(buyer)["conversations"]
    assert Approval.objects.filter(operation=operation).exists()


@pytest.mark.parametrize("other", ["shop", "customer"])
def test_the_command_finds_nobody_in_another_shop(buyer: Buyer, other: str):
    names = {"shop": buyer.row.shop.slug, "customer": buyer.row.external_id} | {other: "nobody"}
    before = everything()

    with pytest.raises(CommandError, match="no such customer"):
        call_command("subject_copy", names["shop"], names["customer"])

    assert everything() == before
