"""Two of staff above a second limit, and how far a right reaches: what people see, and may press."""

import re
from typing import Any

import pytest
from django.db.models import QuerySet
from django.test import Client
from django.urls import reverse

from accounts.models import Customer, Role, Shop, User
from approvals.entitlement import Bar, bar_to, with_bars
from approvals.models import STAFF_ROLES, Approval, Handling
from audit.models import Event
from tests.console.desk import (
    changes,
    decide,
    make_person,
    make_question,
    operation_of,
    page_of,
    poll_of,
    text_of,
)
from tests.console.test_admin import form_of
from tests.factories import make_shop, say_yes
from tools.facts import FactsNow

INBOX = reverse("console:queue")
APPROVE = 'name="decision" value="approve"'
REJECT = 'name="decision" value="reject"'
FIRST_TOO = "You gave the first yes."


@pytest.fixture
def shop(db) -> Shop:
    return make_shop(name="Juniper & Clay", second_limit=50_000)


@pytest.fixture
def erin(shop: Shop) -> User:
    return make_person(shop, "erin", is_approver=True)


@pytest.fixture
def first(shop: Shop) -> Approval:
    """A refund of $600.00 about which the first of two is asked."""
    return make_question(shop, price=60_000)


@pytest.fixture
def second(first: Approval, approver: User) -> Approval:
    """The question to the second, after Dana's yes."""
    say_yes(operation_of(first), approver)
    return Approval.objects.select_related("operation").get(
        operation=first.operation_id, role=Role.SECOND_STAFF
    )


def buttons(page: str) -> tuple[bool, bool]:
    return APPROVE in page, REJECT in page


def count_in(page: str) -> tuple[str, str]:
    """How many wait: in the title, and in the menu."""
    title = re.search(r"<title>(.*?)Approvals", page)
    menu = re.search(r'id="nav-count"[^>]*>(.*?)<', page)
    assert title is not None
    return title[1], menu[1] if menu else ""


def bars_of(questions: QuerySet[Approval], person: User) -> list[str]:
    return [each.bar for each in with_bars(questions, person)]  # type: ignore[attr-defined]


def everything(approval: Approval) -> tuple[Any, ...]:
    """All that a decision could have changed."""
    operation = operation_of(approval)
    asked = Approval.objects.filter(operation=operation).order_by("pk")
    return operation.state, operation.granted_roles, list(asked.values()), changes().count()


def several(client: Client, approvals: list[Approval], what: str, **fields: Any) -> str:
    """Press a button below the inbox."""
    token = client.get(INBOX).context["csrf_token"]
    chosen = {"approval": [str(each.public_id) for each in approvals], "what": what}
    given = {"csrfmiddlewaretoken": token, "decision_id": "", **chosen, **fields}
    return text_of(client.post(reverse("console:several"), given))


# --- Two people -----------------------------------------------------------------------------------


def test_the_first_is_told_that_another_one_follows(first, approver, sign_in):
    client = sign_in(approver)

    row, page = text_of(client.get(INBOX)), text_of(client.get(page_of(first)))

    assert "first of two" in row
    assert "$600.00 &gt; $500.00" in row
    assert "Two members of staff are asked because $600.00 &gt; $500.00" in page
    assert "Another member of staff is asked after you." in page
    assert buttons(page) == (True, True)


def test_the_second_is_told_who_was_the_first_and_when(second, erin, sign_in):
    client = sign_in(erin)

    row, page = text_of(client.get(INBOX)), text_of(client.get(page_of(second)))

    for text in (row, page):
        assert "second of two: approved by staff:dana, " in text
    assert buttons(page) == (True, True)


def test_whoever_was_the_first_has_no_button_and_what_they_post_is_refused(
    second, approver, sign_in
):
    client = sign_in(approver)
    page = text_of(client.get(page_of(second)))
    assert buttons(page) == (False, False)
    assert FIRST_TOO in page
    before = everything(second)

    for decision in ("approve", "reject"):
        answer = decide(client, second, decision)

        assert answer.status_code == 403
        assert f"{FIRST_TOO} The second has to come from another member of staff." in text_of(
            answer
        )
    assert everything(second) == before


def test_both_yeses_let_it_be_sent(first, approver, erin, sign_in):
    answer = decide(sign_in(approver), first, "approve")
    page = text_of(sign_in(approver).get(answer.headers["Location"]))
    second = Approval.objects.select_related("operation").get(role=Role.SECOND_STAFF)

    assert "It needs a second person" in page
    assert page_of(second) in page
    assert operation_of(first).state == "awaiting_approval"

    answer = decide(sign_in(erin), second, "approve")

    assert answer.status_code == 302
    assert operation_of(first).state == "approved"
    granted = Event.objects.filter(action="approval.granted").order_by("pk")
    assert list(granted.values_list("actor", flat=True))[1:] == ["staff:dana", "staff:erin"]


def test_an_open_inbox_hears_of_the_second_question(first, approver, erin, sign_in):
    client = sign_in(erin)
    poll = poll_of(text_of(client.get(INBOX)), "queue")
    assert client.get(poll, headers={"HX-Request": "true"}).status_code == 204

    say_yes(operation_of(first), approver)

    news = text_of(client.get(poll, headers={"HX-Request": "true"}))
    assert "second of two: approved by staff:dana" in news


def test_whoever_was_the_first_still_sees_the_second_question_and_why_it_is_not_theirs(
    second, approver, sign_in
):
    client = sign_in(approver)

    page = text_of(client.get(INBOX))

    assert page_of(second) in page
    assert f"{FIRST_TOO} The second has to come from another member of staff." in page
    assert "1 approval waits for staff, none for you" in page
    assert count_in(page) == ("", "")


def test_the_others_and_those_who_only_read_are_told_of_the_second_question(
    second, shop, erin, sign_in
):
    readers = [make_person(shop, "gil"), make_person(shop, "hana", role=Role.AUDITOR)]
    for person in (erin, *readers):
        page = text_of(sign_in(person).get(INBOX))

        assert count_in(page) == ("(1) ", "1")
        assert "1 approval waits for staff\n" in page
        assert FIRST_TOO not in page


def test_an_open_inbox_counts_one_less_after_a_first_yes(first, shop, approver, sign_in):
    make_question(shop)
    client = sign_in(approver)
    page = text_of(client.get(INBOX))
    assert count_in(page) == ("(2) ", "2")

    say_yes(operation_of(first), approver)

    news = text_of(client.get(poll_of(page, "queue"), headers={"HX-Request": "true"}))
    assert count_in(news) == ("(1) ", "1")
    assert "2 approvals wait for staff, 1 of them for you" in news


def test_what_is_not_of_ones_kind_or_about_oneself_is_not_counted_either(first, shop, sign_in):
    gus = make_person(shop, "gus", is_approver=True, approve_kinds=["cancel"])
    ida = make_person(shop, "ida", is_approver=True, email="Ida@home.example")
    Customer.objects.update(email="ida@home.example")

    for person, why in (
        (gus, "does not reach to this kind of change (refund)"),
        (ida, "You may not answer this question."),
    ):
        page = text_of(sign_in(person).get(INBOX))

        assert why in page
        assert count_in(page) == ("", "")


def test_the_list_bars_whom_the_answer_bars(second, approver, shop, erin):
    """Each of these people once, before the first question and before the second."""
    Customer.objects.filter(pk=second.operation.customer_id).update(email="ida@home.example")
    people = [
        approver,
        erin,
        make_person(shop, "dan", is_approver=True, email="Twin@shop.example"),
        make_person(shop, "dora", is_approver=True, email="twin@shop.example "),
        make_person(shop, "gus", is_approver=True, approve_kinds=["cancel"]),
        make_person(shop, "ida", is_approver=True, email="Ida@home.example"),
        make_person(shop, "fay", is_approver=True, approve_up_to=1),
        make_person(None, "kim", role=Role.ADMIN, is_approver=True),
    ]
    by_twin = make_question(shop, price=60_000)
    say_yes(operation_of(by_twin), people[2])
    make_question(shop, price=70_000)
    asked = Approval.objects.filter(role__in=STAFF_ROLES, status="open").order_by("pk")

    for person in people:
        found = bars_of(asked, person)

        bars = [
            bar_to(person.pk, each.operation, role=each.role, is_yes=False)
            for each in asked.select_related("operation__customer")
        ]
        assert found == [bar.value if bar else "" for bar in bars], person
    assert bars_of(asked, people[3]) == ["", Bar.SAME_PERSON.value, ""]
    assert bars_of(asked, people[5]) == [Bar.NO_RIGHT.value, "", ""]


def test_one_person_is_asked_and_nothing_of_two_is_said_below_the_second_limit(
    shop, approver, sign_in
):
    approval = make_question(shop, price=50_000)
    client = sign_in(approver)

    texts = [text_of(client.get(address)) for address in (INBOX, page_of(approval))]

    assert not any("of two" in text or "Two members" in text for text in texts)


def test_the_second_question_is_not_assigned_to_the_first(second, approver, erin, sign_in):
    client = sign_in(erin)

    told = several(client, [second], "assign", to=str(approver.pk))
    assert "dana may not answer this question." in told
    assert not Handling.objects.filter(assigned_to=approver).exists()

    several(client, [second], "assign", to=str(erin.pk))
    assert Handling.objects.get(approval=second).assigned_to == erin


def test_of_several_the_first_cannot_reject_their_second_question(second, approver, sign_in):
    before = everything(second)

    told = several(sign_in(approver), [second], "reject", reason="Changed my mind.")

    assert FIRST_TOO in told
    assert everything(second) == before


def test_the_task_shows_both_questions_and_why_two_were_asked(second, approver, sign_in):
    page = text_of(
        sign_in(approver).get(reverse("console:task", args=[operation_of(second).task_id]))
    )

    assert page_of(second) in page
    assert "second staff" in page
    assert "two different members of staff were asked" in page


def test_a_forbidden_yes_does_not_end_a_question_whose_order_has_changed(
    second, approver, sign_in, monkeypatch
):
    client = sign_in(approver)
    before = everything(second)
    monkeypatch.setattr("approvals.views.look_up", lambda *_: FactsNow([], has_changed=True))

    assert decide(client, second, "approve").status_code == 403

    assert everything(second) == before


# --- What a right reaches to ----------------------------------------------------------------------


def test_above_their_sum_the_page_says_why_and_offers_the_no_alone(first, shop, sign_in):
    fay = make_person(shop, "fay", is_approver=True, approve_up_to=40_000)
    client = sign_in(fay)
    page = text_of(client.get(page_of(first)))
    assert buttons(page) == (False, True)
    assert "You may say yes to $400.00 at most, and this is $600.00." in page
    before = everything(first)

    answer = decide(client, first, "approve")

    assert answer.status_code == 403
    assert "You may say yes to $400.00 at most" in text_of(answer)
    assert everything(first) == before

    assert decide(client, first, "reject").status_code == 302
    assert operation_of(first).state == "rejected"


def test_of_another_kind_of_change_the_page_says_so_and_offers_nothing(first, shop, sign_in):
    gus = make_person(shop, "gus", is_approver=True, approve_kinds=["cancel"])
    client = sign_in(gus)
    page = text_of(client.get(page_of(first)))
    assert buttons(page) == (False, False)
    assert "does not reach to this kind of change (refund)" in page
    before = everything(first)

    for decision in ("approve", "reject"):
        assert decide(client, first, decision).status_code == 403

    assert everything(first) == before


def test_a_right_that_shrinks_while_the_page_is_open_counts_at_the_click(first, approver, sign_in):
    client = sign_in(approver)
    assert buttons(text_of(client.get(page_of(first)))) == (True, True)
    User.objects.filter(pk=approver.pk).update(approve_up_to=100)
    before = everything(first)

    assert decide(client, first, "approve").status_code == 403

    assert everything(first) == before


def test_a_superuser_sets_how_far_a_right_reaches_and_it_is_recorded(shop, approver):
    root = Client()
    boss = make_person(None, "root", role=Role.ADMIN, is_superuser=True, is_staff=True)
    root.force_login(boss, backend="accounts.backends.ConsoleBackend")
    address = reverse("admin:accounts_user_change", args=[approver.pk])
    given = {"approve_up_to": "50000", "approve_kinds": ["refund", "cancel"]}

    answer = root.post(address, form_of(root, address) | given)

    assert answer.status_code == 302, answer.context["errors"]
    approver.refresh_from_db()
    assert (approver.approve_up_to, approver.approve_kinds) == (50_000, ["refund", "cancel"])
    event = Event.objects.get(action="user.changed")
    assert event.data["rights"] == {
        "approve_up_to": [None, 50_000],
        "approve_kinds": [None, ["refund", "cancel"]],
    }

    people = text_of(root.get(reverse("console:people")))
    assert "approver up to $500.00 (refund, cancel)" in people

    wide = form_of(root, address) | {"approve_up_to": "", "approve_kinds": []}
    assert root.post(address, wide).status_code == 302
    approver.refresh_from_db()
    assert (approver.approve_up_to, approver.approve_kinds) == (None, None)


@pytest.mark.parametrize("value", [{"approve_kinds": ["everything"]}, {"approve_up_to": "-1"}])
def test_a_right_to_what_there_is_not_is_refused(approver, value):
    root = Client()
    boss = make_person(None, "root", role=Role.ADMIN, is_superuser=True, is_staff=True)
    root.force_login(boss, backend="accounts.backends.ConsoleBackend")
    address = reverse("admin:accounts_user_change", args=[approver.pk])

    assert root.post(address, form_of(root, address) | value).status_code == 200

    approver.refresh_from_db()
    assert (approver.approve_up_to, approver.approve_kinds) == (None, None)
    assert not Event.objects.exists()
