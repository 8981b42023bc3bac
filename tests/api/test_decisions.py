"""A yes or no over the API: for these bytes, by this person, once."""

import time
from typing import Any

import pytest

from accounts.models import User
from agents.models import Task
from approvals import services as approvals
from approvals.models import Approval
from audit.models import Event
from tests.api.clients import Api, everything, problem, wait_for_yes
from tests.factories import make_approver
from tools.models import Operation

pytestmark = pytest.mark.django_db


def answer_to(api: Api, approval: Approval, decision: Any = "yes", **more: Any) -> Any:
    """The decision, posted to where the action's step is."""
    operation = approval.operation
    return api.post(
        f"/v1/tasks/{operation.task_id}/approvals/{operation.step_n}",
        {"decision": decision, "digest": approval.digest} | more,
    )


@pytest.fixture
def asked(ada: Api) -> Approval:
    """Ada is asked about $40.00."""
    return wait_for_yes(ada.ask())


@pytest.fixture
def for_staff(ada: Api) -> Approval:
    """Staff are asked about $400.00, after Ada's yes."""
    first = wait_for_yes(ada.ask(), price=40_000)
    assert answer_to(ada, first).status_code == 200
    return Approval.objects.get(operation=first.operation, role="staff")


def state(approval: Approval) -> str:
    return str(Operation.objects.get(pk=approval.operation_id).state)


def test_the_customers_yes_lets_the_change_be_sent(ada: Api, asked: Approval):
    answer = answer_to(ada, asked)

    assert answer.status_code == 200
    body = answer.json()
    assert (body["role"], body["decision"], body["status"]) == ("customer", "yes", "approved")
    assert body["operation"]["state"] == state(asked) == "approved"
    assert body["operation"]["granted_roles"] == ["customer"]
    assert Event.objects.get(action="approval.granted").actor == "customer:ada"


def test_the_customers_no_ends_it(ada: Api, asked: Approval):
    answer = answer_to(ada, asked, "no", reason="I keep it")

    assert (answer.status_code, answer.json()["status"]) == (200, "rejected")
    assert state(asked) == "rejected"
    assert Approval.objects.get(pk=asked.pk).reason == "I keep it"


def test_over_the_limit_staff_are_asked_after_the_customer(ada: Api, staff: Api, dana: User):
    first = wait_for_yes(task := ada.ask(), price=40_000)

    assert answer_to(ada, first).json()["operation"]["state"] == "awaiting_approval"
    action = staff.get(f"/v1/tasks/{task.pk}").json()["action"]
    answer = staff.post(
        f"/v1/tasks/{task.pk}/approvals/{action['step']}",
        {"decision": "yes", "digest": action["digest"]},
    )

    assert action["role"] == "staff"
    assert (answer.status_code, answer.json()["role"]) == (200, "staff")
    assert state(first) == "approved"
    assert Event.objects.filter(action="approval.granted").latest("pk").actor == dana.actor


def test_over_the_second_limit_two_of_staff_answer_and_each_click_is_their_own(
    ada: Api, staff: Api, signer: Any
):
    signer.shop.second_limit = 30_000
    signer.shop.save(update_fields=["second_limit"])
    other = Api.staff(make_approver(signer.shop))
    first = wait_for_yes(task := ada.ask(), price=40_000)
    answer_to(ada, first)

    said = answer_to(staff, first)
    assert (said.status_code, said.json()["role"]) == (200, "staff")
    assert said.json()["operation"]["state"] == "awaiting_approval"
    assert ada.get(f"/v1/tasks/{task.pk}").json()["action"]["role"] == "second_staff"
    before = everything()
    again = answer_to(staff, first)
    assert (again.status_code, again.json()) == (200, said.json())
    assert everything() == before

    last = answer_to(other, first)
    assert (last.status_code, last.json()["role"]) == (200, "second_staff")
    assert last.json()["operation"]["granted_roles"] == ["customer", "second_staff", "staff"]
    assert state(first) == "approved"


def test_staff_are_told_why_an_answer_is_not_theirs_to_give(ada: Api, signer: Any):
    asked = wait_for_yes(ada.ask(), price=40_000)
    answer_to(ada, asked)
    narrow = Api.staff(make_approver(signer.shop, approve_up_to=100))
    before = everything()

    answer = answer_to(narrow, asked)

    document = problem(answer, 403, "wrong-role")
    assert document["detail"].startswith("You may say yes to $1.00 at most, and this is $400.00.")
    assert everything() == before


def test_a_decision_sent_again_is_answered_again_and_decides_nothing_more(
    ada: Api, asked: Approval
):
    first = answer_to(ada, asked, decision_id="click-1")
    before = everything()

    again = answer_to(ada, asked, decision_id="click-1")

    assert (again.status_code, again.json()) == (200, first.json())
    assert everything() == before


def test_other_bytes_than_the_sealed_ones_are_refused_with_what_waits_now(
    ada: Api, asked: Approval
):
    before = everything()

    answer = answer_to(ada, asked, digest="0" * 64)

    document = problem(answer, 409, "superseded")
    assert document["action"]["digest"] == asked.digest
    assert everything() == before


def test_a_yes_for_one_step_is_none_for_another(ada: Api, asked: Approval):
    task = asked.operation.task_id
    body = {"decision": "yes", "digest": asked.digest}
    before = everything()

    for step in (1, 3):
        problem(ada.post(f"/v1/tasks/{task}/approvals/{step}", body), 404, "not-found")

    assert everything() == before


def test_a_yes_for_one_action_is_none_for_another_task(ada: Api, asked: Approval):
    other = wait_for_yes(ada.ask())
    before = everything()

    answer = answer_to(ada, other, digest=asked.digest)

    problem(answer, 409, "superseded")
    assert everything() == before


def test_too_late_is_a_410_whether_or_not_the_question_has_been_closed(ada: Api, signer):
    signer.shop.customer_approval_seconds = 1
    signer.shop.save(update_fields=["customer_approval_seconds"])
    asked = wait_for_yes(ada.ask())
    time.sleep(1.1)
    before = everything()

    assert problem(answer_to(ada, asked), 410, "expired")["expires_at"]
    assert everything() == before

    assert approvals.expire_due() == 1
    before = everything()
    problem(answer_to(ada, asked), 410, "expired")
    assert everything() == before


def test_a_withdrawn_question_is_superseded(ada: Api, asked: Approval):
    ada.post(f"/v1/tasks/{asked.operation.task_id}/cancel")
    before = everything()

    assert problem(answer_to(ada, asked), 409, "superseded")["action"] is None

    assert everything() == before


def test_the_customer_cannot_answer_for_staff(ada: Api, for_staff: Approval):
    before = everything()

    # A yes without a name is the first one again; nothing lets a customer speak for staff.
    replayed = answer_to(ada, for_staff)
    assert (replayed.status_code, replayed.json()["role"]) == (200, "customer")
    for body in ({"role": "staff"}, {"as": "staff"}):
        problem(answer_to(ada, for_staff, **body), 422, "invalid")

    assert everything() == before
    assert Approval.objects.get(pk=for_staff.pk).status == "open"
    assert state(for_staff) == "awaiting_approval"


def test_staff_cannot_answer_for_the_customer(staff: Api, asked: Approval):
    before = everything()

    problem(answer_to(staff, asked), 403, "wrong-role")

    assert everything() == before


@pytest.mark.parametrize("who", ["auditor", "no_approver", "off_duty"])
def test_only_staff_with_the_right_countersign(who: str, signer, auditor: Api, for_staff: Approval):
    people = {
        "auditor": lambda: auditor,
        "no_approver": lambda: Api.staff(make_approver(signer.shop, is_approver=False)),
        "off_duty": lambda: Api.staff(make_approver(signer.shop, is_active=False)),
    }
    api = people[who]()
    before = everything()

    answer = answer_to(api, for_staff)

    if who == "off_duty":
        problem(answer, 401, "unauthenticated")
    else:
        problem(answer, 403, "wrong-role")
    assert everything() == before


def test_a_right_taken_away_counts_from_the_next_request(
    staff: Api, dana: User, for_staff: Approval
):
    User.objects.filter(pk=dana.pk).update(is_approver=False)
    before = everything()

    problem(answer_to(staff, for_staff), 403, "wrong-role")

    assert everything() == before


def test_staff_of_another_shop_find_nothing(other_staff: Api, for_staff: Approval):
    before = everything()

    problem(answer_to(other_staff, for_staff), 404, "not-found")

    assert everything() == before


def test_staff_say_why_when_they_say_no(staff: Api, for_staff: Approval):
    before = everything()

    for reason in ({}, {"reason": ""}, {"reason": "  "}):
        document = problem(answer_to(staff, for_staff, "no", **reason), 422, "invalid")
        assert document["errors"][0]["pointer"] == "#/reason"
    assert everything() == before

    answer = answer_to(staff, for_staff, "no", reason="Not our fault")

    assert (answer.status_code, answer.json()["status"]) == (200, "rejected")
    assert state(for_staff) == "rejected"


def test_the_second_member_of_staff_hears_who_decided_and_what(
    staff: Api, dana: User, signer, for_staff: Approval
):
    answer_to(staff, for_staff, "no", reason="Not our fault")
    before = everything()

    answer = answer_to(Api.staff(make_approver(signer.shop)), for_staff)

    document = problem(answer, 409, "decided-otherwise")
    assert document["decision"] == "rejected"
    assert (document["decided_by"], document["reason"]) == (dana.actor, "Not our fault")
    assert everything() == before


def test_the_customer_may_take_a_yes_back_until_it_is_sent(ada: Api, asked: Approval):
    answer_to(ada, asked)

    answer = answer_to(ada, asked, "no")

    assert answer.status_code == 200
    assert answer.json()["operation"]["state"] == state(asked) == "rejected"


def test_a_no_cannot_be_taken_back(ada: Api, asked: Approval):
    answer_to(ada, asked, "no")
    before = everything()

    document = problem(answer_to(ada, asked), 409, "decided-otherwise")

    assert document["decision"] == "rejected"
    assert "decided_by" not in document
    assert everything() == before


@pytest.mark.parametrize(
    "decision",
    ["YES ", "YES", "Yes", " yes", "yes\n", "y", "", "approve", "true", 1, True, None, ["yes"], {}],
)
def test_nothing_but_yes_and_no_is_a_decision(ada: Api, asked: Approval, decision: Any):
    before = everything()

    document = problem(answer_to(ada, asked, decision), 422, "invalid")

    assert [error["pointer"] for error in document["errors"]] == ["#/decision"]
    assert everything() == before


@pytest.mark.parametrize(
    "more",
    [
        {"digest": None},
        {"digest": ""},
        {"digest": "abc"},
        {"digest": 5},
        {"digest": "A" * 64},
        {"digest": "a" * 64 + "\n"},
        {"digest": ["a" * 64]},
        {"reason": "x" * 501},
        {"reason": 5},
        {"reason": "\u0000"},
        {"decision_id": 5},
        {"decision_id": "x" * 81},
        {"decision_id": "two words"},
        {"decision_id": "line\n"},
    ],
)
def test_bad_values_decide_nothing(ada: Api, asked: Approval, more: dict[str, Any]):
    before = everything()

    problem(answer_to(ada, asked, **more), 422, "invalid")

    assert everything() == before


def test_a_decision_needs_its_digest(ada: Api, asked: Approval):
    operation = asked.operation
    before = everything()

    answer = ada.post(
        f"/v1/tasks/{operation.task_id}/approvals/{operation.step_n}", {"decision": "yes"}
    )

    assert problem(answer, 422, "invalid")["errors"][0]["pointer"] == "#/digest"
    assert everything() == before


def test_a_decision_in_a_session_needs_its_csrf_token(staff: Api, for_staff: Approval):
    before = everything()
    token = staff.headers["X-CSRFToken"]

    for forged in ("", "0" * 32):
        staff.headers["X-CSRFToken"] = forged
        problem(answer_to(staff, for_staff), 403, "cross-site")
    assert everything() == before

    staff.headers["X-CSRFToken"] = token
    assert answer_to(staff, for_staff).status_code == 200


def test_a_decision_from_another_origin_is_refused(staff: Api, for_staff: Approval):
    before = everything()
    staff.headers["Origin"] = "https://evil.example"

    problem(answer_to(staff, for_staff), 403, "cross-site")

    assert everything() == before


def test_a_form_from_another_page_never_gets_as_far_as_a_decision(staff: Api, for_staff: Approval):
    operation = for_staff.operation
    before = everything()

    answer = staff.client.post(
        f"/v1/tasks/{operation.task_id}/approvals/{operation.step_n}",
        {"decision": "yes", "digest": for_staff.digest},
        headers=staff.headers,
    )

    problem(answer, 415, "unsupported-media-type")
    assert everything() == before


def test_runs_take_approve_and_reject(ada: Api):
    approved, rejected = wait_for_yes(ada.ask()), wait_for_yes(ada.ask())

    def decide(approval: Approval, decision: str) -> Any:
        operation = approval.operation
        return ada.post(
            f"/v1/runs/{operation.task_id}/approvals/{operation.step_n}",
            {"decision": decision, "digest": approval.digest},
        )

    problem(decide(approved, "yes"), 422, "invalid")
    assert decide(approved, "approve").json()["decision"] == "approve"
    assert decide(rejected, "reject").json()["decision"] == "reject"
    assert (state(approved), state(rejected)) == ("approved", "rejected")


def test_yes_as_a_message_decides_nothing(ada: Api, asked: Approval):
    task = Task.objects.get(pk=asked.operation.task_id)

    ada.post(f"/v1/tasks/{task.pk}/messages", {"message": "yes"})

    assert state(asked) == "awaiting_approval"
    assert Approval.objects.get().status == "open"
