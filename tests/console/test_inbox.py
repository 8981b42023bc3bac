"""The inbox of the approvals: what a row tells, finding a question, and sharing them out."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import Customer, CustomerStatus
from approvals import handling
from approvals.models import Approval, Handling, Watch
from audit.models import Event
from tests.audit.facts import tamper
from tests.console.desk import (
    changes,
    make_person,
    make_question,
    operation_of,
    page_of,
    poll_of,
    text_of,
)
from tests.factories import (
    make_approved_operation,
    make_customer,
    make_line,
    make_operation,
    make_order,
    make_shop,
    say_no,
    say_yes,
)

HX = {"HX-Request": "true"}
INBOX = "/console/"


def post(client, address: str, **fields):
    """Send a form with the token of this session."""
    token = client.get(INBOX).context["csrf_token"]
    return client.post(address, {"csrfmiddlewaretoken": token} | fields)


def several(client, what: str, *approvals: Approval, **fields):
    ids = [str(approval.public_id) for approval in approvals]
    details = {"what": what, "approval": ids, "decision_id": "11111111-2222-3333-4444-555555555555"}
    return post(client, reverse("console:several"), **details | fields)


def handle(client, approval: Approval, what: str, **fields):
    return post(client, reverse("console:handle", args=[approval.public_id]), what=what, **fields)


def shown(client, *approvals: Approval, **query) -> list[bool]:
    page = text_of(client.get(INBOX, query))
    return [str(approval.public_id) in page for approval in approvals]


def move(approval: Approval, **hours: float) -> None:
    """Set a question's times relative to now, which nobody but a superuser of the database can."""
    for column, distance in hours.items():
        moment = timezone.now() + timedelta(hours=distance)
        tamper(f"UPDATE approvals_approval SET {column} = %s WHERE id = %s", [moment, approval.pk])  # noqa: S608


def trail(approval: Approval) -> list[str]:
    events = Event.objects.filter(subject=f"approval:{approval.public_id}").order_by("pk")
    return list(events.values_list("action", flat=True))


def test_a_row_tells_how_long_it_has_waited(shop, approver, sign_in):
    move(make_question(shop), asked_at=-3.5)

    assert "3 h 30 min ago" in text_of(sign_in(approver).get(INBOX))


def test_each_flag_is_shown_for_its_own_reason(shop, approver, sign_in):
    customer = make_customer(shop)
    client = sign_in(approver)
    order = make_order(make_line(40_000, quantity=2))
    refused = make_operation(customer, order, items=[{"item_id": order.lines[0].id, "quantity": 1}])
    say_yes(refused)
    say_no(refused, approver)
    make_question(shop, customer=customer, order=order)
    plain = make_question(shop)

    page = text_of(client.get(INBOX))

    assert page.count("Staff said no about this order before") == 1
    assert "Part of this order was refunded" not in page
    assert "Customer is blocked" not in page
    Customer.objects.filter(pk=plain.operation.customer_id).update(status=CustomerStatus.BLOCKED)
    assert "Customer is blocked" in text_of(client.get(INBOX))


def test_the_fourth_refund_of_a_month_is_flagged_and_the_third_is_not(shop, approver, sign_in):
    customer = make_customer(shop)
    client = sign_in(approver)
    said = "More than 3 refunds asked for in 30 days"
    for _ in range(2):
        make_operation(customer, make_order(make_line(1000)))
    make_question(shop, customer=customer)
    assert said not in text_of(client.get(INBOX))

    make_question(shop, customer=customer)

    assert said in text_of(client.get(INBOX))


def test_a_change_of_unknown_outcome_is_flagged_at_the_customers_next_question(
    shop, approver, sign_in
):
    customer = make_customer(shop)
    lost = make_approved_operation(customer, make_order(make_line(1000)))
    tamper(
        "UPDATE tools_operation SET state = 'unknown', first_sent_at = now() WHERE id = %s",
        [lost.pk],
    )
    make_question(shop, customer=customer)

    page = text_of(sign_in(approver).get(INBOX))

    assert "Another change of this customer has no known outcome" in page


def test_colleagues_see_who_has_a_question_open_for_as_long_as_they_have(shop, approver, sign_in):
    approval = make_question(shop)
    erin = make_person(shop, "erin", is_approver=True)
    client = sign_in(approver)
    poll = poll_of(text_of(client.get(INBOX)), "queue")

    address = reverse("console:watch", args=[approval.public_id])
    assert post(sign_in(erin), address).status_code == 204

    assert "open at erin" in text_of(client.get(poll, headers=HX))
    assert "open at erin" in text_of(client.get(page_of(approval)))
    assert "open at erin" not in text_of(sign_in(erin).get(INBOX))
    Watch.objects.update(seen_at=timezone.now() - timedelta(seconds=31))
    assert "open at erin" not in text_of(client.get(INBOX))


def test_reading_a_question_writes_nothing(shop, approver, sign_in):
    approval = make_question(shop)

    sign_in(approver).get(page_of(approval))

    assert not Watch.objects.exists()
    assert not Handling.objects.exists()


def test_every_part_of_the_filter_narrows_the_inbox(shop, approver, sign_in):
    ada = make_customer(shop, external_id="c-77", name="Zelda Quist")
    small = make_question(shop, customer=ada, price=15_000)
    big = make_question(shop, price=90_000)
    move(big, asked_at=-5)
    Customer.objects.filter(pk=big.operation.customer_id).update(status=CustomerStatus.BLOCKED)
    handling.assign(approval_id=big.pk, to=approver, by=approver, now=timezone.now())
    client = sign_in(approver)

    only_small = [
        {"q": "quist"},
        {"q": "C-77"},
        {"q": f"#{small.operation.order_id}"},
        {"q": str(small.operation.ticket_id)},
        {"most": "150"},
        {"person": "nobody"},
    ]
    only_big = [
        {"least": "150.01"},
        {"older": "4"},
        {"person": "mine"},
        {"person": str(approver.pk)},
        {"flagged": "on"},
    ]
    for query in only_small:
        assert shown(client, small, big, **query) == [True, False], query
    for query in only_big:
        assert shown(client, small, big, **query) == [False, True], query
    assert shown(client, small, big, kind="refund") == [True, True]
    assert shown(client, small, big, kind="cancel") == [False, False]
    assert "No approvals match." in text_of(client.get(INBOX, {"kind": "cancel"}))


@pytest.mark.parametrize(
    "query",
    [
        {"status": "burning"},
        {"least": "-1"},
        {"most": "lots"},
        {"person": "eve"},
        {"q": "a\x00b"},
        {"older": "x"},
    ],
)
def test_an_odd_filter_shows_nothing_and_says_so(shop, approver, sign_in, query):
    approval = make_question(shop)

    answer = sign_in(approver).get(INBOX, query)

    assert answer.status_code == 400
    assert "That filter cannot be read" in text_of(answer)
    assert str(approval.public_id) not in text_of(answer)


def test_an_answered_question_is_found_under_its_status(shop, approver, sign_in):
    approval = make_question(shop)
    say_no(approval.operation, approver)
    client = sign_in(approver)

    assert shown(client, approval) == [False]
    page = text_of(client.get(INBOX, {"status": "answered"}))

    assert str(approval.public_id) in page
    assert "rejected" in page
    assert "staff:dana" in page
    assert f"pick-{approval.public_id}" not in page


def test_a_question_put_off_leaves_the_inbox_and_the_count_until_its_time(shop, approver, sign_in):
    approval = make_question(shop)
    client = sign_in(approver)

    assert handle(client, approval, "snooze", minutes="60").status_code == 302

    page = text_of(client.get(INBOX))
    assert str(approval.public_id) not in page
    assert "<title>Approvals · Countersign</title>" in page
    assert "put off until" in text_of(client.get(INBOX, {"status": "snoozed"}))
    assert trail(approval)[-1] == "approval.snoozed"
    Handling.objects.update(snoozed_until=timezone.now())
    assert shown(client, approval) == [True]


def test_a_question_is_put_off_until_an_hour_before_its_deadline_at_most(shop, approver, sign_in):
    approval = make_question(shop)
    move(approval, expires_at=2)
    client = sign_in(approver)

    assert handle(client, approval, "snooze", minutes="240").status_code == 302

    approval = Approval.objects.get(pk=approval.pk)
    until = Handling.objects.get(approval=approval).snoozed_until
    assert until == approval.expires_at - timedelta(hours=1)
    move(approval, expires_at=0.9)
    answer = handle(client, approval, "snooze", minutes="15")
    assert answer.status_code == 409
    assert "Its deadline is too near" in text_of(answer)
    assert Handling.objects.get(approval=approval).snoozed_until == until


def test_what_was_put_off_can_be_brought_back_and_decided(shop, approver, sign_in):
    approval = make_question(shop)
    client = sign_in(approver)
    handle(client, approval, "snooze", minutes="60")

    assert handle(client, approval, "wake").status_code == 302

    assert shown(client, approval) == [True]
    assert trail(approval)[-2:] == ["approval.snoozed", "approval.woken"]


def test_a_question_is_given_to_a_colleague_who_may_answer_it_only(shop, approver, sign_in):
    approval = make_question(shop)
    erin = make_person(shop, "erin", is_approver=True)
    client = sign_in(approver)

    assert handle(client, approval, "assign", to=str(erin.pk)).status_code == 302
    assert 'mark-who">erin' in text_of(client.get(INBOX))
    events = changes().count()

    others = (make_person(shop, "sam"), make_person(make_shop(), "stranger", is_approver=True))
    for other in (*(str(person.pk) for person in others), "999999999"):
        assert handle(client, approval, "assign", to=other).status_code == 409
    assert Handling.objects.get().assigned_to == erin
    assert changes().count() == events

    handle(client, approval, "assign", to="")
    assert Handling.objects.get().assigned_to is None
    given = Event.objects.filter(action="approval.assigned").order_by("pk")
    assert [event.data for event in given] == [{"to": erin.actor}, {"to": ""}]
    assert {event.actor for event in given} == {approver.actor}


def test_an_answered_question_is_neither_assigned_nor_put_off(shop, approver, sign_in):
    approval = make_question(shop)
    say_no(approval.operation, approver)
    events = changes().count()

    for what in ("assign", "snooze", "wake"):
        answer = handle(sign_in(approver), approval, what, to=str(approver.pk))
        assert answer.status_code == 409
        assert "It is answered already." in text_of(answer)
    assert not Handling.objects.exists()
    assert changes().count() == events


def test_several_are_rejected_and_each_that_could_not_be_says_why(shop, approver, sign_in):
    first, second, decided = (make_question(shop) for _ in range(3))
    say_yes(decided.operation, make_person(shop, "erin", is_approver=True))
    foreign = make_question(make_shop())

    answer = several(
        sign_in(approver), "reject", first, second, decided, foreign, reason="Closed for today."
    )

    page = text_of(answer)
    assert answer.status_code == 200
    assert "2 done, 1 not" in page
    assert page.count("Somebody has decided it already.") == 1
    assert [operation_of(a).state for a in (first, second, decided, foreign)] == [
        "rejected",
        "rejected",
        "approved",
        "awaiting_approval",
    ]
    assert operation_of(first).reason == "Closed for today."


def test_several_without_a_reason_are_not_rejected(shop, approver, sign_in):
    approvals = [make_question(shop) for _ in range(2)]

    page = text_of(several(sign_in(approver), "reject", *approvals, reason=" "))

    assert page.count("Say why") == 2
    assert {operation_of(approval).state for approval in approvals} == {"awaiting_approval"}


def test_several_are_assigned_and_put_off(shop, approver, sign_in):
    approvals = [make_question(shop) for _ in range(2)]
    client = sign_in(approver)

    several(client, "assign", *approvals, to=str(approver.pk))
    several(client, "snooze", *approvals, minutes="60")

    for approval in approvals:
        row = Handling.objects.get(approval=approval)
        assert row.assigned_to == approver
        assert row.snoozed_until is not None
    assert shown(client, *approvals) == [False, False]


@pytest.mark.parametrize("what", ["approve", "", "yes"])
def test_there_is_no_yes_for_several(shop, approver, sign_in, what):
    approvals = [make_question(shop) for _ in range(2)]
    events = changes().count()

    answer = several(sign_in(approver), what, *approvals)

    assert answer.status_code == 422
    assert {operation_of(approval).state for approval in approvals} == {"awaiting_approval"}
    assert changes().count() == events


def test_choosing_nothing_or_nonsense_changes_nothing(shop, approver, sign_in):
    make_question(shop)
    events = changes().count()
    client = sign_in(approver)

    answer = post(
        client, reverse("console:several"), what="reject", reason="No.", approval=["x", "1"]
    )

    assert answer.status_code == 422
    assert changes().count() == events


def test_a_person_without_the_right_is_offered_no_way_to_change_anything(shop, auditor, sign_in):
    approval = make_question(shop)
    client = sign_in(auditor)

    for page in (text_of(client.get(INBOX)), text_of(client.get(page_of(approval)))):
        assert 'name="approval"' not in page
        assert "Assign" not in page
        assert "Take over" not in page
